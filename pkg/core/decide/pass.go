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

// Package decide evaluates heads in the order in which they are served: which one fits, which one claims, and which one
// may borrow.
//
// A Pass is one evaluation of all heads. It reads capacity through its own View, and writes claims only there. The
// caller serves the heads in order and names each by a value of type T. The package knows amounts and limits. It must
// not know units, phases or lines.
package decide

import (
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shadow"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Pass is one look at all heads, in the order in which they are served. It ends with the first head that fits. Then the
// caller admits that head and begins again, since claims and the order of heads may be different after an admission.
//
// Begin starts a pass. For each line the caller calls Line, and for each head of it, in order, one of Stop, Try and
// Await. If a head that blocks does not fit, Block makes its claim.
type Pass[T any] struct {
	tree *capacity.Tree
	rooms
	// trial has the claims of a question.
	trial   *capacity.View
	lending capacity.Lending
	// heads that do not fit, and claims, in the order of the pass.
	heads  []Head[T]
	claims []Claim[T]
	// line counts the lines of the pass. claimed are the indexes of the heads of this line that claim, one on each route.
	// passable is the number of claims, of the lines before, that are known to the view as claims that some may pass.
	line     int
	claimed  []int
	passable int
	firm     bool
	// observed is the number of heads before those that are only observed, and shadow is for these.
	observed int
	shadow   shadow.Shadow
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
	blocker        T
}

// Claim is the capacity that the first blocking head of a line waits for. There is one claim on each route, at each
// limit where the head is short. Heads behind it have to fit together with the claim.
//
// In its own quota the head claims its whole request. Above, it claims at most the free amount below: the rest has to
// be freed below first, and is then free above as well. So no head claims more on a shared level than its own quota
// could give it.
type Claim[T any] struct {
	// Of is the head that claims. At is the head at whose turn it did: itself, or the last one of its bundle.
	Of, At T
	Ask    *Ask
	line   int
	// beyond: it is of a head that goes beyond its share. passable: units of other lines pass it above their own quotas,
	// if these promise them what they need.
	beyond, passable bool
	limits           []*capacity.Limit
	// amounts are what is claimed, limit by limit, by the numbers of the tree.
	amounts []int64
}

// New returns a pass over the limits of a tree. It has seen no head.
func New[T any](tree *capacity.Tree, rights *rightful.Book) *Pass[T] {
	r := rooms{all: capacity.NewView(tree), binding: capacity.NewView(tree), rights: rights}
	return &Pass[T]{tree: tree, rooms: r, trial: capacity.NewView(tree), lending: capacity.NewLending(tree)}
}

// Behind is the head ahead of this one that blocks its line and claims on its route; the zero value if there is none.
func (h *Head[T]) Behind() T { return h.blocker }

// Heads are those of the last pass that did not fit, in order.
func (p *Pass[T]) Heads() []Head[T] { return p.heads }

// Claims are those of the last pass, in order.
func (p *Pass[T]) Claims() []Claim[T] { return p.claims }

// Begin starts a pass and forgets the one before.
func (p *Pass[T]) Begin() {
	p.all.Begin()
	p.binding.Begin()
	p.claims, p.heads, p.line, p.passable = p.claims[:0], p.heads[:0], 0, 0
	p.observed, p.shadow = math.MaxInt, nil
}

// Observe begins the heads that are only observed, after all others. They are compared with what the shadow leaves.
func (p *Pass[T]) Observe(by shadow.Shadow) {
	p.observed, p.shadow = len(p.heads), by
	by.On(p.all)
	by.On(p.binding)
}

// Firm says whether claims bind all from now on: those of units that take back what others hold.
func (p *Pass[T]) Firm(firm bool) { p.firm = firm }

// Line begins the next line.
func (p *Pass[T]) Line() {
	p.line++
	p.claimed = p.claimed[:0]
	for ; p.passable < len(p.claims); p.passable++ {
		if c := &p.claims[p.passable]; c.line == p.line-1 {
			c.passIn(p.binding)
		}
	}
}

// Stop notes a head that cannot be admitted for another reason than capacity. It claims nothing.
func (p *Pass[T]) Stop(of T, a *Ask, reason unit.Reason) { p.enter(of, a).stopped = reason }

// Try says whether a head fits together with the claims ahead of it.
func (p *Pass[T]) Try(of T, a *Ask) (fits bool) {
	h := p.enter(of, a)
	h.measure(&p.rooms, a, a.Need)
	h.ahead = len(p.claims)
	return h.fits()
}

// Withhold has a head wait that could be admitted. If Try or TryTogether found it to fit, it claims its whole request:
// nobody passes it. If it fits in another quota alone, it claims nothing.
func (p *Pass[T]) Withhold(index int) {
	h := &p.heads[index]
	if h.stopped = unit.ReasonPending; h.fits() {
		p.claim(h, nil)
	}
}

// Beyond says that a head which was found to fit goes beyond a share.
func (p *Pass[T]) Beyond() bool { return p.heads[len(p.heads)-1].Beyond() }

// Block lets the last head of Try claim, and says whether it does. It claims nothing if another head of its line has a
// claim on its route already, or if it can never rightfully get its request. In a queue that does not block, only the
// first of a line keeps those behind it waiting.
func (p *Pass[T]) Block() bool {
	h := &p.heads[len(p.heads)-1]
	first := p.claimer(h.ask.Route) == nil
	if h.TooLarge != nil || !first && !h.ask.Blocking {
		return false
	}
	h.blocks = true
	if h.claims = first; h.claims {
		p.claimed = append(p.claimed, len(p.heads)-1)
		p.claim(h, nil)
	}
	return h.claims
}

// claimer is the head of this line that claims on a route, nil if none does.
func (p *Pass[T]) claimer(route *capacity.Route) *Head[T] {
	for _, i := range p.claimed {
		if h := &p.heads[i]; h.ask.Route == route {
			return h
		}
	}
	return nil
}

// behind is the head of this line that blocks those behind it on a route.
func (p *Pass[T]) behind(route *capacity.Route) (of T, blocked bool) {
	if h := p.claimer(route); h != nil && h.ask.Blocking {
		return h.Of, true
	}
	return of, false
}

// Fits says whether another request of a head fits where its own was tried last.
func (p *Pass[T]) Fits(a *Ask, need []int64) bool {
	_, behind := p.behind(a.Route)
	v := p.rooms.verdictOf(a, need, behind)
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
		v.measureTogether(&p.rooms, g)
	} else {
		v.short, v.shortNumber = never.Limit, never.Number
	}
	g.short = g.short[:0]
	for at := range g.parts() {
		if never.Reason == "" && v.shortTogether(&p.rooms, g.path(), at) {
			g.short = append(g.short, at.Limit)
		}
	}
	for _, i := range met {
		h := &p.heads[i]
		h.stopped, h.verdict = never.Reason, v
	}
	return v.fits()
}

