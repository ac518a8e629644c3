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

package admissioncheck

import (
	"math"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Pods is how many pods of a pod set quota is reserved for that have yet to come.
func Pods(qu *v1alpha1.QueueUnit, set *v1alpha1.PodSet) int32 {
	count := set.Count
	for i := range qu.Status.ReclaimablePods {
		if ended := &qu.Status.ReclaimablePods[i]; ended.Name == set.Name {
			count -= ended.Count
		}
	}
	for i := range qu.Status.Admissions {
		of := &qu.Status.Admissions[i]
		if n := of.Replicas; of.Name == set.Name && n >= 0 && n <= math.MaxInt32 {
			count = min(count, int32(n))
		}
	}
	return count
}
