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

// Package mail is what reaches the engine between two steps. Of an object it keeps the newest state alone, so its size
// is bounded by the number of objects. Its lock is held for appending and nothing else, so it may be taken under any
// other.
package mail

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/latest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// UnitEvent is the newest state of the unit of a name. If the unit is gone it is the last state, nil if that is not
// known.
type UnitEvent struct {
	State *objects.Unit
	Gone  bool
	// former is the last state of the first object of the name that went since the step before: what it says counts
	// against its job.
	former *objects.Unit
}

// Of is the last state of an object; nil if the event says nothing of it.
func (ev UnitEvent) Of(o *objects.Unit) *objects.Unit {
	for _, state := range []*objects.Unit{ev.former, ev.State} {
		if state != nil && state.UID == o.UID {
			return state
		}
	}
	return nil
}

// PutUnit keeps the newest event of a unit, and the last state of the first object of its name.
func (b *Batch) PutUnit(key string, ev UnitEvent) {
	if have, ok := b.Units.Get(key); ok {
		ev.former = have.former
		if have.former == nil && have.State != nil && (ev.State == nil || ev.State.UID != have.State.UID) {
			ev.former = have.State
		}
	}
	b.Units.Put(key, ev)
}

type PodEvent struct {
	Pod     *corev1.Pod // the last state, also when it is gone
	Gone    bool
	Initial bool
}

// AssignKey keeps events of different quotas apart, so that their order is kept when a pod moves between them.
type AssignKey struct {
	Pod   types.UID
	Quota string
}

type AssignEvent struct {
	Pod      *corev1.Pod
	Assigned bool
	LetGo    bool // its quota is being deleted
}

// JobEvent is what a job is; the UID is empty when it is gone.
type JobEvent struct {
	UID   types.UID
	Owner *metav1.OwnerReference // nil unless the job is a part of it
	// Marked: it carries the mark of a suspension.
	Marked bool
}

// urgency of news about a quota.
type urgency bool

const (
	newsGathered urgency = false
	newsUrgent   urgency = true
)

// noteQuota keeps the most urgent news of a quota.
func (b *Batch) noteQuota(name string, u urgency) {
	before, _ := b.quotas.Get(name)
	b.quotas.Put(name, before || u)
}

// QuotaNews are the names of quotas about which there is news, in their order.
func (b *Batch) QuotaNews() (urgent, gathered []string) {
	for _, it := range b.quotas.Items {
		if it.Value == newsUrgent {
			urgent = append(urgent, it.Key)
		} else {
			gathered = append(gathered, it.Key)
		}
	}
	return urgent, gathered
}

// Batch is what a step works on.
type Batch struct {
	Units   latest.Map[string, UnitEvent]
	Queues  latest.Map[string, *objects.Queue]
	Classes latest.Map[string, *objects.Class]
	Bounds  latest.Map[string, *int32] // of priorities, by namespace
	Checks  latest.Map[string, *objects.Check]
	Jobs    latest.Map[owner.Name, JobEvent]
	Pods    latest.Map[types.UID, PodEvent]
	Assigns latest.Map[AssignKey, AssignEvent]
	quotas  latest.Map[string, urgency]
	Total   bool
	Mapping bool
	Recheck bool
	Results []statuswrite.Result
	Calls   []func()
}

// Empty says that nothing has come.
func (b *Batch) Empty() bool {
	return len(b.Units.Items)+len(b.Queues.Items)+len(b.Classes.Items)+len(b.Bounds.Items)+len(b.Checks.Items)+
		len(b.Jobs.Items)+len(b.Pods.Items)+len(b.Assigns.Items)+len(b.quotas.Items)+len(b.Results)+len(b.Calls) == 0 &&
		!b.Total && !b.Mapping && !b.Recheck
}

// Box takes what reaches the engine. Of an object only the newest state is kept, so its size is bounded by the
// number of objects, whatever the rate of events. Nothing is called under mu.
type Box struct {
	mu     sync.Mutex
	batch  Batch
	Signal chan struct{} // holds one token while there is something to do
	Soon   chan struct{} // holds one token while there is something that can be gathered for a while
}

// New returns an empty mailbox.
func New() *Box {
	return &Box{Signal: make(chan struct{}, 1), Soon: make(chan struct{}, 1)}
}

// Put changes the batch, and has the engine take it.
func (m *Box) Put(change func(b *Batch)) { m.putAnd(m.Signal, change) }

// putSoon is put for what nobody waits for: it is taken with the next step, but need not cause one at once.
func (m *Box) putSoon(change func(b *Batch)) { m.putAnd(m.Soon, change) }

func (m *Box) putAnd(wake chan<- struct{}, change func(b *Batch)) {
	m.mu.Lock()
	change(&m.batch)
	m.mu.Unlock()
	select {
	case wake <- struct{}{}:
	default:
	}
}

// Drain returns what has come since it was called last.
func (m *Box) Drain() Batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.batch
	m.batch = Batch{}
	// Its events are in b. A later signal wakes the engine once in vain.
	select {
	case <-m.Soon:
	default:
	}
	return b
}

// AssignsWaiting lists the pods of which the hook has spoken since the last drain. The engine asks between the reading
// of used and the decision. If the ledger has such a pod as counted, the pod counts as not counted until the next step.
//
// Used is read without a lock that spans the mailbox. The hook says that a pod ends to count before used falls. If the
// hook spoke after the mailbox was drained, and used was read after it fell, the pod would be missing from both. The
// rest that its unit holds would then be given away a second time (I1). A pod that began to count since the drain is
// left alone: the ledger has it still, and used may have it already. The events stay in the mailbox for the next step.
func (m *Box) AssignsWaiting() []AssignKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	var waiting []AssignKey
	for _, it := range m.batch.Assigns.Items {
		waiting = append(waiting, it.Key)
	}
	return waiting
}

