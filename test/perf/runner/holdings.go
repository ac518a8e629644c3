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
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// holdings is what the units of a store hold, as its watch tells it in the order in which it was written: that of
// versions. So what is held at a moment here was held at a moment there, and two admissions of one unit are two.
type holdings struct {
	mu     sync.Mutex
	checks *checker.Checker
	units  map[string]*holding
	// held are the names of units that hold quota.
	held []string
	n    counts
	// firstAdmission is the first one since forget.
	firstAdmission time.Time
	sample         *sample
}

// holding is what is known of one unit: its phase, how often it was admitted, and its place in held, below 0 for none.
type holding struct {
	phase    unit.Phase
	attempts int64
	place    int
}

// sample is one wake-up: a unit that was ended, and when its end and the next admission were seen.
type sample struct {
	unit            string
	ended, admitted time.Time
	done            chan struct{}
}

// newHoldings has as many quotas as a store has queues, each of which may have so many units, and its group so many.
func newHoldings(leafLimit, groupLimit, perGroup int) *holdings {
	h := &holdings{checks: checker.New(nil), units: map[string]*holding{}}
	quota := func(name, parent string, units int) {
		h.checks.Apply(checker.Event{Object: checker.Quota{
			Name: name, Parent: parent, Max: checker.Resources{"cpu": int64(units) * standingCPU * 1000},
		}})
	}
	for i := range standingQueues {
		group := groupName(i / perGroup)
		if i%perGroup == 0 {
			quota(group, "", groupLimit)
		}
		quota(queueName(i), group, leafLimit)
	}
	return h
}

// oneUnit is the request of every unit.
var oneUnit = checker.Resources{"cpu": standingCPU * 1000}

const standingPrefix = "unit-"

func standingName(queue, index int) string {
	return fmt.Sprintf("%s%05d-%07d", standingPrefix, queue, index)
}

func queueOf(name string) (int, bool) {
	number, _, _ := strings.Cut(strings.TrimPrefix(name, standingPrefix), "-")
	queue, err := strconv.Atoi(number)
	return queue, err == nil && strings.HasPrefix(name, standingPrefix)
}

// take follows one event of the watch.
func (h *holdings) take(e *event) {
	now := time.Now()
	name := e.Object.Metadata.Name
	queue, ok := queueOf(name)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.units[name]
	if u == nil {
		u = &holding{place: -1}
		h.units[name] = u
		h.n.created++
	}
	phase, deleted := unit.Phase(e.Object.Status.Phase), e.Type == "DELETED"
	h.checks.Apply(checker.Event{Deleted: deleted, Object: checker.Unit{
		Key: name, UID: name, Quota: queueName(queue), Request: oneUnit,
		Phase: phase, Admitted: phase.Holds(), Attempts: e.Object.Status.Attempts,
	}})
	if deleted {
		phase = unit.PhaseNone
	}
	switch {
	case phase.Holds() && u.place < 0:
		u.place = len(h.held)
		h.held = append(h.held, name)
		h.n.admitted++
		if h.firstAdmission.IsZero() {
			h.firstAdmission = now
		}
	case !phase.Holds() && u.place >= 0:
		h.release(u)
		h.n.ended++
	}
	u.phase, u.attempts = phase, e.Object.Status.Attempts
	h.measure(name, phase, now)
}

func (h *holdings) release(u *holding) {
	last := h.held[len(h.held)-1]
	h.held[u.place] = last
	h.units[last].place = u.place
	h.held, u.place = h.held[:len(h.held)-1], -1
}

func (h *holdings) measure(name string, phase unit.Phase, now time.Time) {
	s := h.sample
	switch {
	case s == nil:
	case name == s.unit && phase == unit.PhaseSucceed && s.ended.IsZero():
		s.ended = now
	case phase == unit.PhaseDequeued && !s.ended.IsZero() && s.admitted.IsZero():
		s.admitted = now
		close(s.done)
	}
}

// expect begins a sample with a unit that holds quota.
func (h *holdings) expect(random *rand.Rand) *sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sample = &sample{unit: h.held[random.IntN(len(h.held))], done: make(chan struct{})}
	return h.sample
}

// forget makes the next admission the first one.
func (h *holdings) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.firstAdmission = time.Time{}
}

// some are units that hold quota.
func (h *holdings) some(random *rand.Rand, n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := slices.Clone(h.held)
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names[:min(n, len(names))]
}

// holdingsState is what was seen up to now.
type holdingsState struct {
	counts         counts
	held           int
	firstAdmission time.Time
}

func (h *holdings) state() holdingsState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return holdingsState{h.n, len(h.held), h.firstAdmission}
}

// check compares the observed units with a list of all units. It returns some of the differences, and their number.
func (h *holdings) check(ctx context.Context, c *client) (found []string, total int, err error) {
	listed := map[string]holding{}
	err = c.listUnits(ctx, func(e *event) {
		listed[e.Object.Metadata.Name] = holding{
			phase: unit.Phase(e.Object.Status.Phase), attempts: e.Object.Status.Attempts,
		}
	})
	if err != nil {
		return nil, 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.checks.Violations() {
		found = append(found, v.String())
	}
	for _, name := range slices.Sorted(maps.Keys(h.units)) {
		u := h.units[name]
		there, ok := listed[name]
		if !ok || there.phase != u.phase || there.attempts != u.attempts {
			found = append(found, fmt.Sprintf("%s was seen as %q with %d attempts and is listed as %q with %d", name, u.phase,
				u.attempts, there.phase, there.attempts))
		}
	}
	for name := range listed {
		if _, ok := queueOf(name); ok && h.units[name] == nil {
			found = append(found, name+" is listed and was never seen")
		}
	}
	const told = 20
	return found[:min(told, len(found))], len(found), nil
}
