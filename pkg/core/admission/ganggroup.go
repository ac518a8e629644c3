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
	"maps"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/places"
)

// gangGroup is one as a pass decides it, by the rules of package gang.
type gangGroup struct {
	// members by their keys; none if the gang group is not whole.
	members []*record
	asks    decide.Bundle
	// met are the heads of the pass that are members, by their indices there.
	met []int
}

// gangGroupOf is that of a unit that is decided with others; nil for one that is decided alone.
func gangGroupOf(gangs *gang.Book[*record], u *record) *gangGroup {
	if u.group == nil || !u.group.Notes.inGangGroup {
		return nil
	}
	members, together := gangs.Members(u)
	if !together {
		return nil
	}
	asks := make([]*decide.Ask, len(members))
	for i, o := range members {
		asks[i] = &o.group.Notes.ask
	}
	return &gangGroup{members: members, asks: decide.Together(asks)}
}

// together are the units that are admitted with a head that fits.
func (p *pass) together(u *record) []*record {
	if gg := p.gangGroupInPass(u); gg != nil {
		return gg.members
	}
	return []*record{u}
}

// gangGroupInPass is gangGroupOf, worked out once in a pass.
func (p *pass) gangGroupInPass(u *record) *gangGroup {
	if !u.group.Notes.inGangGroup {
		return nil
	}
	key := gang.GroupOf(u.spec)
	gg, known := p.inPass[key]
	if !known {
		if gg = gangGroupOf(p.lines.gangs, u); gg != nil && len(gg.members) > 0 {
			p.inPass[key] = gg
		}
	}
	return gg
}

// meet is for a head that is decided with others, and says whether all of them fit.
func (p *pass) meet(now time.Time, gg *gangGroup, at turn) (fit bool) {
	if slices.ContainsFunc(gg.met, func(i int) bool { return p.asks.Heads()[i].Of == at }) {
		return false
	}
	index := p.asks.Await(at, &at.group.Notes.ask)
	if !slices.Contains(gg.members, at.unit) {
		return false
	}
	gg.met = append(gg.met, index)
	if at.group.Notes.preempts && slices.ContainsFunc(gg.members, func(u *record) bool { return p.fitsBeside(now, u) }) {
		return true
	}
	if last := gg.met[len(gg.met)-1]; last != index || len(gg.met) < len(gg.members) {
		return false
	}
	room := roomForAll(p.lines, p.places, gg)
	if room && p.asks.TryTogether(&gg.asks, gg.met) {
		return !p.withheld(gg.met...)
	}
	if gg.asks.TooLarge(p.lines.tree, p.lines.rights) {
		return false
	}
	preempting := slices.ContainsFunc(gg.members, func(u *record) bool { return u.group.Notes.preempts })
	var claiming []int
	for _, i := range gg.met {
		if of := p.asks.Heads()[i].Of; p.claims(now, of.unit, preempting || of.group.Notes.ask.Blocking) {
			claiming = append(claiming, i)
		}
	}
	if room {
		claiming = p.asks.BlockTogether(&gg.asks, claiming)
	}
	for _, i := range claiming {
		p.claimed(now, p.asks.Heads()[i].Of.unit, 1)
	}
	return false
}

// fitsBeside says whether a head fits next to a preemptor of its gang group. Each of them claims.
func (p *pass) fitsBeside(now time.Time, u *record) bool {
	if u.group.Notes.preempts || !u.group.Open() {
		return false
	}
	p.asks.Line()
	return p.fits(now, u.group)
}

// roomForAll says whether the queues of the members may have them all, together with the claims of those ahead.
func roomForAll(l *lines, ahead places.Claims, gg *gangGroup) bool {
	with := places.Claims{}
	maps.Copy(with, ahead)
	for _, u := range gg.members {
		if l.full(u.group, with) {
			return false
		}
		with.Add(&u.group.Notes.queue.places, u.spec.Namespace(), 1)
	}
	return true
}
