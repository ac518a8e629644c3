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

// Package waits exports the waiting times of units: of each admission, by queue and namespace, and of the longest
// pending unit of each queue.
package waits

import (
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// mostNamespaces of one queue have series of their own, because a tenant may make very many. The bound is by queue, so
// that a tenant takes series from tenants of its queues alone.
const mostNamespaces = 100

// Waits exports waits. Only NamespaceGone may be called from another goroutine than the rest.
type Waits struct {
	metrics *metrics.Set
	mutex   sync.Mutex
	// namespaces of each queue that have series of their own.
	namespaces map[string]map[string]bool
	// objectives of the queues that have one, in seconds.
	objectives map[string]int32
}

// New exports to these metrics.
func New(to *metrics.Set) *Waits {
	return &Waits{metrics: to, namespaces: map[string]map[string]bool{}, objectives: map[string]int32{}}
}

// Admitted counts for how long a unit waited. The queue is empty if it does not exist.
func (w *Waits) Admitted(queue, namespace string, waited time.Duration) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.metrics.Observe(metrics.AdmissionWaitSeconds, waited.Seconds(), queue, w.labelOf(queue, namespace))
}

// labelOf a namespace is empty if it has no series of its own.
func (w *Waits) labelOf(queue, namespace string) string {
	of := w.namespaces[queue]
	switch {
	case of[namespace]:
	case queue == "" || len(of) >= mostNamespaces:
		return ""
	case of == nil:
		w.namespaces[queue] = map[string]bool{namespace: true}
	default:
		of[namespace] = true
	}
	return namespace
}

// NamespaceGone removes what is exported of a namespace that is gone. Others of its queues may then have series.
func (w *Waits) NamespaceGone(namespace string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	had := false
	for _, of := range w.namespaces {
		had = had || of[namespace]
		delete(of, namespace)
	}
	if had {
		w.metrics.ForgetCounted("namespace", namespace)
	}
}

// SetQueue takes the objective of a queue in seconds, 0 for none.
func (w *Waits) SetQueue(queue string, objective int32) {
	if objective > 0 {
		w.objectives[queue] = objective
		w.metrics.Set(metrics.WaitObjectiveSeconds, float64(objective), queue)
		return
	}
	if w.objectives[queue] > 0 {
		delete(w.objectives, queue)
		w.metrics.Forget(metrics.WaitObjectiveSeconds, queue)
		w.metrics.Forget(metrics.LongestWaitStartSeconds, queue)
	}
}

// QueueGone removes what is exported of a queue that is gone.
func (w *Waits) QueueGone(queue string) {
	w.SetQueue(queue, 0)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	delete(w.namespaces, queue)
	w.metrics.ForgetCounted("queue", queue)
}

// Line visits the units in the line of a queue until visit returns false. Parked ones are not open.
type Line func(queue string, visit func(position int, u *unit.Unit, open bool) bool)

// Measure exports since when the unit has waited that has waited longest, for each queue with an objective. since is
// that time of a unit: its creation, or later; zero if it is not known. Measure looks at all units of those queues.
func (w *Waits) Measure(line Line, since func(unitKey string) time.Time) {
	for queue := range w.objectives {
		var first time.Time
		line(queue, func(_ int, u *unit.Unit, open bool) bool {
			if !open || !first.IsZero() && !u.Created.Before(first) {
				return true
			}
			if at := since(u.Key); !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
			return true
		})
		if first.IsZero() {
			w.metrics.Forget(metrics.LongestWaitStartSeconds, queue)
		} else {
			w.metrics.Set(metrics.LongestWaitStartSeconds, float64(first.Unix()), queue)
		}
	}
}
