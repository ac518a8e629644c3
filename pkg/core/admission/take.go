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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/restraint"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/writes"
)

// A search looks at all units that hold quota. searchPause is for how long none is made again for a group for which one
// found nothing, mostSearches how many are made in one Decide.
const (
	searchPause  = time.Second
	mostSearches = 8
	// noNodesBackoff is for how long a unit is not tried that finds no nodes, at first.
	noNodesBackoff = 5 * time.Second
)

type holder = reclaim.Holder[*record]

// taking has units take what others hold, by the rules of package reclaim. What a unit takes is written in its object
// first. Until it is admitted, it claims what comes free, and those from whom it takes lose what they hold.
type taking struct {
	tree   *capacity.Tree
	roster *roster
	pass   *pass
	turns  restraint.Turns
}

// take has the first head take that has the right to, and says whether there is one.
func (t *taking) take(now time.Time, plan *writes.Plan) bool {
	t.roster.progress.inVain = false
	heads, launched := t.entitled(now, plan)
	if launched || len(heads) == 0 {
		return launched
	}
	among, leaving := t.holders(now)
	requests := each(heads, func(u *record) restraint.Request {
		return restraint.Request{Quota: u.spec.Quota, Searched: u.group.Notes.searched}
	})
	for _, i := range t.turns.Order(now, requests, mostSearches) {
		if t.search(now, heads[i], among, leaving, plan) {
			return true
		}
	}
	if len(heads) > mostSearches {
		t.again(now.Add(searchPause))
	}
	return false
}

// entitled are the heads that may take. That one may not any more which takes is put in flight, and ends the list.
func (t *taking) entitled(now time.Time, plan *writes.Plan) (heads []*record, launched bool) {
	all := t.pass.asks.Heads()
	for i := range all {
		u, n := all[i].Of.unit, &all[i].Of.group.Notes
		if n.queue.spec.Preemption.TakesNothing() && n.searched.IsZero() && u.spec.TakesFrom == "" { // as most are
			continue
		}
		with := t.pass.together(u)
		switch {
		case u.stage != stageWaiting || slices.ContainsFunc(with, isTaking):
		case !t.mayTake(now, with):
			if t.hinder(now, u.group, reclaim.Obstacle{}); t.takeFrom(now, u, nil, true, plan) {
				return nil, true
			}
		case with[0] != u: // it takes with that one
		case all[i].Cause().Stopped != "":
			t.hinder(now, u.group, reclaim.Obstacle{})
		case t.pauses(now, with):
		case now.Before(n.searched.Add(searchPause)):
			t.again(n.searched.Add(searchPause))
		default:
			heads = append(heads, u)
		}
	}
	return heads, false
}

// pauses says that units do not take, since what others took for the same lately was for nothing.
func (t *taking) pauses(now time.Time, with []*record) bool {
	for _, u := range with {
		if until, times := t.roster.vain.Until(now, restraint.Of(&u.spec)); times > 0 {
			t.hinder(now, with[0].group, reclaim.Obstacle{InVain: times, Until: until})
			t.again(until)
			return true
		}
	}
	return false
}

// again says when to search again though nothing happens; zero for never. What happens to a unit may help before.
func (t *taking) again(at time.Time) {
	t.pass.watch.Next = ordered.Earlier(t.pass.watch.Next, at)
	t.roster.progress.inVain = true
}

// search has a head and those admitted with it take what is found, in addition to what they take already.
func (t *taking) search(now time.Time, u *record, among, leaving []holder, plan *writes.Plan) (took bool) {
	with := t.pass.together(u)
	by := each(with, takerOf)
	found, obstacle := reclaim.Together(&reclaim.Situation[*record]{
		Tree: t.tree, Among: among, Leaving: leaving, Promised: t.promised(with),
	}, by)
	all := slices.Concat(found...) // none if they fit now, or when those are gone that go anyway
	dry := func(by reclaim.Taker) bool { return by.Policy.DryRun }
	if len(all) > 0 && slices.ContainsFunc(by, dry) {
		obstacle.DryRun, plan.Tried = reclaim.NewDryRun(each(all, holdOf)), true
		found, all = nil, nil
	}
	from, most := make([][]*record, len(with)), 0
	for i, u := range with {
		u.group.Notes.searched = now
		t.hinder(now, u.group, obstacle)
		if from[i] = t.takenBy(u, leaving); len(all) > 0 {
			from[i] = append(from[i], found[i]...)
		}
		most = max(most, len(from[i]))
	}
	if len(all) == 0 {
		t.again(obstacle.Until)
		if most > 0 || obstacle.Unsure {
			return false
		}
	} else if most > reclaim.MostHolds || !t.foreseen(now, u, from[0], plan) {
		return false
	}
	for i, u := range with { // without any they claim nothing any more
		took = t.takeFrom(now, u, from[i], found == nil, plan) || took
	}
	return took
}

