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

package jobunit

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Covers says whether the admission of a unit is enough for its job, and its held quota for the pods still to run. Only
// resources that both name are compared, because the quota does not limit resources that the admission does not name.
func Covers(u, want *v1alpha1.QueueUnit, left corev1.ResourceList) bool {
	return fits(want.Spec.Request, u.Spec.Request) && samePods(u.Spec.PodSets, want.Spec.PodSets) && Holds(u, left)
}

// Holds says whether a unit holds enough of what it was admitted with.
func Holds(u *v1alpha1.QueueUnit, asked corev1.ResourceList) bool {
	held := map[corev1.ResourceName]bool{}
	total := corev1.ResourceList{}
	for _, a := range u.Status.Admissions {
		for name, quantity := range a.Resources {
			sum := total[name]
			sum.Add(quantity)
			total[name] = sum
			held[name] = true
		}
	}
	for name := range held {
		if amount, ok := asked[name]; ok && amount.Cmp(total[name]) > 0 {
			return false
		}
	}
	return true
}

// fits says whether every amount asked for is named and enough in have.
func fits(ask, have corev1.ResourceList) bool {
	for name, quantity := range ask {
		got, ok := have[name]
		if (!ok && !quantity.IsZero()) || quantity.Cmp(got) > 0 {
			return false
		}
	}
	return true
}

// samePods says whether want has no pod set that have lacks, and none with more pods.
func samePods(have, want []v1alpha1.PodSet) bool {
	counts := make(map[string]int32, len(have))
	for i := range have {
		counts[have[i].Name] = have[i].Count
	}
	for i := range want {
		if n, ok := counts[want[i].Name]; !ok || want[i].Count > n {
			return false
		}
	}
	return true
}
