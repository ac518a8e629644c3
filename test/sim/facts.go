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
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// facts are from API objects, from the beginning of a run on. Some are of objects that are gone.
type facts struct {
	w *world
	// tainted units had their status written by a person.
	tainted map[types.UID]bool
	// heldBy says who made a unit hold quota, and heldAt with which version.
	heldBy map[types.UID]writer
	heldAt map[types.UID]int64
	// firm units were admitted as non-preemptible.
	firm map[types.UID]bool
	// boundAt is when a pod got its node.
	boundAt map[types.UID]binding
	// turned is when a quota was made or deleted, the last one of its name.
	turned map[string]int64
	// heldIn is the last place of a unit with quota, by its key. goneAt is the version at which the unit was deleted, and
	// goneSeen the version of pods that each scheduler had seen then.
	heldIn   map[string]place
	goneAt   map[string]int64
	goneSeen map[string]map[*replica]int64
}

func newFacts(w *world) *facts {
	return &facts{
		w: w, tainted: map[types.UID]bool{}, heldBy: map[types.UID]writer{}, heldAt: map[types.UID]int64{},
		firm: map[types.UID]bool{}, boundAt: map[types.UID]binding{}, turned: map[string]int64{},
		heldIn: map[string]place{}, goneAt: map[string]int64{}, goneSeen: map[string]map[*replica]int64{},
	}
}

// note a change of a unit, a quota or a pod.
func (f *facts) note(ch *change) {
	switch ch.kind {
	case units:
		if ch.after == nil {
			f.noteGone(ch)
		} else {
			f.noteUnit(ch.former(), ch)
		}
	case quotas:
		if ch.before == nil || ch.after == nil {
			f.turned[cmp.Or(ch.after, ch.before).u.GetName()] = ch.rv
		}
	case pods:
		if ch.binds() {
			b := binding{rv: ch.rv}
			if ch.by.decision != nil {
				b.by, b.uncounted = ch.by.decision.leader, ch.by.decision.uncounted
			}
			f.boundAt[ch.after.uid()] = b
		}
	default:
	}
}

// noteUnit notes a unit as it is, and as it was.
func (f *facts) noteUnit(before *object, ch *change) {
	uid := ch.after.uid()
	if !rulebook.Holds(phaseOf(before)) && rulebook.Holds(phaseOf(ch.after)) {
		f.heldBy[uid], f.heldAt[uid] = ch.by, ch.rv
	}
	switch ch.by.role {
	case roleScheduler, roleController, roleChecks:
	default:
		if before != nil && !reflect.DeepEqual(before.u.Object["status"], ch.after.u.Object["status"]) {
			f.tainted[uid] = true
		}
	}
	if holds(ch.after) && !f.tainted[uid] {
		if !holds(before) {
			f.firm[uid] = !preemptible(ch.after)
		}
		f.heldIn[ch.key] = place{queue: unitOf(ch.after).Spec.Queue, quota: quotaLabel(ch.after)}
	}
}

func (f *facts) noteGone(ch *change) {
	f.goneAt[ch.key], f.goneSeen[ch.key] = ch.rv, map[*replica]int64{}
	for _, r := range f.w.schedulers {
		if r.alive {
			f.goneSeen[ch.key][r] = r.seenOf(pods)
		}
	}
}

// former is the object before the change; nil if another one had its name.
func (ch *change) former() *object {
	if ch.before == nil || ch.before.uid() != ch.after.uid() {
		return nil
	}
	return ch.before
}

// binds says that a pod gets its node.
func (ch *change) binds() bool {
	return ch.after != nil && podOf(ch.after).Spec.NodeName != "" &&
		(ch.before == nil || podOf(ch.before).Spec.NodeName == "")
}

type binding struct {
	rv        int64
	by        *replica
	uncounted bool
}

func phaseOf(o *object) unit.Phase {
	if o == nil {
		return unit.PhaseNone
	}
	return unit.Phase(unitOf(o).Status.Phase)
}

// holds: a phase of another version that holds something is taken to hold it, and to let its job's pods go.
func holds(o *object) bool {
	if o == nil {
		return false
	}
	phase := phaseOf(o)
	return rulebook.Holds(phase) || !rulebook.Waits(phase) && !rulebook.Over(phase) && len(unitOf(o).Status.Admissions) > 0
}

func consumerOf(o *object) types.UID {
	if ref := unitOf(o).Spec.ConsumerRef; ref != nil {
		return ref.UID
	}
	return ""
}

func quotaLabel(o *object) string { return o.u.GetLabels()[v1alpha1.LabelQuotaName] }

func preemptible(o *object) bool { return o.u.GetLabels()[v1alpha1.LabelPreemptible] != "false" }

// consumer is the job that a unit stands for; nil if it is gone.
func (f *facts) consumer(o *object) *object {
	ref := unitOf(o).Spec.ConsumerRef
	return f.w.jobOf(o.u.GetNamespace(), &metav1.OwnerReference{Kind: ref.Kind, Name: ref.Name, UID: ref.UID})
}

