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

// Package unitbook has the record of each unit: its object, the queue and quota of the object, and the decisions of the
// engine about it. It finds units by job, class, namespace and quota, and lists them page by page.
package unitbook

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/kinship"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

type keys map[string]struct{}

// Record is what the engine knows of one unit. There may be very many. So a record keeps nothing that follows from the
// object, and rare facts are elsewhere.
type Record struct {
	Object *objects.Unit
	// The queue and the quota of the object, and its faults, when it was given to the core.
	Queue, Quota string
	invalid      unit.Reason
	Priority     int32
	MaxPriority  int32
	// Managed: its consumer is of a managed kind. The others require that. misnamed: the unit of that consumer has another
	// name. unsuspendable: the kind cannot be suspended. unlisted: its jobs could not be listed yet.
	Managed, Misnamed, unsuspendable, unlisted bool
	// listed under what it resolved to.
	listed bool
	*Activity
}

// Activity is what was done about a unit.
type Activity struct {
	// Flight is the decision in flight; unknown says that its outcome was reported to be.
	Flight  *statuswrite.Write
	Unknown bool
	// Reporting is the last write of a reason.
	Reporting *statuswrite.Write
	// Seq is the place in the order of admissions, in which pods are activated; published says whether the snapshot
	// has the unit as admitted.
	Seq       int64
	Published bool
	// Differs are the differences between estimate and pods that were told: resource and direction.
	Differs map[[2]string]bool
	// movesTo is the quota that it resolved to where its object holds quota in another one.
	movesTo string
	// AdmittedAt is when this process saw the admission confirmed; zero if it did not.
	AdmittedAt time.Time
}

// noActivity is shared and never written.
var noActivity = &Activity{}

// Act returns the activity of the unit, to be changed.
func (rec *Record) Act() *Activity {
	if rec.Activity == noActivity {
		rec.Activity = &Activity{}
	}
	return rec.Activity
}

// Resolved keeps what a unit resolved to.
func (r *Book) Resolved(rec *Record, c *unit.Unit) {
	if rec.Queue != c.Queue || rec.Quota != c.Quota {
		r.listing.displace(rec)
	}
	r.count(rec, -1)
	rec.Queue, rec.Quota, rec.invalid = c.Queue, c.Quota, c.Invalid
	if c.MovesTo != rec.movesTo {
		rec.Act().movesTo = c.MovesTo
	}
	rec.Priority, rec.MaxPriority = c.Priority, c.MaxPriority
	rec.Managed, rec.Misnamed = c.ConsumerManaged, c.Misnamed
	r.count(rec, 1)
	rec.unsuspendable, rec.unlisted = c.Unsuspendable, c.KindUnlisted
	r.listing.place(rec)
}

// DiffersFrom says whether the unit resolves to something else now.
func (rec *Record) DiffersFrom(c *unit.Unit) bool {
	return c.Quota != rec.Quota || c.Queue != rec.Queue || c.Priority != rec.Priority ||
		c.MaxPriority != rec.MaxPriority || c.Invalid != rec.invalid ||
		c.ConsumerManaged != rec.Managed || c.Misnamed != rec.Misnamed || c.Unsuspendable != rec.unsuspendable ||
		c.KindUnlisted != rec.unlisted || c.MovesTo != rec.movesTo
}

// Book has the record of every unit, and finds units by what the engine needs them by.
type Book struct {
	// kindOf is the kind of the owner of a pod, as units name it, and says whether it is a managed one.
	kindOf func(*metav1.OwnerReference) (kind string, managed bool)
	// stands is the unit that stands for a job, by the one election.
	stands func(job unit.Consumer, managed bool) string
	// unitNamedBy is the unit that a pod names.
	unitNamedBy func(*corev1.Pod) string
	kinship     *kinship.Jobs
	byKey       map[string]*Record
	// byConsumer counts the units of a job. byClass are units whose priority follows from a class, or under "" from the
	// cluster's default. noLabel are units whose quota follows from their namespace.
	byConsumer map[types.UID]consumerUnits
	byClass    map[string]keys
	noLabel    keys
	unknown    keys // units whose quota could not be asked for
	holding    keys // units whose object holds quota
	listing    listing
}

