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

package objects

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// AdmissionsOf names what is held, for so many pods, by pod set where the pod sets add up to it, else as a whole.
func AdmissionsOf(sets []PodSet, held resources.List, pods int64) []v1alpha1.Admission {
	sum, count := resources.List{}, int64(0)
	for _, set := range sets {
		sum, count = sum.Add(set.Total), count+set.Count
	}
	if len(sets) == 0 || pods != count || !sum.Equal(held) {
		return []v1alpha1.Admission{{
			Name: v1alpha1.DefaultRequirementPodSet, Replicas: max(pods, 1), Resources: resourceList(held),
		}}
	}
	admissions := make([]v1alpha1.Admission, 0, len(sets))
	for _, set := range sets {
		admissions = append(admissions, v1alpha1.Admission{
			Name: set.Name, Replicas: set.Count, Resources: resourceList(set.Total),
		})
	}
	return admissions
}

func resourceList(list resources.List) corev1.ResourceList {
	quantities := list.Quantities()
	out := make(corev1.ResourceList, len(quantities))
	for name, q := range quantities {
		out[corev1.ResourceName(name)] = q
	}
	return out
}
