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
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

type keys map[string]struct{}

// unitRecord is what the engine knows of one unit. There may be very many: what follows from the object is not kept,
// and what few of them have is elsewhere.
type unitRecord struct {
	object *objects.Unit
	// What the object resolved to when it was given to the core.
	queue, quota string
	invalid      unit.Reason
	priority     int32
	maxPriority  int32
	// managed: its consumer is of a managed kind; misnamed: and the unit of that consumer has another name;
	// unsuspendable: and that kind cannot be suspended; unlisted: and its jobs could not be listed yet.
	managed, misnamed, unsuspendable, unlisted bool
	// listed under what it resolved to.
	listed bool
	*activity
}

// activity is what was done about a unit.
type activity struct {
	// flight is the decision in flight; unknown says that its outcome was reported to be.
	flight  *Write
	unknown bool
	// reporting is the last write of a reason.
	reporting *Write
	// seq is the place in the order of admissions, in which pods are activated; published says whether the snapshot
	// has the unit as admitted.
	seq       int64
	published bool
	// differs are the differences between estimate and pods that were told.
	differs map[difference]bool
	// movesTo is the quota that it resolved to where its object holds quota in another one.
	movesTo string
	// admittedAt is when this process saw the admission confirmed; zero if it did not.
	admittedAt time.Time
}

// noActivity is shared and never written.
var noActivity = &activity{}

// act returns the activity of the unit, to be changed.
func (rec *unitRecord) act() *activity {
	if rec.activity == noActivity {
		rec.activity = &activity{}
	}
	return rec.activity
}

// resolved keeps what a unit resolved to.
func (r *records) resolved(rec *unitRecord, c *unit.Unit) {
	if rec.queue != c.Queue || rec.quota != c.Quota {
		r.listing.displace(rec)
	}
	r.count(rec, -1)
	rec.queue, rec.quota, rec.invalid = c.Queue, c.Quota, c.Invalid
	if c.MovesTo != rec.movesTo {
		rec.act().movesTo = c.MovesTo
	}
	rec.priority, rec.maxPriority = c.Priority, c.MaxPriority
	rec.managed, rec.misnamed = c.ConsumerManaged, c.Misnamed
	r.count(rec, 1)
	rec.unsuspendable, rec.unlisted = c.Unsuspendable, c.KindUnlisted
	r.listing.place(rec)
}

// differsFrom says whether the unit resolves to something else now.
func (rec *unitRecord) differsFrom(c *unit.Unit) bool {
	return c.Quota != rec.quota || c.Queue != rec.queue || c.Priority != rec.priority ||
		c.MaxPriority != rec.maxPriority || c.Invalid != rec.invalid ||
		c.ConsumerManaged != rec.managed || c.Misnamed != rec.misnamed || c.Unsuspendable != rec.unsuspendable ||
		c.KindUnlisted != rec.unlisted || c.MovesTo != rec.movesTo
}

// records has the record of every unit, and finds units by what the engine needs them by.
type records struct {
	// kindOf is the kind of the owner of a pod, as units name it, and says whether it is a managed one.
	kindOf func(*metav1.OwnerReference) (kind string, managed bool)
	// stands is the unit that stands for a job, by the one election.
	stands func(job unit.Consumer, managed bool) string
	// unitNamedBy is the unit that a pod names.
	unitNamedBy func(*corev1.Pod) string
	kinship     *kinship.Jobs
	byKey       map[string]*unitRecord
	// byConsumer counts the units of a job; byClass are those whose priority follows
	// from a class, or from the cluster's default under ""; noLabel those whose quota follows from their namespace.
	byConsumer map[types.UID]consumerUnits
	byClass    map[string]keys
	noLabel    keys
	unknown    keys // units whose quota could not be asked for
	holding    keys // units whose object holds quota
	listing    listing
}

