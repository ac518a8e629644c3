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
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// latest keeps the last value of every key, in the order in which the keys came first.
type latest[K comparable, V any] struct {
	index map[K]int
	items []entry[K, V]
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

func (l *latest[K, V]) put(key K, value V) {
	if i, ok := l.index[key]; ok {
		l.items[i].value = value
		return
	}
	if l.index == nil {
		l.index = map[K]int{}
	}
	l.index[key] = len(l.items)
	l.items = append(l.items, entry[K, V]{key, value})
}

func (l *latest[K, V]) get(key K) (V, bool) {
	if i, ok := l.index[key]; ok {
		return l.items[i].value, true
	}
	var none V
	return none, false
}

// unitEvent is the newest state of the unit of a name. If the unit is gone it is the last state, nil if that is not
// known.
type unitEvent struct {
	state *objects.Unit
	gone  bool
	// former is the last state of the first object of the name that went since the step before: what it says counts
	// against its job.
	former *objects.Unit
}

// of is the last state of an object; nil if the event says nothing of it.
func (ev unitEvent) of(o *objects.Unit) *objects.Unit {
	for _, state := range []*objects.Unit{ev.former, ev.state} {
		if state != nil && state.UID == o.UID {
			return state
		}
	}
	return nil
}

func (b *batch) putUnit(key string, ev unitEvent) {
	if have, ok := b.units.get(key); ok {
		ev.former = have.former
		if have.former == nil && have.state != nil && (ev.state == nil || ev.state.UID != have.state.UID) {
			ev.former = have.state
		}
	}
	b.units.put(key, ev)
}

type podEvent struct {
	pod     *corev1.Pod // the last state, also when it is gone
	gone    bool
	initial bool
}

// assignKey keeps events of different quotas apart, so that their order is kept when a pod moves between them.
type assignKey struct {
	pod   types.UID
	quota string
}

type assignEvent struct {
	pod      *corev1.Pod
	assigned bool
	letGo    bool // it is not assigned because its quota goes
}

// jobEvent is what a job is; the UID is empty when it is gone.
type jobEvent struct {
	uid   types.UID
	owner *metav1.OwnerReference // nil unless the job is a part of it
	// marked: it carries the mark of a suspension.
	marked bool
}

// urgency of news about a quota.
type urgency bool

const (
	newsGathered urgency = false
	newsUrgent   urgency = true
)

// noteQuota keeps the most urgent news of a quota.
func (b *batch) noteQuota(name string, u urgency) {
	before, _ := b.quotas.get(name)
	b.quotas.put(name, before || u)
}

// batch is what a step works on.
type batch struct {
	units   latest[string, unitEvent]
	queues  latest[string, *objects.Queue]
	classes latest[string, *objects.Class]
	bounds  latest[string, *int32] // of priorities, by namespace
	checks  latest[string, *objects.Check]
	jobs    latest[owner.Name, jobEvent]
	pods    latest[types.UID, podEvent]
	assigns latest[assignKey, assignEvent]
	quotas  latest[string, urgency]
	total   bool
	mapping bool
	recheck bool
	results []Result
	calls   []func()
}

func (b *batch) empty() bool {
	return len(b.units.items)+len(b.queues.items)+len(b.classes.items)+len(b.bounds.items)+len(b.checks.items)+
		len(b.jobs.items)+len(b.pods.items)+len(b.assigns.items)+len(b.quotas.items)+len(b.results)+len(b.calls) == 0 &&
		!b.total && !b.mapping && !b.recheck
}

// mailbox takes what reaches the engine. Of an object only the newest state is kept, so its size is bounded by the
// number of objects, whatever the rate of events. Nothing is called under mu.
type mailbox struct {
	mu     sync.Mutex
	batch  batch
	signal chan struct{} // holds one token while there is something to do
	soon   chan struct{} // holds one token while there is something that can be gathered for a while
}

func newMailbox() *mailbox {
	return &mailbox{signal: make(chan struct{}, 1), soon: make(chan struct{}, 1)}
}

func (m *mailbox) put(change func(b *batch)) { m.putAnd(m.signal, change) }

// putSoon is put for what nobody waits for: it is taken with the next step, but need not cause one at once.
func (m *mailbox) putSoon(change func(b *batch)) { m.putAnd(m.soon, change) }

func (m *mailbox) putAnd(wake chan<- struct{}, change func(b *batch)) {
	m.mu.Lock()
	change(&m.batch)
	m.mu.Unlock()
	select {
	case wake <- struct{}{}:
	default:
	}
}

func (m *mailbox) drain() batch {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.batch
	m.batch = batch{}
	// Its news are in b. One that comes after this wakes for nothing, once.
	select {
	case <-m.soon:
	default:
	}
	return b
}

func (m *mailbox) unit(u *objects.Unit) {
	m.put(func(b *batch) {
		key := u.Key()
		if have, ok := b.units.get(key); ok && !have.gone && have.state.UID == u.UID && newer(have.state, u) {
			return
		}
		b.putUnit(key, unitEvent{state: u})
	})
}

func (m *mailbox) unitGone(u *objects.Unit) {
	m.put(func(b *batch) { b.putUnit(u.Key(), unitEvent{state: u, gone: true}) })
}

func (m *mailbox) pod(pod *corev1.Pod, gone, initial bool) {
	m.put(func(b *batch) {
		if have, ok := b.pods.get(pod.UID); ok {
			initial = initial || have.initial
		}
		b.pods.put(pod.UID, podEvent{pod: pod, gone: gone, initial: initial})
	})
}

// bound takes how great a priority a namespace allows; nil if it does not say.
func (m *mailbox) bound(namespace string, most *int32) {
	m.put(func(b *batch) { b.bounds.put(namespace, most) })
}

func (m *mailbox) call(f func()) { m.put(func(b *batch) { b.calls = append(b.calls, f) }) }

// sink is the QuotaSink of the mailbox. News that can only take room away, and that concern no unit, are gathered: pods
// outside of jobs come by the hundred in a second, and a step for each of them would cost what scheduling them costs.
// Nothing is decided without them, since every step takes all that is there.
type sink struct {
	box *mailbox
	env *env
}

func (s sink) PodAssigned(quota string, pod *corev1.Pod, assigned bool) {
	if assigned && !s.env.concerns(pod) {
		// Of the pod itself the engine wants to know nothing.
		s.MoreRequested(quota)
		return
	}
	s.put(quota, assignEvent{pod: pod, assigned: assigned})
}

func (s sink) PodLetGo(quota string, pod *corev1.Pod) {
	s.put(quota, assignEvent{pod: pod, letGo: true})
}

func (s sink) put(quota string, ev assignEvent) {
	s.box.put(func(b *batch) {
		b.assigns.put(assignKey{ev.pod.UID, quota}, ev)
		b.noteQuota(quota, newsUrgent)
	})
}

func (s sink) QuotaChanged(names ...string) {
	s.box.put(func(b *batch) {
		for _, name := range names {
			b.noteQuota(name, newsUrgent)
		}
	})
}

func (s sink) MoreRequested(quota string) {
	s.box.putSoon(func(b *batch) { b.noteQuota(quota, newsGathered) })
}

func (s sink) TotalChanged() { s.box.put(func(b *batch) { b.total = true }) }

func (s sink) MappingChanged() { s.box.put(func(b *batch) { b.mapping = true }) }

// newer says whether a is a later state of the same object than b. Versions that cannot be compared, as those of some
// fakes, make neither newer.
func newer(a, b *objects.Unit) bool {
	c, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && c > 0
}
