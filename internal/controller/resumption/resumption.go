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

// Package resumption says how a job is resumed: its number of pods, and the labels and annotations by which its pods
// are charged and recognised. It is pure: it has neither a client nor a clock.
package resumption

import (
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobask"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// Resumption is a job as its unit would have it resumed.
type Resumption struct {
	// Job as it is now, and its own unit.
	Job  *jobs.Job
	Unit *v1alpha1.QueueUnit
	// Ask is what the job asks for, on these terms.
	Ask   *jobask.Ask
	Terms *jobask.Terms
	// QueuePreempts: the queue of the unit suspends jobs so that its own of higher priority are admitted.
	QueuePreempts bool

	// filled are the pod templates, once somebody has compared them.
	filled *filling
}

// Truthful says whether the unit was admitted with what the job asks for.
func (r *Resumption) Truthful() bool {
	return r.Ask.Problem() == nil && r.Unit.Spec.ConsumerRef.UID == r.Job.Object.GetUID() && r.SameQuota() && r.covered()
}

// SameQuota says whether the unit was admitted in the quota that the job names, and drew on as much of it.
func (r *Resumption) SameQuota() bool {
	have, want := r.Unit.Labels, r.Ask.Unit.Labels
	return have[v1alpha1.LabelQuotaName] == want[v1alpha1.LabelQuotaName] &&
		(have[v1alpha1.LabelPreemptible] == "false") == (want[v1alpha1.LabelPreemptible] == "false")
}

// covered says whether the unit holds enough for the pods that the job would be resumed with.
func (r *Resumption) covered() bool {
	counts, demand := r.inPart(), r.Ask.Demand
	if counts == nil {
		return jobunit.Covers(r.Unit, r.Ask.Unit, demand.Without(r.Unit.Status.ReclaimablePods, r.Terms.Creation))
	}
	return jobunit.Holds(r.Unit, demand.With(r.Terms.Creation, func(set *jobs.PodSet) { set.Count = counts[set.Name] }))
}
