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

// book holds the claims of all units that have to pass a gate, in the order in which they are served, and what waits for
// them. Only those that are short here claim here: they are found from what is free whenever that is asked (front), so a
// change of it costs the same however many claims it makes short, or not short any more.
type book struct {
	claims *queue.Tree[*claim]
	// watched are the claims that are looked at when they are not short here any more: each is so in one book.
	watched *queue.Tree[*claim]
	// sum is what the claims ask for together; asking counts those that ask for a resource at all, own those whose units
	// draw on this very level.
	sum    resources.Sum
	asking map[string]int
	own    int
	front  front
	// deciding are the claims whose units are short nowhere and about to be decided.
	deciding []*claim
	// noted: in State.reviews. eased: what waits for claims may find less in its way.
	noted, eased bool
	// waiting are blocked groups that would fit but for the claims, by what they wait for and by their queue.
	waiting map[string]map[*unitLine]map[*group]struct{}
}

func newBook(s *State) book {
	return book{
		claims:  queue.NewWeighedTree(s.compareClaims, claimedBy),
		watched: queue.NewTree(s.compareClaims), asking: map[string]int{},
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

func (b *book) enter(gt *gate, c *claim) {
	b.claims.Insert(c)
	b.sum.Add(c.unit.spec.Request)
	b.count(gt, c, 1)
}

func (b *book) exit(gt *gate, c *claim) {
	b.claims.Delete(c)
	b.sum.Sub(c.unit.spec.Request)
	b.count(gt, c, -1)
}

func (b *book) count(gt *gate, c *claim, n int) {
	for _, it := range c.unit.spec.Request.Items() {
		if it.Amount > 0 {
			b.asking[it.Name] += n
		}
	}
	if c.group.leaf == gt.level {
		b.own += n
	}
}

// claimed is what all claims ask for of a resource, whether they are short here or not.
func (b *book) claimed(resource string) int64 {
	if resource == resources.Jobs {
		return int64(b.claims.Len())
	}
	return b.sum.Get(resource)
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
	s.walkTakers(gt, func(c *claim) bool {
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

// move has a queue found at its new place among those that wait, and its claims, after its rank changed.
func (s *State) move(q *unitLine, change func()) {
	each := func(do func(of *queue.Tree[*claim], c *claim)) {
		if s.claims == 0 {
			return
		}
		for _, ln := range q.lines {
			if ln.claim == nil {
				continue
			}
			for _, gt := range ln.claim.path {
				gt.book.front.known = false
				do(gt.book.claims, ln.claim)
			}
			do(ln.claim.watch.book.watched, ln.claim)
		}
	}
	each(func(of *queue.Tree[*claim], c *claim) { of.Delete(c) })
	for w, own := range q.waits {
		w.queues.Delete(own)
	}
	change()
	each(func(of *queue.Tree[*claim], c *claim) { of.Insert(c) })
	for w, own := range q.waits {
		w.queues.Insert(own)
	}
}
