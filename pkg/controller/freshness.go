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

package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// written remembers, by object, the last resourceVersion that this process wrote, so that no decision is made on
// a cached state from before the own write. What a watch catches up with is forgotten; what is deleted before
// that is forgotten with forget. It is safe for concurrent use.
type written struct {
	mu   sync.Mutex
	last map[types.UID]string
}

func newWritten() *written { return &written{last: map[types.UID]string{}} }

// note remembers a write that was confirmed.
func (w *written) note(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last[o.GetUID()] = o.GetResourceVersion()
}

// behind says whether the object is older than the own last write; the event that brings the newer state is
// still to come. What is caught up with is forgotten.
func (w *written) behind(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.last[o.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last)
	if err == nil && order < 0 {
		return true
	}
	delete(w.last, o.GetUID())
	return false
}

// forget drops what is remembered of an object that is gone.
func (w *written) forget(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, uid)
}

// moments remember when something was first the case for a job. They are safe for concurrent use.
type moments struct {
	mu   sync.Mutex
	last map[types.NamespacedName]moment
}

type moment struct {
	job types.UID
	at  time.Time
}

func newMoments() *moments { return &moments{last: map[types.NamespacedName]moment{}} }

// first returns when this was first said of this very job, which is now if it has not been.
func (m *moments) first(job client.Object, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(job)
	last, ok := m.last[key]
	if !ok || last.job != job.GetUID() {
		last = moment{job.GetUID(), now}
		m.last[key] = last
	}
	return last.at
}

// anew says that it is the case for a job from now on, whatever was remembered.
func (m *moments) anew(job client.Object, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[client.ObjectKeyFromObject(job)] = moment{job.GetUID(), now}
}

// lately says whether it was first said of this very job less than d ago.
func (m *moments) lately(job client.Object, now time.Time, d time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, ok := m.last[client.ObjectKeyFromObject(job)]
	return ok && last.job == job.GetUID() && now.Sub(last.at) < d
}

// forget a job for which it is not the case any more, or that is gone.
func (m *moments) forget(job types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, job)
}
