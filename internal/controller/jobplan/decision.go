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

// Package jobplan decides what to do about one job and its unit. Start at Decide, a pure function of a Situation. The
// rules of each stage are a table that is read from top to bottom. The package must not use a client or a clock.
package jobplan

import (
	"fmt"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Decision is what to do about one job. The zero value is a fixpoint (I12).
type Decision struct {
	// Look says what has to be known first; then nothing is done, and it is decided again.
	Look Look
	// Do are steps in their order; the first that fails ends them.
	Do []Action
	// After is when to decide again if no event asks for it; zero is never.
	After time.Duration
}

// Look is what a decision has to know that nobody has looked at yet.
type Look int

const (
	// LookNowhere: all is known.
	LookNowhere Look = iota
	// LookAtPods fills in Bound.
	LookAtPods
	// LookAtRefusals fills in Refusal.
	LookAtRefusals
	// LookAtUnit reads the unit from the API server.
	LookAtUnit
	// LookAtJob reads the job from the API server.
	LookAtJob
	// LookAtRunning fills in Running.
	LookAtRunning
	// LookAtLeft fills in Left.
	LookAtLeft
	// LookAtStall fills in Stall.
	LookAtStall
)

// Action is one step.
type Action interface{ action() }

type (
	// CreateUnit creates a unit.
	CreateUnit struct {
		Unit  *v1alpha1.QueueUnit
		Event *event.Event
	}
	// PatchUnit changes spec or metadata of a unit.
	PatchUnit struct {
		Before, After *v1alpha1.QueueUnit
		Event         *event.Event
	}
	// PatchUnitStatus changes the status of a unit.
	PatchUnitStatus struct {
		Before, After *v1alpha1.QueueUnit
		Event         *event.Event
	}
	// Report changes how many pods are ready, as the status of a unit tells it. It is the last step, and is left for
	// ReportInterval where there are many.
	Report struct{ Before, After *v1alpha1.QueueUnit }
	// DeleteUnit deletes this very unit, as it is here.
	DeleteUnit struct {
		Unit  *v1alpha1.QueueUnit
		Event *event.Event
	}
	// PatchJob changes a job. Plain, when set, is tried when the API server refuses After as invalid; without
	// Plain a refusal is waited for. Bare is a suspension and nothing else. It is tried when the API server refuses After
	// as invalid or too large.
	PatchJob struct {
		Before, After, Plain, Bare *jobs.Job
		Event                      *event.Event
	}
	// ResetStart takes back the mark of a suspended job's earlier run, without which its pod templates may not be changed.
	ResetStart struct{ Job *jobs.Job }
	// Tell records an event without a write; it is told once for each text.
	Tell struct{ Event *event.Event }
	// EndPods has pods end that a deleted job has left behind.
	EndPods struct{ Pods []notice.Pod }
	// Notify gives pods a notice, or takes it away. It is no loss if a pod cannot be written: the job is suspended in
	// time.
	Notify struct {
		Pods []notice.Pod
		// Notice that the pods get; nil takes away the one that they have.
		Notice *notice.Notice
		// Most bounds the notices of one eviction, so that a job that removes them does not delay those of others.
		Most int
	}
)

func (CreateUnit) action()      {}
func (PatchUnit) action()       {}
func (PatchUnitStatus) action() {}
func (Report) action()          {}
func (DeleteUnit) action()      {}
func (PatchJob) action()        {}
func (ResetStart) action()      {}
func (Tell) action()            {}
func (EndPods) action()         {}
func (Notify) action()          {}

// Lawful says why the change of the unit's status must not be written (I9): of its phase, or of a condition.
func (a PatchUnitStatus) Lawful() error {
	before, after := &a.Before.Status, &a.After.Status
	from, to := unit.Phase(before.Phase), unit.Phase(after.Phase)
	if from != to && !from.CanBecome(to, unit.WriterController) {
		return fmt.Errorf("refused to change the phase of QueueUnit %s/%s from %q to %q",
			a.Before.Namespace, a.Before.Name, from, to)
	}
	return unitcondition.Unlawful(before.Conditions, after.Conditions, unit.WriterController)
}

func do(actions ...Action) Decision { return Decision{Do: actions} }

func look(at Look) Decision { return Decision{Look: at} }

func tell(e *event.Event) Action { return Tell{Event: e} }

// ifNotBound decides by the pods of a job: the caller first looks at them. A job with pods on nodes is not changed.
func ifNotBound(bound Bound, decide func() Decision) (d Decision, answers bool) {
	switch bound {
	case BoundUnknown:
		return look(LookAtPods), true
	case BoundNone:
		return decide(), true
	default:
		return Decision{}, false
	}
}

// rule answers if it has something to do about the job, or to leave it alone. Otherwise the next one is asked.
type rule func(*Situation) (d Decision, answers bool)

// rules of one stage, in their order.
type rules []rule

// answer of the first rule that has one.
func (list rules) answer(s *Situation) (d Decision, answers bool) {
	for _, r := range list {
		if d, answers = r(s); answers {
			return d, true
		}
	}
	return Decision{}, false
}

// needsFreshJob says that the job must be read from the API server before the decision is carried out. The cache of
// jobs can be older than that of units. A unit that seems to belong to another job, or to no job, may hold the quota of
// this one (I2, I3). So an outdated job must not delete a unit, nor create or correct one twice in a short time.
// Otherwise two controllers, one with an outdated cache, would undo each other's work without end. Units of jobs that
// are gone are deleted by the garbage collector as well.
func needsFreshJob(s *Situation, d Decision) bool {
	return !s.FreshJob && slices.ContainsFunc(d.Do, func(action Action) bool {
		switch action.(type) {
		case DeleteUnit:
			return true
		case CreateUnit:
			return s.CreatedLately
		case PatchUnit:
			return s.PatchedLately
		default:
			return false
		}
	})
}