// BlockTogether has heads of a bundle claim, each for itself, where the bundle is short, unless their line has a
// claim on their route already. It says which of them do.
func (p *Pass[T]) BlockTogether(g *Bundle, heads []int) (claim []int) {
	before := p.claims
	for _, index := range heads {
		h := &p.heads[index]
		if h.TooLarge != nil {
			continue
		}
		h.blocks = true
		own := func(c Claim[T]) bool { return c.line == h.line && c.Ask.Route == h.ask.Route }
		short := func(lim *capacity.Limit) bool { return slices.Contains(g.short, lim) }
		if slices.ContainsFunc(before, own) || !slices.ContainsFunc(h.ask.Limits, short) {
			continue
		}
		h.claims, claim = true, append(claim, index)
		if h.line == p.line {
			p.claimed = append(p.claimed, index)
		}
		p.claim(h, g)
	}
	return claim
}

// enter adds a head. The pointer is valid until the next one enters.
func (p *Pass[T]) enter(of T, a *Ask) *Head[T] {
	p.heads = slices.Grow(p.heads, 1)[:len(p.heads)+1]
	h := &p.heads[len(p.heads)-1]
	h.Of, h.ask, h.line, h.ahead = of, a, p.line, 0
	h.stopped, h.verdict, h.blocks, h.claims, h.together = "", verdict{}, false, false, false
	h.blocker, h.behind = p.behind(a.Route)
	return h
}