func New(
	kindOf func(*metav1.OwnerReference) (string, bool), stands func(unit.Consumer, bool) string,
	unitNamedBy func(*corev1.Pod) string, kin *kinship.Jobs,
) *Book {
	return &Book{
		kindOf: kindOf, stands: stands, unitNamedBy: unitNamedBy, kinship: kin,
		byKey: map[string]*Record{}, byConsumer: map[types.UID]consumerUnits{}, byClass: map[string]keys{},
		noLabel: keys{}, unknown: keys{}, holding: keys{}, listing: newListing(),
	}
}

// Get returns nil for a unit that is not known.
func (r *Book) Get(key string) *Record { return r.byKey[key] }

// WaitsSince is since when a unit has waited; zero for one that is not known.
func (r *Book) WaitsSince(key string) (since time.Time) {
	if rec := r.byKey[key]; rec != nil {
		since = objects.WaitsSince(rec.Object)
	}
	return since
}

func (r *Book) Len() int { return len(r.byKey) }

// Keys of all units, sorted, as are those of the following.
func (r *Book) Keys() []string { return slices.Sorted(maps.Keys(r.byKey)) }

// Unlabelled are the units whose quota follows from their namespace.
func (r *Book) Unlabelled() []string { return slices.Sorted(maps.Keys(r.noLabel)) }

// Unresolved are the units whose quota could not be asked for.
func (r *Book) Unresolved() []string { return slices.Sorted(maps.Keys(r.unknown)) }

// Holders are the units whose object holds quota.
func (r *Book) Holders() []string { return slices.Sorted(maps.Keys(r.holding)) }

// OfClass are the units whose priority follows from a class; from any of them, or from the default, if all is set.
func (r *Book) OfClass(class string, all bool) []string {
	if !all {
		return slices.Sorted(maps.Keys(r.byClass[class]))
	}
	var list []string
	for _, some := range r.byClass {
		list = append(list, slices.Sorted(maps.Keys(some))...)
	}
	slices.Sort(list)
	return list
}

// InNamespace are the units of a namespace.
func (r *Book) InNamespace(namespace string) (list []string) {
	if n := r.listing.namespaces[namespace]; n != nil {
		n.Units.Walk(func(rec *Record) bool { list = append(list, rec.Object.Key()); return true })
	}
	return list
}

// NoteResolved says whether the quota of a unit could be asked for.
func (r *Book) NoteResolved(key string, ok bool) {
	if ok {
		delete(r.unknown, key)
	} else {
		r.unknown[key] = struct{}{}
	}
}

func (r *Book) Add(u *objects.Unit) *Record {
	rec := &Record{Object: u, Activity: noActivity}
	r.byKey[u.Key()] = rec
	r.listing.add(rec)
	r.index(rec)
	return rec
}

func (r *Book) Remove(rec *Record) {
	r.unindex(rec)
	r.listing.remove(rec)
	delete(r.byKey, rec.Object.Key())
}

// Replace takes another state of the same object.
func (r *Book) Replace(rec *Record, u *objects.Unit) {
	r.unindex(rec)
	rec.Object = u
	r.index(rec)
}

