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

package controller

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/override"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// Bound says what is known of the pods of a job.
type Bound int

const (
	// BoundUnknown: nobody has looked.
	BoundUnknown Bound = iota
	// BoundNone: no pod of the job is on a node.
	BoundNone
	// BoundSome: the job has pods on nodes.
	BoundSome
)

// PlanOptions are those of the process that decisions depend on.
type PlanOptions struct {
	// WholeTemplates: units hold pod templates whole, not just what scheduling needs of them.
	WholeTemplates bool
	// ChecksOff: nothing that admission checks ask for is written into pods, and no job of which they ask it is resumed.
	ChecksOff bool
	// PartialAdmission: units say with how few pods their jobs can do.
	PartialAdmission bool
	// FinishedUnitsTTL is how long the unit of a finished job stays; zero is as long as the job.
	FinishedUnitsTTL time.Duration
}

// Observation is all that a decision on one job depends on.
type Observation struct {
	Now     metav1.Time
	Options PlanOptions
	Kind    *jobs.Kind
	// Job is nil when there is none. Unit bears the job's unit name, nil when there is none.
	Job  *unstructured.Unstructured
	Unit *v1alpha1.QueueUnit
	// Managed is the predicate's answer for the job; Elsewhere says that somebody else decides when it runs.
	Managed, Elsewhere bool
	// Unmanaged is what becomes of the job if it is not managed for want of a label.
	Unmanaged jobs.UnmanagedJobs
	// Schedules says whether pods of a scheduler of this name are held back and counted; nil is all.
	Schedules func(schedulerName string) bool `json:"-"`
	// EveryJobIsGang: jobs of the kind are gangs whether they ask for it or not.
	EveryJobIsGang bool
	// Priorities that the job may have.
	Priorities Priorities
	// Asleep: the job is suspended and names no queue, where jobs are queued.
	Asleep bool
	// Creation is what the cluster does to the pods of the job.
	Creation *jobs.Creation
	// Cluster is for warnings about a job that has no unit yet; nil where nobody has looked.
	Cluster *survey.Cluster `json:"-"`
	Bound   Bound
	// RequeuesSuspended: the queue of the unit has jobs that their owners suspend wait again, and does not hold them.
	RequeuesSuspended bool
	// Refusal is what the API server said when it refused a pod of the job, empty if it refused none; nil: nobody has
	// looked.
	Refusal *string
	// RunningSince is when pods of the job were first seen to run in its present run; nil if none do, or the unit says it.
	RunningSince *metav1.Time
	// FreshUnit: Unit was read from the API server itself.
	FreshUnit bool
	// PatchedLately: we have patched the unit a short while ago.
	PatchedLately bool
	// Fresh: Job was read from the API server itself, not from a cache that may lag behind the unit's.
	Fresh bool
}

// Plan decides what to do about one job. It is a pure function (I13); an empty plan is a fixpoint (I12).
//
// No unit is deleted on old news of its job: the cache of jobs may be behind that of units, and what looks like a unit
// of another job, or of none, may be what holds the quota of this one (I2, I3). So the API server is asked first. It is
// asked as well before a unit is set right for the second time in a short while: two controllers, one of them with old
// news, would correct each other for ever.
func Plan(o Observation) []Action {
	actions := decide(o)
	needsFresh := func(action Action) bool {
		switch action.(type) {
		case DeleteUnit:
			return true
		case PatchUnit:
			return o.PatchedLately
		default:
			return false
		}
	}
	if !o.Fresh && slices.ContainsFunc(actions, needsFresh) {
		return []Action{ReadJob{}}
	}
	return actions
}

func decide(o Observation) []Action {
	if o.Job == nil {
		return planOrphan(o)
	}
	if o.Job.GetDeletionTimestamp() != nil {
		return nil // the unit goes with its owner
	}
	p := planner{Observation: o, rel: relate(o.Kind, o.Job, o.Unit)}
	if !o.Managed && !p.isReleased() {
		return p.unmanaged()
	}
	p.demand = demandOf(o.Kind, o.Job, o.Creation, p.asked(), o.Options.WholeTemplates)
	p.demand.joinGangs(o.Kind, o.Job, o.EveryJobIsGang, p.asked())
	if !o.Options.PartialAdmission {
		p.demand.onlyWhole()
	}
	p.demand.checkScheduler(o.Creation, o.Schedules)
	p.checkHeld()
	p.want = unitOf(o.Kind, o.Job, p.demand, o.Priorities.unitPriority(&p.demand))
	if p.rel == own {
		override.Apply(p.want, o.Unit)
	}
	return p.managed()
}