// Unit takes a state of a unit, unless a later one is there.
func (m *Box) Unit(u *objects.Unit) {
	m.Put(func(b *Batch) {
		key := u.Key()
		have, ok := b.Units.Get(key)
		if ok && !have.Gone && have.State.UID == u.UID && Newer(have.State, u) {
			return
		}
		b.PutUnit(key, UnitEvent{State: u})
	})
}

// UnitGone takes the last state of a unit.
func (m *Box) UnitGone(u *objects.Unit) {
	m.Put(func(b *Batch) { b.PutUnit(u.Key(), UnitEvent{State: u, Gone: true}) })
}

// Pod takes the newest state of a pod, see PodEvent.
func (m *Box) Pod(pod *corev1.Pod, gone, initial bool) {
	m.Put(func(b *Batch) {
		if have, ok := b.Pods.Get(pod.UID); ok {
			initial = initial || have.Initial
		}
		b.Pods.Put(pod.UID, PodEvent{Pod: pod, Gone: gone, Initial: initial})
	})
}

// Bound takes how great a priority a namespace allows; nil if it does not say.
func (m *Box) Bound(namespace string, most *int32) {
	m.Put(func(b *Batch) { b.Bounds.Put(namespace, most) })
}

// Queue takes the newest state of a queue; nil if it is gone.
func (m *Box) Queue(name string, q *objects.Queue) { m.Put(func(b *Batch) { b.Queues.Put(name, q) }) }

// Class takes the newest state of a priority class; nil if it is gone.
func (m *Box) Class(name string, c *objects.Class) { m.Put(func(b *Batch) { b.Classes.Put(name, c) }) }

// Check takes the newest state of an AdmissionCheck; nil if it is gone.
func (m *Box) Check(name string, c *objects.Check) { m.Put(func(b *Batch) { b.Checks.Put(name, c) }) }

// Job takes what the job of that name is. The kind is named as jobs.Kind does.
func (m *Box) Job(kind, namespace, name string, ev JobEvent) {
	job := owner.NameOf(unit.Consumer{Kind: kind, Namespace: namespace, Name: name})
	m.Put(func(b *Batch) { b.Jobs.Put(job, ev) })
}

// Call has a function run in the engine's goroutine, behind all else.
func (m *Box) Call(f func()) { m.Put(func(b *Batch) { b.Calls = append(b.Calls, f) }) }

// QuotaSink receives events of quotas. The engine's sink may be called under any lock: every method appends to the
// mailbox in O(1) and never blocks. It must be subscribed before New returns to the code that builds the scheduler.
// Earlier events are not replayed, and the engine observes all quotas before it decides.
type QuotaSink interface {
	// PodAssigned says that a pod begins (true) or ends (false) to count in used of the quota, just before it does.
	PodAssigned(quota string, pod *corev1.Pod, assigned bool)
	// PodLetGo says that a pod ends to count in used of the quota because that goes. It counts nowhere then, also once a
	// quota of that name is there again, until PodAssigned speaks of it. Nobody may ever see the quota missing.
	PodLetGo(quota string, pod *corev1.Pod)
	// QuotaChanged says that used, limits or existence of these quotas may have changed.
	QuotaChanged(names ...string)
	// MoreRequested says that a pod came that asks for a part of this quota.
	MoreRequested(name string)
	// TotalChanged says that the cluster total may have changed, and with it every limit.
	TotalChanged()
	// MappingChanged says that namespaces may be charged to other quotas than before.
	MappingChanged()
}

// sink is the QuotaSink of the mailbox. It gathers events that only reduce room and concern no unit. Hundreds of pods
// outside of jobs can arrive per second, and a step for each would cost as much as scheduling them. Every step takes
// all events, so no decision misses them.
type sink struct {
	box *Box
	// concerns says whether the engine wants to know of a pod.
	concerns func(*corev1.Pod) bool
}

// NewSink returns the QuotaSink of a mailbox. concerns says whether the engine wants to know of a pod.
func NewSink(box *Box, concerns func(*corev1.Pod) bool) QuotaSink { return sink{box, concerns} }

func (s sink) PodAssigned(quota string, pod *corev1.Pod, assigned bool) {
	if assigned && !s.concerns(pod) {
		// Of the pod itself the engine wants to know nothing.
		s.MoreRequested(quota)
		return
	}
	s.put(quota, AssignEvent{Pod: pod, Assigned: assigned})
}

func (s sink) PodLetGo(quota string, pod *corev1.Pod) {
	s.put(quota, AssignEvent{Pod: pod, LetGo: true})
}

func (s sink) put(quota string, ev AssignEvent) {
	s.box.Put(func(b *Batch) {
		b.Assigns.Put(AssignKey{ev.Pod.UID, quota}, ev)
		b.noteQuota(quota, newsUrgent)
	})
}

func (s sink) QuotaChanged(names ...string) {
	s.box.Put(func(b *Batch) {
		for _, name := range names {
			b.noteQuota(name, newsUrgent)
		}
	})
}

func (s sink) MoreRequested(quota string) {
	s.box.putSoon(func(b *Batch) { b.noteQuota(quota, newsGathered) })
}

func (s sink) TotalChanged() { s.box.Put(func(b *Batch) { b.Total = true }) }

func (s sink) MappingChanged() { s.box.Put(func(b *Batch) { b.Mapping = true }) }

// Newer says whether a is a later state of the same object than b.
func Newer(a, b *objects.Unit) bool {
	return objects.VersionAfter(a.ResourceVersion, b.ResourceVersion)
}
