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
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// pods tells the core which pods belong to which unit, and the scheduler which of them it is to look at again.
type pods struct {
	*env
	index     podIndex
	core      *core
	units     *records
	quotas    *observer
	gauges    *gauges
	publisher *publisher
	kinship   *kinship.Jobs
	activate  latest[types.UID, struct{}] // pods to activate
}

// concerns says whether a pod can belong to a unit: it names one, or has an owner that can be a job.
func (v *env) concerns(pod *corev1.Pod) bool {
	if v.unitNamedBy(pod) != "" {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	switch owner.Kind {
	case "ReplicaSet", "DaemonSet", "Node":
		p := v.managed.Load()
		return p != nil && p.FollowsOwner(*owner)
	default:
		return true
	}
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// apply takes what the informer says.
func (p *pods) apply(now time.Time, ev podEvent) {
	pod := ev.pod
	if ev.gone || terminal(pod) {
		p.forget(now, pod.UID)
		return
	}
	rec := p.index.record(pod.UID)
	bound := pod.Spec.NodeName != ""
	if rec.pod != nil {
		bound = bound && rec.pod.Spec.NodeName == ""
		p.index.remove(rec)
	}
	unitRecord := p.units.get(rec.unit)
	if bound && unitRecord != nil {
		p.opts.Witness.Bound(unitRecord.object.UID, pod.Spec.NodeName)
	}
	if rec.pod = pod; bound || unitRecord != nil && unitRecord.object.Updates != nil {
		p.publisher.touchPod(pod.UID)
	}
	rec.named = p.unitNamedBy(pod)
	p.index.add(rec)
	p.noteOwner(now, pod)
	switch {
	case pod.Spec.NodeName == "":
		p.index.idle[pod.UID] = struct{}{}
	case ev.initial:
		rec.settled = true
	case !rec.hooked && !rec.settled:
		p.index.unsettled[pod.UID] = struct{}{}
	}
	p.tell(now, rec)
}

// noteOwner has pods that this one owns found by its owner.
func (p *pods) noteOwner(now time.Time, pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if m := p.managed.Load(); owner == nil || m == nil || !m.PodsOwnPods() || owner.Kind == "Job" || owner.Kind == "Pod" {
		return // such pods own none
	}
	if p.kinship.Set(pod.UID, owner) {
		p.retell(now, p.kinship.Family(pod.UID))
	}
}

func (p *pods) forget(now time.Time, uid types.UID) {
	rec := p.index.byUID[uid]
	if rec == nil {
		return
	}
	p.kinship.Set(uid, nil)
	if rec.pod != nil {
		p.index.remove(rec)
	}
	delete(p.index.byUID, uid)
	p.untell(now, rec, uid)
}

// assign takes what the hook says. It comes just before used moves.
func (p *pods) assign(now time.Time, key assignKey, ev assignEvent) {
	if !p.concerns(ev.pod) {
		return
	}
	rec := p.index.byUID[key.pod]
	if rec == nil {
		if !ev.assigned {
			return // it ended, and the informer was first to say so
		}
		rec = p.index.record(key.pod)
	}
	switch {
	case ev.assigned:
		rec.hooked, rec.quota, rec.letGo = true, key.quota, false
	case !rec.hooked || rec.quota == key.quota || rec.quota == "":
		rec.hooked, rec.quota, rec.settled = true, "", false
		rec.letGo = rec.letGo || ev.letGo
	}
	if rec.pod == nil && !ev.assigned {
		delete(p.index.byUID, key.pod)
		return
	}
	p.tell(now, rec)
}

// release takes these pods for not counted in used, if the core has them as counted.
func (p *pods) release(now time.Time, list []assignKey) {
	for _, key := range list {
		rec := p.index.byUID[key.pod]
		if rec == nil || rec.pod == nil || !rec.told.Assigned || rec.unit == "" {
			continue
		}
		rec.hooked, rec.quota, rec.settled = true, "", false
		p.tell(now, rec)
	}
}

// tell gives the pod to the core, if it belongs to a unit and anything about it is news.
func (p *pods) tell(now time.Time, rec *podRecord) {
	if rec.pod == nil || !p.core.sound() {
		return // a state that is rebuilt is told of all pods
	}
	uid := rec.pod.UID
	key := p.units.unitOf(rec.pod)
	if key != rec.unit {
		p.untell(now, rec, uid)
	}
	if key == "" {
		return
	}
	next := p.podOf(rec)
	next.Held = !next.Assigned && p.units.isMarked(key)
	if rec.unit == key && rec.told.Same(&next) {
		return
	}
	rec.unit, rec.told = key, next
	p.core.call("", func(s *admission.State) { s.SetPod(now, key, next) })
	p.compareRequest(p.units.get(key), rec.pod, next.Request)
	p.touch(now, key, next.Quota)
}

func (p *pods) untell(now time.Time, rec *podRecord, uid types.UID) {
	if rec.unit == "" {
		return
	}
	key := rec.unit
	rec.unit = ""
	p.publisher.touchPod(uid)
	p.core.call("", func(s *admission.State) { s.DeletePod(now, key, string(uid)) })
	p.touch(now, key, rec.told.Quota)
}

func (p *pods) touch(now time.Time, key, quota string) {
	p.gauges.mark(now, quota)
	if rec := p.units.get(key); rec != nil {
		p.gauges.mark(now, rec.quota)
	}
}

// podOf makes the core's view of a pod.
func (p *pods) podOf(rec *podRecord) admission.Pod {
	pod := rec.pod
	view := admission.Pod{
		UID: string(pod.UID), Quota: rec.quota, Request: p.request(pod),
		NonPreemptible: pod.Labels[v1alpha1.LabelPreemptible] == "false",
		Assigned:       rec.quota != "", Former: pod.Spec.NodeName != "" && p.units.leftBehind(pod),
	}
	if at := pod.DeletionTimestamp; at != nil {
		// The API server adds the grace period to the time at which somebody deleted the pod.
		grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
		view.Leaving, view.LeavingSince, view.GoneBy = true, at.Add(-grace), at.Time
	}
	if !rec.hooked && rec.settled {
		view.Assigned = true
	}
	if view.Quota == "" && !rec.isLetGo() {
		view.Quota = p.quotaOf(pod)
	}
	return view
}

// quotaOf is the quota that Koordinator charges a pod to. It knows one label only.
func (p *pods) quotaOf(pod *corev1.Pod) string {
	var labels map[string]string
	if name := pod.Labels[v1alpha1.LabelQuotaName]; name != "" {
		labels = map[string]string{v1alpha1.LabelQuotaName: name}
	}
	quota, _ := p.quotas.resolve(pod.Namespace, labels)
	return p.quotas.charged(quota)
}

// request is what the pod is charged with. A pod that cannot be counted is counted as nothing: then its unit keeps what
// it holds.
func (p *pods) request(pod *corev1.Pod) resources.List {
	var list resources.List
	p.guard("podRequest", func() {
		if known, err := resources.FromQuantities(p.opts.PodRequest(pod)); err == nil {
			list = known
		}
	})
	return list
}

// retellNaming tells the core again of the pods that name a unit, after the unit came, went, or has a consumer or none
// by now.
func (p *pods) retellNaming(now time.Time, key string) {
	for _, uid := range sortedUIDs(p.index.byName[key]) {
		p.tell(now, p.index.byUID[uid])
	}
}

// retellElected tells the core again of the pods of jobs for which another unit stands. However many units name a job,
// its pods are told when that changes and not otherwise.
func (p *pods) retellElected(now time.Time) {
	if !p.core.sound() {
		return
	}
	var jobs []unit.Consumer
	p.core.call("", func(s *admission.State) { jobs = s.Elections() })
	for _, job := range jobs {
		if p.isOwner(&job) {
			p.retell(now, p.kinship.Family(types.UID(job.UID)))
		}
	}
}

// isOwner says whether a pod of its namespace, or another job, has the job for an owner: its UID, and its kind. Of
// those that name the UID as that of another kind, as anybody may, nothing follows.
func (p *pods) isOwner(job *unit.Consumer) bool {
	meant := func(ref *metav1.OwnerReference) bool {
		kind, _ := p.kindOf(ref)
		return kind == job.Kind
	}
	for uid := range p.index.byOwner[types.UID(job.UID)] {
		pod := p.index.byUID[uid].pod
		if pod.Namespace == job.Namespace && meant(metav1.GetControllerOfNoCopy(pod)) {
			return true
		}
	}
	return slices.ContainsFunc(p.kinship.References(types.UID(job.UID)), meant)
}

// retellAll tells the core again of all pods.
func (p *pods) retellAll(now time.Time) {
	for _, uid := range sortedKeys(p.index.byUID) {
		p.tell(now, p.index.byUID[uid])
	}
}

// nameAgain asks which units pods name, which follows from what is managed.
func (p *pods) nameAgain() {
	for _, rec := range p.index.byUID {
		if rec.pod == nil {
			continue
		}
		if named := p.unitNamedBy(rec.pod); named != rec.named {
			if rec.named != "" {
				dropUID(p.index.byName, rec.named, rec.pod.UID)
			}
			if rec.named = named; named != "" {
				addUID(p.index.byName, named, rec.pod.UID)
			}
		}
	}
}

// retell tells the core again of the pods of some jobs.
func (p *pods) retell(now time.Time, jobs []types.UID) {
	for _, job := range jobs {
		for _, uid := range sortedUIDs(p.index.byOwner[job]) {
			p.tell(now, p.index.byUID[uid])
		}
	}
}

// lookAgain has the snapshot made again for the pods of a unit, also where nothing has been granted to them since.
func (p *pods) lookAgain(u *objects.Unit) {
	for uid := range p.index.near(u.Key(), p.kinship.Family(u.ConsumerUID())) {
		p.publisher.touchPod(uid)
	}
}

// remap asks again for the quota of pods, which follows from which quotas there are until the hook says it.
func (p *pods) remap(now time.Time) {
	for _, uid := range sortedKeys(p.index.byUID) {
		if rec := p.index.byUID[uid]; rec.unit != "" && rec.quota == "" {
			p.tell(now, rec)
		}
	}
}

// forgetTold has every pod told to the core again.
func (p *pods) forgetTold() {
	for uid, rec := range p.index.byUID {
		rec.unit = ""
		p.publisher.touchPod(uid)
	}
}

// settle takes pods that have been on a node for a whole interval, and of which the hook never spoke, for counted: they
// are, or never will be.
func (p *pods) settle(now time.Time) {
	for _, uid := range sortedUIDs(p.index.unsettled) {
		rec := p.index.byUID[uid]
		if rec == nil || rec.hooked {
			delete(p.index.unsettled, uid)
			continue
		}
		if !rec.bound {
			rec.bound = true
			continue
		}
		rec.settled = true
		delete(p.index.unsettled, uid)
		p.tell(now, rec)
	}
}

// relist takes a list for what there is; exists says of a pod that is not in it whether it is there now.
func (p *pods) relist(now time.Time, list []*corev1.Pod, exists func(*corev1.Pod) bool) {
	listed := make(uidSet, len(list))
	for _, pod := range list {
		listed[pod.UID] = struct{}{}
		rec := p.index.byUID[pod.UID]
		if rec == nil || rec.pod == nil || !versionAfter(rec.pod.ResourceVersion, pod.ResourceVersion) {
			p.apply(now, podEvent{pod: pod})
		}
	}
	for _, uid := range sortedKeys(p.index.byUID) {
		rec := p.index.byUID[uid]
		if _, ok := listed[uid]; !ok && rec.pod != nil && !exists(rec.pod) {
			p.forget(now, uid)
		}
	}
}

// unlike says where what is known of an existing pod differs from the pod.
func (p *pods) unlike(pod *corev1.Pod) (field, ours, theirs string) {
	rec := p.index.byUID[pod.UID]
	_, unsettled := p.index.unsettled[pod.UID]
	switch {
	case rec == nil || rec.pod == nil:
		return "pod", "unknown", "uid " + string(pod.UID)
	case versionAfter(pod.ResourceVersion, rec.pod.ResourceVersion):
		return "resourceVersion", rec.pod.ResourceVersion, pod.ResourceVersion
	case rec.unit != p.units.unitOf(pod):
		return "unit", rec.unit, p.units.unitOf(pod)
	case rec.unit != "" && rec.onNode() && !rec.told.Assigned && !unsettled && !rec.isLetGo():
		return "assigned", "no", "on node " + rec.pod.Spec.NodeName
	}
	return "", "", ""
}

// known says whether there is a record of the pod; each visits those of which the informer has spoken, in order.
func (p *pods) known(uid types.UID) bool { return p.index.byUID[uid] != nil }

func (p *pods) each(visit func(uid types.UID, pod *corev1.Pod)) {
	for _, uid := range sortedKeys(p.index.byUID) {
		if rec := p.index.byUID[uid]; rec.pod != nil {
			visit(uid, rec.pod)
		}
	}
}
