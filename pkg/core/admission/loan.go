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

// Borrowing keeps shares from starving jobs that are larger than them (I6).
//
// Where the limit of a quota is its runtime, what is above all min is divided among all that ask for it. A job is
// admitted whole or not at all, so every one of these shares may be too small for the job that it is kept for, and
// everybody waits while nothing runs. So what nobody can use within the limits is lent: a unit is admitted beyond
// the runtime, up to max, if
//
//   - no unit waits that fits within its limits (a round of lending follows a pass that admitted nobody), or that would
//     on all levels if nothing were in use, and finds the capacity in use first on one that the loan would be taken
//     from: such a level is shut, for small loans could keep that unit waiting for ever;
//   - on every level up to the total it fits beside all that is admitted, used, asked for by pods outside of waiting
//     units, or kept by quotas that lend nothing: as if nobody else waited;
//   - on every level it fits beside the whole request of each blocking unit ahead of it, and min allows it as ever.
//
// Units borrow in the order in which they are served, one after the other with a pass in between. A loan is not taken
// back; it ends with the job.

// firstBorrower returns the first head that may borrow what it asks for, if any may. A pass without an admission came
// before.
func (p *pass) firstBorrower() *group {
	if !p.tree.AnyShared() {
		return nil
	}
	lending := p.lending
	lending.Begin()
	for i := range p.heads {
		if h := &p.heads[i]; h.entitled() {
			lending.Shut(h.first.Level())
		}
	}
	next := 0 // claim that is not counted yet
	for i := range p.heads {
		h := &p.heads[i]
		if h.stopped != "" || h.together {
			continue
		}
		behindOwn := h.blocks && !h.claims
		for ; next < h.ahead; next++ {
			c := &p.claims[next]
			lending.Claim(c.group.Notes.route, c.group.Notes.need)
		}
		if !behindOwn && !h.ofMin && lending.Allows(h.group.Notes.route, h.group.Notes.need) {
			return h.group
		}
	}
	return nil
}

// entitled says that a unit would fit on all levels if nothing were in use, and finds what it waits for in use first
// above its own quota. Then nothing is lent there.
func (h *head) entitled() bool {
	n := &h.group.Notes
	if h.together || h.ofMin || h.first == nil || !h.inUse || h.first.Level() == n.leaf() {
		return false
	}
	for _, l := range n.route.Levels {
		if !l.Within(n.need) {
			return false
		}
	}
	return true
}
