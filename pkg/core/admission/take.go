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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// A search looks at all units that hold quota. searchPause is for how long none is made again for a group for which one
// found nothing, mostSearches how many are made in one Decide.
const (
	searchPause  = time.Second
	mostSearches = 8
)

type holder = reclaim.Holder[*record]

// taking has units take what others hold, by the rules of package reclaim. What a unit takes is written in its object
// first. Until it is admitted, it claims what comes free, and those from whom it takes lose what they hold.
type taking struct {
	tree   *capacity.Tree
	roster *roster
	pass   *pass
}

// take has the first head take that has the right to, and says whether there is one. Those for which nobody looked for
// longest come first.
func (t *taking) take(now time.Time, plan *Plan) bool {
	t.roster.progress.inVain = false
	var heads []*record
	all := t.pass.asks.Heads()
	for i := range all {
		u, n := all[i].Of.unit, &all[i].Of.group.Notes
		switch {
		case u.stage != stageWaiting:
		case !t.mayTake(now, u):
			if t.hinder(now, u.group, reclaim.Obstacle{}); t.launch(now, u, "", plan) {
				return true
			}
		case all[i].Cause().Stopped != "":
			t.hinder(now, u.group, reclaim.Obstacle{})
		case now.Before(n.searched.Add(searchPause)):
			t.again(n.searched.Add(searchPause))
		default:
			heads = append(heads, u)
		}
	}
	slices.SortStableFunc(heads, func(a, b *record) int { return a.group.Notes.searched.Compare(b.group.Notes.searched) })
	if len(heads) == 0 {
		return false
	}
	among, leaving := t.holders(now)
	reclaim.Sort(among)
	for _, u := range heads[:min(len(heads), mostSearches)] {
		if t.search(now, u, among, leaving, plan) {
			return true
		}
	}
	if len(heads) > mostSearches {
		t.again(now.Add(searchPause))
	}
	return false
}

// again says when to search again though nothing happens; zero for never. What happens to a unit may help before.
func (t *taking) again(at time.Time) {
	t.pass.firstEnd = ordered.Earlier(t.pass.firstEnd, at)
	t.roster.progress.inVain = true
}

// search has a head take the units that are found, in addition to those from whom it takes already.
func (t *taking) search(now time.Time, u *record, among, leaving []holder, plan *Plan) bool {
	n := &u.group.Notes
	set, obstacle := reclaim.New(t.tree, takerOf(u), leaving, t.promised(u)).Find(among)
	if n.queue.spec.Preemption.DryRun {
		for _, h := range set {
			obstacle.DryRun += len(h.Of)
		}
		set = nil
	}
	n.searched = now
	t.hinder(now, u.group, obstacle)
	var holds []string
	for i := range leaving {
		for _, o := range leaving[i].Of {
			if t.roster.takers.Takes(u.spec.Key, o.spec.Hold()) {
				holds = append(holds, o.spec.Hold())
			}
		}
	}
	found := len(set) > 0
	for _, h := range set {
		for _, o := range h.Of {
			holds = append(holds, o.spec.Hold())
		}
	}
	if !found || len(holds) > reclaim.MostHolds {
		t.again(obstacle.Until)
		return !found && len(holds) == 0 && t.launch(now, u, "", plan) // it did not get it: it claims nothing any more
	}
	return t.launch(now, u, reclaim.Join(holds), plan)
}

// hinder has known what keeps the head of a group from taking, and tells its units.
func (t *taking) hinder(now time.Time, g *group, by reclaim.Obstacle) {
	g.Notes.obstacle = by
	t.pass.tell(now, g)
}

// launch puts in flight what a unit takes, if that is anything new. It stays in line.
func (t *taking) launch(now time.Time, u *record, takes string, plan *Plan) bool {
	if takes == u.spec.TakesFrom && takes == "" {
		return false
	}
	t.roster.leave(u)
	u.becomeTaking(takes)
	t.roster.owners.Moved(u)
	t.roster.touch(u)
	plan.Take = append(plan.Take, Take{Unit: u.spec, Holds: reclaim.Holds(takes)})
	t.roster.settle(now)
	return true
}

// mayTake is for a head that waits for its first pods, alone, in a queue that lets it take, without admission checks.
func (t *taking) mayTake(now time.Time, u *record) bool {
	by := takerOf(u)
	return !by.Policy.TakesNothing() && !u.group.Notes.inGangGroup && by.Entitled(t.tree) &&
		len(life.AdmissionChecks(t.roster.facts(now, u))) == 0
}

func takerOf(u *record) reclaim.Taker {
	n := &u.group.Notes
	return reclaim.Taker{Ask: &n.ask, Queue: u.spec.Queue, Priority: u.spec.Priority, Policy: n.queue.spec.Preemption}
}

// holders are the units among which a search finds those to take from, and those that give back what they hold without
// that: their loss is in flight, or only pods on nodes are left of them.
func (t *taking) holders(now time.Time) (among, leaving []holder) {
	gangs := map[string]int{} // where those of a gang group are
	for _, use := range t.roster.holdings.Uses() {
		u := t.roster.units[use.Key]
		h := t.holder(u, use.Quota, use.Amount, 1)
		switch {
		case h.Parts[0].Route.Broken != "":
		case u == nil || !use.Holds || u.stage == stageEvicting || t.roster.takers.Of(u.spec.Hold()) != "":
			leaving = append(leaving, h)
		default:
			policy := &t.roster.lines.queue(u.spec.Queue).spec.Preemption
			h.Judge(now, &u.spec, policy, u.nonPreemptible(), u.stage != stageAdmitted)
			name := gang.GroupOf(&u.spec)
			if at, known := gangs[name]; known && name != "" {
				among[at].Join(&h)
				continue
			}
			gangs[name] = len(among)
			among = append(among, h)
		}
	}
	return among, leaving
}

// holder of an amount, of several jobs; u is nil if the unit is gone.
func (t *taking) holder(u *record, quota string, amount resources.List, jobs int64) holder {
	h := holder{Parts: []reclaim.Part{{Route: t.tree.Route(quota), Held: t.tree.Need(amount, jobs)}}}
	if u != nil {
		h.Of = []*record{u}
	}
	return h
}

// promised is what other units take and do not hold yet.
func (t *taking) promised(but *record) (promised []holder) {
	for _, key := range t.roster.takers.Keys() {
		if u := t.roster.units[key]; u != but {
			promised = append(promised, t.holder(u, u.spec.Quota, u.asks(), u.jobs()))
		}
	}
	return promised
}

// setTakes has those lose what they hold from whom a unit in line takes it.
func setTakes(r *roster, u *record) {
	holds := ""
	if u.group != nil {
		holds = takesFrom(u)
	}
	changed := r.takers.Set(u.spec.Key, u.spec.Quota, holds)
	if len(changed) == 0 {
		return
	}
	for _, use := range r.holdings.Uses() {
		if o, known := r.units[use.Key]; known && slices.Contains(changed, o.spec.Hold()) {
			r.touch(o)
		}
	}
}
