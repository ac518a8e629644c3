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

// Package kinship knows which job made which. A pod also belongs to the unit of the job that owns the pod's owner.
package kinship

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// Jobs are those that another one controls, and those that bear the mark of a suspension. They are not safe for
// concurrent use.
type Jobs struct {
	owners map[types.UID]*metav1.OwnerReference
	made   map[types.UID]sets.Set[types.UID]
	marked sets.Set[types.UID]
}

// New returns no jobs.
func New() *Jobs {
	return &Jobs{
		owners: map[types.UID]*metav1.OwnerReference{}, made: map[types.UID]sets.Set[types.UID]{},
		marked: sets.New[types.UID](),
	}
}

// Set says who controls a job, nil for nobody, and whether that is news.
func (k *Jobs) Set(job types.UID, owner *metav1.OwnerReference) bool {
	former := k.owners[job]
	if SameOwner(former, owner) {
		return false
	}
	if former != nil {
		if k.made[former.UID].Delete(job); k.made[former.UID].Len() == 0 {
			delete(k.made, former.UID)
		}
		delete(k.owners, job)
	}
	if owner != nil {
		if k.owners[job] = owner; k.made[owner.UID] == nil {
			k.made[owner.UID] = sets.New[types.UID]()
		}
		k.made[owner.UID].Insert(job)
	}
	return true
}

// Mark notes whether a job carries the mark of a suspension, and says whether that is news.
func (k *Jobs) Mark(job types.UID, marked bool) bool {
	if k.marked.Has(job) == marked {
		return false
	}
	if marked {
		k.marked.Insert(job)
	} else {
		k.marked.Delete(job)
	}
	return true
}

// Marked says whether a job carries the mark of a suspension.
func (k *Jobs) Marked(job types.UID) bool { return k.marked.Has(job) }

// Forget a job that is gone.
func (k *Jobs) Forget(job types.UID) {
	k.Set(job, nil)
	k.Mark(job, false)
}

// Up walks from an owner to the owner of that, and so on.
func (k *Jobs) Up(owner *metav1.OwnerReference) iter.Seq[*metav1.OwnerReference] {
	return jobkind.Up(owner, func(o *metav1.OwnerReference) *metav1.OwnerReference { return k.owners[o.UID] })
}

// Family is a job and those that it made, and what those made.
func (k *Jobs) Family(job types.UID) []types.UID {
	family := []types.UID{job}
	for n, from := 1, 0; n < jobkind.MostOwners && from < len(family); n++ {
		to := len(family)
		for ; from < to; from++ {
			if made := k.made[family[from]]; len(made) > 0 {
				family = append(family, sets.List(made)...)
			}
		}
	}
	return family
}

// References are how the jobs that this one made name it.
func (k *Jobs) References(to types.UID) (list []*metav1.OwnerReference) {
	for made := range k.made[to] {
		list = append(list, k.owners[made])
	}
	return list
}

// Len is the number of jobs that anything is known of.
func (k *Jobs) Len() int { return len(k.owners) + len(k.made) + len(k.marked) }

// SameOwner says whether two references name the same owner, or both none.
func SameOwner(a, b *metav1.OwnerReference) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID
}
