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

package accounts

import (
	"cmp"
	"slices"
	"strings"
)

// Counts of one queue and quota, or of all quotas of a queue.
type Counts struct {
	Queue, Quota              string
	Pending, Admitted, Parked int
}

func (c *Counts) add(as Count, by int) {
	switch as {
	case Pending:
		c.Pending += by
	case Admitted:
		c.Admitted += by
	case Parked:
		c.Parked += by
	case Nothing:
	}
}

func (c *Counts) empty() bool { return c.Pending == 0 && c.Admitted == 0 && c.Parked == 0 }

func (a *Accounts) count(of Pair, as Count, by int) {
	if as == Nothing {
		return
	}
	a.counted[of] = struct{}{}
	addTo(a.byPair, of, Counts{Queue: of.Queue, Quota: of.Quota}, as, by)
	addTo(a.byQueue, of.Queue, Counts{Queue: of.Queue}, as, by)
}

// addTo changes the counts of a key, which begin with those of none. Counts of no unit are forgotten.
func addTo[K comparable](counts map[K]*Counts, key K, none Counts, as Count, by int) {
	c, ok := counts[key]
	if !ok {
		first := none
		c = &first
		counts[key] = c
	}
	if c.add(as, by); c.empty() {
		delete(counts, key)
	}
}

// Counts of all queue and quota pairs, sorted.
func (a *Accounts) Counts() []Counts {
	out := make([]Counts, 0, len(a.byPair))
	for _, c := range a.byPair {
		out = append(out, *c)
	}
	return sorted(out)
}

// ChangedCounts returns, once, the counts of the pairs where they may have changed since the last call, sorted; zeros
// where no unit is any more.
func (a *Accounts) ChangedCounts() []Counts {
	out := make([]Counts, 0, len(a.counted))
	for of := range a.counted {
		if c, ok := a.byPair[of]; ok {
			out = append(out, *c)
		} else {
			out = append(out, Counts{Queue: of.Queue, Quota: of.Quota})
		}
	}
	clear(a.counted)
	return sorted(out)
}

// CountsOf sums the counts of a queue over its quotas.
func (a *Accounts) CountsOf(queue string) Counts {
	if c, ok := a.byQueue[queue]; ok {
		return *c
	}
	return Counts{Queue: queue}
}

func sorted(list []Counts) []Counts {
	slices.SortFunc(list, func(a, b Counts) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Quota, b.Quota))
	})
	return list
}
