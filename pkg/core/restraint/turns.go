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

package restraint

import (
	"cmp"
	"slices"
	"time"
)

// Turns has quotas take turns: many requests of one quota delay those of the same quota alone. The zero value has
// looked for nobody.
type Turns struct{ last map[string]time.Time }

// Request for a search for victims. Searched is when the last search was made for it.
type Request struct {
	Quota    string
	Searched time.Time
}

// Order returns the indexes of the requests to search for now, at most so many. The first of each quota comes before
// the second of any. Within that, the request without a search for longest is first.
func (t *Turns) Order(now time.Time, requests []Request, most int) []int {
	last, order := make(map[string]time.Time, len(requests)), make([]int, len(requests))
	for i, r := range requests {
		last[r.Quota], order[i] = t.last[r.Quota], i
	}
	t.last = last
	slices.SortStableFunc(order, func(a, b int) int { return requests[a].Searched.Compare(requests[b].Searched) })
	round, rounds := make([]int, len(requests)), map[string]int{}
	for _, i := range order {
		round[i] = rounds[requests[i].Quota]
		rounds[requests[i].Quota]++
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(round[a], round[b]), last[requests[a].Quota].Compare(last[requests[b].Quota]))
	})
	order = order[:min(len(order), most)]
	for _, i := range order {
		last[requests[i].Quota] = now
	}
	return order
}
