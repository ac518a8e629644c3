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
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// book holds the claims at one gate, in the order in which their units are served, and what waits for them. Where very
// many queues block at one gate, what comes free is claimed by the first of them; so the questions that are asked at every
// change are answered from the front of the book.
type book struct {
	claims *queue.Tree[*claim]
	// sum is what the claims ask for together; asking counts those that ask for a resource at all.
	sum    resources.Sum
	asking map[string]int
	// passing are the lines with a claim elsewhere whose path leads through here; passingSum is what they ask for together.
	passing    map[*line]struct{}
	passingSum resources.Sum
	// waiting are blocked groups that would fit but for the claims, by what they wait for and by their queue.
	waiting map[string]map[*unitLine]map[*group]struct{}
}

func newBook(s *State) book {
	return book{
		claims: queue.NewWeighedTree(s.compareClaims, claimedBy), asking: map[string]int{}, passing: map[*line]struct{}{},
		waiting: map[string]map[*unitLine]map[*group]struct{}{},
	}
}

// claimedBy is what a claim asks for.
func claimedBy(c *claim) resources.List { return c.unit.spec.Request }

// compareClaims is the order in which claims are served.
func (s *State) compareClaims(a, b *claim) int {
	q, other := a.group.queue, b.group.queue
	if q == other {
		return q.compare(q.spot(a.unit), q.spot(b.unit))
	}
	if c := s.compareQueues(q, other); c != 0 {
		return c
	}
	return strings.Compare(q.name, other.name)
}

func (b *book) enter(c *claim) {
	b.claims.Insert(c)
	b.sum.Add(c.unit.spec.Request)
	for _, it := range c.unit.spec.Request.Items() {
		if it.Amount > 0 {
			b.asking[it.Name]++
		}
	}
}

func (b *book) exit(c *claim) {
	b.claims.Delete(c)
	b.sum.Sub(c.unit.spec.Request)
	for _, it := range c.unit.spec.Request.Items() {
		if it.Amount > 0 {
			b.asking[it.Name]--
		}
	}
}

func (b *book) pass(c *claim) {
	b.passing[c.group.line] = struct{}{}
	b.passingSum.Add(c.unit.spec.Request)
}

func (b *book) passNoMore(c *claim) {
	delete(b.passing, c.group.line)
	b.passingSum.Sub(c.unit.spec.Request)
}

// claimed is what all claims ask for of a resource.
func (b *book) claimed(resource string) int64 {
	if resource == resources.Jobs {
		return int64(b.claims.Len())
	}
	return b.sum.Get(resource)
}

// passes is what all that pass ask for of a resource.
func (b *book) passes(resource string) int64 {
	if resource == resources.Jobs {
		return int64(len(b.passing))
	}
	return b.passingSum.Get(resource)
}

// allAsk says whether every claim asks for something of a resource.
func (b *book) allAsk(resource string) bool {
	return resource == resources.Jobs || b.asking[resource] == b.claims.Len()
}

func (b *book) wait(g *group) {
	queues := b.waiting[g.wait.resource]
	if queues == nil {
		queues = map[*unitLine]map[*group]struct{}{}
		b.waiting[g.wait.resource] = queues
	}
	if queues[g.queue] == nil {
		queues[g.queue] = map[*group]struct{}{}
	}
	queues[g.queue][g] = struct{}{}
}

func (b *book) waitNoMore(g *group) {
	queues := b.waiting[g.wait.resource]
	delete(queues[g.queue], g)
	if len(queues[g.queue]) == 0 {
		delete(queues, g.queue)
	}
	if len(queues) == 0 {
		delete(b.waiting, g.wait.resource)
	}
}

// wakeClaimWaiters wakes the groups that claims at the gate do not stop any more.
func (s *State) wakeClaimWaiters(gt *gate) {
	for resource, queues := range gt.book.waiting {
		free, limited := gt.freeOf(resource)
		if limited && free <= 0 {
			continue
		}
		var last *claim
		if limited {
			last = s.exhausts(gt, resource, free)
		}
		if last == nil {
			for _, groups := range queues {
				s.wakeUnstopped(groups)
			}
			continue
		}
		s.ranked.Walk(func(q *unitLine) bool {
			s.wakeUnstopped(queues[q])
			return q != last.group.queue
		})
	}
}

// exhausts is the claim with which nothing is left of a resource for what is served behind it; nil if there is none.
func (s *State) exhausts(gt *gate, resource string, free int64) (last *claim) {
	if gt.book.claimed(resource) < free {
		return nil
	}
	gt.book.claims.Walk(func(c *claim) bool {
		if free -= c.unit.needs(resource); free > 0 {
			return true
		}
		last = c
		return false
	})
	return last
}

func (s *State) wakeUnstopped(groups map[*group]struct{}) {
	for g := range groups {
		if !g.dirty && !s.stopped(g) {
			s.markDirty(g)
		}
	}
}

// stopped says whether a group that waits for claims is still short where it waits.
func (s *State) stopped(g *group) bool {
	free, limited := g.wait.at.freeOf(g.wait.resource)
	return limited && (g.wait.need > free || s.claimedBeyond(g.wait.at, g.wait.resource, g.head, free-g.wait.need))
}

// wakeClaimants wakes the claimants that are short at the gate and were not, or the other way round.
func (s *State) wakeClaimants(gt *gate, except *claim) {
	if !gt.roomForPassing() {
		for ln := range gt.book.passing {
			if ln.claim != except {
				s.wakeClaimant(gt, ln.claim)
			}
		}
	}
	s.wakeFreed(gt, except)
}

// roomForPassing says that there is enough for all who pass, beside all claims; then none of them can be short.
func (gt *gate) roomForPassing() bool {
	for _, f := range gt.free {
		if resources.SaturatingAdd(gt.book.passes(f.Name), gt.book.claimed(f.Name)) > f.Amount {
			return false
		}
	}
	return true
}

// wakeFreed wakes those who claim at the gate and are not short there any more: what wakeClaimant does for one, for all of
// them in one pass, which ends where nothing is left.
func (s *State) wakeFreed(gt *gate, except *claim) {
	left := s.left[:0]
	for _, f := range gt.free {
		left = append(left, f.Amount)
	}
	s.left = left
	gt.book.claims.Walk(func(c *claim) bool {
		for i, f := range gt.free {
			if left[i] <= 0 && gt.book.allAsk(f.Name) {
				return false
			}
		}
		short, leaf := false, gt.level == c.group.leaf
		for i, f := range gt.free {
			need := c.unit.needs(f.Name)
			if need > 0 || (leaf && f.Amount < 0) {
				short = short || need > left[i]
			}
			left[i] = resources.SaturatingSub(left[i], need)
		}
		if !short && c != except && !c.group.dirty {
			s.markDirty(c.group)
		}
		return true
	})
}

// move has a queue found at its new place among those that wait, and its claims, after its rank changed.
func (s *State) move(q *unitLine, change func()) {
	each := func(do func(gt *gate, c *claim)) {
		if s.claims == 0 {
			return
		}
		for _, ln := range q.lines {
			if ln.claim == nil {
				continue
			}
			for _, gt := range ln.claim.at {
				do(gt, ln.claim)
			}
		}
	}
	each(func(gt *gate, c *claim) { gt.book.claims.Delete(c) })
	for w, own := range q.waits {
		w.queues.Delete(own)
	}
	change()
	each(func(gt *gate, c *claim) { gt.book.claims.Insert(c) })
	for w, own := range q.waits {
		w.queues.Insert(own)
	}
}