func (r *Book) index(rec *Record) {
	u := rec.Object
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

func (r *Book) unindex(rec *Record) {
	u := rec.Object
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

// consumerUnits counts the units that name one UID. named are those with the name of the unit of a managed job, and
// published those of them that the snapshot has as admitted.
type consumerUnits struct{ all, named, published int32 }

// count adds what a unit is to the counts of its consumer, or takes it out.
func (r *Book) count(rec *Record, by int32) {
	uid := rec.Object.ConsumerUID()
	if uid == "" {
		return
	}
	c := r.byConsumer[uid]
	c.all += by
	if rec.Managed && !rec.Misnamed {
		c.named += by
		if rec.Published {
			c.published += by
		}
	}
	if c.all == 0 {
		delete(r.byConsumer, uid)
		return
	}
	r.byConsumer[uid] = c
}

// Publish notes that the snapshot has the unit as admitted.
func (r *Book) Publish(rec *Record) {
	r.count(rec, -1)
	rec.Act().Published = true
	r.count(rec, 1)
}

// Withdraw notes that the snapshot does not have the unit as admitted any more.
func (r *Book) Withdraw(rec *Record) {
	if rec == nil || rec.Activity == noActivity {
		return
	}
	r.count(rec, -1)
	rec.Activity.Published = false
	r.count(rec, 1)
	if rec.Flight == nil {
		rec.Activity.Seq = 0
	}
}

// Published says of a managed job whether its unit is known, and whether the snapshot has it as admitted. Other units
// with its UID release none of its pods, because their authors choose the amount and the quota.
func (r *Book) Published(consumer types.UID) (known, published bool) {
	c := r.byConsumer[consumer]
	return c.named > 0, c.published > 0
}

// IsMarked says whether the job of a unit carries the mark of a suspension, for which the gate holds its pods.
func (r *Book) IsMarked(key string) bool {
	rec := r.byKey[key]
	return rec != nil && r.kinship.Marked(rec.Object.ConsumerUID())
}

// UnitOf returns the key of the unit of a pod. That is the unit of its controlling owner or of the job that made that
// one, or a unit without consumer that the pod names. A pod that names the unit of another job does not belong to it.
// But on a node it is a pod of that unit that lost its owner. It keeps the place of the unit, even after the unit is
// gone.
func (r *Book) UnitOf(pod *corev1.Pod) (key string) {
	if key = r.unitOfOwner(pod); key != "" {
		return key
	}
	named := r.unitNamedBy(pod)
	if rec := r.byKey[named]; rec != nil && !rec.Object.HasConsumer && rec.Object.Namespace == pod.Namespace {
		return named
	}
	if named = pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit]; pod.Spec.NodeName != "" &&
		unit.InNamespace(named, pod.Namespace) {
		return named
	}
	return ""
}

// LeftBehind says that a pod names a unit and is of another job, or of one that is gone.
func (r *Book) LeftBehind(pod *corev1.Pod) bool {
	rec := r.byKey[r.unitNamedBy(pod)]
	return r.unitOfOwner(pod) == "" && (rec == nil || rec.Object.HasConsumer)
}

func (r *Book) unitOfOwner(pod *corev1.Pod) string {
	for owner := range r.kinship.Up(metav1.GetControllerOfNoCopy(pod)) {
		if key := r.unitOfConsumer(owner, pod.Namespace); key != "" {
			return key
		}
	}
	return ""
}

// unitOfConsumer is the unit that stands for a job, as the core has it.
func (r *Book) unitOfConsumer(job *metav1.OwnerReference, namespace string) string {
	if r.byConsumer[job.UID].all == 0 {
		return ""
	}
	kind, managed := r.kindOf(job)
	return r.stands(unit.Consumer{Kind: kind, Namespace: namespace, Name: job.Name, UID: string(job.UID)}, managed)
}

// Missing names the units of which no state as new as this one is known. Known states only get newer.
func (r *Book) Missing(page []metav1.PartialObjectMetadata) (names []types.NamespacedName) {
	for i := range page {
		m := &page[i]
		name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		if rec := r.byKey[name.String()]; rec != nil && rec.Object.UID == m.UID {
			if rec.Object.ResourceVersion == m.ResourceVersion {
				continue
			}
			c, err := resourceversion.CompareResourceVersion(rec.Object.ResourceVersion, m.ResourceVersion)
			if err == nil && c > 0 {
				continue
			}
		}
		names = append(names, name)
	}
	return names
}

// State of the unit, as its object says and as it resolved.
func (rec *Record) State() history.State {
	u := rec.Object
	s := history.State{
		Key: u.Path, UID: string(u.UID), Kind: u.Consumer.Kind, Job: u.Consumer.Name, Queue: rec.Queue, Quota: rec.Quota,
		Phase: u.Phase, Priority: rec.Priority, Attempts: u.Attempts, Created: u.CreationTimestamp.Time,
		Allocated: u.Admitted, ParkedFor: string(u.ParkedFor), Inactive: u.Inactive, Requested: u.Request,
		Limit: u.MaximumExecution, Observed: u.Observed,
	}
	if u.Phase.Holds() {
		s.Held = u.Holds()
	}
	if c := u.Condition(v1alpha1.ConditionEvicted); c != nil && c.Status == metav1.ConditionTrue {
		s.EvictedAt, s.EvictedFor = c.LastTransitionTime.Time, c.Reason
	}
	if c := u.Condition(v1alpha1.ConditionQuotaReserved); c != nil && c.Status == metav1.ConditionFalse && u.Observed {
		s.WaitsFor = c.Reason
	}
	return s
}
