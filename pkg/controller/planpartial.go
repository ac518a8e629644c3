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
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// A unit may be admitted with fewer pods than its job asks for, where the job says that it can do with them. Then the
// job is resumed with that number, and given its own back when it waits again.

// onlyWhole has a job be admitted whole or not at all.
func (d *demand) onlyWhole() {
	for i := range d.unitSets {
		d.unitSets[i].MinCount = nil
	}
}

// admitted is how many pods of each pod set the unit was admitted with; nil where its status does not say it of each.
func (p *planner) admitted(sets []v1alpha1.PodSet) map[string]int32 {
	if len(sets) != len(p.Unit.Status.Admissions) {
		return nil
	}
	counts := make(map[string]int32, len(sets))
	for i := range sets {
		a := &p.Unit.Status.Admissions[i]
		whole := len(sets) == 1 && a.Name == v1alpha1.DefaultRequirementPodSet
		if a.Name != sets[i].Name && !whole || a.Replicas < 0 || a.Replicas > int64(sets[i].Count) {
			return nil
		}
		counts[sets[i].Name] = int32(min(a.Replicas, math.MaxInt32))
	}
	return counts
}

// inPart is how many pods of each pod set a job that does not run may be resumed with, where these are fewer than it
// asks for; nil if it is resumed whole, or cannot be resumed with what was admitted.
func (p *planner) inPart() map[string]int32 {
	sets := p.want.Spec.PodSets
	counts, fewer := p.admitted(sets), false
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

// covered says whether the unit holds enough for the pods that the job would be resumed with.
func (p *planner) covered() bool {
	counts := p.inPart()
	if counts == nil {
		return covers(p.Unit, p.want, p.demand.without(p.Unit.Status.ReclaimablePods, p.Creation))
	}
	return holds(p.Unit, p.demand.with(p.Creation, func(set *jobs.PodSet) { set.Count = counts[set.Name] }))
}

// scale gives a job that is to be resumed as many pods as were admitted.
func (p *planner) scale(job *unstructured.Unstructured) error {
	if !p.Kind.Open(p.Job).Suspended() {
		return nil // it has what it was resumed with
	}
	return p.Kind.Edit(job).SetCounts(p.inPart())
}

// resumes says what a job is resumed with.
func (p *planner) resumes() string {
	counts := p.inPart()
	if counts == nil {
		return "quota is reserved; the job is resumed"
	}
	admitted, all := int64(0), int64(0)
	for i := range p.want.Spec.PodSets {
		set := &p.want.Spec.PodSets[i]
		admitted, all = admitted+int64(counts[set.Name]), all+int64(set.Count)
	}
	return fmt.Sprintf("quota is reserved for %d of %d pods; the job is resumed with them", admitted, all)
}

// resize gives a pod set of the unit of a job that runs the number of pods that the job has. If that is what it was
// admitted with in part, it stays as it is: it asks for the whole when it is admitted again. With another number it is
// admitted whole, and the job has to wait for what is beyond.
func (p *planner) resize(set *v1alpha1.PodSet, count int32) {
	admitted, known := p.admitted(p.Unit.Spec.PodSets)[set.Name]
	if set.Count == count || set.MinCount != nil && known && count == admitted {
		return
	}
	set.Count, set.MinCount = count, nil
}
