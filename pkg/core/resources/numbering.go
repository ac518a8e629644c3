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

package resources

import "slices"

// Numbering gives every resource that a limit names a number: its place among their sorted names. A resource that no
// limit names has none, so whatever tenants ask for, vectors are as long as administrators name
type Numbering struct {
	names []string
	of    map[string]int
	uses  map[string]int
}

// NewNumbering is one without
func NewNumbering() Numbering { return Numbering{of: map[string]int{}, uses: map[string]int{}} }

// Len is how many numbers there are.
func (n *Numbering) Len() int { return len(n.names) }

// Names of the resources, by their numbers.
func (n *Numbering) Names() []string { return n.names }

// Of is the number of a resource; false where no limit names it.
func (n *Numbering) Of(name string) (int, bool) {
	number, ok := n.of[name]
	return number, ok
}

// Count notes that a list names its resources, or forgets it, and says whether the numbers are others now.
func (n *Numbering) Count(list List, by int) (changed bool) {
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
