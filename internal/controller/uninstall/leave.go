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

package uninstall

import (
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// leaving says what becomes of one job.
type leaving int

const (
	untouched leaving = iota
	cleaned
	resumed
	leftSuspended
	heldBack
)

// leave returns the job without the additions of the controller. In plain the pod templates are unchanged, in case the
// API server rejects a change of them. Both are nil if the job has no additions and does not change. The error says why
// its pods cannot be charged.
func leave(job *jobs.Job, qu *v1alpha1.QueueUnit, mode Waiting) (after, plain *jobs.Job, done leaving, err error) {
	done = fate(job, qu, mode)
	_, stamped := job.Object.GetAnnotations()[v1alpha1.AnnotationResumed]
	marked := job.SuspendedByUs() || job.HasAdditions() || job.HasCounts() || stamped
	if done != resumed && !marked {
		return nil, nil, done, nil
	}
	edit := job.Edit()
	edit.UnmarkSuspended()
	edit.Annotate(v1alpha1.AnnotationResumed, "")
	if done == resumed && edit.SetSuspend(false) != nil { // not an object that its API server would serve
		return nil, nil, untouched, nil //nolint:nilerr // there is nothing to leave
	}
	plainly := edit.Copy()
	plainly.DropAdditions()
	plainly.DropCounts()
	if job.Suspended() {
		edit.RestoreCounts()
	}
	if !job.Suspended() || job.TemplatesFixed() {
		edit.DropAdditions()
		edit.DropCounts()
	} else {
		edit.RestoreTemplates(podupdate.AllOf(qu))
		if done == resumed && qu != nil {
			err = charge(edit, qu)
		}
	}
	return edit.Job(), plainly.Job(), done, err
}

// charge has the pods of a job be charged to the quota that its unit names. Only the controller knew that quota if it
// came from the namespace. A label of the owner stays. Nothing records the others: nobody takes them back.
func charge(edit *jobs.Edit, qu *v1alpha1.QueueUnit) error {
	quota := qu.Labels[v1alpha1.LabelQuotaName]
	if c := qu.Status.QuotaChoice; c != nil {
		quota = c.Name
	}
	if quota == "" {
		return nil
	}
	sets, err := edit.Job().PodSets()
	if err != nil {
		return err
	}
	additions := map[string]jobs.Addition{}
	for i := range sets {
		if sets[i].Template.Labels[v1alpha1.LabelQuotaName] == "" {
			additions[sets[i].Name] = jobs.Addition{Labels: map[string]string{v1alpha1.LabelQuotaName: quota}}
		}
	}
	if err = edit.AddToTemplates(additions); err != nil {
		return err
	}
	edit.DropAdditions()
	return nil
}

// fate of a job: a waiting job is resumed or left suspended; any other job is only cleaned.
func fate(job *jobs.Job, qu *v1alpha1.QueueUnit, mode Waiting) leaving {
	_, ended := job.Ended()
	marked := job.SuspendedByUs() || job.HasAdditions()
	waits := !ended && job.Suspended() && (qu != nil || job.SuspendedByUs())
	switch {
	case !waits && marked:
		return cleaned
	case !waits:
		return untouched
	case qu != nil && jobunit.InactiveByHand(qu):
		return heldBack
	case mode == Resume || qu != nil && unit.Phase(qu.Status.Phase).Releases():
		return resumed
	default:
		return leftSuspended
	}
}
