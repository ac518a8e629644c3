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
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// activateChunk bounds the pods of one Activate: it holds the lock of the scheduler's queue.
const activateChunk = 500

// gateLag bounds how far the scheduler's queue is ahead of the engine in hearing of a pod. What is later is found by the
// pass over all pods.
const gateLag = 5 * time.Second

// podRecord is what is known of one pod. Pods and their units come in any order; so do the hook and the informer.
type podRecord struct {
	pod *corev1.Pod // nil while only the hook has spoken of it
	// hooked: the hook has spoken; then quota is what the pod is charged to, "" if it is not counted. The hook alone
	// says that a pod is counted in used: a counted pod may be seen without a node name for a while, and one with a
	// node name may not be counted yet.
	hooked bool
	quota  string
	// settled: bound before the hook was there, or for so long that it is counted if it ever will be.
	settled bool
	// bound at the last pass over all pods.
	bound bool
	// unit that the pod was told the core to belong to, and as what.
	unit string
	told admission.Pod
}

// pods indexes the pods that may belong to a unit.
type pods struct {
	byUID   map[types.UID]*podRecord
	byOwner map[types.UID]map[types.UID]struct{}
	// byAnnotation lists pods without an owner that counts, by the unit that they name.
	byAnnotation map[string]map[types.UID]struct{}
	// idle are the pods that are not on a node yet; unsettled those that are and of which the hook has not spoken.
	idle, unsettled map[types.UID]struct{}
}

func newPods() pods {
	return pods{
		byUID: map[types.UID]*podRecord{}, byOwner: map[types.UID]map[types.UID]struct{}{},
		byAnnotation: map[string]map[types.UID]struct{}{}, idle: map[types.UID]struct{}{}, unsettled: map[types.UID]struct{}{},
	}
}

func (p *pods) record(uid types.UID) *podRecord {
	rec := p.byUID[uid]
	if rec == nil {
		rec = &podRecord{}
		p.byUID[uid] = rec
	}
	return rec
}

func (p *pods) index(pod *corev1.Pod) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		addUID(p.byOwner, owner.UID, pod.UID)
	}
	if key := pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]; key != "" {
		addUID(p.byAnnotation, key, pod.UID)
	}
}

func (p *pods) unindex(pod *corev1.Pod) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		dropUID(p.byOwner, owner.UID, pod.UID)
	}
	if key := pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]; key != "" {
		dropUID(p.byAnnotation, key, pod.UID)
	}
	delete(p.idle, pod.UID)
	delete(p.unsettled, pod.UID)
}

func addUID[K comparable](index map[K]map[types.UID]struct{}, by K, uid types.UID) {
	if index[by] == nil {
		index[by] = map[types.UID]struct{}{}
	}
	index[by][uid] = struct{}{}
}

func dropUID[K comparable](index map[K]map[types.UID]struct{}, by K, uid types.UID) {
	delete(index[by], uid)
	if len(index[by]) == 0 {
		delete(index, by)
	}
}

// forgetTold has every pod told to the core again.
func (p *pods) forgetTold() {
	for _, rec := range p.byUID {
		rec.unit = ""
	}
}

