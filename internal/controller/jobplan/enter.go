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

package jobplan

import (
	"fmt"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/doubt"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// enter gives a job its unit: adopted if it runs already, else suspended first.
func enter(s *Situation) (Decision, bool) {
	if s.rel != jobunit.Absent {
		return Decision{}, false
	}
	if !jobs.CanBeSuspended(s.Job) && s.ask().Empty() {
		return Decision{}, true // nothing to queue, and the job is not kept from running
	}
	if s.Job.Suspended() {
		return do(create(s)...), true
	}
	d, answers := ifNotBound(bound(s), func() Decision {
		switch {
		case mayBeLetGo(s):
			return look(LookAtUnit)
		case !suspendable(s.Job):
			return do(create(s)...)
		default:
			return do(append([]Action{suspend(s)}, create(s)...)...)
		}
	})
	if !answers {
		d = do(append([]Action{adopt(s.ask().Unit)}, ignoredKeys(s.Job, s.Terms.Further)...)...)
	}
	return d, true
}

// suspendable: the job has no pods while it is suspended. Pods of another are held back by the scheduler.
func suspendable(job *jobs.Job) bool {
	return jobs.CanBeSuspended(job) && job.Invalid() == ""
}

// mayBeLetGo: the job has run, or we resumed it, and its unit was not read from the API server. Above all after a
// start, the cache of units can be behind that of jobs, and lack the unit or have an earlier one.
func mayBeLetGo(s *Situation) bool {
	return !s.FreshUnit && (s.Job.HasAdditions() || s.Job.Started() || s.Job.Active() > 0)
}

// bound spares the look at pods for a job that its own controller has not touched yet.
func bound(s *Situation) Bound {
	if s.Bound == BoundUnknown && !s.Job.Started() && s.Job.Active() == 0 {
		return BoundNone
	}
	return s.Bound
}

// keepOut suspends a job without a unit to run with. If it has pods on nodes, the scheduler must know of those before
// they are removed.
func keepOut(s *Situation) Decision {
	if s.Job.Suspended() || !suspendable(s.Job) {
		return Decision{}
	}
	d, _ := ifNotBound(bound(s), func() Decision {
		if mayBeLetGo(s) {
			return look(LookAtUnit)
		}
		return do(suspend(s))
	})
	return d
}

// create the unit of a job. Doubts about the job are told, and stay in the unit for those who ask why it waits.
func create(s *Situation) []Action {
	ask := s.ask()
	note := fmt.Sprintf("waits as QueueUnit %s", ask.Unit.Name)
	if ask.Demand.Quota != "" {
		note += fmt.Sprintf(" for quota %q", ask.Demand.Quota)
	}
	if ask.Demand.Queue != "" {
		note += fmt.Sprintf(" in queue %q", ask.Demand.Queue)
	}
	if ask.Capped != "" {
		note += "; " + ask.Capped
	}
	u, actions := ask.Unit, make([]Action, 1)
	about := doubt.Job{Demand: ask.Demand, Creation: s.Terms.Creation, Cluster: s.Cluster}
	if doubts := about.Doubts(); len(doubts) > 0 {
		u = u.DeepCopy()
		jobunit.Annotate(u, v1alpha1.AnnotationDoubts, strings.Join(doubts, "\n"))
		// In one event: of several that differ in their notes alone, the recorder keeps the first and counts the others.
		actions = append(actions, tell(event.Warning(doubt.Reason, "Queue", event.Short(strings.Join(doubts, "; ")))))
	}
	actions[0] = CreateUnit{Unit: u, Event: event.Normal("Queued", "Queue", note)}
	return append(actions, ignoredKeys(s.Job, s.Terms.Further)...)
}

// adopt a job as it runs, with the unit that it should have.
func adopt(want *v1alpha1.QueueUnit) Action {
	u := want.DeepCopy()
	u.Spec.Active = nil // the job runs, and its faults cannot change that
	delete(u.Annotations, v1alpha1.AnnotationParkedReason)
	jobunit.Annotate(u, v1alpha1.AnnotationAdopted, "true")
	return CreateUnit{Unit: u, Event: event.Normal("Adopted", "Adopt",
		"the job had pods on nodes before it was queued; these pods run and count, and the others wait for quota")}
}

// suspend a job that is not admitted.
func suspend(s *Situation) Action {
	if own := s.own(); own != nil && unitstatus.Evicted(own) {
		return suspendWith(s.Job, event.Warning("Evicted", "Suspend",
			"the job lost its admission: "+event.Short(own.Status.Message+refused(s.Refusal))))
	}
	return suspendWith(s.Job, event.Normal("Suspended", "Suspend", "the job is not admitted yet"))
}

func suspendWith(job *jobs.Job, e *event.Event) Action {
	after := job.Edit()
	if err := after.SetSuspend(true); err != nil {
		return tell(event.Warning(unitcondition.ReasonCannotSuspend, "Suspend", event.Short(err.Error())))
	}
	bare := after.Copy()
	bare.Annotate(v1alpha1.AnnotationResumed, "")
	after.MarkSuspended()
	return PatchJob{Before: job, After: after.Job(), Bare: bare.Job(), Event: e}
}
