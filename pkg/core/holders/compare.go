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

package holders

import (
	"fmt"
	"slices"
	"strings"
)

// Difference of two indexes in one leaf.
type Difference struct{ Leaf, Have, Want string }

// Compare lists where an index differs from another one of the same units, as of its last Refresh.
func (x *Index[T]) Compare(o *Index[T]) (differences []Difference) {
	x.Refresh(x.now)
	o.Refresh(x.now)
	have, want := x.describe(), o.describe()
	for leaf, text := range have {
		if want[leaf] != text {
			differences = append(differences, Difference{leaf, text, want[leaf]})
		}
	}
	for leaf, text := range want {
		if have[leaf] == "" {
			differences = append(differences, Difference{leaf, "", text})
		}
	}
	return differences
}

// describe says, leaf by leaf, all that an index has.
func (x *Index[T]) describe() map[string]string {
	all := map[string]string{}
	for _, l := range x.inOrder {
		text := &strings.Builder{}
		for i, s := range l.sums() {
			fmt.Fprintln(text, s.units, s.list(), l.vectors[i])
		}
		classes := []string{}
		l.Classes(func(c *Class[T]) {
			of := fmt.Sprintf("%q", c.key)
			for _, p := range c.Parts() {
				of += fmt.Sprint(" ", p.Queue, p.Held)
			}
			c.members.Walk(func(h *Holder[T]) bool {
				of += fmt.Sprint(" ", h.first, len(h.Of), h.admitted.UnixNano(), h.until.UnixNano())
				return true
			})
			classes = append(classes, of)
		})
		slices.Sort(classes)
		for _, level := range l.route.Levels {
			for i, n := range x.held[level] {
				if n != 0 {
					fmt.Fprintln(text, level.Name(), x.tree.Resource(i), n)
				}
			}
		}
		all[l.name] = text.String() + strings.Join(classes, "\n")
	}
	return all
}