// concerns says whether a pod can belong to a unit: it names one, or has an owner that can be a job.
func (e *Engine) concerns(pod *corev1.Pod) bool {
	if pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit] != "" {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	switch owner.Kind {
	case "ReplicaSet", "DaemonSet", "Node":
		return e.opts.Predicate != nil && e.opts.Predicate.ManagesOwner(*owner)
	default:
		return true
	}
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (e *Engine) applyPod(now time.Time, ev podEvent) {
	pod := ev.pod
	if ev.gone || terminal(pod) {
		e.forgetPod(now, pod.UID)
		return
	}
	rec := e.pods.record(pod.UID)
	first := rec.pod == nil
	if !first {
		e.pods.unindex(rec.pod)
	}
	rec.pod = pod
	e.pods.index(pod)
	switch {
	case pod.Spec.NodeName == "":
		e.pods.idle[pod.UID] = struct{}{}
	case ev.initial:
		rec.settled = true
	case !rec.hooked && !rec.settled:
		e.pods.unsettled[pod.UID] = struct{}{}
	}
	e.tellPod(now, rec)
	if first && e.justAdmitted(now, rec) {
		e.activate.put(pod.UID, struct{}{})
	}
}

// justAdmitted says whether the gate may have held a pod back that is new to us on the ground of a snapshot from before
// its unit was published: the scheduler hears of pods in a goroutine of its own.
func (e *Engine) justAdmitted(now time.Time, rec *podRecord) bool {
	unit := e.units[rec.unit]
	return unit != nil && unit.published && now.Sub(unit.publishedAt) < gateLag
}

func (e *Engine) forgetPod(now time.Time, uid types.UID) {
	rec := e.pods.byUID[uid]
	if rec == nil {
		return
	}
	if rec.pod != nil {
		e.pods.unindex(rec.pod)
	}
	delete(e.pods.byUID, uid)
	e.untellPod(now, rec, uid)
}

// applyAssign takes what the hook says. It comes just before used moves.
func (e *Engine) applyAssign(now time.Time, key assignKey, ev assignEvent) {
	if !e.concerns(ev.pod) {
		return
	}
	rec := e.pods.byUID[key.pod]
	if rec == nil {
		if !ev.assigned {
			return // it ended, and the informer was first to say so
		}
		rec = e.pods.record(key.pod)
	}
	switch {
	case ev.assigned:
		rec.hooked, rec.quota = true, key.quota
	case !rec.hooked || rec.quota == key.quota:
		rec.hooked, rec.quota, rec.settled = true, "", false
	}
	if rec.pod == nil && !ev.assigned {
		delete(e.pods.byUID, key.pod)
		return
	}
	e.tellPod(now, rec)
}

// tellPod gives the pod to the core, if it belongs to a unit and anything about it is news.
func (e *Engine) tellPod(now time.Time, rec *podRecord) {
	if rec.pod == nil {
		return
	}
	uid := rec.pod.UID
	unit := e.unitOf(rec.pod)
	if unit != rec.unit {
		e.untellPod(now, rec, uid)
	}
	if unit == "" {
		return
	}
	next := e.podOf(rec)
	if rec.unit == unit && samePod(rec.told, next) {
		return
	}
	rec.unit, rec.told = unit, next
	e.inCore("", func() { e.state.SetPod(now, unit, next) })
	e.compareRequest(e.units[unit], rec.pod, next.Request)
	e.touchPod(now, unit, next.Quota)
}

func (e *Engine) untellPod(now time.Time, rec *podRecord, uid types.UID) {
	if rec.unit == "" {
		return
	}
	unit := rec.unit
	rec.unit = ""
	e.inCore("", func() { e.state.DeletePod(now, unit, string(uid)) })
	e.touchPod(now, unit, rec.told.Quota)
}

func (e *Engine) touchPod(now time.Time, unit, quota string) {
	e.gauges.mark(now, quota)
	if rec := e.units[unit]; rec != nil {
		e.gauges.mark(now, rec.quota)
	}
}

func samePod(a, b admission.Pod) bool {
	return a.UID == b.UID && a.Quota == b.Quota && a.Assigned == b.Assigned &&
		a.NonPreemptible == b.NonPreemptible && a.Request.Equal(b.Request)
}

func (e *Engine) podOf(rec *podRecord) admission.Pod {
	pod := rec.pod
	p := admission.Pod{
		UID: string(pod.UID), Quota: rec.quota, Request: e.podRequest(pod),
		NonPreemptible: pod.Labels[v1alpha1.LabelPreemptible] == "false",
		Assigned:       rec.quota != "",
	}
	if !rec.hooked && rec.settled {
		p.Assigned = true
	}
	if p.Quota == "" {
		p.Quota = e.quotaOf(pod)
	}
	return p
}

// quotaOf is the quota that Koordinator charges a pod to. It knows one label only, and charges to the default quota
// where the one that it finds does not exist.
func (e *Engine) quotaOf(pod *corev1.Pod) string {
	var labels map[string]string
	if name := pod.Labels[v1alpha1.LabelQuotaName]; name != "" {
		labels = map[string]string{v1alpha1.LabelQuotaName: name}
	}
	var quota string
	e.askQuotas(func() { quota = e.opts.Quotas.Resolve(pod.Namespace, labels) })
	if !e.quotas.known[quota] && e.quotas.observed {
		return defaultQuota
	}
	return quota
}

// podRequest is what the pod is charged with. It counts a pod that cannot be counted as nothing: then its unit keeps what it holds.
func (e *Engine) podRequest(pod *corev1.Pod) resources.List {
	var list resources.List
	e.guard("podRequest", func() {
		if known, err := resources.FromQuantities(e.opts.PodRequest(pod)); err == nil {
			list = known
		}
	})
	return list
}

// unitOf returns the key of the unit that a pod belongs to: the unit of its controlling owner, or a unit without
// consumer that the pod names. A pod that names the unit of another job does not belong to it.
func (e *Engine) unitOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if key := e.unitOfConsumer(owner, pod.Namespace); key != "" {
			return key
		}
	}
	key := pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]
	if rec := e.units[key]; rec != nil && !rec.object.hasConsumer && rec.object.Namespace == pod.Namespace {
		return key
	}
	return ""
}

