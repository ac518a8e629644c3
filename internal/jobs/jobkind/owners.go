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

package jobkind

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MostOwners bounds the walk from a pod to its job. The longest known path is from the ReplicaSet of a worker of Dask
// to its DaskJob, with one to spare.
const MostOwners = 6

// Up walks from the owner of a pod to that owner's owner, and so on. made returns the controlling owner of an object,
// nil for none.
func Up(
	owner *metav1.OwnerReference, made func(*metav1.OwnerReference) *metav1.OwnerReference,
) iter.Seq[*metav1.OwnerReference] {
	return func(visit func(*metav1.OwnerReference) bool) {
		for n := 0; owner != nil && n < MostOwners && visit(owner); n++ {
			owner = made(owner)
		}
	}
}
