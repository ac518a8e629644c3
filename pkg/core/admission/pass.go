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
	"fmt"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// pass is one look at all heads, in the order in which they are served. It keeps nothing from the one before: what it
// claims is claimed until the next one begins.
type pass struct {
	*roster
	// claims in the order in which they were made.
	claims []claim
	// heads that do not go, in their order.
	heads []head
	// claimed are the quotas in which units of the queue that is looked at claim.
	claimed []*capacity.Route
	// room and roomOfMin are what add works with; their memory is used again.
	room, roomOfMin []int64
	view            *capacity.View
	// lending is what is lent, as of the last round of it.
	lending capacity.Lending
	// examined counts the heads that were measured.
	examined int
	patience
	// inPass are the parties that were met, by their keys.
	inPass map[string]*party
}

// claim is what the first blocking unit of a queue that does not fit waits for, one in each quota, at every limit where
// it is short. What is behind it has to fit beside it.
//
// In its own quota it claims its whole request, above no more than what is free below: the rest has to be freed below,
// and what is freed there is free above as well. So nobody claims at a level that others share what its own quota could
// not give it.
type claim struct {
	group *group
	unit  *record
	// place is the unit at whose turn it was made: itself, or another one of its party.
	place  *record
	limits []*capacity.Limit
	// amounts are what is claimed, limit by limit, by the numbers of the tree.
	amounts []int64
}

