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
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// runningDelay is for how long a job runs before its unit says so: nobody reads it of one that ends sooner, and it
// would be a fourth of what such a job has written.
const runningDelay = 2 * time.Second

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

// Observation is all that a decision on one job depends on.
type Observation struct {
	Now  metav1.Time
	Kind *jobs.Kind
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
	// Creation is what the cluster does to the pods of the job.
	Creation *jobs.Creation
	// WholeTemplates: units hold pod templates whole.
	WholeTemplates bool
	Bound          Bound
	// RunningSince is when pods of the job were first seen to run in its present run; nil if none do, or the unit says it.
	RunningSince *metav1.Time
	// FreshUnit: Unit was read from the API server itself.
	FreshUnit bool
	// Fresh: Job was read from the API server itself, not from a cache that may lag behind the unit's.
	Fresh bool
}

// Event to record on the job once an action is done.
type Event struct {
	Type, Reason, Action, Note string
}

// Action is one step of a plan. Steps are done in order; the first that fails ends the plan.
type Action interface{ action() }

type (
	// LookAtPods asks for Bound and a new plan.
	LookAtPods struct{}
	// ReadUnit asks for the unit from the API server, and a new plan.
	ReadUnit struct{}
	// ReadJob asks for the job from the API server, and a new plan.
	ReadJob struct{}
	// PlanLater asks for a new plan after some time. It stands alone.
	PlanLater struct{ After time.Duration }
	// CreateUnit creates a unit.
	CreateUnit struct {
		Unit  *v1alpha1.QueueUnit
		Event *Event
	}
	// PatchUnit changes spec or metadata of a unit.
	PatchUnit struct {
		Before, After *v1alpha1.QueueUnit
		Event         *Event
	}
	// PatchUnitStatus changes the status of a unit.
	PatchUnitStatus struct {
		Before, After *v1alpha1.QueueUnit
		Event         *Event
	}
	// DeleteUnit deletes this very unit, as it is here.
	DeleteUnit struct {
		Unit  *v1alpha1.QueueUnit
		Event *Event
	}
	// PatchJob changes a job. Plain, when set, is tried when the API server refuses After as invalid; without
	// Plain a refusal is waited for.
	PatchJob struct {
		Before, After, Plain *unstructured.Unstructured
		Event                *Event
	}
	// ResetStart takes back the mark of a suspended job's earlier run, without which its pod templates may not be changed.
	ResetStart struct{ Job *unstructured.Unstructured }
	// Tell records an event without a write; it is told once for each text.
	Tell struct{ Event *Event }
)

func (PlanLater) action()       {}
func (LookAtPods) action()      {}
func (ReadUnit) action()        {}
func (ReadJob) action()         {}
func (CreateUnit) action()      {}
func (PatchUnit) action()       {}
func (PatchUnitStatus) action() {}
func (DeleteUnit) action()      {}
func (PatchJob) action()        {}
func (ResetStart) action()      {}
func (Tell) action()            {}

