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

package preemption

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/restraint"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/victims"
)

const (
	// searchPause is for how long no search is made again for a group for which one found nothing.
	searchPause = time.Second
	// MostSearches is how many are made in one Decide.
	MostSearches = 8
)

// Preemptor is what a unit in line says.
type Preemptor struct {
	Unit *unit.Unit
	reclaim.Request
	// Ahead is the unit ahead that blocks it; nil if none does.
	Ahead *unit.Unit
	// Idle: it waits, and no write of it is in flight. Begins: the write is in flight that says what it preempts.
	Idle, Begins bool
	// Stopped: it is kept from being admitted by something else than quota.
	Stopped bool
	// Searched is when a search was made for it last.
	Searched time.Time
	// Checks are those that it has to pass once it is admitted.
	Checks []queue.AdmissionCheck
	// Foresight is what was asked last about nodes; nil if nothing was.
	Foresight *reclaim.Foresight
}

// Units are the units of a decision, as far as one preempts.
type Units[T comparable] interface {
	// Heads are the heads of the last pass that preempt, or whose queue may, in order.
	Heads() []T
	Preemptor(T) Preemptor
	// Together are the units that are admitted with one, in the same order for each of them; none if some are missing.
	Together(T) []T
	// Hold is what a unit holds, as unit.Unit.Hold says it, and its key.
	Hold(T) (key, hold string)
	// Victims are the units that one preempts and of whose holds this has become, by their keys.
	Victims(of T, state holders.State) []T

	// Searched notes that a search was made for a unit, and Hindered what keeps it from preempting.
	Searched(time.Time, T)
	Hindered(time.Time, T, reclaim.Obstacle)
	// Tried notes that a search was made for a unit that preempts nothing.
	Tried()
	// Foresee has it asked whether the pods of a unit find nodes without its victims.
	Foresee(by T, f *reclaim.Foresight, victims []string)
	// Preempt puts in flight which holds a unit preempts, if that is anything new.
	Preempt(now time.Time, by T, holds string) bool
	// Again sets the time of the next search without an event; zero for never. Events of a unit may help before.
	Again(time.Time)
}

// Preemption has pending units preempt.
type Preemption[T comparable] struct {
	Tree  *capacity.Tree
	Index *holders.Index[T]
	Vain  *restraint.Vain
	Units Units[T]
	turns restraint.Turns
}

// Decide has the first head preempt that has the right to, and says whether there is one.
func (p *Preemption[T]) Decide(now time.Time) bool {
	heads, launched := p.entitled(now)
	if launched || len(heads) == 0 {
		return launched
	}
	p.Index.Refresh(now)
	p.Units.Again(p.Index.LeavesBy())
	requests := make([]restraint.Request, len(heads))
	for i, u := range heads {
		by := p.Units.Preemptor(u)
		requests[i] = restraint.Request{Quota: by.Unit.Quota, Searched: by.Searched}
	}
	for _, i := range p.turns.Order(now, requests, MostSearches) {
		if p.search(now, heads[i]) {
			return true
		}
	}
	if len(heads) > MostSearches {
		p.Units.Again(now.Add(searchPause))
	}
	return false
}

// entitled are the heads that may preempt. A head that preempts, and lost the right to it, gives up. That is put in
// flight, and ends the list.
func (p *Preemption[T]) entitled(now time.Time) (heads []T, launched bool) {
	for _, u := range p.Units.Heads() {
		by, with := p.Units.Preemptor(u), p.Units.Together(u)
		begins := func(o T) bool { return o != u && p.Units.Preemptor(o).Begins }
		switch {
		case !by.Idle || slices.ContainsFunc(with, begins):
		case !p.may(with):
			p.Units.Hindered(now, u, reclaim.Obstacle{})
			launched = p.preempt(now, u, nil, true)
		case with[0] != u: // the first of its gang group preempts for all
		case by.Stopped:
			p.Units.Hindered(now, u, reclaim.Obstacle{})
		case p.pauses(now, with):
		case now.Before(by.Searched.Add(searchPause)):
			p.Units.Again(by.Searched.Add(searchPause))
		default:
			heads = append(heads, u)
		}
		if launched {
			break
		}
	}
	return heads, launched
}

