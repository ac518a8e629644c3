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

package history

import (
	"math"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// State is a unit at one time. A state without a UID is no unit.
type State struct {
	// Key is namespace/name.
	Key, UID string
	// Kind and Job of the consumer.
	Kind, Job    string
	Queue, Quota string
	Phase        unit.Phase
	Priority     int32
	Attempts     int64
	// Created, Allocated and EvictedAt are the times of the creation, the last admission, and of an eviction since.
	Created, Allocated, EvictedAt time.Time
	// EvictedFor is the reason of that eviction, ParkedFor the reason of a deactivation by the controller.
	EvictedFor, ParkedFor string
	Inactive              bool
	// Observed: nobody acts on what is decided about the unit. WaitsFor is the reason for which it would wait.
	Observed bool
	WaitsFor string
	// Requested by the unit; Held while it is admitted.
	Requested, Held resources.List
	// Limit is for how long its job may run, in all its runs; zero is no bound.
	Limit time.Duration
}

func (s *State) record(now time.Time, event v1alpha1.RecordEvent) Record {
	namespace, name, _ := strings.Cut(s.Key, "/")
	return Record{
		Time: now.UTC(), Event: event, Namespace: namespace, Unit: name, UID: s.UID, Kind: s.Kind, Job: s.Job,
		Queue: s.Queue, Quota: s.Quota, Priority: s.Priority, Attempt: s.Attempts, Created: s.Created.UTC(),
		Requested: Amounts{s.Requested}, Held: Amounts{s.Held}, Limit: seconds(s.Limit),
		Observed: s.Observed,
	}
}

// pendingSince is the time from which on the unit waits.
func (s *State) pendingSince() time.Time {
	if s.EvictedAt.After(s.Created) {
		return s.EvictedAt
	}
	return s.Created
}

// between returns the transitions that lead from one state to another. States in between may have been missed.
func between(now time.Time, before, after *State) []Record {
	if before.UID == after.UID && before.Phase == after.Phase && before.Attempts == after.Attempts &&
		before.Inactive == after.Inactive && before.Queue == after.Queue && before.Quota == after.Quota &&
		before.Priority == after.Priority && before.Held.Equal(after.Held) {
		return nil
	}
	t := transitions{now: now, before: before, after: after, since: after.pendingSince()}
	if before.UID != "" {
		t.since = before.pendingSince()
	}
	switch {
	case after.UID == "":
		t.gone()
		return t.records
	case before.UID == "":
		t.note(v1alpha1.RecordEnqueued, after)
	case before.Phase.Terminal():
		return nil
	}
	t.pending()
	t.held(t.ended())
	t.over()
	return t.records
}

// transitions are those from before to after.
type transitions struct {
	now           time.Time
	before, after *State
	// since is the time from which on the unit waits, or waited before its admission.
	since   time.Time
	records []Record
}

func (t *transitions) note(event v1alpha1.RecordEvent, of *State) *Record {
	t.records = append(t.records, of.record(t.now, event))
	return &t.records[len(t.records)-1]
}

func (t *transitions) gone() {
	if t.before.Phase.Terminal() {
		return
	}
	last := t.note(v1alpha1.RecordDeleted, t.before)
	last.Ran = t.ran(t.before)
	if t.before.Observed && t.before.Phase.Waits() && t.before.Attempts == 0 {
		last.waited(t.now.Sub(t.since), t.before)
	}
}

// ran is for how long the unit of this state has been admitted.
func (t *transitions) ran(s *State) float64 {
	if !s.Phase.Holds() || s.Allocated.IsZero() {
		return 0
	}
	return seconds(t.now.Sub(s.Allocated))
}

// pending are changes of a unit that no admission is part of.
func (t *transitions) pending() {
	before, after := t.before, t.after
	if before.Inactive != after.Inactive {
		if after.Inactive {
			t.note(v1alpha1.RecordDeactivated, after).Reason = after.ParkedFor
		} else {
			t.note(v1alpha1.RecordActivated, after)
		}
	}
	moved := before.Queue != after.Queue || before.Quota != after.Quota || before.Priority != after.Priority
	if before.UID != "" && moved {
		t.note(v1alpha1.RecordChanged, after)
	}
}

// ended notes that the admission from before has ended, and says whether it goes on.
func (t *transitions) ended() (goesOn bool) {
	before, after := t.before, t.after
	if !before.Phase.Holds() {
		return false
	}
	if after.Attempts <= before.Attempts && !after.Phase.Waits() {
		return true
	}
	evicted := t.note(v1alpha1.RecordEvicted, before)
	evicted.Reason, evicted.Ran = after.EvictedFor, t.ran(before)
	t.since = t.now
	return false
}

// held notes a new admission, and the steps of one.
func (t *transitions) held(goesOn bool) {
	before, after := t.before, t.after
	switch admitted := after.Phase.Releases() || after.Phase.Terminal() && after.Attempts > before.Attempts; {
	case !goesOn && admitted, goesOn && !before.Phase.Releases() && after.Phase.Releases():
		t.note(v1alpha1.RecordAdmitted, after).waited(t.now.Sub(t.since), before)
	case !goesOn && after.Phase.Holds():
		t.note(v1alpha1.RecordReserved, after).Waited = seconds(t.now.Sub(t.since))
	}
	if after.Phase == unit.PhaseRunning && (!goesOn || before.Phase != unit.PhaseRunning) {
		t.note(v1alpha1.RecordRunning, after)
	}
	if goesOn && after.Phase.Holds() && !before.Held.Equal(after.Held) {
		t.note(v1alpha1.RecordResized, after).HeldBefore = Amounts{before.Held}
	}
}

// over notes the end of the job.
func (t *transitions) over() {
	if !t.after.Phase.Terminal() {
		return
	}
	event := v1alpha1.RecordSucceeded
	if t.after.Phase == unit.PhaseFailed {
		event = v1alpha1.RecordFailed
	}
	last := t.note(event, t.after)
	last.Held, last.Ran = Amounts{t.before.Held}, t.ran(t.before)
	if t.after.Observed && t.before.Phase.Waits() && t.after.Attempts == 0 {
		last.waited(t.now.Sub(t.since), t.before)
	}
}

// waited notes for how long the unit of a record waited and, of an observed one, why.
func (r *Record) waited(d time.Duration, before *State) {
	if r.Waited = seconds(d); before.Observed {
		r.Reason = before.WaitsFor
	}
}

// seconds in whole milliseconds, none below zero: creations are in whole seconds, and clocks of processes differ.
func seconds(d time.Duration) float64 { return math.Round(max(d.Seconds(), 0)*1000) / 1000 }
