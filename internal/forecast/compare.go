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

package forecast

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// middle is the number of the world in which each run takes the median of those like it, or its limit without any.
const middle = -2

// Change is a question: what happens with other facts than those that are true. Both have the same runs.
type Change struct {
	Before, After *virtual.Facts
	// The worlds begin now, and end at Until.
	Now, Until time.Time
	Runs       *Runs
	// Step is told how far the world is, and stops it with an error.
	Step func(changed bool, at time.Time) error
}

// Comparison has the fates of all units in both worlds, in the order of the facts after the change.
type Comparison struct {
	Pairs []Pair
	// EvictionsBefore and EvictionsAfter are their numbers in both worlds.
	EvictionsBefore, EvictionsAfter int
	// First are the first jobs in line that wait after the change and all that is decided at once, by queue.
	First []Waits
	// Past, Limits and Endless count units by what their run time rests on: past runs, their limit, or nothing. A unit
	// that never holds quota has none.
	Past, Limits, Endless int
}

// Pair is a unit and its fates. New: before the change it does not exist.
type Pair struct {
	Unit          *unit.Unit
	Holds, New    bool
	Before, After Fate
}

// Fate of a unit in a world. Start is its first admission from now on, and Evicted its first loss of quota. Both are
// zero if that does not happen.
type Fate struct{ Start, Evicted time.Time }

// Waits is a unit that waits, and why.
type Waits struct {
	Unit    *unit.Unit
	Reason  unit.Reason
	Message string
}

// Compare two worlds. The same unit runs for the same time in both.
func Compare(c *Change) (*Comparison, error) {
	before, err := c.play(c.Before, false)
	if err != nil {
		return nil, err
	}
	after, err := c.play(c.After, true)
	if err != nil {
		return nil, err
	}
	out := &Comparison{EvictionsBefore: before.evictions, EvictionsAfter: after.evictions, First: after.first}
	for _, u := range c.After.Units {
		p := Pair{
			Unit: u, Holds: transition.StageOf(u) == transition.Admitted, New: before.ends.units[u.Key] == nil,
			Before: before.of[u.Key], After: after.of[u.Key],
		}
		out.Pairs = append(out.Pairs, p)
		by, ran := after.ends.basis[u.Key]
		if !ran {
			by, ran = before.ends.basis[u.Key]
		}
		switch {
		case !ran:
		case by == onPast:
			out.Past++
		case by == onLimit:
			out.Limits++
		default:
			out.Endless++
		}
	}
	return out, nil
}

// fates of the units in a world.
type fates struct {
	ends      *ends
	of        map[string]Fate
	evictions int
	first     []Waits
}

func (c *Change) play(facts *virtual.Facts, changed bool) (*fates, error) {
	f := &fates{ends: newEnds(&Question{Facts: facts, Now: c.Now, Runs: c.Runs}), of: map[string]Fate{}}
	f.ends.draw = middle
	w := f.ends.worlds.Begin(f.ends.run, f)
	if changed {
		w.At(c.Now, f.firstInLine)
	}
	for {
		if err := c.Step(changed, w.Now()); err != nil {
			return nil, err
		}
		if w.Now().After(c.Until) || !w.Step() {
			return f, nil
		}
	}
}

// firstInLine notes who waits at the front of each queue. Parked units are not in front of anybody.
func (f *fates) firstInLine(state *admission.State) {
	for _, q := range state.Queues() {
		state.Line(q.Name, func(_ int, u *unit.Unit, open bool) bool {
			if open {
				reason, message, _ := state.Why(u.Key)
				f.first = append(f.first, Waits{u, reason, message})
			}
			return !open
		})
	}
}

// Admitted implements virtual.Watcher.
func (f *fates) Admitted(now time.Time, u *unit.Unit) {
	fate := f.of[u.Key]
	if fate.Start.IsZero() {
		fate.Start = now
		f.of[u.Key] = fate
	}
}

// Evicted implements virtual.Watcher.
func (f *fates) Evicted(now time.Time, u *unit.Unit) {
	f.evictions++
	fate := f.of[u.Key]
	if fate.Evicted.IsZero() {
		fate.Evicted = now
		f.of[u.Key] = fate
	}
}

// Ended implements virtual.Watcher.
func (f *fates) Ended(time.Time, *unit.Unit) {}