// Plan decides what to do about one job. It is a pure function (I13); an empty plan is a fixpoint (I12).
//
// No unit is deleted on old news of its job: the cache of jobs may be behind that of units, and what looks like a unit
// of another job, or of none, may be what holds the quota of this one (I2, I3). So the API server is asked first.
func Plan(o Observation) []Action {
	actions := decide(o)
	if !o.Fresh && slices.ContainsFunc(actions, func(a Action) bool { _, ok := a.(DeleteUnit); return ok }) {
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
	p.demand = demandOf(o.Kind, o.Job, o.Creation, o.WholeTemplates)
	p.demand.checkScheduler(o.Creation, o.Schedules)
	p.want = unitOf(o.Kind, o.Job, p.demand, o.Priorities.unitPriority(&p.demand))
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
	return p.rel == own && stageOf(p.Unit.Status.Phase) == released && !p.Kind.Suspended(p.Job)
}

// unmanaged takes away what is ours, and touches nothing else.
func (p *planner) unmanaged() []Action {
	var actions []Action
	if after := p.handBack(); after != nil {
		actions = append(actions, PatchJob{Before: p.Job, After: after, Event: normal("Released", "Resume",
			"the job is not managed by the queue any more")})
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
func (p *planner) leftOut() *Event {
	if _, over := p.Kind.Ended(p.Job); over {
		return nil
	}
	switch p.Unmanaged {
	case jobs.UnmanagedWarn:
		return warning("Unmanaged", "Queue", "jobs of this namespace run by a queue, and no queue has this one: "+
			"it names neither a quota nor a queue in its labels")
	case jobs.UnmanagedGate:
		return warning("Unmanaged", "Queue", "jobs of this namespace run by a queue, and pods of this one are not "+
			"scheduled: it names neither a quota nor a queue in its labels")
	default:
		return nil
	}
}

// handBack is the job without our marks, resumed if we had suspended it; nil when it bears none.
// A job that somebody else controls now is not resumed: that is for them to decide.
func (p *planner) handBack() *unstructured.Unstructured {
	if !jobs.SuspendedByUs(p.Job) {
		return nil
	}
	after := p.Job.DeepCopy()
	jobs.UnmarkSuspended(after)
	if p.Kind.Suspended(after) {
		if !p.Kind.TemplatesFixed(after) {
			p.Kind.RestoreTemplates(after)
		}
		if !p.Elsewhere && p.Kind.SetSuspend(after, false) != nil {
			return nil
		}
	}
	return after
}

func (p *planner) managed() []Action {
	end, ended := p.Kind.Ended(p.Job)
	switch {
	case ended:
		return p.finish(end)
	case p.Kind.Child != nil && !jobs.HasChild(p.Job):
		return p.keepOut() // what it asks for is not known before its child is there
	case p.rel == absent:
		return p.enter()
	case p.rel == stale:
		return append(p.keepOut(), DeleteUnit{Unit: p.Unit, Event: normal("UnitReplaced", "Delete",
			fmt.Sprintf("QueueUnit %s stood for another job of this name", p.Unit.Name))})
	case p.rel == foreign:
		return append(p.keepOut(), Tell{Event: warning("NameTaken", "Queue",
			fmt.Sprintf("the job cannot wait: a QueueUnit %s that is not its own exists", p.Unit.Name))})
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
	if p.rel != own || stageOf(p.Unit.Status.Phase) == over {
		return nil
	}
	after := becomeEnded(p.Unit, end, p.Now)
	note := "the job " + map[bool]string{true: "succeeded", false: "failed"}[end.Succeeded] + "; its quota is free again"
	return []Action{PatchUnitStatus{Before: p.Unit, After: after, Event: normal("Finished", "Finish", note)}}
}

// enter gives a job its unit: adopted if it runs already, else suspended first.
func (p *planner) enter() []Action {
	if p.Kind.Suspended(p.Job) {
		return []Action{p.create()}
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
			return []Action{p.create()}
		}
		return []Action{p.suspend(), p.create()}
	default:
		return nil
	}
}

// suspendable: the job has no pods while it is suspended. Pods of another are held back by the scheduler.
func (p *planner) suspendable() bool {
	return p.Kind.CanBeSuspended() && p.Kind.Invalid(p.Job) == ""
}

// mayBeLetGo: the job has run, or was resumed by us, and its unit was not read from the API server. The cache of units
// may be behind that of jobs, after a start above all, and not have the unit at all, or that of an earlier job.
func (p *planner) mayBeLetGo() bool {
	return !p.FreshUnit && (jobs.HasAdditions(p.Job) || p.Kind.Started(p.Job) || p.Kind.Active(p.Job) > 0)
}

// bound spares the look at pods for a job that its own controller has not touched yet.
func (p *planner) bound() Bound {
	if p.Bound == BoundUnknown && !p.Kind.Started(p.Job) && p.Kind.Active(p.Job) == 0 {
		return BoundNone
	}
	return p.Bound
}

// keepOut suspends a job that has no unit to run with, unless it has pods on nodes: those are never taken away
// before the scheduler has been told of them.
func (p *planner) keepOut() []Action {
	if p.Kind.Suspended(p.Job) || !p.suspendable() {
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
	return CreateUnit{Unit: p.want, Event: normal("Queued", "Queue", note)}
}

func (p *planner) adopt() Action {
	u := p.want.DeepCopy()
	u.Spec.Active = nil // it runs; what is wrong with it cannot keep it from that
	delete(u.Annotations, v1alpha1.AnnotationParkedReason)
	if u.Annotations == nil {
		u.Annotations = map[string]string{}
	}
	u.Annotations[v1alpha1.AnnotationAdopted] = "true"
	return CreateUnit{Unit: u, Event: normal("Adopted", "Adopt",
		"the job had pods on nodes before it was queued; they are counted and left to run, and the rest has to wait")}
}

func (p *planner) suspend() Action {
	after := p.Job.DeepCopy()
	if err := p.Kind.SetSuspend(after, true); err != nil {
		return Tell{Event: warning("CannotSuspend", "Suspend", short(err.Error()))}
	}
	jobs.MarkSuspended(after)
	event := normal("Suspended", "Suspend", "the job is not admitted yet")
	if p.Unit != nil && p.rel == own && evicted(p.Unit) {
		event = warning("Evicted", "Suspend", "the job lost its admission: "+short(p.Unit.Status.Message))
	}
	return PatchJob{Before: p.Job, After: after, Event: event}
}

// run lets an admitted job go and mirrors that it runs.
func (p *planner) run() []Action {
	if !p.Kind.Suspended(p.Job) {
		running := p.Kind.Running(p.Job)
		if jobs.SuspendedByUs(p.Job) {
			return p.resumeAnew(running)
		}
		if actions := p.recharge(); actions != nil {
			return actions
		}
		if actions := p.follow(); actions != nil {
			return actions
		}
		return append(p.tellQuota(), p.mirrorStart(running)...)
	}
	if p.reconsidered() {
		return nil // the scheduler takes the admission back, then the unit is set right where it waits
	}
	if !p.truthful() {
		if p.estimatedOtherwise() {
			return []Action{p.reconsider()}
		}
		return []Action{DeleteUnit{Unit: p.Unit, Event: warning("UnitReplaced", "Delete",
			"the job asks for other than what was admitted; it waits again")}}
	}
	return p.resume()
}

// follow keeps the size that the unit asks for that of its job while the job runs. What is beyond what the unit holds
// it has to wait for; what is less it gives back.
func (p *planner) follow() []Action {
	have, want := p.Unit.Spec.PodSets, p.want.Spec.PodSets
	sameName := func(a, b v1alpha1.PodSet) bool { return a.Name == b.Name }
	if p.demand.problem != nil || !slices.EqualFunc(have, want, sameName) {
		return nil
	}
	after := p.Unit.DeepCopy()
	before, now := int64(0), int64(0)
	for i := range want {
		before, now = before+int64(have[i].Count), now+int64(want[i].Count)
		after.Spec.PodSets[i].Count, after.Spec.PodSets[i].MinCount = want[i].Count, want[i].MinCount
	}
	if !equality.Semantic.DeepEqual(after.Spec.Request, p.want.Spec.Request) {
		after.Spec.Request, after.Spec.Resource = p.want.Spec.Request, nil
	}
	if !p.relabelled() && after.Labels != nil {
		for _, key := range append([]string{v1alpha1.LabelPreemptible}, v1alpha1.QuotaLabels[:]...) {
			set(after.Labels, key, p.want.Labels[key])
		}
	}
	if equality.Semantic.DeepEqual(after, p.Unit) {
		return nil
	}
	step := PatchUnit{Before: p.Unit, After: after}
	switch {
	case now > before:
		step.Event = normal("Grows", "Queue",
			fmt.Sprintf("the job asks for %d pods in place of %d; those beyond wait until there is quota for them", now, before))
	case now < before:
		step.Event = normal("Shrinks", "Queue",
			fmt.Sprintf("the job asks for %d pods in place of %d; quota of the others is given back", now, before))
	}
	return []Action{step}
}

// relabelled says whether a running job names another quota than its pods were made with. They stay charged to that
// one, and so does the unit, until the job is resumed anew.
func (p *planner) relabelled() bool {
	return p.Unit.Labels[v1alpha1.LabelQuotaName] != p.want.Labels[v1alpha1.LabelQuotaName] && p.chargedElsewhere()
}

func (p *planner) tellQuota() []Action {
	if p.demand.problem != nil || !p.relabelled() {
		return nil
	}
	return []Action{Tell{Event: warning("QuotaChanged", "Queue", fmt.Sprintf(
		"the job names quota %q now; as long as it runs its pods are charged to %q, which it was admitted with",
		p.want.Labels[v1alpha1.LabelQuotaName], p.Unit.Labels[v1alpha1.LabelQuotaName]))}}
}

// mirrorStart says that the job runs, once it has for a while.
func (p *planner) mirrorStart(running int64) []Action {
	if !startsToRun(p.Kind, p.Job, p.Unit) {
		return nil
	}
	since := p.Now
	if p.RunningSince != nil {
		since = *p.RunningSince
	}
	if ran := p.Now.Sub(since.Time); ran < runningDelay {
		return []Action{PlanLater{After: runningDelay - ran}}
	}
	return []Action{PatchUnitStatus{Before: p.Unit, After: becomeRunning(p.Unit, running, p.Now, since),
		Event: normal("Running", "Run", "pods of the job run")}}
}

// startsToRun: pods of an admitted job run, and its unit does not say so yet. Until the job's controller has noted the
// resumption, their count is that of an earlier run.
func startsToRun(kind *jobs.Kind, job *unstructured.Unstructured, unit *v1alpha1.QueueUnit) bool {
	return unit != nil && stageOf(unit.Status.Phase) == released && unit.Status.Phase != v1alpha1.PhaseRunning &&
		kind.Running(job) > 0 && !kind.Suspended(job) && !kind.SuspensionSeen(job)
}

// resumeAnew is for a job that bears our mark and was resumed by hand just before it was admitted. The gate holds its
// pods for as long as the mark is there. So it is suspended again, and then resumed with all that its pods need; where
// pods run, the mark alone is taken away.
func (p *planner) resumeAnew(running int64) []Action {
	if running > 0 {
		after := p.Job.DeepCopy()
		jobs.UnmarkSuspended(after)
		return []Action{PatchJob{Before: p.Job, After: after}}
	}
	return []Action{p.suspendToRecharge()}
}

func (p *planner) suspendToRecharge() Action {
	after := p.Job.DeepCopy()
	if err := p.Kind.SetSuspend(after, true); err != nil {
		return Tell{Event: warning("CannotSuspend", "Suspend", short(err.Error()))}
	}
	jobs.MarkSuspended(after)
	return PatchJob{Before: p.Job, After: after, Event: normal("Suspended", "Suspend",
		"its pods lack what they need to be charged to its quota; it is resumed with that")}
}

// recharge is for an admitted job whose pods are not charged where its unit holds quota: it was resumed by hand just
// before it was admitted, or ran before it was queued. The gate lets none of them go. As soon as no pod of it is on a
// node it is suspended, and then resumed with what its pods need.
func (p *planner) recharge() []Action {
	if !p.suspendable() || !p.hasPending() || !p.chargedElsewhere() {
		return nil
	}
	switch p.bound() {
	case BoundUnknown:
		return []Action{LookAtPods{}}
	case BoundNone:
		return []Action{p.suspendToRecharge()}
	case BoundSome:
		return nil
	default:
		return nil
	}
}

// hasPending says whether pods of the job may be on no node: there are more than are ready, or nobody says how many
// there are and none is ready.
func (p *planner) hasPending() bool {
	running := p.Kind.Running(p.Job)
	if !p.Kind.CountsPods() {
		return running == 0
	}
	return p.Kind.Active(p.Job) > running
}

// truthful says whether what was admitted is what the job asks for (I3).
func (p *planner) truthful() bool {
	return p.demand.problem == nil &&
		p.Unit.Spec.ConsumerRef.UID == p.Job.GetUID() &&
		p.Unit.Labels[v1alpha1.LabelQuotaName] == p.want.Labels[v1alpha1.LabelQuotaName] &&
		covers(p.Unit, p.want)
}

// estimatedOtherwise says whether the unit differs in nothing that the job itself says: what the cluster does to its
// pods has changed since it was estimated.
func (p *planner) estimatedOtherwise() bool {
	have, want := p.Unit, p.want
	if !createdByUs(have) || p.demand.problem != nil || have.Spec.ConsumerRef.UID != p.Job.GetUID() ||
		!sameScheduling(have.Spec.PodSets, want.Spec.PodSets) {
		return false
	}
	return have.Labels[v1alpha1.LabelQuotaName] != want.Labels[v1alpha1.LabelQuotaName] ||
		!equality.Semantic.DeepEqual(have.Spec.Request, want.Spec.Request)
}

// reconsider has the unit give its admission back. It keeps its place, as a unit that was deleted would not (I5).
func (p *planner) reconsider() Action {
	after := p.Unit.DeepCopy()
	park(after, &problem{Reason: reasonEstimateChanged})
	return PatchUnit{Before: p.Unit, After: after, Event: warning("EstimateChanged", "Queue",
		"pods of the job would be counted otherwise than it was admitted with; it waits again, at its place")}
}

// reconsidered says whether that was asked for and is not done yet.
func (p *planner) reconsidered() bool {
	active := p.Unit.Spec.Active
	return active != nil && !*active && p.Unit.Annotations[v1alpha1.AnnotationParkedReason] == reasonEstimateChanged
}

// resume lets the job go in one write, with what its pods need to be charged and recognised.
func (p *planner) resume() []Action {
	elsewhere := p.chargedElsewhere()
	mayHavePods := jobs.SuspendedByUs(p.Job) || elsewhere && (p.Kind.Started(p.Job) || p.Kind.Active(p.Job) > 0)
	if mayHavePods && !p.settled() {
		// Pods from before the suspension may be left. Resumed now, the job's controller might still take some of them
		// away after they were bound, and the job would run them twice (I3); others might lack the quota label.
		return nil
	}
	after := p.Job.DeepCopy()
	jobs.UnmarkSuspended(after)
	if err := p.Kind.SetSuspend(after, false); err != nil {
		return []Action{Tell{Event: warning("CannotResume", "Resume", short(err.Error()))}}
	}
	event := normal("Admitted", "Resume", "quota is reserved; the job is resumed")
	plain := after.DeepCopy()
	if p.Kind.TemplatesFixed(p.Job) {
		if elsewhere || p.gangedOtherwise() {
			return p.resetStart()
		}
		return []Action{PatchJob{Before: p.Job, After: plain, Event: event}}
	}
	if err := p.fill(after); err != nil {
		return []Action{Tell{Event: warning("CannotResume", "Resume", short(err.Error()))}}
	}
	if elsewhere {
		plain = nil // templates become mutable once the suspension has been noted
	}
	return []Action{PatchJob{Before: p.Job, After: after, Plain: plain, Event: event}}
}

// fill makes the pod templates of a job what its pods need: what their owner wrote, and our additions.
func (p *planner) fill(job *unstructured.Unstructured) error {
	p.Kind.RestoreTemplates(job)
	return p.Kind.AddToTemplates(job, p.additions(job))
}

// additions to each pod template: who the pods belong to, the labels that ElasticQuota charges them by, and the gang
// that Koordinator binds together. The templates of the job bear none of them.
func (p *planner) additions(job *unstructured.Unstructured) map[string]jobs.Addition {
	additions := make(map[string]jobs.Addition, len(p.demand.podSets))
	for i := range p.demand.podSets {
		s := &p.demand.podSets[i]
		additions[s.Name] = jobs.Addition{Labels: p.demand.own.addTo(s.Template), Annotations: map[string]string{
			v1alpha1.AnnotationRelatedQueueUnit: p.Unit.Namespace + "/" + p.Unit.Name,
			v1alpha1.AnnotationRelatedPodSet:    s.Name,
		}}
	}
	for _, gang := range p.Kind.Gangs(job, p.EveryJobIsGang) {
		for _, set := range gang.PodSets {
			if addition, ok := additions[set]; ok { // pod sets that cannot be read are not among them
				maps.Copy(addition.Annotations, gang.Annotations(p.Unit.Name))
			}
		}
	}
	return additions
}

// chargedElsewhere says whether pods of the templates as they are now would be charged otherwise than the unit was
// asked for: their quota label is missing, or the record of what was added, which the owner of the job may forge, has
// it taken for ours (C0).
func (p *planner) chargedElsewhere() bool {
	return p.filledOtherwise(func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Labels[v1alpha1.LabelQuotaName], template.Labels[v1alpha1.LabelPreemptible]}
	})
}

// gangedOtherwise says whether they would be in another gang than the job is now, or in one that needs more pods than
// it has.
func (p *planner) gangedOtherwise() bool {
	return p.filledOtherwise(func(template *corev1.PodTemplateSpec) [2]string {
		return [2]string{template.Annotations[extension.AnnotationGangName],
			template.Annotations[extension.AnnotationGangMinNum]}
	})
}

// filledOtherwise compares the templates as they are, with what an earlier resume added, with what resuming would make
// of them.
func (p *planner) filledOtherwise(of func(*corev1.PodTemplateSpec) [2]string) bool {
	filled := p.Job.DeepCopy()
	if p.fill(filled) != nil {
		return true
	}
	now, err := p.Kind.PodSets(p.Job)
	want, errWant := p.Kind.PodSets(filled)
	if err != nil || errWant != nil || len(now) != len(want) {
		return true
	}
	for i := range now {
		if of(now[i].Template) != of(want[i].Template) {
			return true
		}
	}
	return false
}

// resetStart makes templates mutable again after an earlier run, once that has been wound up: the change of the
// job's status that says so brings a new plan.
func (p *planner) resetStart() []Action {
	if !p.settled() {
		return nil
	}
	return []Action{ResetStart{Job: p.Job}}
}

// settled: the job's own controller has noted the suspension and no pod is left.
func (p *planner) settled() bool {
	return p.Kind.SuspensionSeen(p.Job) && p.Kind.Active(p.Job) == 0
}

// wait keeps the job suspended and its unit true while it is in the queue.
func (p *planner) wait() []Action {
	if !p.Kind.Suspended(p.Job) && (p.suspendable() || p.adopting()) {
		return p.holdOrAdopt()
	}
	if actions := p.correct(); actions != nil {
		return actions
	}
	if after := p.restored(); after != nil {
		return []Action{PatchJob{Before: p.Job, After: after}}
	}
	if p.Kind.TemplatesFixed(p.Job) && p.chargedElsewhere() {
		return p.resetStart() // now, so that admission need not wait for it
	}
	return nil
}

// holdOrAdopt: a job that is not admitted is suspended, unless its adoption has only begun.
func (p *planner) holdOrAdopt() []Action {
	if !p.FreshUnit {
		// The cache of units may be behind that of jobs, after a start above all: a job that has just been resumed is not
		// suspended again on old news, which would take its pods away.
		return []Action{ReadUnit{}}
	}
	if !p.adopting() {
		return []Action{p.suspend()}
	}
	switch p.Bound { // looked at again: anybody who may write units could have written the annotation
	case BoundUnknown:
		return []Action{LookAtPods{}}
	case BoundSome:
		if !p.demand.counted() {
			// What it holds cannot be said. Its pods on nodes are in used, it is left alone, and its unit says what is wrong.
			if after := becomeParked(p.Unit, p.demand.problem, p.Now); after != nil {
				return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
			}
			return nil
		}
		after := becomeAdopted(p.Unit, p.Kind.Running(p.Job), p.Now)
		return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
	case BoundNone:
		if !p.suspendable() {
			return p.correct()
		}
		return []Action{p.suspend()}
	default:
		return nil
	}
}

func (p *planner) adopting() bool {
	phase := p.Unit.Status.Phase
	return p.Unit.Annotations[v1alpha1.AnnotationAdopted] != "" && !evicted(p.Unit) &&
		(phase == "" || phase == v1alpha1.PhaseEnqueued) && (p.Unit.Spec.Active == nil || *p.Unit.Spec.Active)
}

// correct sets the unit right while it holds nothing, and says in its condition what is wrong with the job.
func (p *planner) correct() []Action {
	if holdsQuota(p.Unit.Status.Phase) {
		return nil
	}
	if after := corrected(p.Unit, p.want); after != nil {
		step := PatchUnit{Before: p.Unit, After: after}
		if !createdByUs(p.Unit) {
			step.Event = warning("UnitCorrected", "Correct",
				fmt.Sprintf("QueueUnit %s was written by somebody else; it now asks for what the job asks for", p.Unit.Name))
		}
		return []Action{step}
	}
	if p.demand.problem == nil {
		return nil
	}
	if after := becomeParked(p.Unit, p.demand.problem, p.Now); after != nil {
		return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
	}
	return nil
}

// restored is the job with its templates as its owner wrote them, nil when there is nothing to take back or
// the API server would refuse it.
func (p *planner) restored() *unstructured.Unstructured {
	if p.Kind.TemplatesFixed(p.Job) {
		return nil
	}
	after := p.Job.DeepCopy()
	if !p.Kind.RestoreTemplates(after) {
		return nil
	}
	return after
}

// reopen replaces a unit that says the job is over while it is not: somebody wrote its status, and the job would
// never run.
func (p *planner) reopen() []Action {
	return []Action{DeleteUnit{Unit: p.Unit, Event: warning("UnitReplaced", "Delete",
		fmt.Sprintf("QueueUnit %s said that the job was over, which it is not; the job gets another one", p.Unit.Name))}}
}

func normal(reason, action, note string) *Event {
	return &Event{Type: corev1.EventTypeNormal, Reason: reason, Action: action, Note: note}
}

func warning(reason, action, note string) *Event {
	return &Event{Type: corev1.EventTypeWarning, Reason: reason, Action: action, Note: note}
}
