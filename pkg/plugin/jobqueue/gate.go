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

package jobqueue

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Snapshot is what the gate reads of the admitted units. Every method is O(1) and takes no lock; before it is loaded
// nothing is admitted.
type Snapshot interface {
	Loaded() bool
	// AdmittedConsumer says that the unit of the job with this UID is admitted, and that the API holds it. A unit of
	// another name than that of the job's unit does not count, whatever it says.
	AdmittedConsumer(uid types.UID) bool
	// UnitOfConsumer says that the unit of that job is known.
	UnitOfConsumer(uid types.UID) bool
	// AdmittedUnit returns the UID of the job of an admitted unit, by namespace/name; empty for a unit without one.
	AdmittedUnit(key string) (types.UID, bool)
	// Granted says that a pod of an admitted unit may go: together they ask for at most what their unit holds.
	Granted(pod types.UID) bool
	// Lacking says in words which updates of admission checks a pod of an admitted unit lacks. Such a pod may not be
	// scheduled.
	Lacking(pod types.UID) string
	// RunsUntil says when the unit of a granted pod has run for as long as it may; zero for never.
	RunsUntil(pod types.UID) time.Time
}

// Job is what the gate needs to know of a job in addition to its name.
type Job struct {
	Labels, Annotations map[string]string
	// Owner is the controlling owner, nil if there is none.
	Owner *metav1.OwnerReference
}

// verdict is what the gate thinks of a pod.
type verdict int

const (
	// foreign: the pod has nothing to do with queues.
	foreign verdict = iota
	// admitted: it belongs to an admitted unit.
	admitted
	// beyond: its unit is admitted, and holds too little for it in addition to the pods that have gone already.
	beyond
	// lacking: its unit is admitted, but the pod lacks updates of admission checks. Somebody else than the controller
	// resumed its job.
	lacking
	// waiting: its unit is known and not admitted.
	waiting
	// suspended: the controller has suspended its job. The pod is about to be deleted, or the pod is new and the event of
	// its resumption has not arrived. If it were bound now, it might run and be replaced by another (I3).
	suspended
	// unknown: its job is managed and no unit of it is known.
	unknown
	// unseen: whether its job is managed is not known yet, because metadata of the job or its namespace has not arrived.
	unseen
	// unmanaged: its job asks for no queue, in a namespace where such jobs do not run.
	unmanaged
	// overdue: unknown or unseen for longer than the grace period, where such pods pass.
	overdue
)

// why is shown to the user as the reason why the pod is not scheduled. The gate runs under the lock of the scheduling
// queue, so nothing is looked up to say it.
var why = map[verdict]string{
	beyond:    "the job asks for more than it was admitted with, and waits in its queue for the rest",
	lacking:   "CheckUpdatesMissing: the pod lacks what admission checks asked to write into it: ",
	waiting:   "the job waits in its queue",
	suspended: "the job is suspended until it is admitted",
	unknown:   "the job is managed by a queue and has no QueueUnit yet",
	unseen:    "the job that owns the pod is not known yet",
	unmanaged: "jobs of this namespace run by a queue, and the job names neither a quota nor a queue in its labels",
}

// Gate says which pods may be scheduled. Check is O(1) and takes no lock that is held while pods are activated. Its
// answer about a pod changes only when the engine publishes a snapshot or metadata of a job arrives.
type Gate struct {
	Snapshot  func() Snapshot
	Predicate func() *managedjobs.Predicate
	// Job returns a job of a managed kind by UID; false if it has not been seen.
	Job func(uid types.UID) (Job, bool)
	// Pod returns a pod by name, nil if it has not been seen.
	Pod func(namespace, name string) *corev1.Pod
	// NamespaceLabels returns false if the namespace has not been seen.
	NamespaceLabels func(name string) (map[string]string, bool)
	// Mapped says whether pods of the namespace are charged to a quota without a label of theirs.
	Mapped func(namespace string) bool
	Clock  clock.PassiveClock
	// PassUnknown lets pods of managed jobs without a unit go on when Grace is over since their creation.
	PassUnknown bool
	Grace       time.Duration
	// Watch, if set, is told of pods that are held back without a unit in the queue that could release them.
	Watch func(pod *corev1.Pod, unseen bool)
}

