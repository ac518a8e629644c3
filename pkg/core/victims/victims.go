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

package victims

import (
	"maps"
	"slices"
	"strings"
)

// Book has the preemptors, with the holds of their victims, as unit.Unit.Hold names them.
type Book struct {
	byKey map[string]preemptor
	// preempted has the key of the preemptor of each hold. wanted counts, of each hold, the units that begin to preempt
	// it.
	preempted map[string]string
	wanted    map[string]int
}

type preemptor struct{ quota, preempts, begins string }

// NewBook returns one without preemptors.
func NewBook() *Book {
	return &Book{byKey: map[string]preemptor{}, preempted: map[string]string{}, wanted: map[string]int{}}
}

// Set says which holds a unit of a quota preempts by now, joined by commas, and which it begins to preempt.
//
// preempted are the holds that it did not preempt before, or preempted for another quota. spared are the holds that it
// does not preempt any more. begun are the holds that it begins or began to preempt. A hold that another unit preempts
// stays with that unit.
func (b *Book) Set(key, quota, preempts, begins string) (preempted, spared, begun []string) {
	next := preemptor{quota, preempts, begins}
	if preempts == "" && begins == "" {
		next = preemptor{}
	}
	former := b.byKey[key]
	if former == next {
		return nil, nil, nil
	}
	if b.byKey[key] = next; next == (preemptor{}) {
		delete(b.byKey, key)
	}
	begun = slices.Concat(Holds(former.begins), Holds(begins))
	for _, hold := range Holds(former.begins) {
		if b.wanted[hold]--; b.wanted[hold] == 0 {
			delete(b.wanted, hold)
		}
	}
	for _, hold := range Holds(begins) {
		b.wanted[hold]++
	}
	holds := Holds(preempts)
	for _, hold := range Holds(former.preempts) {
		if b.preempted[hold] == key && !slices.Contains(holds, hold) {
			delete(b.preempted, hold)
			spared = append(spared, hold)
		}
	}
	for _, hold := range holds {
		if by, some := b.preempted[hold]; !some || by == key && former.quota != quota {
			b.preempted[hold] = key
			preempted = append(preempted, hold)
		}
	}
	return preempted, spared, begun
}

// Of is the quota of the preemptor of a hold; empty if it has none.
func (b *Book) Of(hold string) string { return b.byKey[b.preempted[hold]].quota }

// IsVictim says that a unit preempts a hold, or begins to.
func (b *Book) IsVictim(hold string) bool { return b.Of(hold) != "" || b.wanted[hold] > 0 }

// PreemptedBy are the holds that the unit with a key preempts, without those that another unit preempted first.
func (b *Book) PreemptedBy(key string) []string {
	return slices.DeleteFunc(Holds(b.byKey[key].preempts), func(hold string) bool { return b.preempted[hold] != key })
}

// Keys of the units that preempt or begin to, sorted.
func (b *Book) Keys() []string { return slices.Sorted(maps.Keys(b.byKey)) }

// Holds splits the names that Join has joined.
func Holds(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, ",")
}

// Join joins the names of holds, each once, in order.
func Join(holds []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(holds))), ",")
}
