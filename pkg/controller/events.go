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
	"hash/maphash"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// told remembers what was said of each job, so that nothing is said twice. It is safe for concurrent use.
type told struct {
	since time.Time
	mu    sync.Mutex
	jobs  map[types.NamespacedName]said
}

// said of one job: the last text told without a write, and what was told of what it waits for.
type said struct {
	uid  types.UID
	text string
	// wait stands for what it was told to wait for, zero for nothing; at is when it was told something of that last.
	wait uint64
	at   time.Time
	// slot is when it is to be told something else; zero if it is not.
	slot time.Time
}

// seed of hashes of texts.
var seed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(seed, text) | 1 }

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

// once returns the event unless the same was the last said of this job.
func (t *told) once(job metav1.Object, e *Event) *Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, s, _ := t.of(job)
	text := e.Of + " " + e.Reason + ": " + e.Note
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
		return false
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
