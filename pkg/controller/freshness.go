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

// created remembers the units that this process has just created, by the job, so that none is created again before the
// watch has brought it: the request would be refused, and keep the job from its admission meanwhile. It is safe for
// concurrent use.
type created struct {
	mu   sync.Mutex
	last map[types.NamespacedName]creation
}

type creation struct {
	job types.UID
	at  time.Time
}

func newCreated() *created { return &created{last: map[types.NamespacedName]creation{}} }

// note a creation that was confirmed.
func (c *created) note(job client.Object, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[client.ObjectKeyFromObject(job)] = creation{job.GetUID(), now}
}

// lately says whether the unit of this very job was created less than conflictDelay ago. It is no longer than that, since a
// watch that begins anew tells nothing of a unit that has come and gone meanwhile.
func (c *created) lately(job client.Object, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.last[client.ObjectKeyFromObject(job)]
	return last.job == job.GetUID() && now.Sub(last.at) < conflictDelay
}

// forget a job whose unit has been seen, or that is gone.
func (c *created) forget(job types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, job)
}
