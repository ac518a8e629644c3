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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/choice"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/eligibility"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/patience"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/places"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// pass serves the heads of all queues, in their order, to a pass of the package decide.
type pass struct {
	lines    *lines
	progress *progress
	asks     *decide.Pass[turn]
	// examined counts the heads that were measured.
	examined int
	// watch follows how long units wait at the front of their lines. A new process starts to count at zero.
	watch  patience.Watch
	places places.Claims
	// inPass are the gang groups that were met, by their keys.
	inPass map[string]*gangGroup
	// other is the ask in another quota with which the head goes that was found to fit, or to borrow; nil for its own.
	other *decide.Ask
}

func newPass(cfg *Config, l *lines, p *progress) *pass {
	return &pass{
		lines: l, progress: p, asks: decide.New[turn](l.tree, l.rights),
		watch:  patience.Watch{Rule: patience.Rule{After: cfg.ClaimAfter, Timeout: cfg.ClaimTimeout}},
		inPass: map[string]*gangGroup{}, places: places.Claims{},
	}
}

// turn of a group, and the unit that was its head then.
type turn struct {
	group *group
	unit  *record
}

// stands says that the unit is the head of its group still.
func (t turn) stands() bool { return t.unit.group == t.group && t.group.Head() == t.unit }

type claim = decide.Claim[turn]

// cause is the obstacle of a head, with the message of a check of an extension.
type cause struct {
	decide.Cause
	said string
}

// firstFitting makes one pass and returns the first head that fits together with the claims of those ahead of it, if
// any does. The pass ends there: an admission may change the claims and the order of service, so the caller begins
// another pass after it. A pass that ends without one has found out why each head waits. If an extension panicked the
// pass has to be made again without the unit that was looked at, which alone is to blame.
func (p *pass) firstFitting(now time.Time) (fits *group, fault string) {
	p.asks.Begin()
	p.other, p.watch.Next = nil, time.Time{}
	clear(p.inPass)
	clear(p.places)
	for r := range rounds {
		p.asks.Firm(r == roundOfPreemptors)
		if r == roundOfObserved {
			p.asks.Observe(p.lines.shadow.Cast(p.lines.tree))
		}
		for _, q := range p.lines.ranking.Queues() {
			if q.groups[r] == 0 {
				continue
			}
			if fits, fault = p.lookAt(now, q, r); fits != nil || fault != "" {
				return fits, fault
			}
		}
	}
	return nil, ""
}

// round of a pass. No unit passes a preemptor: the victim would get its quota again. Observed units come last,
// and claim nothing from managed units.
type round uint8

const (
	roundOfPreemptors round = iota
	roundOfManaged
	roundOfObserved
	rounds
)

func (n *notes) round() round {
	switch {
	case n.ask.Observed:
		return roundOfObserved
	case n.preempts:
		return roundOfPreemptors
	default:
		return roundOfManaged
	}
}

// firstBorrower returns the first head that may borrow, if any may.
func (p *pass) firstBorrower() *group {
	t, other, _ := p.asks.Borrower(func(t turn) []decide.Ask { return t.group.Notes.others })
	p.other = other
	return t.group
}

// lookAt looks at the heads of one queue of a round up to the first that fits. A panic is a fault of the unit that is
// looked at then.
func (p *pass) lookAt(now time.Time, q *queueRecord, r round) (fits *group, fault string) {
	defer func() {
		if cause := recover(); cause != nil {
			p.progress.panics++
			fault = fmt.Sprintf("internal error while the unit was examined: %v", cause)
		}
	}()
	p.asks.Line()
	q.line.Heads(func(g *group) bool {
		if g.Notes.round() != r {
			return true
		}
		if r == roundOfPreemptors {
			p.asks.Line() // each of them claims
		}
		if p.fits(now, g) {
			fits = g
		}
		return fits == nil
	})
	p.progress.looked = nil
	return fits, ""
}

// fits looks at the head of a group, and has it claim if it blocks and does not fit.
func (p *pass) fits(now time.Time, g *group) bool {
	a, at := &g.Notes.ask, turn{g, g.Head()}
	if p.lines.full(g, p.places) {
		p.asks.Stop(at, a, unit.ReasonQueueFull)
		return false
	}
	p.progress.looked = at.unit
	p.examined++
	if said := p.lines.ask(g); said.Reason != "" {
		p.asks.Stop(at, a, said.Reason)
		return false
	}
	if g.Notes.inGangGroup {
		if gg := p.gangGroupInPass(at.unit); gg != nil {
			return p.meet(now, gg, at)
		}
	}
	fits := p.asks.Try(at, a)
	if other := choice.Other(p.asks, p.lines.rights, a, fits, g.Notes.others); fits || other != nil {
		if p.withheld(len(p.asks.Heads()) - 1) {
			return false
		}
		if p.other = other; other != nil {
			p.asks.Instead(other)
		}
		return true
	}
	heads := p.asks.Heads()
	if heads[len(heads)-1].Waits() && p.claims(now, at.unit, a.Blocking) && p.asks.Block() {
		p.claimed(now, at.unit, a.Jobs)
	}
	return false
}

