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
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/override"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobdefaults"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/podrequest"
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

// Options are those of the process that decisions depend on.
type Options struct {
	// WholeTemplates: units hold pod templates whole, not just what scheduling needs of them.
	WholeTemplates bool
	// ChecksOff: nothing that admission checks ask for is written into pods, and no job of which they ask it is resumed.
	ChecksOff bool
	// PartialAdmission: units say with how few pods their jobs can do.
	PartialAdmission bool
	// FinishedUnitsTTL is how long the unit of a finished job stays; zero is as long as the job.
	FinishedUnitsTTL time.Duration
}

// Situation is all that a decision on one job depends on.
type Situation struct {
	Now     metav1.Time
	Options Options
	Kind    *jobkind.Kind
	// Job is nil when there is none. Unit has the job's unit name, nil when there is none.
	Job  *jobs.Job
	Unit *v1alpha1.QueueUnit
	// FreshJob and FreshUnit were read from the API server itself, not from caches that may lag behind each other.
	FreshJob, FreshUnit bool
	// PatchedLately: we have patched the unit a short while ago.
	PatchedLately bool
	// Managed is the predicate's answer for the job; Elsewhere says that somebody else decides when it runs.
	Managed, Elsewhere bool
	// Observed: the queue does nothing about jobs of the namespace, and tells when they would be admitted.
	Observed bool
	// Alias is what labels of another system name, and AliasError what keeps them from naming it.
	Alias      alias.Names
	AliasError error
	// Path is the path that gives the job its quota, and PathError what keeps it from that.
	Path      string
	PathError error
	// Further is what else the job asks for by such labels.
	Further alias.Further
	// Unmanaged is what becomes of the job if it is not managed because it lacks a label.
	Unmanaged managedjobs.UnmanagedJobs
	// Asleep is why no queue resumes the suspended job, where jobs are queued; empty if it is not suspended.
	Asleep string
	// Schedulers are those whose pods the queue holds; empty is all.
	Schedulers []string
	// EveryJobIsGang: jobs of the kind are gangs whether they ask for it or not.
	EveryJobIsGang bool
	// Defaults of the kind; nil is none.
	Defaults *jobdefaults.Settings
	// Termination is the longest terminationGracePeriodSeconds that its pods may have; zero is any.
	Termination int64
	// Priorities that the job may have.
	Priorities jobunit.Priorities
	// Creation is what the cluster does to the pods of the job.
	Creation *podrequest.Creation
	// Cluster is for warnings about a job that has no unit yet; nil where nobody has looked.
	Cluster *survey.Cluster `json:"-"`
	// RequeuesSuspended: the queue of the unit has jobs that their owners suspend wait again, and does not hold them.
	RequeuesSuspended bool
	// LostUnit: the unit of the job lost its quota to others, and was deleted before the job was suspended.
	LostUnit bool
	// SuspensionRefused is why the API server refused to suspend the job when that was tried last.
	SuspensionRefused string
	// QueuePreempts: the queue of the unit suspends jobs so that its own of higher priority are admitted.
	QueuePreempts bool
	// MostGrace is the longest grace that the queue of the unit gives.
	MostGrace time.Duration
	Bound     Bound
	// Running are the pods of the job that run; nil: nobody has looked.
	Running []Pod
	// EndsLeft: pods end that a deleted job has left behind. Left are those of this job; nil: nobody has looked.
	EndsLeft bool
	Left     []Pod
	// Refusal is what the API server said when it refused a pod of the job, empty if it refused none; nil: nobody has
	// looked.
	Refusal *string
	// RunningSince is when pods of the job were first seen to run in its present run; nil if none do, or the unit says it.
	RunningSince *metav1.Time
	// Stall is why the admitted job does not run; nil: nobody has looked. StallSeen is when somebody looked last in its
	// present run; zero if nobody did.
	Stall     *stall.Finding
	StallSeen time.Time

	// What follows from it: whose the unit is, the job as it is read, what it asks for, the unit that it should have, and
	// its pod templates as resuming would make them, once somebody has asked.
	rel    jobunit.Relation
	read   *jobs.Job
	demand jobunit.Demand
	want   *v1alpha1.QueueUnit
	filled *filling
}

// ask reads what the job asks for.
func (s *Situation) ask() {
	plain, defaults := s.Job.Plain(asked(s)), s.defaults()
	plain.Alias, plain.Further = s.Alias, s.Further
	s.read = defaults.Apply(plain)
	s.demand = jobunit.DemandOf(s.read, s.Creation, s.Options.WholeTemplates)
	s.demand.JoinGangs(s.read, s.EveryJobIsGang)
	if !s.Options.PartialAdmission {
		s.demand.OnlyWhole()
	}
	s.demand.CheckPath(s.PathError)
	s.demand.CheckScheduler(s.Creation, s.Schedulers)
	s.demand.CheckTermination(s.Termination)
	if s.demand.Problem == nil {
		s.demand.Problem = held(s)
	}
	if class := s.Creation.PriorityClass(s.demand.Priority.Class); class != nil {
		s.Priorities.Class = &class.Value
	}
	s.want = jobunit.Of(s.read, s.demand, s.Priorities.Of(&s.demand))
	if s.Path != "" {
		jobunit.Annotate(s.want, v1alpha1.QueuePathKey, s.Path)
	}
	if defaults != nil {
		jobunit.Annotate(s.want, v1alpha1.AnnotationJobDefaults, defaults.Text())
	}
	if s.Observed {
		s.want.Spec.Mode = v1alpha1.ModeObserve
	}
	if s.rel == jobunit.Own {
		override.Apply(s.want, s.Unit)
	}
}

// defaults that the job is read with: those of its kind. A job that runs, or holds quota, keeps those that its unit
// has; its pods were made with them.
func (s *Situation) defaults() *jobdefaults.Settings {
	if !jobs.CanBeSuspended(s.Job) { // its pods would not get them
		return nil
	}
	if s.rel == jobunit.Own && (unit.Phase(s.Unit.Status.Phase).Holds() || !s.Job.Suspended()) {
		return jobdefaults.Read(s.Unit.Annotations[v1alpha1.AnnotationJobDefaults])
	}
	d := s.Defaults
	if d == nil || d.PriorityClassName == "" || s.Creation.PriorityClass(d.PriorityClassName) != nil {
		return d
	}
	known := *d
	known.PriorityClassName = "" // the class is not there, and the administrator is told
	return &known
}