func newRecords(
	kindOf func(*metav1.OwnerReference) (string, bool), stands func(unit.Consumer, bool) string,
	unitNamedBy func(*corev1.Pod) string, kin *kinship.Jobs,
) *records {
	return &records{
		kindOf: kindOf, stands: stands, unitNamedBy: unitNamedBy, kinship: kin,
		byKey: map[string]*unitRecord{}, byConsumer: map[types.UID]consumerUnits{}, byClass: map[string]keys{},
		noLabel: keys{}, unknown: keys{}, holding: keys{}, listing: newListing(),
	}
}

// get returns nil for a unit that is not known.
func (r *records) get(key string) *unitRecord { return r.byKey[key] }

// waitsSince is since when a unit has waited; zero for one that is not known.
func (r *records) waitsSince(key string) (since time.Time) {
	if rec := r.byKey[key]; rec != nil {
		since = objects.WaitsSince(rec.object)
	}
	return since
}

func (r *records) len() int { return len(r.byKey) }

// keys of all units, sorted, as are those of the following.
func (r *records) keys() []string { return sortedKeys(r.byKey) }

// unlabelled are the units whose quota follows from their namespace.
func (r *records) unlabelled() []string { return sortedKeys(r.noLabel) }

// unresolved are the units whose quota could not be asked for.
func (r *records) unresolved() []string { return sortedKeys(r.unknown) }

// holders are the units whose object holds quota.
func (r *records) holders() []string { return sortedKeys(r.holding) }

// ofClass are the units whose priority follows from a class; from any of them, or from the default, if all is set.
func (r *records) ofClass(class string, all bool) []string {
	if !all {
		return sortedKeys(r.byClass[class])
	}
	var list []string
	for _, some := range r.byClass {
		list = append(list, sortedKeys(some)...)
	}
	slices.Sort(list)
	return list
}

// inNamespace are the units of a namespace.
func (r *records) inNamespace(namespace string) (list []string) {
	if n := r.listing.namespaces[namespace]; n != nil {
		n.units.Walk(func(rec *unitRecord) bool { list = append(list, rec.object.Key()); return true })
	}
	return list
}

// noteResolved says whether the quota of a unit could be asked for.
func (r *records) noteResolved(key string, ok bool) {
	if ok {
		delete(r.unknown, key)
	} else {
		r.unknown[key] = struct{}{}
	}
}

func (r *records) add(u *objects.Unit) *unitRecord {
	rec := &unitRecord{object: u, activity: noActivity}
	r.byKey[u.Key()] = rec
	r.listing.add(rec)
	r.index(rec)
	return rec
}

func (r *records) remove(rec *unitRecord) {
	r.unindex(rec)
	r.listing.remove(rec)
	delete(r.byKey, rec.object.Key())
}

// replace takes another state of the same object.
func (r *records) replace(rec *unitRecord, u *objects.Unit) {
	r.unindex(rec)
	rec.object = u
	r.index(rec)
}

func (r *records) index(rec *unitRecord) {
	u := rec.object
	key := u.Key()
	r.listing.place(rec)
	r.count(rec, 1)
	if u.Quota == "" {
		r.noLabel[key] = struct{}{}
	}
	if u.Phase.Holds() {
		r.holding[key] = struct{}{}
	}
	if u.Priority == nil {
		if r.byClass[u.Class] == nil {
			r.byClass[u.Class] = keys{}
		}
		r.byClass[u.Class][key] = struct{}{}
	}
}

func (r *records) unindex(rec *unitRecord) {
	u := rec.object
	key := u.Key()
	r.listing.displace(rec)
	r.count(rec, -1)
	delete(r.noLabel, key)
	delete(r.holding, key)
	delete(r.unknown, key)
	if u.Priority == nil {
		delete(r.byClass[u.Class], key)
		if len(r.byClass[u.Class]) == 0 {
			delete(r.byClass, u.Class)
		}
	}
}

// consumerUnits counts the units that name one UID: all of them, those that have the name of the unit of a job of a
// managed kind, and those of them that the snapshot has as admitted.
type consumerUnits struct{ all, named, published int32 }

