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
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobask"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/resumption"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
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
	// CreatedLately: we have created a unit of the job a short while ago, and it should have come. PatchedLately: we have
	// patched it.
	CreatedLately, PatchedLately bool
	// Managed is the predicate's answer for the job; Elsewhere says that somebody else decides when it runs.
	Managed, Elsewhere bool
	// Observed: the queue does nothing about jobs of the namespace, and tells when they would be admitted.
	Observed bool
	// Terms are what the cluster, the namespace and the configuration say about the job.
	Terms jobask.Terms
	// AliasError is what keeps labels of another system from naming a quota or queue.
	AliasError error
	// Unmanaged is what becomes of the job if it is not managed because it lacks a label.
	Unmanaged managedjobs.UnmanagedJobs
	// Asleep is why no queue resumes the suspended job, where jobs are queued; empty if it is not suspended.
	Asleep string
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
	Running []notice.Pod
	// EndsLeft: pods end that a deleted job has left behind. Left are those of this job; nil: nobody has looked.
	EndsLeft bool
	Left     []notice.Pod
	// Refusal is what the API server said when it refused a pod of the job, empty if it refused none; nil: nobody has
	// looked.
	Refusal *string
	// RunningSince is when pods of the job were first seen to run in its present run; nil if none do, or the unit says it.
	RunningSince *metav1.Time
	// Stall is why the admitted job does not run; nil: nobody has looked. StallSeen is when somebody looked last in its
	// present run; zero if nobody did.
	Stall     *stall.Finding
	StallSeen time.Time

	// rel says whose the unit is. The request of the job and its resumption are computed when a rule first needs them.
	rel     jobunit.Relation
	asked   *jobask.Ask
	resumes *resumption.Resumption
}

// own is the unit of the job; nil if there is none, or the unit of its name stands for something else.
func (s *Situation) own() *v1alpha1.QueueUnit {
	if s.rel != jobunit.Own {
		return nil
	}
	return s.Unit
}

// ask is the request of the job. The first rule of a plan that needs it reads it, once. No rule reads a job that has
// ended, is being deleted, or does not belong to the queue.
func (s *Situation) ask() *jobask.Ask {
	if s.asked == nil {
		s.asked = jobask.Of(jobask.Input{
			Job: s.Job, Own: s.own(), Terms: s.Terms,
			WholeTemplates: s.Options.WholeTemplates, PartialAdmission: s.Options.PartialAdmission,
			Requeues: s.RequeuesSuspended, Observed: s.Observed,
			Adopted: s.rel == jobunit.Absent && !s.Job.Suspended() && bound(s) == BoundSome,
		})
	}
	return s.asked
}

// resumption is with what the job would be resumed now.
func (s *Situation) resumption() *resumption.Resumption {
	if s.resumes == nil {
		s.resumes = s.resumptionBy(s.Unit)
	}
	return s.resumes
}

// resumptionBy another state of its unit.
func (s *Situation) resumptionBy(u *v1alpha1.QueueUnit) *resumption.Resumption {
	return &resumption.Resumption{Job: s.Job, Unit: u, Ask: s.ask(), Terms: &s.Terms, QueuePreempts: s.QueuePreempts}
}
