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

package decide

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Pass is one look at all heads, in the order in which they are served. It ends with the first head that fits. Then the
// caller admits that head and begins again, since claims and the order of heads may be different after an admission.
//
// Begin starts a pass. For each line the caller calls Line, and for each head of it, in order, one of Stop, Try and
// Await. If a head that blocks does not fit, Block makes its claim.
type Pass[T any] struct {
	tree    *capacity.Tree
	view    *capacity.View
	lending capacity.Lending
	// heads that do not fit, and claims, in the order of the pass.
	heads  []Head[T]
	claims []Claim[T]
	// line counts the lines of the pass. claimed are the routes on which heads of this line claim.
	line    int
	claimed []*capacity.Route
	// room and roomOfMin are memory of claim.
	room, roomOfMin []int64
}

// Head is a head that the pass has looked at.
type Head[T any] struct {
	Of  T
	ask *Ask
	// stopped is the reason if no limit was asked, or the bundle of the head can never be granted.
	stopped unit.Reason
	verdict
	// blocks: heads behind it have to fit together with it. claims: it made a claim. ahead is the number of claims before
	// it.
	blocks, claims bool
	ahead          int
	line           int
	together       bool
}

// Claim is the capacity that the first blocking head of a line waits for, one on each route, at each limit where it is
// short. Heads behind it have to fit together with it.
//
// In its own quota the head claims its whole request. Above, it claims at most what is free below: the rest has to be
// freed below, and capacity that is freed below is free above as well. So no head claims, on a level that others share,
// what its own quota could not give it.
type Claim[T any] struct {
	// Of is the head that claims. At is the head at whose turn it did: itself, or the last one of its bundle.
	Of, At T
	Ask    *Ask
	line   int
	limits []*capacity.Limit
	// amounts are what is claimed, limit by limit, by the numbers of the tree.
	amounts []int64
}

// New returns a pass over the limits of a tree. It has seen no head.
func New[T any](tree *capacity.Tree) *Pass[T] {
	return &Pass[T]{tree: tree, view: capacity.NewView(tree), lending: capacity.NewLending(tree)}
}

// Heads are those of the last pass that did not fit, in order.
func (p *Pass[T]) Heads() []Head[T] { return p.heads }

// Claims are those of the last pass, in order.
func (p *Pass[T]) Claims() []Claim[T] { return p.claims }

// Begin starts a pass and forgets the one before.
func (p *Pass[T]) Begin() {
	p.view.Begin()
	p.claims, p.heads, p.line = p.claims[:0], p.heads[:0], 0
}

// Line begins the next line.
func (p *Pass[T]) Line() {
	p.line++
	p.claimed = p.claimed[:0]
}

// Stop notes a head that cannot be admitted for another reason than capacity. It claims nothing.
func (p *Pass[T]) Stop(of T, a *Ask, reason unit.Reason) { p.enter(of, a).stopped = reason }

// Try says whether a head fits together with the claims ahead of it.
func (p *Pass[T]) Try(of T, a *Ask) (fits bool) {
	h := p.enter(of, a)
	h.measure(p.view, a, a.Need)
	h.ahead = len(p.claims)
	return h.fits()
}

// Withhold has the head that Try found to fit wait for another reason. It claims nothing.
func (p *Pass[T]) Withhold(reason unit.Reason) { p.heads[len(p.heads)-1].stopped = reason }

// Block has the head that Try found not to fit claim, unless another one of its line has a claim on its route already.
func (p *Pass[T]) Block() {
	h := &p.heads[len(p.heads)-1]
	h.blocks = true
	if h.claims = !slices.Contains(p.claimed, h.ask.Route); h.claims {
		p.claimed = append(p.claimed, h.ask.Route)
		p.claim(h, nil)
	}
}

// Fits says whether another request of a head fits where its own was tried last.
func (p *Pass[T]) Fits(a *Ask, need []int64) bool {
	v := verdict{}
	v.measure(p.view, a, need)
	return v.fits()
}