// unitOfConsumer picks, among units that name the same job, the one that the core lets stand for it: one that holds
// quota, else one that the job owns, else the older one. Of a job of a managed kind it is the one of its name.
func (e *Engine) unitOfConsumer(owner *metav1.OwnerReference, namespace string) string {
	var best *unitRecord
	managed := e.opts.Predicate != nil && e.opts.Predicate.ManagesOwner(*owner)
	for rec := e.consumers[owner.UID]; rec != nil; rec = rec.next {
		if rec.object.Namespace != namespace || rec.object.phase.Terminal() || rec.managed != managed || rec.misnamed {
			continue
		}
		if best == nil || e.standsBefore(rec, best) {
			best = rec
		}
	}
	if best == nil {
		return ""
	}
	return best.object.key()
}

func (e *Engine) standsBefore(a, b *unitRecord) bool {
	if x, y := e.holds(a), e.holds(b); x != y {
		return x
	}
	if a.object.owned != b.object.owned {
		return a.object.owned
	}
	if c := a.object.CreationTimestamp.Compare(b.object.CreationTimestamp.Time); c != 0 {
		return c < 0
	}
	if a.object.UID != b.object.UID {
		return a.object.UID < b.object.UID
	}
	return a.object.key() < b.object.key()
}

func (e *Engine) holds(rec *unitRecord) bool {
	return rec.flight != nil || rec.object.phase.Holds()
}

// rejoin tells the pods of a unit anew, after the unit came, went or changed its consumer.
func (e *Engine) rejoin(now time.Time, u *unitObject) {
	for _, uid := range sortedUIDs(e.pods.byOwner[u.consumerUID()]) {
		e.tellPod(now, e.pods.byUID[uid])
	}
	for _, uid := range sortedUIDs(e.pods.byAnnotation[u.key()]) {
		e.tellPod(now, e.pods.byUID[uid])
	}
}

func sortedUIDs(set map[types.UID]struct{}) []types.UID {
	if len(set) == 0 {
		return nil
	}
	return sortedKeys(set)
}

// podsOfUnit lists the pods that belong to a unit.
func (e *Engine) podsOfUnit(rec *unitRecord) []types.UID {
	var out []types.UID
	key := rec.object.key()
	for _, set := range []map[types.UID]struct{}{e.pods.byOwner[rec.object.consumerUID()], e.pods.byAnnotation[key]} {
		for uid := range set {
			if p := e.pods.byUID[uid]; p != nil && p.unit == key {
				out = append(out, uid)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// activatePods has the scheduler look again at the pods that became free to go. The snapshot that lets them pass is
// published before.
func (e *Engine) activatePods(now time.Time) {
	if !e.leading || len(e.activate.items) == 0 {
		return
	}
	if !e.opts.Ready() {
		e.retryIn(now, time.Second)
		return
	}
	list := e.activate.items
	e.activate = latest[types.UID, struct{}]{}
	chunk := make(map[string]*corev1.Pod, min(len(list), activateChunk))
	flush := func() {
		if len(chunk) > 0 && !e.guard("activate", func() { e.opts.Activate(chunk) }) {
			e.log.Info("Pods were not activated; the next pass over all pods does it", "pods", len(chunk))
		}
		chunk = make(map[string]*corev1.Pod, activateChunk)
	}
	for _, it := range list {
		rec := e.pods.byUID[it.key]
		if rec == nil || rec.pod == nil || rec.pod.Spec.NodeName != "" || rec.quota != "" {
			continue
		}
		chunk[rec.pod.Namespace+"/"+rec.pod.Name] = rec.pod
		if len(chunk) == activateChunk {
			flush()
		}
	}
	flush()
}

func sortedJobKeys(m map[jobKey]types.UID) []jobKey {
	out := make([]jobKey, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b jobKey) int {
		return cmp.Or(a.scope.Value().compare(b.scope.Value()), strings.Compare(a.name, b.name))
	})
	return out
}