// Check returns nil if the pod may be scheduled as far as queues are concerned. It never returns an error status: a
// gang pod that is rejected by PreEnqueue after an error would crash the scheduling queue of Kubernetes 1.35.
func (g *Gate) Check(pod *corev1.Pod) *fwktype.Status {
	v := g.verdict(pod)
	message, held := why[v]
	if !held {
		return nil
	}
	switch {
	case v == lacking:
		message += g.Snapshot().Lacking(pod.UID)
	case v != waiting && v != beyond && g.Watch != nil:
		g.Watch(pod, v == unseen)
		// The event that releases the pod may have come before the watch, and will not come again.
		if message, held = why[g.verdict(pod)]; !held {
			return nil
		}
	}
	return fwktype.NewStatus(fwktype.UnschedulableAndUnresolvable, message)
}

// Passes is Check without a reason.
func (g *Gate) Passes(pod *corev1.Pod) bool {
	_, held := why[g.verdict(pod)]
	return !held
}

// Admitted says that the pod belongs to an admitted unit, and is within what that holds; a pod that merely passes is
// not.
func (g *Gate) Admitted(pod *corev1.Pod) bool { return g.verdict(pod) == admitted }

// Runs says that a pod on a node belongs to an admitted unit.
func (g *Gate) Runs(pod *corev1.Pod) bool {
	waiting := *pod
	waiting.Spec.NodeName = ""
	v := g.verdict(&waiting)
	return v == admitted || v == lacking || v == beyond
}

func (g *Gate) verdict(pod *corev1.Pod) verdict {
	if pod == nil || pod.Spec.NodeName != "" || quota.IsReservation(pod) || g.observes(pod.Namespace) {
		return foreign
	}
	snapshot := g.Snapshot()
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && g.Predicate().FollowsOwner(*owner) {
		if v := g.ofJob(snapshot, pod, *owner); v != foreign {
			return v
		}
	}
	return g.ofName(snapshot, pod)
}

// observes says that no pod of a namespace is held back. The unit of a job does not say so: its author may be anybody.
func (g *Gate) observes(namespace string) bool {
	labels, known := g.NamespaceLabels(namespace)
	return known && managedjobs.Observes(g.Predicate(), labels)
}

// ofJob judges a pod by the job that owns it. The pod's annotation does not matter then: it is part of a template that
// the job's author writes, and could name any unit.
func (g *Gate) ofJob(snapshot Snapshot, pod *corev1.Pod, owner metav1.OwnerReference) verdict {
	top := g.topOf(snapshot, pod.Namespace, owner)
	if snapshot.AdmittedConsumer(top.uid) {
		return ofAdmitted(snapshot, pod, &top)
	}
	if v := g.ofOtherKind(pod.Namespace, &top); v != unseen && !snapshot.UnitOfConsumer(top.uid) {
		return v
	}
	namespaceLabels, knownNamespace := g.NamespaceLabels(pod.Namespace)
	sets := append(top.labels, pod.Labels, managedjobs.QueueAnnotation(pod.Annotations))
	if g.Predicate().AsksForMapping(namespaceLabels) {
		sets = append(sets, managedjobs.MappedNamespace(g.Mapped(pod.Namespace)))
	}
	sets = append(sets, managedjobs.Aliased(g.Predicate(), namespaceLabels, sets...),
		managedjobs.Placed(g.Predicate(), namespaceLabels))
	v := unknown
	switch {
	case g.Predicate().ManagesLabels(pod.Namespace, namespaceLabels, sets...):
		if snapshot.UnitOfConsumer(top.uid) {
			return waiting
		}
	case knownNamespace && (top.seen || !g.Predicate().ManagesNamespace(pod.Namespace, namespaceLabels)):
		if g.Predicate().Unmanaged(pod.Namespace, namespaceLabels, sets...) == managedjobs.UnmanagedGate {
			return unmanaged
		}
		return foreign
	default:
		v = unseen
	}
	if g.PassUnknown && snapshot.Loaded() && g.Clock.Since(pod.CreationTimestamp.Time) > g.Grace {
		return overdue
	}
	return v
}

// ofAdmitted judges a pod of a job whose unit is admitted. No pod goes of a job that is marked as suspended.
func ofAdmitted(snapshot Snapshot, pod *corev1.Pod, top *topJob) verdict {
	if top.seen && top.job.Annotations[v1alpha1.AnnotationSuspendedBy] != "" {
		return suspended
	}
	return granted(snapshot, pod)
}

