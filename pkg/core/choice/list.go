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

package choice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Most is how many quotas a list may have.
const Most = 8

// Check says what is wrong with a list.
func Check(names []string) error {
	if len(names) > Most {
		return fmt.Errorf("the list has %d quotas, at most %d are read", len(names), Most)
	}
	for i, name := range names {
		if name == "" || strings.ContainsAny(name, ", \t\n") {
			return fmt.Errorf("%.100q in the list is no name of a quota", name)
		}
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("quota %.100q is in the list twice", name)
		}
	}
	return nil
}

// Join makes one text of a list.
func Join(names []string) string { return strings.Join(names, ",") }

// Split reads a text, with blanks around the names or without.
func Split(text string) (names []string) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Names are the quotas in which a unit may be admitted in place of its own, in order. They are from the list of the
// unit, or else from its queue's list behind the unit's own quota. itself says that the unit has a list. The list of a
// queue holds only for jobs whose pods get the label of the quota when they are resumed.
func Names(u *unit.Unit, q *queue.Spec) (names []string, itself bool) {
	if u.Quotas != "" {
		return behind(Split(u.Quotas), u.Quota), true
	}
	if !relabelled(u) {
		return nil, false
	}
	return behind(q.Lists, u.Quota), false
}

// relabelled says that pods of the unit get the label of the quota that it is admitted in.
func relabelled(u *unit.Unit) bool { return u.ConsumerManaged && !u.Unsuspendable }

// Key is equal for units of a queue that are admitted in the same other quotas, and empty for units without other
// quotas. A list of the unit gives another key than the same list of the queue, because its faults park the unit.
func Key(u *unit.Unit, q *queue.Spec) string {
	names, itself := Names(u, q)
	if itself && len(names) > 0 {
		return "its own: " + Join(names)
	}
	return Join(names)
}

// behind is the rest of a list that begins with this quota; nothing of another list.
func behind(list []string, own string) []string {
	if len(list) == 0 || list[0] != own {
		return nil
	}
	return list[1:]
}
