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

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// quietReasons are those of an ordinary wait: the unit's condition tells them, an event would only repeat it.
var quietReasons = map[string]bool{
	"":                                    true,
	string(admission.ReasonPending):       true,
	string(admission.ReasonQuotaExceeded): true,
	string(admission.ReasonMinExceeded):   true,
	string(admission.ReasonBlockedByHead): true,
	string(admission.ReasonAdopting):      true,
	string(admission.ReasonBackoff):       true,
	string(admission.ReasonQueueFull):     true,
	string(admission.ReasonQueueOverflow): true,
}

// pendingReason is why a waiting unit is out of its queue's turn, when a person should know; "" otherwise.
func pendingReason(u *v1alpha1.QueueUnit) (reason, message string) {
	if u == nil || stageOf(u.Status.Phase) != waiting {
		return "", ""
	}
	c := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionQuotaReserved)
	if c == nil || c.Status != metav1.ConditionFalse || quietReasons[c.Reason] {
		return "", ""
	}
	return c.Reason, c.Message
}

// told remembers what was said of each job, so that nothing is said twice. It is safe for concurrent use.
type told struct {
	since time.Time
	mu    sync.Mutex
	jobs  map[types.NamespacedName]said
}

// said of one job: the last reason why it waits, and the last text told without a write.
type said struct {
	uid          types.UID
	reason, text string
}

// newTold: states older than since were told by an earlier process.
func newTold(since time.Time) *told {
	return &told{since: since.Truncate(time.Second), jobs: map[types.NamespacedName]said{}}
}

// of returns what was said of this very job; one that was created anew under the name starts anew.
func (t *told) of(job metav1.Object) (types.NamespacedName, said, bool) {
	key := types.NamespacedName{Namespace: job.GetNamespace(), Name: job.GetName()}
	s, seen := t.jobs[key]
	if s.uid != job.GetUID() {
		return key, said{uid: job.GetUID()}, false
	}
	return key, s, seen
}

// pending returns the event for a unit that waits for a reason that a person should know, the first time it
// is seen with that reason.
func (t *told) pending(job metav1.Object, u *v1alpha1.QueueUnit) *Event {
	reason, message := pendingReason(u)
	t.mu.Lock()
	defer t.mu.Unlock()
	key, s, seen := t.of(job)
	before := s.reason
	s.reason = reason
	t.jobs[key] = s
	if reason == "" || reason == before || !seen && t.older(u) {
		return nil
	}
	return warning("Pending", "Queue", reason+": "+short(message))
}

// once returns the event unless the same was the last said of this job.
func (t *told) once(job metav1.Object, e *Event) *Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, s, _ := t.of(job)
	text := e.Reason + ": " + e.Note
	if s.text == text {
		return nil
	}
	s.text = text
	t.jobs[key] = s
	return e
}

// older says whether the state of the unit was written before this process began.
func (t *told) older(u *v1alpha1.QueueUnit) bool {
	at := u.Status.LastUpdateTime
	if at == nil {
		at = &meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionQuotaReserved).LastTransitionTime
	}
	return at.Time.Before(t.since)
}

// before says whether the job was there before this process began: one such was told.
func (t *told) before(job metav1.Object) bool { return job.GetCreationTimestamp().Time.Before(t.since) }

// forget a job that is gone.
func (t *told) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.jobs, key)
}

// record hands an event to the recorder; nil is no event.
func record(recorder events.EventRecorder, regarding runtime.Object, e *Event) {
	if e != nil {
		recorder.Eventf(regarding, nil, e.Type, e.Reason, e.Action, "%s", e.Note)
	}
}
