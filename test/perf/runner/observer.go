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

package runner

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/perf/workload"
)

// observer watches the units and notes, by the clock of this process, when what was seen of each.
type observer struct {
	w     *workload.Workload
	units []workload.Unit
	index map[string]int // by name
	// jobs: a unit comes with its job and ends with it, and nobody here finishes it.
	jobs bool

	// over delivers units whose run time is over; done is closed when the run is; warm when any other unit is admitted.
	over chan int
	done chan struct{}
	warm chan struct{}

	mu       sync.Mutex
	seen     []sight
	n        counts
	late     time.Duration
	evicted  int
	finished bool
}

// sight has the times at which events of a unit were seen. created and ended are of the unit or its job.
type sight struct{ created, admitted, running, ended time.Time }

type counts struct{ created, admitted, ended int }

func newObserver(w *workload.Workload, units []workload.Unit, jobs bool) (*observer, error) {
	o := &observer{
		jobs: jobs, w: w, units: units, index: make(map[string]int, len(units)), seen: make([]sight, len(units)),
		over: make(chan int, len(units)), done: make(chan struct{}), warm: make(chan struct{}),
	}
	for i := range units {
		o.index[o.name(i)] = i
	}
	if len(o.index) != len(units) {
		return nil, errors.New("two units have the same name")
	}
	return o, nil
}

// name of a unit: its class, its queue, and its number there.
func (o *observer) name(i int) string {
	u := &o.units[i]
	return fmt.Sprintf("%s-%05d-%06d", o.w.Classes[u.Class].Name, u.Queue, u.Index)
}

func (o *observer) counts() counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// sent notes how much later than planned a unit was sent, at worst.
func (o *observer) sent(late time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.late = max(o.late, late)
}

func (o *observer) takeUnit(e *event) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished {
		return
	}
	i, ok := o.index[e.Object.Metadata.Name]
	if !ok {
		o.takeOther(e)
		return
	}
	s := &o.seen[i]
	if !o.jobs {
		o.created(s, now)
	}
	switch e.Object.Status.Phase {
	case v1alpha1.PhaseDequeued:
		o.admitted(i, now)
	case v1alpha1.PhaseRunning:
		o.admitted(i, now) // the watch may leave states out
		if s.running.IsZero() {
			s.running = now
		}
	case v1alpha1.PhaseSucceed:
		if !o.jobs {
			o.ended(s, now)
		}
	default:
		if !s.admitted.IsZero() {
			o.evicted++
		}
	}
	o.finish()
}

// takeOther looks out for the one unit that is none of the workload.
func (o *observer) takeOther(e *event) {
	if e.Object.Status.Phase != v1alpha1.PhaseDequeued {
		return
	}
	select {
	case <-o.warm:
	default:
		close(o.warm)
	}
}

func (o *observer) takeJob(e *event) {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.finished {
		return
	}
	i, ok := o.index[e.Object.Metadata.Name]
	if !ok {
		return
	}
	s := &o.seen[i]
	o.created(s, now)
	for _, c := range e.Object.Status.Conditions {
		if c.Type == "Complete" && c.Status == "True" {
			o.ended(s, now)
		}
	}
	o.finish()
}

func (o *observer) created(s *sight, now time.Time) {
	if s.created.IsZero() {
		s.created = now
		o.n.created++
	}
}

func (o *observer) admitted(i int, now time.Time) {
	s := &o.seen[i]
	if !s.admitted.IsZero() {
		return
	}
	s.admitted = now
	o.n.admitted++
	if !o.jobs {
		time.AfterFunc(runtimeOf(o.w, o.units[i]), func() { o.over <- i })
	}
}

func (o *observer) ended(s *sight, now time.Time) {
	if s.ended.IsZero() {
		s.ended = now
		o.n.ended++
	}
}

func runtimeOf(w *workload.Workload, u workload.Unit) time.Duration {
	return time.Duration(w.Classes[u.Class].RuntimeMs) * time.Millisecond
}

// finish says when the run is over.
func (o *observer) finish() {
	if o.n.ended == len(o.units) && !o.finished {
		o.finished = true
		close(o.done)
	}
}

// result returns what was seen; nothing changes after it.
func (o *observer) result() ([]sight, time.Duration, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]sight(nil), o.seen...), o.late, o.evicted
}

// atoi reads what the kernel writes; 0 for anything else.
func atoi(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
