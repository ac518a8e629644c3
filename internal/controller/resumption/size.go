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

package resumption

import (
	"fmt"
	"math"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
)

// A unit may be admitted with fewer pods than its job asks for, where the job says that it can do with them. Then the
// job is resumed with that number, and given its own back when it waits again.

// Admitted is how many pods of each pod set the unit was admitted with; nil where its status does not say it of each.
func Admitted(u *v1alpha1.QueueUnit, sets []v1alpha1.PodSet) map[string]int32 {
	if len(sets) != len(u.Status.Admissions) {
		return nil
	}
	counts := make(map[string]int32, len(sets))
	for i := range sets {
		a := &u.Status.Admissions[i]
		whole := len(sets) == 1 && a.Name == v1alpha1.DefaultRequirementPodSet
		if a.Name != sets[i].Name && !whole || a.Replicas < 0 || a.Replicas > int64(sets[i].Count) {
			return nil
		}
		counts[sets[i].Name] = int32(min(a.Replicas, math.MaxInt32))
	}
	return counts
}

// Resize gives a pod set of the unit of a job that runs the number of pods that the job has. If that is what it was
// admitted with in part, it stays as it is: it asks for the whole when it is admitted again. With another number it is
// admitted whole, and the job has to wait for what is beyond.
func Resize(set *v1alpha1.PodSet, count int32, admitted map[string]int32) {
	n, known := admitted[set.Name]
	if set.Count == count || set.MinCount != nil && known && count == n {
		return
	}
	set.Count, set.MinCount = count, nil
}

// Words say what the job is resumed with.
func (r *Resumption) Words() string {
	counts := r.inPart()
	if counts == nil {
		return "quota is reserved; the job is resumed"
	}
	admitted, all := int64(0), int64(0)
	for i := range r.Ask.Unit.Spec.PodSets {
		set := &r.Ask.Unit.Spec.PodSets[i]
		admitted, all = admitted+int64(counts[set.Name]), all+int64(set.Count)
	}
	return fmt.Sprintf("quota is reserved for %d of %d pods; the job is resumed with them", admitted, all)
}

// Scale gives a job that will be resumed as many pods as were admitted.
func (r *Resumption) Scale(job *jobs.Edit) error {
	if !r.Job.Suspended() {
		return nil // the job has the pods of its resumption
	}
	return job.SetCounts(r.inPart())
}

// inPart is the number of pods of each pod set with which a suspended job is resumed, if that is less than it asks for.
// It is nil if the job is resumed whole, or does not match the admission.
func (r *Resumption) inPart() map[string]int32 {
	sets := r.Ask.Unit.Spec.PodSets
	counts, fewer := Admitted(r.Unit, sets), false
	for i := range sets {
		n, known := counts[sets[i].Name]
		switch least := sets[i].MinCount; {
		case !known:
			return nil
		case n == sets[i].Count:
		case least == nil || n < *least:
			return nil
		default:
			fewer = true
		}
	}
	if !fewer {
		return nil
	}
	return counts
}
