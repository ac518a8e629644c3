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

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// history is every state that every quota, unit, pod and job was ever in, in the order of the store.
type history struct {
	mu     sync.Mutex
	events []checker.Event
	seen   []time.Time // when each of the events was

	now     *checker.Checker     // says what there is; the violations are those of judge, which knows the outages
	kubelet map[string]time.Time // by UID: pods whose next step is the kubelet's, and since when
}

func newHistory() *history { return &history{now: checker.New(nil), kubelet: map[string]time.Time{}} }

// note takes the next change of the store.
func (h *history) note(change observer.Change) error {
	e, ok, err := change.Event()
	if !ok {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if o, ok := change.Object.(*corev1.Pod); ok {
		pod := e.Object.(checker.Pod)
		delete(h.kubelet, pod.UID)
		if pod.Bound && !change.Deleted && (o.DeletionTimestamp != nil || pod.Job != "" && !pod.Terminal) {
			h.kubelet[pod.UID] = now
		}
	}
	h.now.Apply(e)
	h.seen = append(h.seen, now)
	h.events = append(h.events, e)
	return nil
}

// stuck says whether a pod has waited for its kubelet for so long.
func (h *history) stuck(patience time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, since := range h.kubelet {
		if time.Since(since) > patience {
			return true
		}
	}
	return false
}

// describe is one line of the written history.
func describe(e checker.Event) string {
	gone := ""
	if e.Deleted {
		gone = " deleted"
	}
	switch o := e.Object.(type) {
	case checker.Unit:
		return fmt.Sprintf("unit %s of %s request %v priority %d attempt %d admitted %t at %s parked %t%s",
			o.Key, o.Quota, o.Request, o.Priority, o.Attempts, o.Admitted, o.AdmittedAt.Format(time.TimeOnly), o.Parked, gone)
	case checker.Pod:
		return fmt.Sprintf("pod %s of %s request %v bound %t ended %t%s", o.Name, o.Quota, o.Request,
			o.Bound, o.Terminal, gone)
	case checker.Job:
		return fmt.Sprintf("job %s complete %t failed %t%s", o.Name, o.Complete, o.Failed, gone)
	default:
		return fmt.Sprintf("%+v%s", o, gone)
	}
}

// standing is how far the jobs are, for the line of progress and to know when all is over.
func (h *history) standing() checker.Standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now.Standing()
}

// length is how many events there are.
func (h *history) length() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.events)
}

// since returns the events after the first n.
func (h *history) since(n int) []checker.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.events[n:])
}

// left says what is still there.
func (h *history) left() []checker.Violation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now.Left()
}

// quiet waits until nobody writes for the length, and returns the writes of the last of so many tries (I12). Writes
// that go on show that the system is not at rest. A single late write on a slow machine does not.
func (h *history) quiet(ctx context.Context, length time.Duration, tries int) (found []checker.Violation) {
	for range tries {
		before := h.length()
		controlplane.Sleep(ctx, length)
		if found = checker.Written(h.since(before)); len(found) == 0 {
			return nil
		}
	}
	return found
}

// judged is what the history says about the promises.
type judged struct {
	done       int
	violations []checker.Violation
	attempts   map[int64]int // units by the number of their admissions
	ordered    int           // admissions in blocking queues at a time at which their order can be judged
	unordered  int           // and at other times
	events     int
	deleted    int
}

// violationMark begins a line of the written history after the state that broke a promise.
const violationMark = "VIOLATION"

// judge replays the history and writes it down. submitted are the jobs by namespace/name, deleted those that their user
// deleted.
func (h *history) judge(submitted, deleted map[string]bool, outages []outage, log io.Writer) judged {
	h.mu.Lock()
	defer h.mu.Unlock()
	j := judged{events: len(h.events), attempts: map[int64]int{}}
	c := checker.New(blockingQueues)
	c.Unsaid = func(_, by checker.Unit) bool { return disturbed(outages, by.AdmittedAt) }
	c.Unanswered = func(created time.Time) bool { return unanswered(outages, created) }
	admitted, attempts := map[string]bool{}, map[string]int64{}
	for i, e := range h.events {
		known := len(c.Violations())
		c.Apply(e)
		if _, quota := e.Object.(checker.Quota); !quota {
			fmt.Fprintf(log, "%s %d %s\n", h.seen[i].Format("15:04:05.000"), e.Version, describe(e))
		}
		for _, v := range c.Violations()[known:] {
			fmt.Fprintf(log, "%s %s\n", violationMark, v)
		}
		unit, ok := e.Object.(checker.Unit)
		if ok {
			attempts[unit.UID] = unit.Attempts
		}
		if !ok || !unit.Admitted || admitted[unit.UID] {
			continue
		}
		admitted[unit.UID] = true
		if _, blocking := blockingQueues[unit.Queue]; !blocking {
			continue
		}
		if disturbed(outages, unit.AdmittedAt) {
			j.unordered++
		} else {
			j.ordered++
		}
	}
	wanted := map[string]string{}
	var found []checker.Violation
	for name := range submitted {
		uids := c.Named(name)
		if len(uids) != 1 {
			found = append(found, checker.Violation{
				Rule: checker.Lost, Subject: name, Message: fmt.Sprintf("was created once and existed %d times", len(uids)),
			})
			continue
		}
		if deleted[name] {
			j.deleted++
			continue
		}
		wanted[uids[0]] = name
	}
	j.done, j.violations = c.Finish(wanted)
	j.violations = append(j.violations, found...)
	for _, n := range attempts {
		j.attempts[n]++
	}
	return j
}
