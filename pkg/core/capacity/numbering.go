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

package capacity

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// numbering gives every resource that a limit names a number: its place among their sorted names. A resource that no
// limit names has none, so whatever tenants ask for, vectors are as long as administrators name resources.
type numbering struct {
	names []string
	of    map[string]int
	uses  map[string]int
}

func newNumbering() numbering { return numbering{of: map[string]int{}, uses: map[string]int{}} }

func (n *numbering) len() int { return len(n.names) }

// count notes that a list names its resources, or forgets it, and says whether the numbers are others now.
func (n *numbering) count(list resources.List, by int) (changed bool) {
	for _, it := range list.Items() {
		before := n.uses[it.Name]
		n.uses[it.Name] = before + by
		if after := before + by; after == 0 {
			delete(n.uses, it.Name)
		}
		changed = changed || before == 0 || before+by == 0
	}
	if changed {
		n.names = n.names[:0]
		for name := range n.uses {
			n.names = append(n.names, name)
		}
		slices.Sort(n.names)
		clear(n.of)
		for i, name := range n.names {
			n.of[name] = i
		}
	}
	return changed
}

// Need is the vector of what a unit asks for: of what no limit names nothing, and so many places where units are
// counted.
func (t *Tree) Need(request resources.List, places int64) []int64 {
	need := make([]int64, t.numbers.len())
	for i, name := range t.numbers.names {
		need[i], _ = request.Get(name)
		if name == resources.Jobs {
			need[i] = places
		}
	}
	return need
}

// Number of a resource; false where no limit ever named it.
func (t *Tree) Number(resource string) (int, bool) {
	number, ok := t.numbers.of[resource]
	return number, ok
}

// Resource with this number.
func (t *Tree) Resource(number int) string { return t.numbers.names[number] }