// at is how much is claimed of a resource at a limit.
func (c *claim) at(lim *capacity.Limit, number int) int64 {
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

// head of a group that does not go.
type head struct {
	group *group
	// stopped says why, if no limit was asked.
	stopped unit.Reason
	verdict
	// blocks: what is behind it has to fit beside it.
	blocks bool
	// ahead is how many claims were made before it; claims says that it made one itself.
	ahead  int
	claims bool
	// together: it is decided with others.
	together bool
}

// verdict is how a unit compares with the limits that it has to keep, beside the claims ahead of it.
type verdict struct {
	// short is the first limit that has too little, claims aside; contended the first that has too little beside the
	// claims. The numbers are those of the resource.
	short, contended             *capacity.Limit
	shortNumber, contendedNumber int
	// first is the first limit of a level, its min aside, that has too little; inUse says that claims do not matter
	// there.
	first *capacity.Limit
	inUse bool
	// ofMin: a min is among the limits that have too little.
	ofMin bool
}

func (v *verdict) fits() bool { return v.short == nil && v.contended == nil }

// measure compares a unit with the limits that it has to keep. The leaf's come first.
func (v *verdict) measure(view *capacity.View, limits []*capacity.Limit, need []int64, nonPreemptible bool) {
	leaf := limits[0].Level()
	for _, lim := range limits {
		v.compare(view, lim, need, lim.Level() == leaf)
		if v.short != nil && !nonPreemptible {
			return // the limits above cannot change the answer
		}
	}
}

// compare compares a unit with one limit.
func (v *verdict) compare(view *capacity.View, lim *capacity.Limit, need []int64, leaf bool) {
	found, short := view.Short(lim, need, leaf)
	if !short {
		return
	}
	switch {
	case lim.IsMin():
		v.ofMin = true
	case v.first == nil:
		v.first, v.inUse = lim, !found.Claimed
	}
	switch {
	case found.Claimed && v.contended == nil:
		v.contended, v.contendedNumber = lim, found.Number
	case !found.Claimed && v.short == nil:
		v.short, v.shortNumber = lim, found.Number
	}
}

// cause is what keeps a head from going: a reason, or too little at one limit of the resource of that number, if only
// beside claims, or both.
type cause struct {
	stopped   unit.Reason
	said      string // what stopped it said
	limit     *capacity.Limit
	number    int
	contended bool
	together  bool // with others
}

func (h *head) cause() cause {
	if h.short != nil {
		return cause{stopped: h.stopped, limit: h.short, number: h.shortNumber, together: h.together}
	}
	if h.stopped != "" {
		return cause{stopped: h.stopped, said: h.group.Notes.answer.message, together: h.together}
	}
	return cause{limit: h.contended, number: h.contendedNumber, contended: h.contended != nil, together: h.together}
}

// finding is the cause in the words of a reason.
func (p *pass) finding(c cause) unit.Finding {
	if c.limit == nil {
		return unit.Finding{Reason: c.stopped}
	}
	found := unit.Finding{
		Reason: unit.ReasonQuotaExceeded, Level: c.limit.Level().Name(), Resource: p.tree.Resource(c.number),
	}
	switch {
	case c.stopped != "":
		found.Reason = c.stopped
	case c.contended:
		found.Reason = unit.ReasonBlockedByHead
	case c.limit.IsMin():
		found.Reason = unit.ReasonMinExceeded
	}
	return found
}

// firstFitting makes one pass and returns the first head that fits beside the claims of those ahead of it, if any does.
// The pass ends there: what is claimed and who is served first may be different after an admission, so whoever admits
// begins again. A pass that ends without one has found out why each head waits. One that is not whole, because an
// extension panicked, has to be made again.
func (p *pass) firstFitting(now time.Time) (fits *group, whole bool) {
	p.begin()
	for _, q := range p.ranking.queues {
		fits, fault := p.lookAt(now, q)
		if fault != "" {
			p.blame(now, fault)
			return nil, false
		}
		if fits != nil {
			return fits, true
		}
	}
	return nil, true
}

// blame parks the unit that was looked at when an extension panicked: it alone is to blame.
func (p *pass) blame(now time.Time, fault string) {
	u := p.looked
	p.looked = nil
	p.leave(u)
	u.refuse(now, p.cfg.RefusedBackoff, unit.ReasonInternalError, fault)
	p.touch(u)
	p.settle(now)
}

func (p *pass) begin() {
	p.view.Begin()
	p.claims, p.heads = p.claims[:0], p.heads[:0]
	clear(p.inPass)
}

// lookAt looks at the heads of one queue up to the first that fits. A panic is a fault of the unit that is looked at
// then.
func (p *pass) lookAt(now time.Time, q *queueRecord) (fits *group, fault string) {
	defer func() {
		if cause := recover(); cause != nil {
			p.panics++
			fault = fmt.Sprintf("internal error while the unit was examined: %v", cause)
		}
	}()
	p.claimed = p.claimed[:0]
	full := q.full()
	q.line.Heads(func(g *group) bool {
		if g.Notes.places > 0 && (full || q.fullFor(g.Key().Namespace)) {
			p.enter(g).stopped = unit.ReasonQueueFull
			return true
		}
		p.looked = g.Head()
		p.examined++
		n := &g.Notes
		if len(p.extensions) > 0 {
			if said := p.extensions.ask(g); said.reason != "" {
				p.enter(g).stopped = said.reason // it claims nothing
				return true
			}
		}
		if y := p.partyInPass(g.Head()); y != nil {
			if p.meet(now, y, g) {
				fits = g
			}
			return fits == nil
		}
		h := p.enter(g)
		h.measure(p.view, n.limits, n.need, n.nonPreemptible)
		if h.fits() {
			fits = g
			return false
		}
		h.ahead = len(p.claims)
		h.blocks = n.blocks && !p.claimEnded(now, g.Head())
		if h.claims = h.blocks && !slices.Contains(p.claimed, n.route); h.claims {
			p.claimed = append(p.claimed, n.route)
			p.add(g, nil)
		}
		return true
	})
	p.looked = nil
	return fits, ""
}

// noteCauses has what the last pass found known, and told in its time.
func (p *pass) noteCauses(now time.Time) {
	p.noteClaims(now)
	for i := range p.heads {
		h := &p.heads[i]
		n, c := &h.group.Notes, h.cause()
		if n.cause == c && n.subject != (subject{}) {
			continue
		}
		n.cause = c
		p.telling.about(now, h.group, subject{p.finding(c), c.said, c.together})
	}
}

// enter adds the head of a group to those of the pass. What is returned is valid until the next one enters.
func (p *pass) enter(g *group) *head {
	if len(p.heads) < cap(p.heads) {
		p.heads = p.heads[:len(p.heads)+1]
		p.heads[len(p.heads)-1] = head{group: g}
	} else {
		p.heads = append(p.heads, head{group: g})
	}
	return &p.heads[len(p.heads)-1]
}

// add claims for the head of a group, at these limits, or where it is short.
func (p *pass) add(g *group, at func(*capacity.Limit) bool) {
	limits, need := g.Notes.limits, g.Notes.need
	if len(p.claims) < cap(p.claims) {
		p.claims = p.claims[:len(p.claims)+1] // with the memory of a former one
	} else {
		p.claims = append(p.claims, claim{})
	}
	c := &p.claims[len(p.claims)-1]
	c.group, c.unit, c.place, c.limits, c.amounts = g, g.Head(), g.Head(), c.limits[:0], c.amounts[:0]
	p.room, p.roomOfMin = append(p.room[:0], need...), append(p.roomOfMin[:0], need...)
	leaf := limits[0].Level()
	for _, lim := range limits {
		room := p.room
		if lim.IsMin() {
			room = p.roomOfMin
		}
		_, short := p.view.Short(lim, need, lim.Level() == leaf)
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
