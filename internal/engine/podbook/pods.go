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

// Package podbook knows which pod belongs to which unit. It tells the core of them, and the scheduler which of them to
// look at again.
package podbook

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/managed"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Scheduler is what the pods are told to, and asked of; see Options.
type Scheduler struct {
	Witness    witness.Witness
	PodRequest func(*corev1.Pod) corev1.ResourceList
	Activate   func(pods map[string]*corev1.Pod)
	Ready      func() bool
}

// gate is what the pods need of the snapshots that the scheduler reads.
type gate interface {
	// TouchPod has a pod looked at again for the next snapshot.
	TouchPod(uid types.UID)
	// Granted says whether the newest snapshot lets the pod go.
	Granted(uid types.UID) bool
}

// Book tells the core which pods belong to which unit, and the scheduler which of them it is to look at again.
type Book struct {
	*env.Env
	Scheduler  Scheduler
	Activation *Activation
	index      podIndex
	managed    *managed.Kinds
	core       *recovery.Core
	units      *unitbook.Book
	quotas     *quotawatch.Observer
	gate       gate
	kinship    *kinship.Jobs
	// mark has the gauges of a quota looked at again.
	mark func(now time.Time, quota string)
}

func New(
	v *env.Env, s Scheduler, m *managed.Kinds, c *recovery.Core, units *unitbook.Book, quotas *quotawatch.Observer,
	g gate, kin *kinship.Jobs, mark func(time.Time, string),
) *Book {
	p := &Book{
		Env: v, Scheduler: s, index: newPodIndex(), managed: m, core: c, units: units, quotas: quotas, gate: g, kinship: kin,
		mark: mark,
	}
	p.Activation = &Activation{Env: v, scheduler: &p.Scheduler, index: &p.index, gate: g}
	return p
}

// IsOver says whether a pod holds nothing any more.
func IsOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Apply takes what the informer says.
func (p *Book) Apply(now time.Time, ev mail.PodEvent) {
	pod := ev.Pod
	if ev.Gone || IsOver(pod) {
		p.forget(now, pod.UID)
		return
	}
	rec := p.index.record(pod.UID)
	bound := pod.Spec.NodeName != ""
	if rec.pod != nil {
		bound = bound && rec.pod.Spec.NodeName == ""
		p.index.remove(rec)
	}
	unitRecord := p.units.Get(rec.unit)
	if bound && unitRecord != nil {
		p.Scheduler.Witness.Bound(unitRecord.Object.UID, pod.Spec.NodeName)
	}
	if rec.pod = pod; bound || unitRecord != nil && unitRecord.Object.Updates != nil {
		p.gate.TouchPod(pod.UID)
	}
	rec.named = p.managed.UnitNamedBy(pod)
	p.index.add(rec)
	p.noteOwner(now, pod)
	switch {
	case pod.Spec.NodeName == "":
		p.index.idle[pod.UID] = struct{}{}
	case ev.Initial:
		rec.settled = true
	case !rec.hooked && !rec.settled:
		p.index.unsettled[pod.UID] = struct{}{}
	}
	p.tell(now, rec)
}

// noteOwner has pods that this one owns found by its owner.
func (p *Book) noteOwner(now time.Time, pod *corev1.Pod) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if m := p.managed.Load(); owner == nil || m == nil || !m.PodsOwnPods() || owner.Kind == "Job" || owner.Kind == "Pod" {
		return // such pods own none
	}
	if p.kinship.Set(pod.UID, owner) {
		p.Retell(now, p.kinship.Family(pod.UID))
	}
}