// takeFrom has a unit take what others hold. If it gives up, what it took was in vain, unless pods of others stay.
func (t *taking) takeFrom(now time.Time, u *record, from []*record, givesUp bool, plan *writes.Plan) (launched bool) {
	stay := givesUp && t.roster.vain.Gains(u.spec.Key) &&
		slices.ContainsFunc(t.roster.holdings.Uses(), func(use holding.Use) bool {
			o, known := t.roster.units[use.Key]
			return known && use.Stays(now) && t.roster.takers.Takes(u.spec.Key, o.spec.Hold())
		})
	if launched = t.launch(now, u, reclaim.Join(each(from, holdOf)), plan); givesUp {
		t.roster.vain.GiveUp(now, u.spec.Key, stay)
	}
	return launched
}

// takenBy are the units that give back what they hold because a unit takes it.
func (t *taking) takenBy(u *record, leaving []holder) (from []*record) {
	for i := range leaving {
		for _, o := range leaving[i].Of {
			if t.roster.takers.Takes(u.spec.Key, o.spec.Hold()) {
				from = append(from, o)
			}
		}
	}
	return from
}

func holdOf(u *record) string { return u.spec.Hold() }

func each[T any](of []*record, is func(*record) T) (all []T) {
	for _, u := range of {
		all = append(all, is(u))
	}
	return all
}

// foreseen says that the pods of a unit find nodes with those gone that it takes. It asks if a check depends on that.
func (t *taking) foreseen(now time.Time, u *record, from []*record, plan *writes.Plan) bool {
	takes := reclaim.Join(each(from, holdOf))
	if len(life.AdmissionChecks(t.roster.facts(now, u))) == 0 {
		return true
	}
	f := u.foresight
	if f == nil || !f.About(now, takes) {
		f = &reclaim.Foresight{Takes: takes, Asked: now}
		u.own().foresight = f
		keys := each(from, func(o *record) string { return o.spec.Key })
		plan.Foresee = append(plan.Foresee, writes.Foresee{Unit: u.spec, Takes: takes, From: keys})
	}
	t.again(f.Ends())
	return f.Found
}

// hinder has known what keeps the head of a group from taking, and tells its units.
func (t *taking) hinder(now time.Time, g *group, by reclaim.Obstacle) {
	g.Notes.obstacle = by
	t.pass.tell(now, g)
}

// launch puts in flight what a unit takes, if that is anything new. It stays in line.
func (t *taking) launch(now time.Time, u *record, takes string, plan *writes.Plan) bool {
	if takes == u.spec.TakesFrom && takes == takesFrom(u) {
		return false
	}
	t.roster.unplace(u)
	u.becomeTaking(takes)
	t.roster.owners.Moved(u)
	t.roster.touch(u)
	plan.Take = append(plan.Take, writes.Take{Unit: u.spec, Holds: reclaim.Holds(takes)})
	t.roster.settle(now)
	return true
}

// mayTake is for a head with those that are admitted with it. One alone may have checks whose answers are foreseen. One
// behind another that blocks takes by a priority that counts for more: that one's may count for nothing.
func (t *taking) mayTake(now time.Time, with []*record) bool {
	return len(with) > 0 && !slices.ContainsFunc(with, func(u *record) bool {
		by, ahead := takerOf(u), u.group.Notes.behind
		unforeseen := func(c queue.AdmissionCheck) bool { return !c.Foreseen || len(with) > 1 }
		return ahead != nil && (by.Policy.WithinQueue == queue.VictimsNone || by.Priority <= ahead.spec.TakingPriority()) ||
			by.Policy.TakesNothing() || !by.Entitled(t.tree) ||
			slices.ContainsFunc(life.AdmissionChecks(t.roster.facts(now, u)), unforeseen)
	})
}

