/*
Copyright 2026 The koord-jobqueue Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package queue

import (
	"strconv"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Check is a filter of an extension. Key must be a function of the unit alone, and Check as well until Recheck is
// called.
type Check interface {
	// Key is equal for units that Check answers alike, so that the cost of a decision does not depend on the number of
	// pending units. With the key of the unit as Key, units are checked one by one.
	Key(u unit.Unit) string
	// Check returns the reason why the unit must not be admitted and a sentence, or an empty reason.
	// A unit that is stopped claims nothing, also in a blocking queue.
	Check(u unit.Unit) (unit.Reason, string)
}

// Checks are all filters of extensions.
type Checks []Check

// Answer is what the checks say to units that they answer alike. An empty reason lets them pass.
type Answer struct {
	asked   bool
	Reason  unit.Reason
	Message string
}

// Keys joins the equivalence keys of a unit.
func (x Checks) Keys(u *unit.Unit) string {
	var b strings.Builder
	for _, check := range x {
		b.WriteString(strconv.Quote(check.Key(*u)))
	}
	return b.String()
}

// Ask asks about a unit, unless that was done before. The empty answer has it asked again.
func (x Checks) Ask(u *unit.Unit, before Answer) Answer {
	if before.asked || len(x) == 0 {
		return before
	}
	said := Answer{asked: true}
	for _, check := range x {
		if said.Reason, said.Message = check.Check(*u); said.Reason != "" {
			break
		}
	}
	return said
}