// planOrphan removes a unit of ours whose job is gone.
func planOrphan(o Observation) []Action {
	u := o.Unit
	if u == nil || !createdByUs(u) || (u.Spec.ConsumerRef == nil) != o.Kind.OfPods() ||
		u.Spec.ConsumerRef != nil && !refersTo(o.Kind, u.Spec.ConsumerRef) {
		return nil
	}
	return []Action{DeleteUnit{Unit: u}}
}

func createdByUs(u *v1alpha1.QueueUnit) bool {
	return u.Labels[v1alpha1.LabelCreatedBy] == v1alpha1.CreatedByController
}

// planner holds what the steps of one plan share.
type planner struct {
	Observation
	rel    relation
	demand demand
	want   *v1alpha1.QueueUnit
}

// isReleased: a job that was let go keeps its unit to its end, managed or not; its pods carry our marks.
func (p *planner) isReleased() bool {
	return p.rel == own && stageOf(p.Unit.Status.Phase) == released && !p.Kind.Open(p.Job).Suspended()
}

// unmanaged takes away what is ours, and touches nothing else.
func (p *planner) unmanaged() []Action {
	var actions []Action
	if after := p.handBack(); after != nil {
		actions = append(actions, PatchJob{Before: p.Job, After: after, Event: event.Normal("Released", "Resume",
			"the queue no longer manages the job")})
	}
	if p.rel == own && createdByUs(p.Unit) && stageOf(p.Unit.Status.Phase) != over {
		actions = append(actions, DeleteUnit{Unit: p.Unit})
	}
	if e := p.leftOut(); e != nil {
		actions = append(actions, Tell{Event: e})
	}
	return actions
}

// leftOut says of a job that goes by no queue where others do what to do about it.
func (p *planner) leftOut() *event.Event {
	if _, over := p.Kind.Open(p.Job).Ended(); over {
		return nil
	}
	switch p.Unmanaged {
	case jobs.UnmanagedWarn:
		return event.Warning("Unmanaged", "Queue", "no queue manages this job, although jobs of this namespace have queues: "+
			"it names neither a quota nor a queue in its labels")
	case jobs.UnmanagedGate:
		return event.Warning("Unmanaged", "Queue", "no queue manages this job, so its pods are not "+
			"scheduled: it names neither a quota nor a queue in its labels")
	default:
	}
	if p.Asleep && !p.Kind.Open(p.Job).SuspendedByUs() {
		return event.Warning("Unmanaged", "Queue", "the job is suspended and no queue resumes it: "+
			"it names neither a quota nor a queue in its labels")
	}
	return nil
}

// handBack is the job without our marks, resumed if we had suspended it; nil when it bears none.
// A job that somebody else controls now is not resumed: that is for them to decide.
func (p *planner) handBack() *unstructured.Unstructured {
	if !p.Kind.Open(p.Job).SuspendedByUs() {
		return nil
	}
	after := p.Job.DeepCopy()
	p.Kind.Edit(after).UnmarkSuspended()
	unstamp(after)
	if p.Kind.Open(after).Suspended() {
		p.Kind.Edit(after).RestoreCounts()
		if !p.Kind.Open(after).TemplatesFixed() {
			p.Kind.Edit(after).RestoreTemplates(p.asked())
		}
		if !p.Elsewhere && p.Kind.Edit(after).SetSuspend(false) != nil {
			return nil
		}
	}
	return after
}

func (p *planner) managed() []Action {
	end, ended := p.Kind.Open(p.Job).Ended()
	switch {
	case ended:
		return p.finish(end)
	case p.Kind.Child != nil && !p.Kind.Open(p.Job).HasChild():
		return p.keepOut() // what it asks for is not known before its child is there
	case p.rel == absent:
		return p.enter()
	case p.rel == stale:
		return append(p.keepOut(), DeleteUnit{Unit: p.Unit, Event: event.Normal("UnitReplaced", "Delete",
			fmt.Sprintf("QueueUnit %s stood for another job of this name", p.Unit.Name))})
	case p.rel == foreign:
		return append(p.keepOut(), Tell{Event: event.Warning("NameTaken", "Queue",
			fmt.Sprintf("the job cannot be queued: QueueUnit %s exists and belongs to another object", p.Unit.Name))})
	}
	if actions := p.letGo(); actions != nil {
		return actions
	}
	switch stageOf(p.Unit.Status.Phase) {
	case released:
		return p.run()
	case over:
		return p.reopen()
	case waiting:
		return p.wait()
	default:
		return p.wait()
	}
}

// finish mirrors the end of the job, once.
func (p *planner) finish(end jobs.End) []Action {
	if p.rel != own {
		return nil
	}
	if stageOf(p.Unit.Status.Phase) == over {
		return expire(p.Unit, p.Options.FinishedUnitsTTL, p.Now.Time)
	}
	after := becomeEnded(p.Unit, end, p.Now)
	note := "the job " + map[bool]string{true: "succeeded", false: "failed"}[end.Succeeded] + "; its quota is free again"
	return []Action{PatchUnitStatus{Before: p.Unit, After: after, Event: event.Normal("Finished", "Finish", note)}}
}