// withheld says that heads which fit wait until writes of them are settled. They keep their room and their places.
func (p *pass) withheld(heads ...int) bool {
	all := p.asks.Heads()
	if !slices.ContainsFunc(heads, func(i int) bool { return all[i].Of.unit.isPreempting() }) {
		return false
	}
	for _, i := range heads {
		p.asks.Withhold(i)
		n := &all[i].Of.group.Notes
		p.places.Add(&n.queue.places, all[i].Of.unit.spec.Namespace(), int(n.ask.Jobs))
	}
	return true
}

// claims says whether a unit that is short may claim now. atOnce: it need not wait for that. The wait of others begins
// in the first pass that finds them short. In the next one another unit can have the last place of the queue.
func (p *pass) claims(now time.Time, u *record, atOnce bool) bool {
	if !u.group.Notes.ask.Blocking {
		u.waitsAs(p.watch.Note(now, u.front, false))
	}
	may, noted := p.watch.Claims(now, u.front, atOnce)
	u.waitsAs(noted)
	return may
}

// claimed begins the time of a unit that claims, and keeps so many places for it.
func (p *pass) claimed(now time.Time, u *record, places int64) {
	n := &u.group.Notes
	u.waitsAs(p.watch.Note(now, u.front, n.ask.Blocking))
	p.places.Add(&n.queue.places, u.spec.Namespace(), int(places))
}

// noteFirst finds who is first in each queue. It says whether the order of queues may be another one now.
func (p *pass) noteFirst() (moved bool) {
	moved, p.watch.Moved = p.watch.Moved, false
	for _, q := range p.lines.ranking.Queues() {
		moved = q.noteFirst(p.lines.rights) || moved
	}
	return moved
}

// noteCauses has what the last pass found known, and told in its time.
func (p *pass) noteCauses(now time.Time) {
	heads := p.asks.Heads()
	for i := range heads {
		g := heads[i].Of.group
		n, c := &g.Notes, cause{Cause: heads[i].Cause()}
		n.behind = heads[i].Behind().unit
		if c.Stopped != "" && c.Stopped == n.answer.Reason {
			c.said = n.answer.Message
		}
		if n.cause == c && n.subject != (subject{}) {
			continue
		}
		n.cause = c
		p.tell(now, g)
	}
}

// tell has the units of a group be told what keeps them, in its time.
func (p *pass) tell(now time.Time, g *group) {
	n := &g.Notes
	setSubject(p.lines.telling, now, g, subject{n.finding(p.lines.tree), n.cause.said, n.cause.Together})
}

// Partial admission: a unit may have a least number of pods. If its turn comes and its whole request does not fit, it
// is admitted with the greatest number that fits. Everywhere else its least request counts: in claims, in comparisons
// with max and min, and in its reason.

// wishesOf is what the unit asks for where it is in line, at the most.
func wishesOf(u *record) resources.List {
	if u.holding {
		return u.grows.Need
	}
	return u.spec.Request
}

// greatest is the greatest size that fits of the head of a group, whose least is known to fit.
func (p *pass) greatest(g *group, fits func(need []int64) bool) unit.Size {
	u, a := g.Head(), &g.Notes.ask
	s, whole := u.spec.Sizes, unit.Size{Request: u.spec.Request, Pods: u.spec.Pods}
	if p.other != nil {
		whole.Quota = p.other.Leaf().Name()
	}
	if u.holding || s == nil || p.other != nil {
		return whole
	}
	return s.Greatest(func(request resources.List) bool {
		return eligibility.Possible(a, request) && fits(p.lines.tree.Need(request, a.Jobs))
	})
}

// fitting is the greatest size in which the head that firstFitting has found fits together with the claims ahead of it.
func (p *pass) fitting(g *group) unit.Size {
	return p.greatest(g, func(need []int64) bool { return p.asks.Fits(&g.Notes.ask, need) })
}

// lent is the greatest size that is lent to the head that firstBorrower has found. A non-preemptible one gets its
// least.
func (p *pass) lent(g *group) unit.Size {
	return p.greatest(g, func(need []int64) bool { return p.asks.Lends(&g.Notes.ask, need) })
}
