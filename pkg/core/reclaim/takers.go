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

package reclaim

import (
	"maps"
	"slices"
	"strings"
)

// Takers are the units that take back what others hold, with the holds that they take, as unit.Unit.Hold names them.
type Takers struct {
	byKey map[string]taker
	// taken are the keys of the takers, by what they take.
	taken map[string]string
}

type taker struct{ quota, takes string }

// MostHolds is the greatest number of holds that one unit takes; its object has no room for more.
const MostHolds = 1024

// NewTakers returns those of nobody.
func NewTakers() *Takers { return &Takers{byKey: map[string]taker{}, taken: map[string]string{}} }

// Set says which holds a unit of a quota takes by now, joined by commas, and whether it begins to take others. It
// returns those that it takes and did not, or did for another quota, and those that it does not take any more. A hold
// that another unit takes already stays with that one.
func (t *Takers) Set(key, quota, takes string, begins bool) (taken, spared []string) {
	next := taker{quota, takes}
	if takes == "" && !begins {
		next = taker{}
	}
	former := t.byKey[key]
	if former == next {
		return nil, nil
	}
	if t.byKey[key] = next; next == (taker{}) {
		delete(t.byKey, key)
	}
	holds := Holds(takes)
	for _, hold := range Holds(former.takes) {
		if t.taken[hold] == key && !slices.Contains(holds, hold) {
			delete(t.taken, hold)
			spared = append(spared, hold)
		}
	}
	for _, hold := range holds {
		if by, some := t.taken[hold]; !some || by == key && former.quota != quota {
			t.taken[hold] = key
			taken = append(taken, hold)
		}
	}
	return taken, spared
}

// Of is the quota of the unit that takes a hold; empty if none does.
func (t *Takers) Of(hold string) string { return t.byKey[t.taken[hold]].quota }

// Takes says that the unit with a key takes a hold.
func (t *Takers) Takes(key, hold string) bool {
	by, some := t.taken[hold]
	return some && by == key
}

// Keys of the units that take something or begin to, sorted.
func (t *Takers) Keys() []string { return slices.Sorted(maps.Keys(t.byKey)) }

// Holds takes apart what Join has joined.
func Holds(takes string) []string {
	if takes == "" {
		return nil
	}
	return strings.Split(takes, ",")
}

// Join joins the names of holds, each once, in order.
func Join(holds []string) string {
	return strings.Join(slices.Compact(slices.Sorted(slices.Values(holds))), ",")
}
