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

package managedjobs

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// parts are the objects that jobs make, by the descriptions of all kinds, managed or not. A version more or less makes
// no other kind of an owner.
type parts struct {
	makes map[making]bool
	// leaves are the kinds of makers that do not resume their parts.
	leaves map[schema.GroupKind]bool
}

// making is an owner and an object that it makes.
type making struct{ owner, part schema.GroupKind }

// partsOf kinds. Of two descriptions of a kind, the last one says whether it leaves its parts.
func partsOf(kinds []jobkind.Kind) parts {
	p := parts{makes: map[making]bool{}, leaves: map[schema.GroupKind]bool{}}
	described := sets.New[schema.GroupKind]()
	for i := range kinds {
		if !kinds[i].OfPods() { // objects of such a pod are no part of the job
			described.Insert(kinds[i].GVK.GroupKind())
		}
	}
	for i := range kinds {
		if !kinds[i].OfPods() {
			p.note(&kinds[i], described)
		}
	}
	return p
}

// note the objects between jobs of a kind and their pods. The job makes them, or another such object does; but a kind
// that has a description makes only what that says.
func (p *parts) note(kind *jobkind.Kind, described sets.Set[schema.GroupKind]) {
	of := kind.GVK.GroupKind()
	p.leaves[of] = kind.LeavesParts()
	p.makes[making{of, jobkind.PodKind.GroupKind()}] = true
	for _, part := range kind.Children {
		p.makes[making{of, part.GVK.GroupKind()}] = true
		for _, owner := range kind.Children {
			if by := owner.GVK.GroupKind(); !described.Has(by) {
				p.makes[making{by, part.GVK.GroupKind()}] = true
			}
		}
	}
}

// IsPart says whether an object with this controlling owner, nil for none, is a part of a job of a known kind. A part
// does not wait by itself, because its maker resumes it. Anybody may write an owner, so only owners that make such
// objects count. Jobs of CronJobs wait by themselves.
func (p *Predicate) IsPart(of schema.GroupKind, owner *metav1.OwnerReference) bool {
	return owner != nil && p.parts.makes[making{GroupKind(*owner), of}]
}

// MakerOf is the controlling owner of an object of this kind if it makes such objects, nil otherwise.
func MakerOf(p *Predicate, part schema.GroupKind, owner *metav1.OwnerReference) *metav1.OwnerReference {
	if !p.IsPart(part, owner) {
		return nil
	}
	return owner
}

// LeavesParts says whether an owner, nil for none, leaves parts of this kind as they are when it is suspended or
// resumed. Such a part waits by itself unless a unit stands for its owner.
func (p *Predicate) LeavesParts(part schema.GroupKind, owner *metav1.OwnerReference) bool {
	return owner != nil && p.parts.leave(GroupKind(*owner), part)
}

// leave says whether an owner makes such a part and does not resume it. No pod can be suspended or resumed.
func (p *parts) leave(owner, part schema.GroupKind) bool {
	return p.leaves[owner] && p.makes[making{owner, part}] && part != jobkind.PodKind.GroupKind()
}

// LeftBy are the managed kinds that leave parts of this kind as they are.
func LeftBy(p *Predicate, part schema.GroupKind) (kinds []jobkind.Kind) {
	for _, kind := range p.Kinds() {
		if p.parts.leave(kind.GVK.GroupKind(), part) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