// expire deletes a unit that has been finished for as long as such a unit stays.
func expire(u *v1alpha1.QueueUnit, ttl time.Duration, now time.Time) []Action {
	finished := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionFinished)
	if ttl <= 0 || finished == nil || !createdByUs(u) {
		return nil
	}
	if left := finished.LastTransitionTime.Add(ttl).Sub(now); left > 0 {
		return []Action{PlanLater{After: left}}
	}
	return []Action{DeleteUnit{Unit: u}}
}

// enter gives a job its unit: adopted if it runs already, else suspended first.
func (p *planner) enter() []Action {
	if p.Kind.Open(p.Job).Suspended() {
		return append([]Action{p.create()}, p.doubts()...)
	}
	switch p.bound() {
	case BoundUnknown:
		return []Action{LookAtPods{}}
	case BoundSome:
		return []Action{p.adopt()}
	case BoundNone:
		if p.mayBeLetGo() {
			return []Action{ReadUnit{}}
		}
		if !p.suspendable() {
			return append([]Action{p.create()}, p.doubts()...)
		}
		return append([]Action{p.suspend(), p.create()}, p.doubts()...)
	default:
		return nil
	}
}

// suspendable: the job has no pods while it is suspended. Pods of another are held back by the scheduler.
func (p *planner) suspendable() bool {
	return p.Kind.CanBeSuspended() && p.Kind.Open(p.Job).Invalid() == ""
}

// mayBeLetGo: the job has run, or was resumed by us, and its unit was not read from the API server. The cache of units
// may be behind that of jobs, after a start above all, and not have the unit at all, or that of an earlier job.
func (p *planner) mayBeLetGo() bool {
	return !p.FreshUnit && (p.Kind.Open(p.Job).HasAdditions() || p.Kind.Open(p.Job).Started() || p.Kind.Open(p.Job).Active() > 0)
}

// bound spares the look at pods for a job that its own controller has not touched yet.
func (p *planner) bound() Bound {
	if p.Bound == BoundUnknown && !p.Kind.Open(p.Job).Started() && p.Kind.Open(p.Job).Active() == 0 {
		return BoundNone
	}
	return p.Bound
}

// keepOut suspends a job that has no unit to run with, unless it has pods on nodes: those are never taken away
// before the scheduler has been told of them.
func (p *planner) keepOut() []Action {
	if p.Kind.Open(p.Job).Suspended() || !p.suspendable() {
		return nil
	}
	switch p.bound() {
	case BoundUnknown:
		return []Action{LookAtPods{}}
	case BoundNone:
		if p.mayBeLetGo() {
			return []Action{ReadUnit{}}
		}
		return []Action{p.suspend()}
	case BoundSome:
		return nil
	default:
		return nil
	}
}

func (p *planner) create() Action {
	note := fmt.Sprintf("waits as QueueUnit %s", p.want.Name)
	if p.demand.quota != "" {
		note += fmt.Sprintf(" for quota %q", p.demand.quota)
	}
	if p.demand.queue != "" {
		note += fmt.Sprintf(" in queue %q", p.demand.queue)
	}
	if capped := p.Priorities.capped(&p.demand); capped != "" {
		note += "; " + capped
	}
	return CreateUnit{Unit: p.want, Event: event.Normal("Queued", "Queue", note)}
}

func (p *planner) adopt() Action {
	u := p.want.DeepCopy()
	u.Spec.Active = nil // it runs; what is wrong with it cannot keep it from that
	delete(u.Annotations, v1alpha1.AnnotationParkedReason)
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[v1alpha1.AnnotationAdopted] = "true"
	return CreateUnit{Unit: u, Event: event.Normal("Adopted", "Adopt",
		"the job had pods on nodes before it was queued; these pods run and count, and the others wait for quota")}
}

func (p *planner) suspend() Action {
	after := p.Job.DeepCopy()
	if err := p.Kind.Edit(after).SetSuspend(true); err != nil {
		return Tell{Event: event.Warning("CannotSuspend", "Suspend", event.Short(err.Error()))}
	}
	p.Kind.Edit(after).MarkSuspended()
	e := event.Normal("Suspended", "Suspend", "the job is not admitted yet")
	if p.Unit != nil && p.rel == own && evicted(p.Unit) {
		e = event.Warning("Evicted", "Suspend", "the job lost its admission: "+event.Short(p.Unit.Status.Message+p.refused()))
	}
	return PatchJob{Before: p.Job, After: after, Event: e}
}