func (p *Book) forget(now time.Time, uid types.UID) {
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

// Assign takes what the hook says. It comes just before used moves.
func (p *Book) Assign(now time.Time, key mail.AssignKey, ev mail.AssignEvent) {
	if !p.managed.Concerns(ev.Pod) {
		return
	}
	rec := p.index.byUID[key.Pod]
	if rec == nil {
		if !ev.Assigned {
			return // the pod ended, and the informer reported that first
		}
		rec = p.index.record(key.Pod)
	}
	switch {
	case ev.Assigned:
		rec.hooked, rec.quota, rec.letGo = true, key.Quota, false
	case !rec.hooked || rec.quota == key.Quota || rec.quota == "":
		rec.hooked, rec.quota, rec.settled = true, "", false
		rec.letGo = rec.letGo || ev.LetGo
	}
	if rec.pod == nil && !ev.Assigned {
		delete(p.index.byUID, key.Pod)
		return
	}
	p.tell(now, rec)
}

// Release takes these pods for not counted in used, if the core has them as counted.
func (p *Book) Release(now time.Time, list []mail.AssignKey) {
	for _, key := range list {
		rec := p.index.byUID[key.Pod]
		if rec == nil || rec.pod == nil || !rec.told.Assigned || rec.unit == "" {
			continue
		}
		rec.hooked, rec.quota, rec.settled = true, "", false
		p.tell(now, rec)
	}
}

// tell gives the pod to the core, if it belongs to a unit and anything about it is news.
func (p *Book) tell(now time.Time, rec *podRecord) {
	if rec.pod == nil || !p.core.Sound() {
		return // a state that is rebuilt is told of all pods
	}
	uid := rec.pod.UID
	key := p.units.UnitOf(rec.pod)
	if key != rec.unit {
		p.untell(now, rec, uid)
	}
	if key == "" {
		return
	}
	next := p.podOf(rec)
	next.Held = !next.Assigned && p.units.IsMarked(key)
	if rec.unit == key && rec.told.Same(&next) {
		return
	}
	rec.unit, rec.told = key, next
	p.core.Call("", func(s *admission.State) { s.SetPod(now, key, next) })
	if of := p.units.Get(key); of != nil {
		compareRequest(p.Env, p.quotas.MaxOf(of.Quota), of, rec.pod, next.Request)
	}
	p.touch(now, key, next.Quota)
}

func (p *Book) untell(now time.Time, rec *podRecord, uid types.UID) {
	if rec.unit == "" {
		return
	}
	key := rec.unit
	rec.unit = ""
	p.gate.TouchPod(uid)
	p.core.Call("", func(s *admission.State) { s.DeletePod(now, key, string(uid)) })
	p.touch(now, key, rec.told.Quota)
}

func (p *Book) touch(now time.Time, key, quota string) {
	p.mark(now, quota)
	if rec := p.units.Get(key); rec != nil {
		p.mark(now, rec.Quota)
	}
}

// podOf makes the core's view of a pod.
func (p *Book) podOf(rec *podRecord) admission.Pod {
	pod := rec.pod
	view := admission.Pod{
		UID: string(pod.UID), Quota: rec.quota, Request: p.Scheduler.requestOf(p.Env, pod),
		NonPreemptible: pod.Labels[v1alpha1.LabelPreemptible] == "false",
		Assigned:       rec.quota != "", Former: pod.Spec.NodeName != "" && p.units.LeftBehind(pod),
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
func (p *Book) quotaOf(pod *corev1.Pod) string {
	var labels map[string]string
	if name := pod.Labels[v1alpha1.LabelQuotaName]; name != "" {
		labels = map[string]string{v1alpha1.LabelQuotaName: name}
	}
	quota, _ := p.quotas.Resolve(pod.Namespace, labels)
	return p.quotas.Charged(quota)
}

// requestOf is what the pod is charged with. A pod that cannot be counted is counted as nothing: then its unit keeps
// what it holds.
func (s *Scheduler) requestOf(v *env.Env, pod *corev1.Pod) resources.List {
	var list resources.List
	v.Guard("podRequest", func() {
		if known, err := resources.FromQuantities(s.PodRequest(pod)); err == nil {
			list = known
		}
	})
	return list
}

// RetellNaming tells the core again of the pods that name a unit, after the unit came, went, or has a consumer or none
// by now.
func (p *Book) RetellNaming(now time.Time, key string) {
	for _, uid := range slices.Sorted(maps.Keys(p.index.byName[key])) {
		p.tell(now, p.index.byUID[uid])
	}
}

// RetellElected tells the core again of the pods of jobs for which another unit stands. However many units name a job,
// its pods are told when that changes and not otherwise.
func (p *Book) RetellElected(now time.Time) {
	if !p.core.Sound() {
		return
	}
	var jobs []unit.Consumer
	p.core.Call("", func(s *admission.State) { jobs = s.Elections() })
	for _, job := range jobs {
		if p.isOwner(&job) {
			p.Retell(now, p.kinship.Family(types.UID(job.UID)))
		}
	}
}

// isOwner says whether a pod of its namespace, or another job, has the job for an owner: its UID, and its kind. Of
// those that name the UID as that of another kind, as anybody may, nothing follows.
func (p *Book) isOwner(job *unit.Consumer) bool {
	meant := func(ref *metav1.OwnerReference) bool {
		kind, _ := p.managed.KindOf(ref)
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

// RetellAll tells the core again of all pods.
func (p *Book) RetellAll(now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(p.index.byUID)) {
		p.tell(now, p.index.byUID[uid])
	}
}

// NameAgain asks which units pods name, which follows from what is managed.
func (p *Book) NameAgain() {
	for _, rec := range p.index.byUID {
		if rec.pod == nil {
			continue
		}
		if named := p.managed.UnitNamedBy(rec.pod); named != rec.named {
			if rec.named != "" {
				dropUID(p.index.byName, rec.named, rec.pod.UID)
			}
			if rec.named = named; named != "" {
				addUID(p.index.byName, named, rec.pod.UID)
			}
		}
	}
}

// Retell tells the core again of the pods of some jobs.
func (p *Book) Retell(now time.Time, jobs []types.UID) {
	for _, job := range jobs {
		for _, uid := range slices.Sorted(maps.Keys(p.index.byOwner[job])) {
			p.tell(now, p.index.byUID[uid])
		}
	}
}

// LookAgain has the snapshot made again for the pods of a unit, also where nothing has been granted to them since.
func (p *Book) LookAgain(u *objects.Unit) {
	for uid := range p.index.near(u.Key(), p.kinship.Family(u.ConsumerUID())) {
		p.gate.TouchPod(uid)
	}
}

// Remap asks again for the quota of pods, which follows from which quotas there are until the hook says it.
func (p *Book) Remap(now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(p.index.byUID)) {
		if rec := p.index.byUID[uid]; rec.unit != "" && rec.quota == "" {
			p.tell(now, rec)
		}
	}
}

// ForgetTold has every pod told to the core again.
func (p *Book) ForgetTold() {
	for uid, rec := range p.index.byUID {
		rec.unit = ""
		p.gate.TouchPod(uid)
	}
}

// Settle takes pods as counted that have been on a node for a whole interval without a report of the hook. They are
// counted, or never will be.
func (p *Book) Settle(now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(p.index.unsettled)) {
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

// Relist takes a list for what there is; exists says of a pod that is not in it whether it is there now.
func (p *Book) Relist(now time.Time, list []*corev1.Pod, exists func(*corev1.Pod) bool) {
	listed := make(uidSet, len(list))
	for _, pod := range list {
		listed[pod.UID] = struct{}{}
		rec := p.index.byUID[pod.UID]
		if rec == nil || rec.pod == nil || !objects.VersionAfter(rec.pod.ResourceVersion, pod.ResourceVersion) {
			p.Apply(now, mail.PodEvent{Pod: pod})
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(p.index.byUID)) {
		rec := p.index.byUID[uid]
		if _, ok := listed[uid]; !ok && rec.pod != nil && !exists(rec.pod) {
			p.forget(now, uid)
		}
	}
}

// Unlike says where what is known of an existing pod differs from the pod.
func (p *Book) Unlike(pod *corev1.Pod) (field, ours, theirs string) {
	rec := p.index.byUID[pod.UID]
	_, unsettled := p.index.unsettled[pod.UID]
	switch {
	case rec == nil || rec.pod == nil:
		return "pod", "unknown", "uid " + string(pod.UID)
	case objects.VersionAfter(pod.ResourceVersion, rec.pod.ResourceVersion):
		return "resourceVersion", rec.pod.ResourceVersion, pod.ResourceVersion
	case rec.unit != p.units.UnitOf(pod):
		return "unit", rec.unit, p.units.UnitOf(pod)
	case rec.unit != "" && rec.onNode() && !rec.told.Assigned && !unsettled && !rec.isLetGo():
		return "assigned", "no", "on node " + rec.pod.Spec.NodeName
	}
	return "", "", ""
}

// Waiting finds a pod that is on no node, and its unit; nil for another one.
func (p *Book) Waiting(uid types.UID) (pod *corev1.Pod, unit string) {
	rec := p.index.byUID[uid]
	if rec == nil || rec.pod == nil || rec.onNode() {
		return nil, ""
	}
	return rec.pod, rec.unit
}

// OnNodes are the pods of a unit that are on nodes.
func (p *Book) OnNodes(u *objects.Unit) (list []*corev1.Pod) {
	for uid := range p.index.near(u.Key(), p.kinship.Family(u.ConsumerUID())) {
		if rec := p.index.byUID[uid]; rec.unit == u.Key() && rec.onNode() {
			list = append(list, rec.pod)
		}
	}
	return list
}

// Naming is the number of pods that name a unit.
func (p *Book) Naming(unit string) int { return len(p.index.byName[unit]) }

// ToldOf says to which unit a pod belongs, empty for none, and what the core was told of it.
func (p *Book) ToldOf(uid types.UID) (unit string, as admission.Pod) {
	if rec := p.index.byUID[uid]; rec != nil && rec.unit != "" {
		return rec.unit, rec.told
	}
	return "", admission.Pod{}
}

// Known says whether there is a record of the pod; each visits those of which the informer has spoken, in order.
func (p *Book) Known(uid types.UID) bool { return p.index.byUID[uid] != nil }

func (p *Book) Each(visit func(uid types.UID, pod *corev1.Pod)) {
	for _, uid := range slices.Sorted(maps.Keys(p.index.byUID)) {
		if rec := p.index.byUID[uid]; rec.pod != nil {
			visit(uid, rec.pod)
		}
	}
}
