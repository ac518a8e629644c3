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

// Package virtual runs the core on virtual time. Each write is confirmed at once. Each admitted unit ends when the
// caller says, and the caller schedules all other events.
//
// A forecast and a simulation ask the core in this way. The world has no pods: held quota is free when the run of its
// unit is over. It has no admission checks and no timeouts, which depend on others. The caller counts their time into
// the run of a unit.
package virtual

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Run is how long a unit holds quota after it was admitted at a time. Without an end it never gives that back.
type Run func(u *unit.Unit, admitted time.Time) (d time.Duration, ends bool)

// Watcher is told what happens. A unit that is told is never changed afterwards.
type Watcher interface {
	Admitted(now time.Time, u *unit.Unit)
	// Evicted tells of a unit that lost its admission before its end, and waits again.
	Evicted(now time.Time, u *unit.Unit)
	Ended(now time.Time, u *unit.Unit)
}

// World is a state of the core, and what is to happen to it. It is not safe for concurrent use.
type World struct {
	now     time.Time
	state   *admission.State
	run     Run
	watcher Watcher
	events  *ordered.Due[*event]
	// ends are those of the units that hold quota.
	ends map[string]*event
	made int
	// apart and crowds are those that the state does not know yet. members are of crowds of which the state knows some, by
	// the keys of these.
	apart   []*unit.Unit
	crowds  [][]*unit.Unit
	members map[string]*members
	// Decisions counts the calls of Decide.
	Decisions int
}

// event happens at a time. Of two at the same time the one that was scheduled first is first.
type event struct {
	at     ordered.Moment
	number int
	unit   *unit.Unit
	do     func(*admission.State)
}

// New returns a world that goes on from facts, which are those of a time.
func New(f *Facts, now time.Time, run Run, w Watcher) *World { return Of(f, now).Begin(run, w) }

// Now is the time of the world.
func (w *World) Now() time.Time { return w.now }

// State of the world. Of units that wait and that are decided alike it knows the first ones.
func (w *World) State() *admission.State { return w.state }

// At has something happen to the state at a time, not before now.
func (w *World) At(at time.Time, do func(*admission.State)) {
	w.schedule(at, &event{do: do})
}

// Step decides until nothing more is decided now, and moves on to the time when something happens next, which then
// happens. Without such a time it says so. While there are more than a thousand units that the world does not know yet,
// it learns of a thousand instead.
func (w *World) Step() (more bool) {
	if w.gather() {
		return true
	}
	wake := w.decide()
	first, some := w.events.First()
	switch {
	case some && (wake.IsZero() || !first.at.Time().After(wake)):
		w.now = ordered.Later(w.now, first.at.Time())
	case !wake.IsZero():
		w.now = ordered.Later(w.now, wake)
		return true
	default:
		return false
	}
	for ; some && !first.at.Time().After(w.now); first, some = w.events.First() {
		w.move(first, 0)
		if first.do != nil {
			first.do(w.state)
			continue
		}
		delete(w.ends, first.unit.Key)
		w.state.DeleteUnit(w.now, first.unit.Key)
		w.watcher.Ended(w.now, first.unit)
	}
	return true
}

// decide confirms all decisions of now, and returns when the next one is due though nothing happens.
func (w *World) decide() (wake time.Time) {
	for {
		plan := w.state.Decide(w.now)
		w.Decisions++
		for _, write := range plan.Writes {
			w.confirm(write)
		}
		for i := range plan.Foresee {
			w.state.Foreseen(w.now, &plan.Foresee[i], true, "")
		}
		if again := !plan.WakeAt.IsZero() && !plan.WakeAt.After(w.now); !again && len(plan.Writes)+len(plan.Foresee) == 0 {
			return plan.WakeAt
		}
	}
}

func (w *World) confirm(write transition.Write) {
	u := *write.Of()
	write.Apply(w.now, &u)
	w.state.Settle(w.now, u.Key, write.Attempt(), transition.Confirmed)
	switch write.(type) {
	case *transition.Admit:
		w.admitted(u.Key)
		if write.Of().Preempts != "" { // a pod that starts says that this was not in vain
			w.state.SetPod(w.now, u.Key, admission.Pod{UID: u.UID, Quota: u.Quota, Assigned: true})
			w.state.DeletePod(w.now, u.Key, u.UID)
		}
		w.begin(&u, w.now)
		w.watcher.Admitted(w.now, &u)
	case *transition.Evict:
		if end := w.ends[u.Key]; end != nil {
			w.move(end, 0)
			delete(w.ends, u.Key)
		}
		w.watcher.Evicted(w.now, &u)
	}
}

// begin schedules the end of what a unit holds.
func (w *World) begin(u *unit.Unit, admitted time.Time) {
	d, ends := w.run(u, admitted)
	if !ends {
		return
	}
	w.ends[u.Key] = &event{unit: u}
	w.schedule(admitted.Add(d), w.ends[u.Key])
}

func (w *World) schedule(at time.Time, e *event) {
	e.number = w.made
	w.made++
	w.move(e, ordered.MomentOf(ordered.Later(at, w.now)))
}

// move an event to another time; zero is never.
func (w *World) move(e *event, to ordered.Moment) {
	w.events.Move(e, to, func(m ordered.Moment) { e.at = m })
}
