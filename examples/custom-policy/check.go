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

package main

import (
	"fmt"
	"strconv"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// reasonTooManyPods is the reason in the condition QuotaReserved of a unit that is too large.
const reasonTooManyPods unit.Reason = "TooManyPods"

// maxPods lets no job go that has more pods than most.
type maxPods struct{ most int64 }

// Key implements queue.Check: units with the same key have the same answer, so that it is asked for seldom.
func (c maxPods) Key(u unit.Unit) string { return strconv.FormatBool(u.Pods > c.most) }

// Check implements queue.Check.
func (c maxPods) Check(u unit.Unit) (unit.Reason, string) {
	if u.Pods <= c.most {
		return "", ""
	}
	return reasonTooManyPods, fmt.Sprintf("a job may have %d pods here", c.most)
}
