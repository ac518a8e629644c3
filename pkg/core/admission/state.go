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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// State is the whole of what the decisions depend on. It is not safe for concurrent use: one goroutine owns it.
//
// It joins its parts: the roster knows all units, and the pass decides. Between two calls the following holds:
//   - every unit that waits is in line, in exactly one group, or parked (I2);
//   - the ledger has what units hold, and nothing else (I7);
//   - unless changed is set, the last pass saw all that there is now: no unit fits (I6).
type State struct {
	*roster
	pass pass
}

// New returns an empty state.
func New(cfg Config) *State {
	r := newRoster(cfg)
	return &State{
		roster: r, pass: pass{roster: r, inPass: map[string]*party{}, asks: decide.New[turn](r.tree)},
	}
}

// Recheck says that what a Check depends on has changed: everything that waits is looked at again.
func (s *State) Recheck(time.Time) {
	for _, q := range s.queues.byName {
		for _, g := range q.line.Groups() {
			g.Notes.answer = answer{}
		}
	}
	s.changed = true
}

// UpsertUnit takes the unit as the API has it. While a write of the unit is in flight the object is
// remembered and replayed by Settle. A unit whose Phase holds quota is (re-)reserved with Held, fits or not.
func (s *State) UpsertUnit(now time.Time, in unit.Unit) {
	if !s.cfg.PartialAdmission || in.GangGroup != "" { // the pods of a part could not run without those of the others
		in.Sizes = in.Sizes.Fixed()
	}
	u, ok := s.units[in.Key]
	if ok && u.spec.UID != in.UID {
		// Another object under the same name: nothing of the old one can be true of it.
		s.DeleteUnit(now, in.Key)
		ok = false
	}
	switch {
	case !ok:
		s.replay(now, newRecord(), &in)
	case u.stage.inFlight():
		u.own().remembered = &in
	default:
		s.replay(now, u, &in)
	}
}

// DeleteUnit forgets the unit and releases what it holds (I7). A write in flight is settled by it.
func (s *State) DeleteUnit(now time.Time, key string) {
	u, ok := s.units[key]
	if !ok {
		return
	}
	u.forgetRemembered()
	s.contest(&u.spec, func() {
		u.becomeDone()
		s.owners.Remove(u)
	})
	s.touch(u)
	s.settle(now)
	delete(s.units, key)
	q := s.queues.record(u.spec.Queue)
	q.refs--
	s.prune(q)
}

// UpsertQueue takes the Queue object as it is now.
func (s *State) UpsertQueue(now time.Time, in queue.Spec) {
	q := s.queues.record(in.Name)
	if q.known && q.spec.Same(&in) {
		return
	}
	reorder := !q.known || !q.spec.SameOrder(&in)
	q.known, q.spec = true, in
	s.queueChanged(now, q, reorder)
}

// DeleteQueue parks the units of a queue that goes with UnknownQueue.
func (s *State) DeleteQueue(now time.Time, name string) {
	q, ok := s.queues.byName[name]
	if !ok || !q.known {
		return
	}
	q.known, q.spec = false, queue.Spec{}
	s.queueChanged(now, q, true)
	s.prune(q)
}

// SetQuota takes an observation of a quota.
func (s *State) SetQuota(now time.Time, in Quota) {
	if s.tree.Set(in) {
		s.changed, s.quotasChanged = true, now
	}
}

// DeleteQuota parks the units that wait for the quota. What is held there stays held, and keeps counting on
// the path that the quota had, until it is released or the quota comes back.
func (s *State) DeleteQuota(now time.Time, name string) {
	if s.tree.Delete(name) {
		s.changed, s.quotasChanged = true, now
	}
}

// SetPod takes a pod that exists of the unit with this key, also before the unit is known.
// Assigned pods materialise what the unit holds: outstanding = max(0, held - assigned), by resource.
func (s *State) SetPod(now time.Time, unitKey string, p Pod) {
	s.podsChanged(now, unitKey, s.holdings.SetPod(now, unitKey, p))
}

// DeletePod forgets a pod that is gone or has ended.
func (s *State) DeletePod(now time.Time, unitKey, podUID string) {
	s.podsChanged(now, unitKey, s.holdings.DeletePod(unitKey, podUID))
}

// SetConsumer says that a consumer is live, or not (live=false). Units whose managed consumer is not live
// are parked or evicted. An admitted unit whose consumer was never reported keeps its admission, so whoever
// finds the consumer of a unit missing has to say so.
func (s *State) SetConsumer(now time.Time, c unit.Consumer, live bool) {
	for _, u := range s.owners.SetLive(c, live) {
		s.touch(u)
	}
	s.settle(now)
}

// Suspect names, once, the unit that was being looked at when a call panicked; "" if none was.
func (s *State) Suspect() string {
	u := s.looked
	s.looked = nil
	if u == nil {
		return ""
	}
	return u.spec.Key
}