// count adds what a unit is to the counts of its consumer, or takes it out.
func (r *records) count(rec *unitRecord, by int32) {
	uid := rec.object.ConsumerUID()
	if uid == "" {
		return
	}
	c := r.byConsumer[uid]
	c.all += by
	if rec.managed && !rec.misnamed {
		c.named += by
		if rec.published {
			c.published += by
		}
	}
	if c.all == 0 {
		delete(r.byConsumer, uid)
		return
	}
	r.byConsumer[uid] = c
}

// publish notes that the snapshot has the unit as admitted.
func (r *records) publish(rec *unitRecord) {
	r.count(rec, -1)
	rec.act().published = true
	r.count(rec, 1)
}

// withdraw notes that the snapshot does not have the unit as admitted any more.
func (r *records) withdraw(rec *unitRecord) {
	if rec == nil || rec.activity == noActivity {
		return
	}
	r.count(rec, -1)
	rec.activity.published = false
	r.count(rec, 1)
	if rec.flight == nil {
		rec.activity.seq = 0
	}
}

// published says of a job of a managed kind whether its unit is known, and whether the snapshot has it as admitted.
// Other units that name its UID let none of its pods go: who writes them says how much they ask for, and of which
// quota.
func (r *records) published(consumer types.UID) (known, published bool) {
	c := r.byConsumer[consumer]
	return c.named > 0, c.published > 0
}

// isMarked says whether the job of a unit carries the mark of a suspension, for which the gate holds its pods.
func (r *records) isMarked(key string) bool {
	rec := r.byKey[key]
	return rec != nil && r.kinship.Marked(rec.object.ConsumerUID())
}

// unitOf returns the key of the unit that a pod belongs to: the unit of its controlling owner or of the job that made
// that one, or a unit without consumer that the pod names. A pod that names the unit of another job does not belong to
// it, unless it is on a node: then it is a pod of that unit that lost its owner, and keeps the place of the unit even
// after the unit is gone.
func (r *records) unitOf(pod *corev1.Pod) (key string) {
	if key = r.unitOfOwner(pod); key != "" {
		return key
	}
	named := r.unitNamedBy(pod)
	if rec := r.byKey[named]; rec != nil && !rec.object.HasConsumer && rec.object.Namespace == pod.Namespace {
		return named
	}
	if named = pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]; pod.Spec.NodeName != "" &&
		unit.InNamespace(named, pod.Namespace) {
		return named
	}
	return ""
}

// leftBehind says that a pod names a unit and is of another job, or of one that is gone.
func (r *records) leftBehind(pod *corev1.Pod) bool {
	rec := r.byKey[r.unitNamedBy(pod)]
	return r.unitOfOwner(pod) == "" && (rec == nil || rec.object.HasConsumer)
}

func (r *records) unitOfOwner(pod *corev1.Pod) string {
	for owner := range r.kinship.Up(metav1.GetControllerOfNoCopy(pod)) {
		if key := r.unitOfConsumer(owner, pod.Namespace); key != "" {
			return key
		}
	}
	return ""
}

// unitOfConsumer is the unit that stands for a job, as the core has it.
func (r *records) unitOfConsumer(job *metav1.OwnerReference, namespace string) string {
	if r.byConsumer[job.UID].all == 0 {
		return ""
	}
	kind, managed := r.kindOf(job)
	return r.stands(unit.Consumer{Kind: kind, Namespace: namespace, Name: job.Name, UID: string(job.UID)}, managed)
}

// missing names the units of which no state as new as this one is known. What is known only ever gets newer.
func (r *records) missing(page []metav1.PartialObjectMetadata) (names []types.NamespacedName) {
	for i := range page {
		m := &page[i]
		name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		if rec := r.byKey[name.String()]; rec != nil && rec.object.UID == m.UID {
			if rec.object.ResourceVersion == m.ResourceVersion {
				continue
			}
			c, err := resourceversion.CompareResourceVersion(rec.object.ResourceVersion, m.ResourceVersion)
			if err == nil && c > 0 {
				continue
			}
		}
		names = append(names, name)
	}
	return names
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