func takerOf(u *record) reclaim.Taker {
	n := &u.group.Notes
	policy := n.queue.spec.Preemption
	policy.DryRun = policy.DryRun || u.spec.Observed
	return reclaim.Taker{
		Ask: &n.ask, Queue: u.spec.Queue, Priority: u.spec.TakingPriority(), Named: u.spec.Priority, Policy: policy,
	}
}

// holders are those to take from, and those that give back anyway: their loss is in flight, or pods alone are left.
func (t *taking) holders(now time.Time) (among, leaving []holder) {
	for _, use := range t.roster.holdings.Uses() {
		u := t.roster.units[use.Key]
		h := t.holder(u, use.Quota, use.Amount, 1)
		switch {
		case h.Parts[0].Route.Broken != "":
		case use.Stays(now): // in use, by pods that nobody gives back
		case !use.Holds:
			h.Unsure = !use.Deleted && (u == nil || u.parked.JobIsGone()) // a job that is there is suspended
			leaving = append(leaving, h)
			t.again(use.LeavesBy)
		case u.stage == stageEvicting || t.roster.takers.Of(u.spec.Hold()) != "":
			leaving = append(leaving, h)
		default:
			policy := &t.roster.lines.queue(u.spec.Queue).spec.Preemption
			h.Evictions = u.preempted
			h.Judge(now, &u.spec, policy, u.nonPreemptible(), u.stage != stageAdmitted)
			h.Gang = gang.GroupOf(&u.spec)
			among = append(among, h)
		}
	}
	return reclaim.Sort(among), leaving
}

// holder of an amount, of several jobs; u is nil if the unit is gone.
func (t *taking) holder(u *record, quota string, amount resources.List, jobs int64) holder {
	h := holder{Parts: []reclaim.Part{{Route: t.tree.Route(quota), Held: t.tree.Need(amount, jobs)}}}
	if u != nil {
		h.Of = []*record{u}
	}
	return h
}

// promised is what other units than these take and do not hold yet.
func (t *taking) promised(but []*record) (promised []holder) {
	for _, key := range t.roster.takers.Keys() {
		if u := t.roster.units[key]; !slices.Contains(but, u) {
			promised = append(promised, t.holder(u, u.spec.Quota, u.asks(), u.jobs()))
		}
	}
	return promised
}

// ReservedAt is what is kept from pods outside of units at a level and below it: what units hold beyond their pods, and
// what those ask for that take what others hold. What is taken comes free before the taker holds it, and a pod that
// waits would bind in that moment. So the top counts as well while something is taken; else it keeps nothing.
func ReservedAt(s *State, level string) resources.List {
	var taken resources.List
	for _, key := range s.roster.takers.Keys() {
		u, known := s.roster.units[key]
		if known && slices.ContainsFunc(s.lines.tree.Route(u.spec.Quota).Levels, func(l *capacity.Level) bool {
			return l.Name() == level
		}) {
			taken = taken.Add(u.asks())
		}
	}
	if top := len(s.lines.tree.Route(level).Levels) == 1; top && taken.IsZero() {
		return taken
	}
	return s.roster.holdings.Read(level).Outstanding().List().Add(taken)
}

// setTakes has those lose what they hold from whom a unit in line takes it.
func setTakes(r *roster, now time.Time, u *record) {
	holds := ""
	if u.group != nil {
		holds = takesFrom(u)
	}
	taken, spared := r.takers.Set(u.spec.Key, u.spec.Quota, holds, isTaking(u) && u.taking != "")
	stay, uses := 0, []holding.Use(nil)
	if len(taken)+len(spared) > 0 {
		uses = r.holdings.Uses()
	}
	for _, use := range uses {
		o := r.units[use.Key]
		ends := o != nil && slices.Contains(spared, o.spec.Hold())
		if ends || o != nil && slices.Contains(taken, o.spec.Hold()) {
			r.touch(o)
		}
		if ends && use.Holds && o.stage != stageEvicting && o.stage != stageAdmitting { // that one lost it before
			stay++
		}
	}
	_, onNodes := r.holdings.Pods(u.spec.Key)
	r.vain.Judge(now, u.spec.Key, restraint.Taking{
		By: restraint.Of(&u.spec), Takes: u.group != nil && takes(u), InLine: u.group != nil, Holds: u.holding,
		Lost: len(spared) > stay, OnNode: onNodes > 0,
	})
}
