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

package jobs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// PodSetSize is how many pods a pod set has.
type PodSetSize struct {
	Name string
	Pods int64
}

// CanBeSuspended says whether the job can be suspended. Pods of one that cannot wait in the scheduler.
func CanBeSuspended(j *Job) bool {
	return j.Kind.CanBeSuspended() && !j.Kind.SuspendUnless.Holds(j.Object.Object)
}

// Suspended says whether the job is suspended.
func (j *Job) Suspended() bool {
	if len(j.Kind.SuspendField) == 0 {
		return j.Kind.SuspendAnnotation != "" && j.Object.GetAnnotations()[j.Kind.SuspendAnnotation] == "true"
	}
	value, _ := jobkind.Lookup(j.Object.Object, j.Kind.SuspendField).(bool)
	return value
}

// SuspensionSeen says whether the job's own controller has noted that the job is suspended, and has taken its pods
// away.
func (j *Job) SuspensionSeen() bool {
	if j.Kind.SuspensionSeen == nil {
		return j.Suspended()
	}
	return j.Kind.SuspensionSeen.Holds(j.Object.Object)
}

// Started says whether the job may have pods: it has begun to run and was not wound up since, or nobody says so.
func (j *Job) Started() bool {
	switch {
	case j.Kind.Started != nil:
		return j.Kind.Started.Holds(j.Object.Object)
	case len(j.Kind.StartTime) > 0:
		return j.TemplatesFixed()
	default:
		return true
	}
}

// TemplatesFixed says whether the API server refuses changes of the job's pod templates until ClearStart.
func (j *Job) TemplatesFixed() bool {
	return jobkind.Lookup(j.Object.Object, j.Kind.StartTime) != nil
}

// Active is the number of pods that the job has and that have not ended.
func (j *Job) Active() int64 { return j.Kind.Active.Number(j.Object.Object) }

// Running is the number of ready pods, or one if the job only says that it runs. Above zero the job counts as running.
func (j *Job) Running() int64 {
	if n := j.Kind.Ready.Number(j.Object.Object); n > 0 || !j.Kind.Running.Holds(j.Object.Object) {
		return n
	}
	return 1
}

// ReadyOf is the number of ready pods of each of these pod sets. If the job has only one number for all, the first sets
// are taken to be ready first, which is exact for one set. If the job has no number, all pods are ready as soon as it
// runs.
func (j *Job) ReadyOf(sets []PodSetSize) []int64 {
	if j.Kind.Ready == nil {
		return readyIfItRuns(j, sets)
	}
	counts, left := j.Kind.ReadyBySet.Counts(j.Object.Object), j.Kind.Ready.Number(j.Object.Object)
	for _, n := range counts {
		left -= int64(n)
	}
	ready := make([]int64, len(sets))
	for i := range sets {
		n, told := counts[sets[i].Name]
		if told {
			ready[i] = min(int64(n), sets[i].Pods)
			continue
		}
		ready[i] = max(min(left, sets[i].Pods), 0)
		left -= ready[i]
	}
	return ready
}

func readyIfItRuns(j *Job, sets []PodSetSize) []int64 {
	ready, runs := make([]int64, len(sets)), j.Kind.Running.Holds(j.Object.Object)
	for i := range sets {
		if runs {
			ready[i] = sets[i].Pods
		}
	}
	return ready
}

// AllReady says whether of so many pods all are ready, or have ended well. Of a job that does not say how many are
// ready, it is whether it runs.
func (j *Job) AllReady(pods int64) bool {
	if j.Kind.Ready == nil {
		return j.Kind.Running.Holds(j.Object.Object)
	}
	if j.Kind.All != nil {
		pods = j.Kind.All.Number(j.Object.Object)
	}
	return j.Running() > 0 && j.Running()+j.Kind.Completed.Number(j.Object.Object) >= pods
}

// Reclaimable are the pods, by pod set, that have ended well and do not come again, of those that the pod sets count.
func (j *Job) Reclaimable() map[string]int32 {
	return j.Kind.Reclaimable.Counts(j.Object.Object)
}

// End is how a job ended.
type End struct {
	Succeeded bool
	// Message is what the job's controller says of it; may be empty.
	Message string
}

// Ended returns how the job ended, or false while it has not.
func (j *Job) Ended() (End, bool) {
	failed := j.Kind.Failed.Holds(j.Object.Object)
	if !failed && !j.Kind.Succeeded.Holds(j.Object.Object) {
		return End{}, false
	}
	return End{Succeeded: !failed, Message: j.Kind.Message.Text(j.Object.Object)}, true
}

// Invalid is why the job cannot be queued as it is, in words for its owner; empty if it can.
func (j *Job) Invalid() string {
	for i := range j.Kind.Valid {
		if !j.Kind.Valid[i].Rule.Holds(j.Object.Object) {
			return j.Kind.Valid[i].Message
		}
	}
	return ""
}

// PodSelector selects the pods of the job, nothing where it does not say yet how they are known.
func (j *Job) PodSelector() labels.Selector {
	value := string(j.Object.GetUID())
	switch p := &j.Kind.Pods; {
	case len(p.Selector) > 0:
		return selectorAt(j.Object, p.Selector)
	case p.ByName:
		value = j.Object.GetName()
	case len(p.Value) > 0:
		value, _ = jobkind.Lookup(j.Object.Object, p.Value).(string)
	}
	if value == "" {
		return labels.Nothing()
	}
	return labels.SelectorFromSet(labels.Set{j.Kind.Pods.Label: value})
}

func selectorAt(job *unstructured.Unstructured, p jobkind.Path) labels.Selector {
	fields, _ := jobkind.Lookup(job.Object, p).(map[string]any)
	if fields == nil {
		return labels.Nothing()
	}
	read := &metav1.LabelSelector{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, read) != nil {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(read)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// SuspendedByUs says whether MarkSuspended holds. It never does for a job that cannot be suspended: such a mark was
// written by somebody else.
func (j *Job) SuspendedByUs() bool {
	return CanBeSuspended(j) &&
		j.Object.GetAnnotations()[v1alpha1.AnnotationSuspendedBy] == v1alpha1.CreatedByController
}

// HasAdditions says whether the job carries a record of what resuming wrote into its pod templates. None is ours on a
// job that cannot be suspended.
func (j *Job) HasAdditions() bool {
	_, ok := j.Object.GetAnnotations()[v1alpha1.AnnotationTemplateAdditions]
	return ok && CanBeSuspended(j)
}

// HasUpdates says whether what admission checks asked for was written into its pod templates.
func (j *Job) HasUpdates() bool {
	if !j.HasAdditions() {
		return false
	}
	for _, r := range recordsOf(j.Object) {
		if r.Update != nil {
			return true
		}
	}
	return false
}

// HasCounts says whether the job carries a record of numbers of pods that it was resumed with.
func (j *Job) HasCounts() bool {
	_, ok := j.Object.GetAnnotations()[v1alpha1.AnnotationWholeCounts]
	return ok && CanBeSuspended(j)
}
