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

package podbook

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// podRecord is what is known of one pod. Pods and their units come in any order; so do the hook and the informer.
type podRecord struct {
	pod *corev1.Pod // nil while only the hook has spoken of it
	// named is the unit that the pod names, by which it is found.
	named string
	// hooked: the hook has reported the pod. Then quota is the quota that it is charged to, "" if it is not counted. Only
	// the hook says that a pod is counted in used. A counted pod can lack a node name for a while, and a pod with one may
	// not be counted yet.
	hooked bool
	quota  string
	// settled: bound before the hook was there, or for so long that it is counted if it ever will be.
	settled bool
	// letGo: Koordinator has dropped the pod, as it drops all pods of a deleted quota. No quota's used or request has it
	// until the hook reports it again, even if the quota is created again. Koordinator learns of a pod without a node when
	// it is bound, and until then its unit holds its request.
	letGo bool
	// bound at the last pass over all pods.
	bound bool
	// unit that the pod was told the core to belong to, and as what.
	unit string
	told admission.Pod
}

func (r *podRecord) onNode() bool { return r.pod.Spec.NodeName != "" }

func (r *podRecord) isLetGo() bool { return r.letGo && r.onNode() }

type uidSet map[types.UID]struct{}

// podIndex finds the pods that may belong to a unit.
type podIndex struct {
	byUID   map[types.UID]*podRecord
	byOwner map[types.UID]uidSet
	// byName lists pods by the unit that they name.
	byName map[string]uidSet
	// idle are the pods that are not on a node yet; unsettled those that are and of which the hook has not spoken.
	idle, unsettled uidSet
}

func newPodIndex() podIndex {
	return podIndex{
		byUID: map[types.UID]*podRecord{}, byOwner: map[types.UID]uidSet{}, byName: map[string]uidSet{},
		idle: uidSet{}, unsettled: uidSet{},
	}
}

// record returns that of the pod, which is made if there is none.
func (p *podIndex) record(uid types.UID) *podRecord {
	rec := p.byUID[uid]
	if rec == nil {
		rec = &podRecord{}
		p.byUID[uid] = rec
	}
	return rec
}

func (p *podIndex) add(rec *podRecord) {
	if owner := metav1.GetControllerOfNoCopy(rec.pod); owner != nil {
		addUID(p.byOwner, owner.UID, rec.pod.UID)
	}
	if rec.named != "" {
		addUID(p.byName, rec.named, rec.pod.UID)
	}
}

func (p *podIndex) remove(rec *podRecord) {
	if owner := metav1.GetControllerOfNoCopy(rec.pod); owner != nil {
		dropUID(p.byOwner, owner.UID, rec.pod.UID)
	}
	if rec.named != "" {
		dropUID(p.byName, rec.named, rec.pod.UID)
	}
	delete(p.idle, rec.pod.UID)
	delete(p.unsettled, rec.pod.UID)
}

func addUID[K comparable](index map[K]uidSet, by K, uid types.UID) {
	if index[by] == nil {
		index[by] = uidSet{}
	}
	index[by][uid] = struct{}{}
}

func dropUID[K comparable](index map[K]uidSet, by K, uid types.UID) {
	delete(index[by], uid)
	if len(index[by]) == 0 {
		delete(index, by)
	}
}

// near are the pods of these jobs, and those that name a unit. If the jobs are its own, all of its pods are among them.
func (p *podIndex) near(key string, jobs []types.UID) uidSet {
	near := uidSet{}
	maps.Copy(near, p.byName[key])
	for _, job := range jobs {
		maps.Copy(near, p.byOwner[job])
	}
	return near
}
