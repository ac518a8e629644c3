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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// State is everything that decisions depend on. One goroutine owns it: it is not safe for concurrent use.
//
// The lines order the pending units, the roster knows all units and moves each to its place, and the pass decides.
// Between two calls this holds:
//   - Every pending unit is in line, in exactly one group, or parked (I2).
//   - The ledger has exactly the held quota of units (I7).
//   - Unless changed is set, the last pass saw the present state: no unit fits (I6).
type State struct {
	lines      *lines
	roster     *roster
	pass       *pass
	preemptors *preemptors
	progress   *progress
}

// New returns an empty state.
func New(cfg Config) *State {
	l := ledger.New()
	tree := capacity.NewTree(l)
	held, p := holding.NewBook(l, tree), &progress{}
	lines := newLines(&cfg, tree, held, p)
	s := &State{lines: lines, roster: newRoster(&cfg, lines, held, p), pass: newPass(&cfg, lines, p), progress: p}
	s.preemptors = newPreemptors(s.roster, s.pass)
	return s
}

// Recheck says that what a Check depends on has changed: everything that waits is looked at again.
func (s *State) Recheck(time.Time) {
	for _, q := range s.lines.byName {
		for _, g := range q.line.Groups() {
			g.Notes.answer = queue.Answer{}
		}
	}
	s.progress.changed = true
}

// UpsertUnit takes the unit as the API has it. While a write of the unit is in flight the object is
// remembered and replayed by Settle. A unit whose Phase holds quota is (re-)reserved with Held, fits or not.
func (s *State) UpsertUnit(now time.Time, in unit.Unit) {
	if !s.roster.cfg.PartialAdmission || in.GangGroup != "" { // pods of a part could not run without those of the others
		in.Sizes = in.Sizes.Fixed()
	}
	u, ok := s.roster.units[in.Key]
	if ok && u.spec.UID != in.UID {
		// Another object under the same name: nothing of the old one can be true of it.
		s.DeleteUnit(now, in.Key)
		ok = false
	}
	switch {
	case !ok:
		s.roster.replay(now, newRecord(), &in)
	case u.inFlight():
		u.own().remembered = &in
	default:
		s.roster.replay(now, u, &in)
	}
}

// DeleteUnit forgets the unit and releases what it holds (I7). A write in flight is settled by it.
func (s *State) DeleteUnit(now time.Time, key string) {
	u, ok := s.roster.units[key]
	if !ok {
		return
	}
	u.forgetRemembered()
	s.progress.changed = s.progress.changed || u.isPreempting() // others may preempt these holds now
	s.roster.contest(u.spec, func() {
		u.becomeOver()
		s.roster.owners.Remove(u)
	})
	s.roster.touch(u)
	s.roster.settle(now)
	delete(s.roster.units, key)
	s.roster.preemptions.reindex(key, nil)
	q := s.lines.queue(u.spec.Queue)
	q.refs--
	s.lines.prune(q)
}

// UpsertQueue takes the Queue object as it is now.
func (s *State) UpsertQueue(now time.Time, in queue.Spec) {
	q := s.lines.queue(in.Name)
	if q.known && q.spec.Same(&in) {
		return
	}
	reorder := !q.known || !q.spec.SameOrder(&in)
	q.become(in, true)
	s.roster.queueChanged(now, q, reorder)
}

// DeleteQueue parks the units of a queue that goes with UnknownQueue.
func (s *State) DeleteQueue(now time.Time, name string) {
	q, ok := s.lines.byName[name]
	if !ok || !q.known {
		return
	}
	q.become(noObject, false)
	s.roster.queueChanged(now, q, true)
	s.lines.prune(q)
}

// SetQuota takes an observation of a quota.
func (s *State) SetQuota(now time.Time, in Quota) {
	if s.lines.tree.Set(in) {
		s.progress.changed, s.lines.quotasChanged = true, now
	}
}

// DeleteQuota parks the units that wait for the quota. Held quota stays held, and counts on its former path until it is
// released or the quota returns.
func (s *State) DeleteQuota(now time.Time, name string) {
	if s.lines.tree.Delete(name) {
		s.progress.changed, s.lines.quotasChanged = true, now
	}
}

// SetPod takes a pod that exists of the unit with this key, also before the unit is known.
// Assigned pods materialise what the unit holds: outstanding = max(0, held - assigned), by resource.
func (s *State) SetPod(now time.Time, unitKey string, p Pod) {
	s.roster.podsChanged(now, unitKey, s.roster.holdings.SetPod(now, unitKey, p))
}

// DeletePod forgets a pod that is gone or has ended.
func (s *State) DeletePod(now time.Time, unitKey, podUID string) {
	s.roster.podsChanged(now, unitKey, s.roster.holdings.DeletePod(unitKey, podUID))
}

// SetConsumer says that a consumer is live, or not (live=false). Units whose managed consumer is not live are parked or
// evicted. An admitted unit whose consumer was never reported keeps its admission, so the caller has to report missing
// consumers.
func (s *State) SetConsumer(now time.Time, c unit.Consumer, live bool) {
	for _, u := range s.roster.owners.SetLive(c, live) {
		s.roster.touch(u)
	}
	s.roster.settle(now)
}

// Foreseen gets the answer to a transition.Foresee about a unit: whether its pods would find nodes, or why not. If
// not, the unit is tried again after a while that doubles with each no. An answer about another object is left out.
func (s *State) Foreseen(now time.Time, to *transition.Foresee, found bool, why string) {
	u, known := s.roster.units[to.Unit.Key]
	if !known || u.spec.UID != to.Unit.UID || u.inFlight() || !u.waits() || u.group == nil || u.foresight == nil ||
		u.foresight.Holds != to.Holds {
		return
	}
	u.group.Notes.searched, s.progress.changed = time.Time{}, true
	if u.foresight.Found = found; !found {
		u.own().foresight = nil
		u.refuse(now, noNodesBackoff, unit.ReasonNoNodeFits, words.NoNodes(why))
		s.roster.touch(u)
		s.roster.settle(now)
	}
}

// StandFor has the demand of a unit that waits include that of others, which the state does not know. They are decided
// like it and behind it, and ask for this much.
func (s *State) StandFor(now time.Time, key string, others resources.List) {
	if u, ok := s.roster.units[key]; ok {
		u.own().standsFor = others
		s.roster.touch(u)
		s.roster.settle(now)
	}
}

// Suspect names, once, the unit that was being looked at when a call panicked; "" if none was.
func (s *State) Suspect() string {
	u := s.progress.looked
	s.progress.looked = nil
	if u == nil {
		return ""
	}
	return u.spec.Key
}

// Settle reports the outcome of the write of Admit, Dequeue, Resize or Evict of this unit and attempt. An outcome of a
// write that is not in flight is ignored.
func (s *State) Settle(now time.Time, unitKey string, attempt int64, o transition.Outcome) {
	u, ok := s.roster.units[unitKey]
	if !ok || !u.inFlight() || u.flight.Attempt() != attempt || o == transition.Unknown {
		return
	}
	w := settling{now: now, base: s.roster.cfg.RefusedBackoff, outcome: o, remembered: u.remembered}
	u.forgetRemembered()
	s.progress.changed = s.progress.changed || u.isPreempting() && u.begins() == "" // the unit may fit now
	s.roster.contest(u.spec, func() {
		w.end(u)
		s.roster.owners.Moved(u)
	})
	s.roster.touch(u)
	if w.remembered != nil {
		s.roster.replay(now, u, w.remembered)
	}
	s.roster.settle(now)
}
