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

package admission

import (
	"strconv"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// extensions are the checks that others brought.
type extensions []queue.Check

// keys joins the equivalence keys of a unit.
func (x extensions) keys(u *record) string {
	var b strings.Builder
	for _, check := range x {
		b.WriteString(strconv.Quote(check.Key(u.spec)))
	}
	return b.String()
}

// ask asks about the head of a group, once until something has it asked again.
func (x extensions) ask(g *group) answer {
	n := &g.Notes
	if n.answer.asked || len(x) == 0 {
		return n.answer
	}
	said := answer{asked: true}
	for _, check := range x {
		if said.reason, said.message = check.Check(g.Head().spec); said.reason != "" {
			break
		}
	}
	n.answer = said
	return said
}