// ofOtherKind judges pods of an unmanaged kind of jobs, and of jobs that such a job made and resumes. Others are
// unseen.
func (g *Gate) ofOtherKind(namespace string, top *topJob) verdict {
	p, kind := g.Predicate(), managedjobs.GroupKind(top.ref)
	labels, known := g.NamespaceLabels(namespace)
	switch {
	case !top.seen:
		return unseen
	case !p.ManagesOwner(top.ref):
		return foreign
	case !known || !p.IsPart(kind, top.job.Owner) || p.LeavesParts(kind, top.job.Owner):
		return unseen
	case p.PartsOfUnmanaged(namespace, labels) == managedjobs.UnmanagedGate:
		return unmanaged
	default:
		return foreign
	}
}

// granted judges a pod whose unit is admitted.
func granted(snapshot Snapshot, pod *corev1.Pod) verdict {
	switch {
	case snapshot.Granted(pod.UID):
		return admitted
	case snapshot.Lacking(pod.UID) != "":
		return lacking
	default:
		return beyond
	}
}

// topJob is the job that a pod is judged by.
type topJob struct {
	uid  types.UID
	ref  metav1.OwnerReference
	job  Job
	seen bool
	// labels of the job and of its parts that may wait by themselves, and the queue that they name in an annotation.
	labels []map[string]string
}

// topOf follows an owner to the closest job that has a unit. Without one it is the job that is a part of no other, as
// far as they have been seen.
func (g *Gate) topOf(snapshot Snapshot, namespace string, owner metav1.OwnerReference) topJob {
	p, top := g.Predicate(), topJob{uid: owner.UID, ref: owner}
	for range jobkind.MostOwners {
		if top.job, top.seen = g.object(namespace, top.ref); !top.seen {
			break
		}
		top.labels = append(top.labels, top.job.Labels, managedjobs.QueueAnnotation(top.job.Annotations))
		kind, maker := managedjobs.GroupKind(top.ref), top.job.Owner
		if snapshot.UnitOfConsumer(top.uid) || !p.IsPart(kind, maker) || !p.FollowsOwner(*maker) {
			break
		}
		if !p.LeavesParts(kind, maker) {
			top.labels = nil // its own labels make such a part no job that waits
		}
		top.uid, top.ref = maker.UID, *maker
	}
	return top
}

// object is the object of an owner reference: a job, an object between a job and its pods, or another pod.
func (g *Gate) object(namespace string, ref metav1.OwnerReference) (Job, bool) {
	if ref.Kind != "Pod" || g.Pod == nil {
		return g.Job(ref.UID)
	}
	pod := g.Pod(namespace, ref.Name)
	if pod == nil || pod.UID != ref.UID {
		return Job{}, false
	}
	return Job{Labels: pod.Labels, Owner: metav1.GetControllerOfNoCopy(pod)}, true
}

// ofGroup judges a pod that names no unit: it waits if it is queued as one of a group. An owner of an unknown kind may
// not exist. If nothing runs outside of the queues, such a pod waits too.
func (g *Gate) ofGroup(pod *corev1.Pod) verdict {
	p := g.Predicate()
	owned := metav1.GetControllerOfNoCopy(pod) != nil
	if !p.QueuesPods() || owned && !p.GatesUnmanaged() {
		return foreign
	}
	labels, known := g.NamespaceLabels(pod.Namespace)
	switch {
	case !known:
		return unseen
	case owned && p.ManagesLabels(pod.Namespace, labels, pod.Labels):
		return unmanaged // its labels make it no pod of a job that waits
	case p.ManagesLabels(pod.Namespace, labels, pod.Labels):
		return waiting
	case p.Unmanaged(pod.Namespace, labels, pod.Labels) == managedjobs.UnmanagedGate:
		return unmanaged
	default:
		return foreign
	}
}

// ofName judges a pod by the unit that it names, in its annotation or as one of a group. It passes if that unit is
// admitted and either has no consumer or has the pod's owner, or its owner's owner, as consumer.
func (g *Gate) ofName(snapshot Snapshot, pod *corev1.Pod) verdict {
	if pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit] == "" {
		if v := g.ofGroup(pod); v != waiting {
			return v
		}
	}
	key := g.Predicate().UnitNamedBy(pod)
	if !unit.InNamespace(key, pod.Namespace) {
		return waiting
	}
	consumer, ok := snapshot.AdmittedUnit(key)
	if !ok {
		return waiting
	}
	if consumer == "" {
		return granted(snapshot, pod)
	}
	made := func(owner *metav1.OwnerReference) *metav1.OwnerReference {
		job, _ := g.object(pod.Namespace, *owner)
		return job.Owner
	}
	for owner := range jobkind.Up(metav1.GetControllerOfNoCopy(pod), made) {
		if owner.UID == consumer {
			return granted(snapshot, pod)
		}
	}
	return waiting
}
