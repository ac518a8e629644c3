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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
)

// searchPause is for how long no search is made again for a group for which one found nothing. A search looks at all
// units that hold quota.
const searchPause = time.Second

type holder = reclaim.Holder[*record]

// taking has units take back what others hold, by the rules of package reclaim. What a unit takes is written in its
// object first. Until it is admitted, it claims what comes free, and those from whom it takes lose what they hold.
type taking struct {
	tree   *capacity.Tree
	roster *roster
	pass   *pass
}

// takeBack has the first head take back that has the right to, and says whether there is one.
func (t *taking) takeBack(now time.Time, plan *Plan) bool {
	var among, leaving []holder
	listed := false
	t.roster.progress.inVain = false
	heads := t.pass.asks.Heads()
	for i := range heads {
		g, u := heads[i].Of.group, heads[i].Of.unit
		if !t.mayTakeBack(g, u) || heads[i].Cause().Stopped != "" || len(life.AdmissionChecks(t.roster.facts(now, u))) > 0 {
			continue
		}
		if again := g.Notes.searched.Add(searchPause); now.Before(again) {
			t.pass.firstEnd = ordered.Earlier(t.pass.firstEnd, again)
			t.roster.progress.inVain = true
			continue
		}
		if !listed {
			listed = true
			among, leaving = t.holders(now)
		}
		g.Notes.searched = now
		set := reclaim.New(t.tree, &g.Notes.ask, leaving, t.promised(u)).Find(among)
		if len(set) > 0 {
			t.take(u, set, plan)
			t.roster.settle(now)
			return true
		}
		t.roster.progress.inVain = true
	}
	return false
}

// mayTakeBack is for a head that waits for its first pods, alone, in a queue that takes back.
func (t *taking) mayTakeBack(g *group, u *record) bool {
	return g.Notes.queue.spec.Reclaims && u.stage == stageWaiting && !g.Notes.inGangGroup &&
		reclaim.WithinMin(t.tree, &g.Notes.ask)
}

// holders are the units among which a search finds those to take from, and those that give back what they hold without
// that: their loss is in flight, or only pods on nodes are left of them.
func (t *taking) holders(now time.Time) (among, leaving []holder) {
	for _, use := range t.roster.holdings.Uses() {
		u, known := t.roster.units[use.Key]
		h := holder{Of: u, Route: t.tree.Route(use.Quota), Held: t.tree.Need(use.Amount, 1)}
		switch {
		case h.Route.Broken != "":
		case !use.Holds || known && (u.stage == stageEvicting || t.roster.takers.QuotaOf(u.spec.Hold()) != ""):
			leaving = append(leaving, h)
		case mayBeTaken(u):
			h.Cost = reclaim.Cost{
				Priority: u.spec.Priority, Evictions: u.spec.Attempts,
				Lost: float64(u.spec.Pods) * now.Sub(u.spec.Admitted).Seconds(),
			}
			among = append(among, h)
		}
	}
	return among, leaving
}

// mayBeTaken leaves alone what cannot be suspended, what ran before it was queued, what draws on min and, as long as a
// gang group does not lose all that it holds at once, what is of one.
func mayBeTaken(u *record) bool {
	in := &u.spec
	return u.stage == stageAdmitted && in.ConsumerManaged && !in.Unsuspendable && !in.Adopted && !in.Quarantined &&
		!u.nonPreemptible() && in.GangGroup == ""
}

// promised is what other units have taken back and do not hold yet.
func (t *taking) promised(but *record) (promised []holder) {
	for _, key := range t.roster.takers.Keys() {
		if u := t.roster.units[key]; u != but {
			promised = append(promised, holder{
				Of: u, Route: t.tree.Route(u.spec.Quota), Held: t.tree.Need(u.asks(), u.jobs()),
			})
		}
	}
	return promised
}

// take puts in flight from whom a unit takes: these, and those from whom it does already. It stays in line.
func (t *taking) take(u *record, set []*holder, plan *Plan) {
	holds := reclaim.Holds(u.spec.TakesFrom)
	for _, h := range set {
		holds = append(holds, h.Of.spec.Hold())
	}
	takes := reclaim.Join(holds)
	t.roster.leave(u)
	u.becomeTaking(takes)
	t.roster.owners.Moved(u)
	t.roster.touch(u)
	plan.Take = append(plan.Take, Take{Unit: u.spec, Holds: reclaim.Holds(takes)})
}

// setTakes has those lose what they hold from whom a unit in line takes it back.
func setTakes(r *roster, u *record) {
	quota, holds := "", ""
	if u.group != nil && takes(u) {
		quota, holds = u.spec.Quota, u.spec.TakesFrom
	}
	changed := r.takers.Set(u.spec.Key, quota, holds)
	if len(changed) == 0 {
		return
	}
	for _, use := range r.holdings.Uses() {
		if o, known := r.units[use.Key]; known && slices.Contains(changed, o.spec.Hold()) {
			r.touch(o)
		}
	}
}