// Await notes a head that is decided together with others, and returns its index. It waits for them and claims nothing.
func (p *Pass[T]) Await(of T, a *Ask) (index int) {
	h := p.enter(of, a)
	h.stopped, h.together = unit.ReasonWaitingForGroup, true
	return len(p.heads) - 1
}

// TryTogether says whether a bundle fits, all heads of which the pass has met. Where it does not, BlockTogether has the
// heads claim that block.
func (p *Pass[T]) TryTogether(g *Bundle, met []int) (fits bool) {
	var v verdict
	never := g.Never(p.tree)
	if never.Reason == "" {
		for i := range g.sums {
			v.compare(p.view, g.sums[i].limit, g.sums[i].need, g.sums[i].leaf)
		}
		if v.fits() {
			return true
		}
	} else {
		v.short, v.shortNumber = never.Limit, never.Number
	}
	g.short = g.short[:0]
	for i := range g.sums {
		s := &g.sums[i]
		if _, _, short := p.view.Short(s.limit, s.need, s.leaf); short && never.Reason == "" {
			g.short = append(g.short, s.limit)
		}
	}
	for _, i := range met {
		h := &p.heads[i]
		h.stopped, h.verdict = never.Reason, v
	}
	return false
}

// BlockTogether has a head of a bundle claim where it is short, unless its line has a claim on its route already.
func (p *Pass[T]) BlockTogether(g *Bundle, index int) {
	h := &p.heads[index]
	h.blocks = true
	own := func(c Claim[T]) bool { return c.line == h.line && c.Ask.Route == h.ask.Route }
	short := func(lim *capacity.Limit) bool { return slices.Contains(g.short, lim) }
	if slices.ContainsFunc(p.claims, own) || !slices.ContainsFunc(h.ask.Limits, short) {
		return
	}
	h.claims = true
	if h.line == p.line {
		p.claimed = append(p.claimed, h.ask.Route)
	}
	p.claim(h, short)
}

// enter adds a head. The pointer is valid until the next one enters.
func (p *Pass[T]) enter(of T, a *Ask) *Head[T] {
	if len(p.heads) < cap(p.heads) {
		p.heads = p.heads[:len(p.heads)+1]
	} else {
		p.heads = append(p.heads, Head[T]{})
	}
	h := &p.heads[len(p.heads)-1]
	h.Of, h.ask, h.line, h.ahead = of, a, p.line, 0
	h.stopped, h.verdict, h.blocks, h.claims, h.together = "", verdict{}, false, false, false
	return h
}

// claim claims for a head at these limits, or, without any, where it is short.
func (p *Pass[T]) claim(h *Head[T], at func(*capacity.Limit) bool) {
	a := h.ask
	if len(p.claims) < cap(p.claims) {
		p.claims = p.claims[:len(p.claims)+1] // with the memory of a former one
	} else {
		p.claims = append(p.claims, Claim[T]{})
	}
	c := &p.claims[len(p.claims)-1]
	c.Of, c.At, c.Ask, c.line = h.Of, p.heads[len(p.heads)-1].Of, a, h.line
	c.limits, c.amounts = c.limits[:0], c.amounts[:0]
	p.room, p.roomOfMin = append(p.room[:0], a.Need...), append(p.roomOfMin[:0], a.Need...)
	leaf := a.Limits[0].Level()
	for _, lim := range a.Limits {
		room := p.room
		if lim.IsMin() {
			room = p.roomOfMin
		}
		_, _, short := p.view.Short(lim, a.Need, lim.Level() == leaf)
		if at != nil {
			short = at(lim)
		}
		if short {
			p.view.Claim(lim, room)
			c.limits, c.amounts = append(c.limits, lim), append(c.amounts, room...)
		}
		p.view.Lessen(lim, room)
	}
}

// at is how much is claimed of a resource at a limit.
func (c *Claim[T]) at(lim *capacity.Limit, number int) int64 {
	i := slices.Index(c.limits, lim)
	if i < 0 {
		return 0
	}
	width := len(c.amounts) / len(c.limits)
	if number >= width {
		return 0
	}
	return c.amounts[i*width+number]
}
