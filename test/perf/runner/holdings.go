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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// holdings is what the units of a store hold, as its watch tells it in the order in which it was written: that of
// versions. So what is held at a moment here was held at a moment there, and two admissions of one unit are two.
type holdings struct {
	leafLimit, groupLimit, perGroup int

	mu    sync.Mutex
	units map[string]*holding
	// held are the names of units that hold quota.
	held              []string
	byLeaf, byGroup   map[int]int
	n                 counts
	violations        []string
	violationsInTotal int
	// firstAdmission is the first one since forget.
	firstAdmission time.Time
	sample         *sample
}

// holding is what is known of one unit: its phase, how often it was admitted, and its place in held, below 0 for none.
type holding struct {
	phase    v1alpha1.QueueUnitPhase
	attempts int64
	place    int
}

// sample is one wake-up: a unit that was ended, and when its end and the next admission were seen.
type sample struct {
	unit            string
	ended, admitted time.Time
	done            chan struct{}
}

func newHoldings(leafLimit, groupLimit, perGroup int) *holdings {
	return &holdings{
		leafLimit: leafLimit, groupLimit: groupLimit, perGroup: perGroup,
		units: map[string]*holding{}, byLeaf: map[int]int{}, byGroup: map[int]int{},
	}
}

const standingPrefix = "unit-"

func standingName(queue, index int) string {
	return fmt.Sprintf("%s%05d-%07d", standingPrefix, queue, index)
}

func queueOf(name string) (int, bool) {
	number, _, _ := strings.Cut(strings.TrimPrefix(name, standingPrefix), "-")
	queue, err := strconv.Atoi(number)
	return queue, err == nil && strings.HasPrefix(name, standingPrefix)
}

// take follows one event of the watch. Units ask for one core each.
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
	phase, attempts := e.Object.Status.Phase, e.Object.Status.Attempts
	if e.Type == "DELETED" {
		phase = ""
	}
	holds := phase == v1alpha1.PhaseDequeued || phase == v1alpha1.PhaseRunning
	switch {
	case holds && u.place < 0:
		if u.attempts > 0 || attempts != 1 {
			h.violation("%s is admitted again, attempt %d after %d", name, attempts, u.attempts)
		}
		h.admit(name, queue, u, now)
	case !holds && u.place >= 0:
		if phase != v1alpha1.PhaseSucceed {
			h.violation("%s lost what it held, phase %q after %q", name, phase, u.phase)
		}
		h.release(queue, u)
		h.n.ended++
	case holds && attempts != u.attempts:
		h.violation("%s changes from attempt %d to %d while it holds quota", name, u.attempts, attempts)
	}
	u.phase, u.attempts = phase, attempts
	h.measure(name, phase, now)
}

func (h *holdings) admit(name string, queue int, u *holding, now time.Time) {
	u.place = len(h.held)
	h.held = append(h.held, name)
	h.n.admitted++
	if h.firstAdmission.IsZero() {
		h.firstAdmission = now
	}
	group := queue / h.perGroup
	h.byLeaf[queue]++
	h.byGroup[group]++
	if n := h.byLeaf[queue]; n > h.leafLimit {
		h.violation("%s holds %d of %d", queueName(queue), n, h.leafLimit)
	}
	if n := h.byGroup[group]; n > h.groupLimit {
		h.violation("%s holds %d of %d", groupName(group), n, h.groupLimit)
	}
}

func (h *holdings) release(queue int, u *holding) {
	last := h.held[len(h.held)-1]
	h.held[u.place] = last
	h.units[last].place = u.place
	h.held, u.place = h.held[:len(h.held)-1], -1
	h.byLeaf[queue]--
	h.byGroup[queue/h.perGroup]--
}

func (h *holdings) measure(name string, phase v1alpha1.QueueUnitPhase, now time.Time) {
	s := h.sample
	switch {
	case s == nil:
	case name == s.unit && phase == v1alpha1.PhaseSucceed && s.ended.IsZero():
		s.ended = now
	case phase == v1alpha1.PhaseDequeued && !s.ended.IsZero() && s.admitted.IsZero():
		s.admitted = now
		close(s.done)
	}
}

func (h *holdings) violation(format string, args ...any) {
	const told = 20
	if h.violationsInTotal++; len(h.violations) < told {
		h.violations = append(h.violations, fmt.Sprintf(format, args...))
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

// check compares what was seen with a list of all units, and returns what is wrong, and how much in total.
func (h *holdings) check(ctx context.Context, c *client) ([]string, int, error) {
	listed := map[string]holding{}
	err := c.listUnits(ctx, func(e *event) {
		listed[e.Object.Metadata.Name] = holding{phase: e.Object.Status.Phase, attempts: e.Object.Status.Attempts}
	})
	if err != nil {
		return nil, 0, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.units)) {
		u := h.units[name]
		there, ok := listed[name]
		if !ok || there.phase != u.phase || there.attempts != u.attempts {
			h.violation("%s was seen as %q with %d attempts and is listed as %q with %d", name, u.phase, u.attempts,
				there.phase, there.attempts)
		}
	}
	for name := range listed {
		if _, ok := queueOf(name); ok && h.units[name] == nil {
			h.violation("%s is listed and was never seen", name)
		}
	}
	return slices.Clone(h.violations), h.violationsInTotal, nil
}
