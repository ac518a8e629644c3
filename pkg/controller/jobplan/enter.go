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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/doubt"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/unitcondition"
)

// enter gives a job its unit: adopted if it runs already, else suspended first.
func enter(s *Situation) (Decision, bool) {
	if s.rel != jobunit.Absent {
		return Decision{}, false
	}
	if len(s.want.Spec.PodSets) == 0 && s.demand.Problem == nil && !jobs.CanBeSuspended(s.Job) {
		return Decision{}, true // it has no pods to queue, and is not kept from running
	}
	queue := append(create(s), ignoredKeys(s)...)
	if s.Job.Suspended() {
		return do(queue...), true
	}
	d, answers := ifNotBound(bound(s), func() Decision {
		switch {
		case mayBeLetGo(s):
			return look(LookAtUnit)
		case !suspendable(s):
			return do(queue...)
		default:
			return do(append([]Action{suspend(s)}, queue...)...)
		}
	})
	if !answers {
		return do(append([]Action{adopt(s)}, ignoredKeys(s)...)...), true
	}
	return d, true
}

// suspendable: the job has no pods while it is suspended. Pods of another are held back by the scheduler.
func suspendable(s *Situation) bool {
	return jobs.CanBeSuspended(s.Job) && s.Job.Invalid() == ""
}

// mayBeLetGo: the job has run, or was resumed by us, and its unit was not read from the API server. The cache of units
// may be behind that of jobs, after a start above all, and not have the unit at all, or that of an earlier job.
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

// keepOut suspends a job that has no unit to run with, unless it has pods on nodes: those are never taken away
// before the scheduler has been told of them.
func keepOut(s *Situation) Decision {
	if s.Job.Suspended() || !suspendable(s) {
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
	note := fmt.Sprintf("waits as QueueUnit %s", s.want.Name)
	if s.demand.Quota != "" {
		note += fmt.Sprintf(" for quota %q", s.demand.Quota)
	}
	if s.demand.Queue != "" {
		note += fmt.Sprintf(" in queue %q", s.demand.Queue)
	}
	if capped := s.Priorities.Capped(&s.demand); capped != "" {
		note += "; " + capped
	}
	u, actions := s.want, make([]Action, 1)
	about := doubt.Job{Demand: &s.demand, Creation: s.Creation, Cluster: s.Cluster}
	if doubts := about.Doubts(); len(doubts) > 0 {
		u = u.DeepCopy()
		jobunit.Annotate(u, v1alpha1.AnnotationDoubts, strings.Join(doubts, "\n"))
		// In one event: of several that differ in their notes alone, the recorder keeps the first and counts the others.
		actions = append(actions, tell(event.Warning(doubt.Reason, "Queue", event.Short(strings.Join(doubts, "; ")))))
	}
	actions[0] = CreateUnit{Unit: u, Event: event.Normal("Queued", "Queue", note)}
	return actions
}

// adopt a job as it runs. Pods that we did not make say nothing by default.
func adopt(s *Situation) Action {
	if s.Defaults != nil && !s.Job.HasAdditions() {
		as := *s
		as.Defaults = nil
		as.ask()
		s = &as
	}
	u := s.want.DeepCopy()
	u.Spec.Active = nil // it runs; what is wrong with it cannot keep it from that
	delete(u.Annotations, v1alpha1.AnnotationParkedReason)
	jobunit.Annotate(u, v1alpha1.AnnotationAdopted, "true")
	return CreateUnit{Unit: u, Event: event.Normal("Adopted", "Adopt",
		"the job had pods on nodes before it was queued; these pods run and count, and the others wait for quota")}
}

// suspend a job that is not admitted.
func suspend(s *Situation) Action {
	if s.Unit != nil && s.rel == jobunit.Own && Evicted(s.Unit) {
		return suspendWith(s, event.Warning("Evicted", "Suspend",
			"the job lost its admission: "+event.Short(s.Unit.Status.Message+refused(s))))
	}
	return suspendWith(s, event.Normal("Suspended", "Suspend", "the job is not admitted yet"))
}

func suspendWith(s *Situation, e *event.Event) Action {
	after := s.Job.Edit()
	if err := after.SetSuspend(true); err != nil {
		return tell(event.Warning(unitcondition.ReasonCannotSuspend, "Suspend", event.Short(err.Error())))
	}
	bare := after.Copy()
	bare.Annotate(v1alpha1.AnnotationResumed, "")
	after.MarkSuspended()
	return PatchJob{Before: s.Job, After: after.Job(), Bare: bare.Job(), Event: e}
}
