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

package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mostOwners bounds the walk from a pod to the job that its unit stands for, as the gate's does.
const mostOwners = 4

// kinship says which jobs were made by others: a pod belongs to the unit of the job that owns its owner as well.
type kinship struct {
	owners map[types.UID]*metav1.OwnerReference
	made   map[types.UID]uidSet
}

func newKinship() *kinship {
	return &kinship{owners: map[types.UID]*metav1.OwnerReference{}, made: map[types.UID]uidSet{}}
}

// set says who controls a job, nil for nobody or when the job is gone, and whether that is news.
func (k *kinship) set(job types.UID, owner *metav1.OwnerReference) bool {
	former := k.owners[job]
	if sameOwner(former, owner) {
		return false
	}
	if former != nil {
		dropUID(k.made, former.UID, job)
		delete(k.owners, job)
	}
	if owner != nil {
		k.owners[job] = owner
		addUID(k.made, owner.UID, job)
	}
	return true
}

// up calls visit with an owner, the owner of that, and so on, until it returns true.
func (k *kinship) up(owner *metav1.OwnerReference, visit func(*metav1.OwnerReference) bool) {
	for n := 0; owner != nil && n < mostOwners && !visit(owner); n++ {
		owner = k.owners[owner.UID]
	}
}

// family is a job and those that it made, and what those made.
func (k *kinship) family(job types.UID) []types.UID {
	family := []types.UID{job}
	for n, from := 1, 0; n < mostOwners && from < len(family); n++ {
		to := len(family)
		for ; from < to; from++ {
			if made := k.made[family[from]]; len(made) > 0 {
				family = append(family, sortedUIDs(made)...)
			}
		}
	}
	return family
}