// claim claims for a head at each limit where the head, or its bundle, is short. A head that is withheld claims at all
// of them. So does one that goes beyond a share: the capacity of one level would be gone otherwise when another has
// enough.
func (p *Pass[T]) claim(h *Head[T], with *Bundle) {
	a := h.ask
	p.claims = slices.Grow(p.claims, 1)[:len(p.claims)+1] // with the memory of a former one
	c := &p.claims[len(p.claims)-1]
	c.Of, c.At, c.Ask, c.line = h.Of, p.heads[len(p.heads)-1].Of, a, h.line
	c.beyond, c.passable = h.Beyond(), a.Route.Shared && !p.firm
	c.limits, c.amounts = c.limits[:0], c.amounts[:0]
	p.room, p.roomOfMin = append(p.room[:0], a.Need...), append(p.roomOfMin[:0], a.Need...)
	path := a.Route.Levels
	if with != nil {
		path = with.path()
	}
	for i, lim := range a.Limits {
		room := p.room
		if lim.IsMin() {
			room = p.roomOfMin
		}
		short := h.Beyond() || h.stopped != ""
		if with != nil {
			i = slices.IndexFunc(with.sums, func(s part) bool { return s.Limit == lim })
			short = short || slices.Contains(with.short, lim)
		} else if !short {
			_, _, short = h.shortWithin(&p.rooms, a, part{Limit: lim, Need: a.Need, Leaf: lim.Level() == a.Leaf()})
		}
		if short {
			c.limits, c.amounts = append(c.limits, lim), append(c.amounts, room...)
		}
		p.lessen(h, lim, i, path, room)
	}
	for i, lim := range c.limits {
		p.all.Claim(lim, c.amountsAt(i))
		p.binding.Claim(lim, c.amountsAt(i))
	}
	if c.line != p.line {
		c.passIn(p.binding)
	}
}

// lessen reduces a claim to the amount that a level can get without anything being freed there, ignoring claims. The
// amount is zero if the use of the level has to fall first.
func (p *Pass[T]) lessen(h *Head[T], lim *capacity.Limit, index int, path []*capacity.Level, amounts []int64) {
	for number := range amounts {
		switch {
		case amounts[number] <= 0:
		case h.Saturated(index):
			amounts[number] = 0
		case h.Beyond():
			amounts[number] = min(amounts[number], max(0, p.rights.Free(lim, path, number)))
		default:
			amounts[number] = min(amounts[number], max(0, lim.FreeOf(number)))
		}
	}
}

// amountsAt is what is claimed at the limit with that index.
func (c *Claim[T]) amountsAt(i int) []int64 {
	width := len(c.amounts) / len(c.limits)
	return c.amounts[i*width : (i+1)*width]
}

// passIn takes the claim out of those that bind all, if some pass it.
func (c *Claim[T]) passIn(binding *capacity.View) {
	if !c.passable {
		return
	}
	for i, lim := range c.limits {
		binding.Unclaim(lim, c.amountsAt(i))
	}
}

// at is how much is claimed of a resource at a limit.
func (c *Claim[T]) at(lim *capacity.Limit, number int) int64 {
	if i := slices.Index(c.limits, lim); i >= 0 && number < len(c.amountsAt(i)) {
		return c.amountsAt(i)[number]
	}
	return 0
}