// orphaned: a unit whose job is gone holds exactly the use of its pods, until it is collected.
func (f *facts) orphaned(o *object) bool {
	if ref := unitOf(o).Spec.ConsumerRef; ref == nil || ref.Kind == foreignKind {
		return false
	}
	job := f.consumer(o)
	return job == nil || beingDeleted(job)
}

// knownToHold: a scheduler made a unit hold quota, or the decision's news have it.
func (f *facts) knownToHold(d *decision, unit *object) bool {
	return f.heldBy[unit.uid()].role == roleScheduler || f.heldAt[unit.uid()] <= d.seen[units]
}

// standsFor is the job whose unit counts a pod on a node: its own job. If that has no unit, because its owner created
// it again, it is the job of the unit that the pod names.
func (f *facts) standsFor(pod *object) types.UID {
	uid := types.UID("")
	if job := f.w.topOf(pod); job != nil {
		uid = job.uid()
	} else if ref := owner(pod); ref != nil {
		uid = ref.UID
	}
	of := func(u *object) bool { return consumerOf(u) == uid }
	if named := f.w.api.get(units, podOf(pod).Annotations[v1alpha1.AnnotationRelatedQueueUnit]); named != nil &&
		!slices.ContainsFunc(f.w.api.list(units), of) {
		return consumerOf(named)
	}
	return uid
}

// counts says whether a pod on a node is use that the decision had to know of.
func (f *facts) counts(d *decision, o *object) bool {
	pod := podOf(o)
	if pod.Spec.NodeName == "" || terminated(pod) {
		return false
	}
	b := f.boundAt[pod.UID]
	if b.rv > max(d.seen[pods], d.leader.listed) && b.by != d.leader {
		return false
	}
	// A pod that came after the decision is part of its unit, or is not the decision's fault. Reservations are protected
	// from other pods at the leaf only: ElasticQuota compares pods with neither a parent nor the cluster.
	if b.rv > d.version || b.uncounted && b.rv > d.seen[pods] {
		return false
	}
	return !f.forgotten(d, o)
}

// forgotten reports a pod that Koordinator does not know of. A quota begins with nothing used, and its end removes its
// used amount. Koordinator learns of earlier pods at their next event. A unit keeps its held quota until it gives that
// back.
func (f *facts) forgotten(d *decision, pod *object) bool {
	quota, heard := quotaLabel(pod), pod.rv
	for _, ch := range f.w.api.since(pods, d.seen[pods]) {
		if ch.key == pod.key && ch.before != nil && ch.before.uid() == pod.uid() {
			heard = ch.before.rv
			break
		}
	}
	return max(f.turned[quota], d.leader.turned[quota]) > heard
}

// unchanged says whether the spec and phase of an object stayed as they were since a version; change except is not
// counted.
func (f *facts) unchanged(k kind, key string, since, except int64) bool {
	for _, ch := range f.w.api.since(k, since) {
		if ch.key == key && ch.rv != except {
			if ch.before == nil || ch.after == nil ||
				!reflect.DeepEqual(ch.before.u.Object["spec"], ch.after.u.Object["spec"]) ||
				k == units && phaseOf(ch.before) != phaseOf(ch.after) {
				return false
			}
		}
	}
	return true
}

// hasSeen says whether a scheduler knows of an object.
func (f *facts) hasSeen(d *decision, o *object) bool {
	made := func(ch *change) bool { return ch.key == o.key && (ch.before == nil || ch.before.uid() != o.uid()) }
	return !slices.ContainsFunc(f.w.api.since(o.kind, d.seen[o.kind]), made)
}

// released says whether at any time since a version the unit let this job go, and was as it has to be.
func (f *facts) released(key string, job types.UID, since int64, is func(o *object) bool) bool {
	lets := func(o *object) bool {
		return o != nil && consumerOf(o) == job && holds(o) && is(o) &&
			(rulebook.Releases(phaseOf(o)) || !rulebook.Holds(phaseOf(o)))
	}
	if lets(f.w.api.get(units, key)) {
		return true
	}
	for _, ch := range f.w.api.since(units, since) {
		if ch.key == key && (lets(ch.before) || lets(ch.after)) {
			return true
		}
	}
	return false
}

// lostToOthers is the condition of a unit that lost its quota to others and waits; nil if it does not.
func (f *facts) lostToOthers(o *object) *metav1.Condition {
	if o == nil || f.tainted[o.uid()] || rulebook.Releases(phaseOf(o)) || rulebook.Over(phaseOf(o)) {
		return nil
	}
	e := meta.FindStatusCondition(unitOf(o).Status.Conditions, v1alpha1.ConditionEvicted)
	if e == nil || e.Status != metav1.ConditionTrue || !slices.Contains(forOthers, unit.Reason(e.Reason)) {
		return nil
	}
	return e
}

// forOthers are the reasons of evictions before which a job may have a grace.
var forOthers = []unit.Reason{unit.ReasonReclaimed, unit.ReasonPreemptedInQueue, unit.ReasonQueueDrained}
