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
)

// PodSetSize is how many pods a pod set has.
type PodSetSize struct {
	Name string
	Pods int64
}

// CanBeSuspended says whether jobs of this kind can be suspended. Pods of others wait in the scheduler.
func (k *Kind) CanBeSuspended() bool { return len(k.suspend) > 0 || k.suspendAnnotation != "" }

// SuspendField is where the job says that it is suspended; empty if it does so in no field.
func (k *Kind) SuspendField() Path { return k.suspend }

// SuspendAnnotation is the annotation that suspends with the value "true"; empty if none does.
func (k *Kind) SuspendAnnotation() string { return k.suspendAnnotation }

// KeepsPods says whether pods of a job run on when it is suspended.
func (k *Kind) KeepsPods() bool { return k.keepsPods || !k.CanBeSuspended() }

// Suspended says whether the job is suspended.
func (k *Kind) Suspended(job *unstructured.Unstructured) bool {
	if len(k.suspend) == 0 {
		return k.suspendAnnotation != "" && job.GetAnnotations()[k.suspendAnnotation] == "true"
	}
	value, _ := lookup(job.Object, k.suspend).(bool)
	return value
}

// SuspensionSeen says whether the job's own controller has noted that the job is suspended, and has taken its pods
// away.
func (k *Kind) SuspensionSeen(job *unstructured.Unstructured) bool {
	if k.suspensionSeen == nil {
		return k.Suspended(job)
	}
	return k.suspensionSeen.holds(job.Object)
}

// Started says whether the job may have pods: it has begun to run and was not wound up since, or nobody says so.
func (k *Kind) Started(job *unstructured.Unstructured) bool {
	switch {
	case k.started != nil:
		return k.started.holds(job.Object)
	case len(k.startTime) > 0:
		return k.TemplatesFixed(job)
	default:
		return true
	}
}

// TemplatesFixed says whether the API server refuses changes of the job's pod templates until ClearStart.
func (k *Kind) TemplatesFixed(job *unstructured.Unstructured) bool {
	return lookup(job.Object, k.startTime) != nil
}

// ClearStart takes the start time of an earlier run out.
func (k *Kind) ClearStart(job *unstructured.Unstructured) {
	unstructured.RemoveNestedField(job.Object, k.startTime...)
}

// CountsPods says whether a job says how many pods it has; then Active is that number.
func (k *Kind) CountsPods() bool { return k.active != nil }

// Active is the number of pods that the job has and that have not ended.
func (k *Kind) Active(job *unstructured.Unstructured) int64 { return k.active.number(job.Object) }

// Running is the number of pods that are ready, or one if the job says only that it runs; above zero the job counts as
// running.
func (k *Kind) Running(job *unstructured.Unstructured) int64 {
	if n := k.ready.number(job.Object); n > 0 || !k.running.holds(job.Object) {
		return n
	}
	return 1
}

// ReadyOf is how many pods of each of these pod sets are ready. Where the job does not tell it by pod set, all that are
// known to be ready are taken to be of the first ones: it is exact where there is one. Where it tells no number either,
// all pods are ready as soon as it runs.
func (k *Kind) ReadyOf(job *unstructured.Unstructured, sets []PodSetSize) []int64 {
	if k.ready == nil {
		return k.readyIfItRuns(job, sets)
	}
	counts, left := k.readyBySet.counts(job.Object), k.ready.number(job.Object)
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

func (k *Kind) readyIfItRuns(job *unstructured.Unstructured, sets []PodSetSize) []int64 {
	ready, runs := make([]int64, len(sets)), k.running.holds(job.Object)
	for i := range sets {
		if runs {
			ready[i] = sets[i].Pods
		}
	}
	return ready
}

// AllReady says whether of so many pods all are ready, or have ended well. Of a job that does not say how many are
// ready, it is whether it runs.
func (k *Kind) AllReady(job *unstructured.Unstructured, pods int64) bool {
	if k.ready == nil {
		return k.running.holds(job.Object)
	}
	if k.all != nil {
		pods = k.all.number(job.Object)
	}
	return k.Running(job) > 0 && k.Running(job)+k.completed.number(job.Object) >= pods
}

// Reclaimable are the pods, by pod set, that have ended well and do not come again, of those that the pod sets count.
func (k *Kind) Reclaimable(job *unstructured.Unstructured) map[string]int32 {
	return k.reclaimable.counts(job.Object)
}

// End is how a job ended.
type End struct {
	Succeeded bool
	// Message is what the job's controller says of it; may be empty.
	Message string
}

// Ended returns how the job ended, or false while it has not.
func (k *Kind) Ended(job *unstructured.Unstructured) (End, bool) {
	failed := k.failed.holds(job.Object)
	if !failed && !k.succeeded.holds(job.Object) {
		return End{}, false
	}
	return End{Succeeded: !failed, Message: k.message.string(job.Object)}, true
}

// Invalid is why the job cannot be queued as it is, in words for its owner; empty if it can.
func (k *Kind) Invalid(job *unstructured.Unstructured) string {
	for i := range k.valid {
		if !k.valid[i].rule.holds(job.Object) {
			return k.valid[i].message
		}
	}
	return ""
}

// PodSelector selects the pods of the job, nothing where it does not say yet how they are known.
func (k *Kind) PodSelector(job *unstructured.Unstructured) labels.Selector {
	value := string(job.GetUID())
	switch p := &k.pods; {
	case len(p.selector) > 0:
		return selectorAt(job, p.selector)
	case p.byName:
		value = job.GetName()
	case len(p.value) > 0:
		value, _ = lookup(job.Object, p.value).(string)
	}
	if value == "" {
		return labels.Nothing()
	}
	return labels.SelectorFromSet(labels.Set{k.pods.label: value})
}

func selectorAt(job *unstructured.Unstructured, p Path) labels.Selector {
	fields, _ := lookup(job.Object, p).(map[string]any)
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
