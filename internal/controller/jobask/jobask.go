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

// Package jobask reads the request of a job: the resources of its pods, its quota and its priority. It makes the unit
// of the job from that. It is pure: it has neither a client nor a clock.
package jobask

import (
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/override"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ownerhold"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobdefaults"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Terms are what the cluster, the namespace and the configuration say about a job.
type Terms struct {
	// Creation is what the cluster does to the pods of the job.
	Creation *podrequest.Creation
	// Alias has the queue and the quota that labels of another queue system name. Further has all other requests in such
	// labels.
	Alias   alias.Names
	Further alias.Further
	// Path is the path that gives the job its quota, and PathError what keeps it from that.
	Path      string
	PathError error
	// Defaults of the kind; nil is none.
	Defaults *jobdefaults.Settings
	// EveryJobIsGang: jobs of the kind are gangs whether they ask for it or not.
	EveryJobIsGang bool
	// Schedulers are those whose pods the queue holds; empty is all.
	Schedulers []string
	// Termination is the longest terminationGracePeriodSeconds that pods may have; zero is any.
	Termination int64
	// Priorities that the job may have. The class is known once the job is read.
	Priorities jobunit.Priorities
}

// Input is all that an Ask depends on.
type Input struct {
	// Job is the job as it is now.
	Job *jobs.Job
	// Own is the unit of the job; nil if it has none.
	Own   *v1alpha1.QueueUnit
	Terms Terms
	// WholeTemplates: the unit holds pod templates whole, not just what scheduling needs of them.
	WholeTemplates bool
	// PartialAdmission: the unit says with how few pods the job can do.
	PartialAdmission bool
	// Requeues: the queue has a job wait again that its owner suspends, and does not hold it.
	Requeues bool
	// Observed: the unit tells when the job would be admitted, and nothing is done about the job.
	Observed bool
	// Adopted: the job runs with pods that were made before it had a unit.
	Adopted bool
}

// Ask is what a job asks of the queue. Nobody changes what it points to.
type Ask struct {
	// Job is the job as its owner wrote it, with the defaults that hold for it.
	Job *jobs.Job
	// Demand is what its pods ask for.
	Demand *jobunit.Demand
	// Unit is the unit that the job should have. It is inactive if there is a problem.
	Unit *v1alpha1.QueueUnit
	// Capped says that the job asks for a greater priority than it may have; empty if it does not.
	Capped string
}

// Of reads what the job asks for.
func Of(in Input) *Ask {
	plain, defaults := in.Job.Plain(podupdate.AllOf(in.Own)), defaultsOf(&in)
	plain.Alias, plain.Further = in.Terms.Alias, in.Terms.Further
	read := defaults.Apply(plain)
	demand := jobunit.DemandOf(read, in.Terms.Creation, in.WholeTemplates)
	demand.JoinGangs(read, in.Terms.EveryJobIsGang)
	if !in.PartialAdmission {
		demand.OnlyWhole()
	}
	demand.CheckPath(in.Terms.PathError)
	demand.CheckScheduler(in.Terms.Creation, in.Terms.Schedulers)
	demand.CheckTermination(in.Terms.Termination)
	if demand.Problem == nil {
		demand.Problem = ownerhold.Problem(in.Job, in.Own, in.Requeues)
	}
	priorities := in.Terms.Priorities
	if class := in.Terms.Creation.PriorityClass(demand.Priority.Class); class != nil {
		priorities.Class = &class.Value
	}
	want := jobunit.Of(read, demand, priorities.Of(&demand))
	if in.Terms.Path != "" {
		jobunit.Annotate(want, v1alpha1.QueuePathKey, in.Terms.Path)
	}
	if defaults != nil {
		jobunit.Annotate(want, v1alpha1.AnnotationJobDefaults, defaults.Text())
	}
	if in.Observed {
		want.Spec.Mode = v1alpha1.ModeObserve
	}
	if in.Own != nil {
		override.Apply(want, in.Own)
	}
	return &Ask{Job: read, Demand: &demand, Unit: want, Capped: priorities.Capped(&demand)}
}

// defaultsOf are the defaults that the job is read with: those of its kind. A job that runs, or holds quota, keeps
// those that its unit has; its pods were made with them.
func defaultsOf(in *Input) *jobdefaults.Settings {
	switch {
	case !jobs.CanBeSuspended(in.Job): // its pods would not get them
		return nil
	case in.Own != nil && (unit.Phase(in.Own.Status.Phase).Holds() || !in.Job.Suspended()):
		return jobdefaults.Read(in.Own.Annotations[v1alpha1.AnnotationJobDefaults])
	case in.Adopted && !in.Job.HasAdditions(): // pods that the controller did not make say nothing by default
		return nil
	}
	d := in.Terms.Defaults
	if d == nil || d.PriorityClassName == "" || in.Terms.Creation.PriorityClass(d.PriorityClassName) != nil {
		return d
	}
	known := *d
	known.PriorityClassName = "" // the class is not there, and the administrator is told
	return &known
}

// Problem is why the job cannot wait in a queue as it is; nil if it can. The first of these reasons counts:
//
//   - UnsupportedJob: its kind does not support what the job says.
//   - QuotaMismatch: its pods, labels or path name different quotas, or quotas that cannot be listed.
//   - InvalidRequest: pod sets, request, priority, time or gangs cannot be read.
//   - UnknownQuota: its path leads to no quota.
//   - OtherScheduler: its pods go to a scheduler that knows of no queue.
//   - SlowTermination: its pods may keep their quota for too long after a suspension.
//   - HeldByOwner, SuspendedByOwner: see ownerhold.
func (a *Ask) Problem() *jobunit.Problem { return a.Demand.Problem }

// Empty says that the job has no pods to queue.
func (a *Ask) Empty() bool { return len(a.Unit.Spec.PodSets) == 0 && a.Problem() == nil }
