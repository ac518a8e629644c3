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

package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// resourceNames are what the world has, in the order of amounts.
var resourceNames = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "example.com/gpu"}

// amounts by resource; cpu is in thousandths.
type amounts [len(resourceNames)]int64

func unlimited() (a amounts) {
	for i := range a {
		a[i] = math.MaxInt64
	}
	return a
}

// amountsOf a list; what it does not name is otherwise.
func amountsOf(l corev1.ResourceList, otherwise amounts) amounts {
	for i, name := range resourceNames {
		if q, ok := l[name]; ok {
			if otherwise[i] = q.Value(); name == corev1.ResourceCPU {
				otherwise[i] = q.MilliValue()
			}
		}
	}
	return otherwise
}

// plus n times b.
func (a amounts) plus(b amounts, n int64) amounts {
	for i := range a {
		a[i] += n * b[i]
	}
	return a
}

// each resource of two amounts.
func (a amounts) each(b amounts, f func(x, y int64) int64) amounts {
	for i := range a {
		a[i] = f(a[i], b[i])
	}
	return a
}

func least(x, y int64) int64    { return min(x, y) }
func greatest(x, y int64) int64 { return max(x, y) }

// of leaves the resources of which b has some.
func (a amounts) of(b amounts) amounts {
	return a.each(b, func(x, y int64) int64 {
		if y == 0 {
			return 0
		}
		return x
	})
}

// within says whether no resource is above b.
func (a amounts) within(b amounts) bool {
	for i := range a {
		if a[i] > b[i] {
			return false
		}
	}
	return true
}

// String leaves out what is zero or unlimited.
func (a amounts) String() string {
	var parts []string
	for i, n := range a {
		if n != 0 && n != math.MaxInt64 {
			parts = append(parts, fmt.Sprintf("%s %d", resourceNames[i], n))
		}
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func requestsOf(pod *corev1.PodSpec) (sum amounts) {
	for i := range pod.Containers {
		sum = sum.plus(amountsOf(pod.Containers[i].Resources.Requests, amounts{}), 1)
	}
	return sum
}

// askedBy a unit: its request, or what its pod sets sum up to, without the pods that do not come again.
func askedBy(u *v1alpha1.QueueUnit) amounts {
	return askedWith(u, func(set *v1alpha1.PodSet) int64 { return int64(set.Count) })
}

// askedByAdmitted is what the pods ask for with which a unit was admitted. It holds more for a while if pods are left
// of a former job.
func askedByAdmitted(u *v1alpha1.QueueUnit) amounts {
	if len(u.Spec.PodSets) != 1 || len(u.Status.Admissions) != 1 || u.Status.Admissions[0].Replicas == 0 {
		return askedBy(u)
	}
	return askedWith(u, func(set *v1alpha1.PodSet) int64 {
		return min(int64(set.Count), u.Status.Admissions[0].Replicas)
	})
}

// askedWith a number of pods for each pod set, where it can be known what they ask for.
func askedWith(u *v1alpha1.QueueUnit, count func(set *v1alpha1.PodSet) int64) amounts {
	var whole, sum, ended amounts
	for i := range u.Spec.PodSets {
		set := &u.Spec.PodSets[i]
		var template corev1.PodTemplateSpec
		if json.Unmarshal(set.Template.Raw, &template) != nil {
			continue
		}
		each := requestsOf(&template.Spec)
		whole, sum = whole.plus(each, int64(set.Count)), sum.plus(each, count(set))
		for _, of := range u.Status.ReclaimablePods {
			if of.Name == set.Name {
				ended = ended.plus(each, int64(min(of.Count, set.Count)))
			}
		}
	}
	switch asked := amountsOf(u.Spec.Request, amounts{}); {
	case u.Spec.Request == nil || asked == whole:
		return sum.plus(ended, -1)
	default:
		return asked
	}
}
