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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// party is a gang group as a pass decides it, by the rules that ganggroup.go has.
type party struct {
	// members by their keys; none if the party is not whole.
	members []*record
	// met are the heads of the pass that are members.
	met []int
	// asks is what the members ask for together, at each limit that one of them has to keep.
	asks []partyAsk
}

type partyAsk struct {
	limit *capacity.Limit
	need  []int64
	leaf  bool
}

// partyOf is the party of a unit that is decided with others; nil for one that is decided alone.
func (r *roster) partyOf(u *record) *party {
	if u.group == nil || u.group.Key().Alone == "" {
		return nil
	}
	known, y := r.parties.record(partyKeyOf(&u.spec).party), &party{}
	kept, gone := false, false
	for _, gang := range gangsOf(u.spec.GangGroup) {
		if known.holding[gang] > 0 {
			continue
		}
		tree := known.waiting[gang]
		if tree == nil {
			kept, gone = kept || known.present[gang] > 0, gone || known.present[gang] == 0
			continue
		}
		if first, _ := tree.Min(); !slices.Contains(y.members, first) {
			y.members = append(y.members, first)
		}
	}
	again := u.spec.Attempts > 0 && !slices.ContainsFunc(y.members, func(u *record) bool { return u.spec.Attempts == 0 })
	if kept || gone && !again {
		return &party{}
	}
	if len(y.members) == 0 {
		return nil
	}
	slices.SortFunc(y.members, compareKeys)
	y.sum()
	return y
}

func (y *party) sum() {
	for _, u := range y.members {
		n := &u.group.Notes
		for _, lim := range n.limits {
			i := slices.IndexFunc(y.asks, func(a partyAsk) bool { return a.limit == lim })
			if i < 0 {
				i = len(y.asks)
				y.asks = append(y.asks, partyAsk{limit: lim})
			}
			a := &y.asks[i]
			for len(a.need) < len(n.need) {
				a.need = append(a.need, 0)
			}
			for number, amount := range n.need {
				a.need[number] = resources.SaturatingAdd(a.need[number], amount)
			}
			a.leaf = a.leaf || lim.Level() == n.leaf()
		}
	}
}

// together are the units that are admitted with a head that fits.
func (p *pass) together(u *record) []*record {
	if y := p.partyInPass(u); y != nil {
		return y.members
	}
	return []*record{u}
}

// partyInPass is partyOf, worked out once in a pass.
func (p *pass) partyInPass(u *record) *party {
	if u.group.Key().Alone == "" {
		return nil
	}
	key := partyKeyOf(&u.spec).party
	y, known := p.inPass[key]
	if !known {
		if y = p.partyOf(u); y != nil && len(y.members) > 0 {
			p.inPass[key] = y
		}
	}
	return y
}

// meet is for a head that is decided with others, and says whether all of them fit.
func (p *pass) meet(now time.Time, y *party, g *group) (fit bool) {
	h := p.enter(g)
	h.stopped, h.together = unit.ReasonWaitingForGroup, true
	if !slices.Contains(y.members, g.Head()) {
		return false
	}
	if y.met = append(y.met, len(p.heads)-1); len(y.met) < len(y.members) || !p.roomForAll(y) {
		return false
	}
	stopped, v := p.never(y)
	if stopped == "" {
		for i := range y.asks {
			v.compare(p.view, y.asks[i].limit, y.asks[i].need, y.asks[i].leaf)
		}
		if v.fits() {
			return true
		}
	}
	ahead, short := len(p.claims), y.short(p.view)
	for _, i := range y.met {
		h := &p.heads[i]
		h.stopped, h.verdict = stopped, v
		if stopped == "" {
			h.ahead = ahead
			p.claimTogether(now, g, h, short)
		}
	}
	return false
}

// short are the limits that have too little for the members together.
func (y *party) short(view *capacity.View) (limits []*capacity.Limit) {
	for i := range y.asks {
		a := &y.asks[i]
		if _, short := view.Short(a.limit, a.need, a.leaf); short {
			limits = append(limits, a.limit)
		}
	}
	return limits
}

// claimTogether has a member claim where the party is short, unless its own line has a claim in its quota already.
func (p *pass) claimTogether(now time.Time, at *group, h *head, short []*capacity.Limit) {
	n := &h.group.Notes
	h.blocks = n.blocks && !p.claimEnded(now, h.group.Head())
	own := func(c claim) bool { return c.group.Notes.queue == n.queue && c.group.Notes.route == n.route }
	isShort := func(lim *capacity.Limit) bool { return slices.Contains(short, lim) }
	if h.blocks && !slices.ContainsFunc(p.claims, own) && slices.ContainsFunc(n.limits, isShort) {
		h.claims = true
		if n.queue == at.Notes.queue {
			p.claimed = append(p.claimed, n.route)
		}
		p.add(h.group, isShort)
		p.claims[len(p.claims)-1].place = at.Head()
	}
}

// roomForAll says whether the queues of the members may have them all.
func (p *pass) roomForAll(y *party) bool {
	for _, u := range y.members {
		q, all, same := u.group.Notes.queue, 0, 0
		for _, o := range y.members {
			if o.group.Notes.queue == q {
				all++
			}
			if o.group.Key().Namespace != "" && o.group.Notes.queue == q {
				same++
			}
		}
		if q.known && q.spec.MaxAdmitted >= 0 && q.holding+all > int(q.spec.MaxAdmitted) {
			return false
		}
		most, namespace := q.bounds().MaxAdmitted, u.spec.Namespace()
		if most >= 0 && q.namespaces.holding[namespace]+same > int(most) {
			return false
		}
	}
	return true
}

// never says why the members can never be admitted together, and at which limit of which resource: they ask for more
// than a quota may ever have.
func (r *roster) never(y *party) (reason unit.Reason, at verdict) {
	for i := range y.asks {
		a := &y.asks[i]
		for number, amount := range a.need {
			most, bounded := a.limit.Most(number)
			first := at.short == nil || r.tree.Resource(number) < r.tree.Resource(at.shortNumber)
			if bounded && amount > most && first {
				at.short, at.shortNumber = a.limit, number
			}
		}
		switch {
		case at.short == nil:
		case at.short.IsMin():
			return unit.ReasonExceedsMin, at
		default:
			return unit.ReasonExceedsMax, at
		}
	}
	return "", at
}