// may says that units that are admitted together may preempt. One alone may have checks whose answers are foreseen. One
// behind another that blocks preempts by a priority that counts for more: that one's may count for nothing.
func (p *Preemption[T]) may(with []T) bool {
	return len(with) > 0 && !slices.ContainsFunc(with, func(u T) bool {
		by := p.Units.Preemptor(u)
		unforeseen := func(c queue.AdmissionCheck) bool { return !c.Foreseen || len(with) > 1 }
		outranked := by.Ahead != nil &&
			(by.Policy.WithinQueue == queue.VictimsNone || by.Priority <= by.Ahead.PreemptionPriority())
		return outranked || by.Policy.PreemptsNothing() || !by.Entitled(p.Tree) || slices.ContainsFunc(by.Checks, unforeseen)
	})
}

// pauses says that units do not preempt, since what others preempted for the same lately was for nothing.
func (p *Preemption[T]) pauses(now time.Time, with []T) bool {
	for _, u := range with {
		if until, times := p.Vain.Until(now, restraint.Of(p.Units.Preemptor(u).Unit)); times > 0 {
			p.Units.Hindered(now, with[0], reclaim.Obstacle{InVain: times, Until: until})
			p.Units.Again(until)
			return true
		}
	}
	return false
}

// search has a head, and the units that are admitted with it, preempt the victims that it finds. They keep their
// present victims.
func (p *Preemption[T]) search(now time.Time, head T) (launched bool) {
	with, by := p.Units.Together(head), []reclaim.Request(nil)
	for _, u := range with {
		by = append(by, p.Units.Preemptor(u).Request)
	}
	found, obstacle := reclaim.Together(&reclaim.Situation[T]{Tree: p.Tree, Index: p.Index, Now: now}, by)
	all := slices.Concat(found...) // none if they fit now, or when those are gone that go anyway
	dry := func(by reclaim.Request) bool { return by.Policy.DryRun }
	if len(all) > 0 && slices.ContainsFunc(by, dry) {
		obstacle.DryRun = reclaim.NewDryRun(p.holds(all))
		found, all = nil, nil
		p.Units.Tried()
	}
	from, most := make([][]T, len(with)), 0
	for i, u := range with {
		p.Units.Searched(now, u)
		p.Units.Hindered(now, u, obstacle)
		if from[i] = p.Units.Victims(u, holders.Leaves); len(all) > 0 {
			from[i] = append(from[i], found[i]...)
		}
		most = max(most, len(from[i]))
	}
	if len(all) == 0 {
		p.Units.Again(obstacle.Until)
		if most > 0 || obstacle.Unsure {
			return false
		}
	} else if most > reclaim.MostHolds || !p.foreseen(now, head, from[0]) {
		return false
	}
	for i, u := range with { // without any they claim nothing any more
		launched = p.preempt(now, u, from[i], found == nil) || launched
	}
	return launched
}

// preempt has a unit preempt others. If it gives up, what it preempted was in vain, unless pods of others stay.
func (p *Preemption[T]) preempt(now time.Time, u T, from []T, givesUp bool) (launched bool) {
	key, stay := p.Units.Preemptor(u).Key, false
	if givesUp && p.Vain.Gains(key) {
		p.Index.Refresh(now)
		stay = len(p.Units.Victims(u, holders.Remains)) > 0
	}
	if launched = p.Units.Preempt(now, u, victims.Join(p.holds(from))); givesUp {
		p.Vain.GiveUp(now, key, stay)
	}
	return launched
}

func (p *Preemption[T]) holds(of []T) (holds []string) {
	for _, u := range of {
		_, hold := p.Units.Hold(u)
		holds = append(holds, hold)
	}
	return holds
}

// foreseen says that the pods of a unit find nodes without its victims. It asks if a check depends on that.
func (p *Preemption[T]) foreseen(now time.Time, u T, from []T) bool {
	by, holds := p.Units.Preemptor(u), victims.Join(p.holds(from))
	if len(by.Checks) == 0 {
		return true
	}
	f := by.Foresight
	if f == nil || !f.About(now, holds) {
		f = &reclaim.Foresight{Holds: holds, Asked: now}
		keys := make([]string, len(from))
		for i, o := range from {
			keys[i], _ = p.Units.Hold(o)
		}
		p.Units.Foresee(u, f, keys)
	}
	p.Units.Again(f.Ends())
	return f.Found
}
