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

// Package patience measures how long a unit has been at the front of its line, and says when it claims and when its
// claim ends.
//
// The first unit of a blocking queue claims at once. In other queues a unit that does not fit lets others pass. Smaller
// units could pass it without end, so after a time it claims as well.
//
// A request that never fits would claim without end, on every level that its quota shares. So a claim can have a time
// limit. After that the unit blocks nobody: it keeps its position, and units behind it are decided as if it were
// absent.
package patience

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// Rule has the times. After is how long a unit waits before it claims where it does not at once; zero means that it
// never does. Timeout is how long a unit may claim; zero means without end.
type Rule struct{ After, Timeout time.Duration }

// Wait is how long a unit has waited at the front. It begins when a pass finds the unit to claim or, in a queue that
// does not block, to be short. It goes on until the unit is admitted, also while another unit is first. A unit
// that holds quota and waits for more begins again after its eviction.
type Wait struct {
	Since time.Time
	// Long: for longer than After. Ended: it no longer claims.
	Long, Ended bool
}

// Overdue is since when a unit waits for too long and claims still; zero if it does not.
func (w *Wait) Overdue() (since time.Time) {
	if w.Long && !w.Ended {
		since = w.Since
	}
	return since
}

// Watch follows the waits of all units.
type Watch struct {
	Rule
	// Next is when the first claim begins or ends of those that the last pass noted; zero if none does.
	Next time.Time
	// Ended counts claims that have. Moved: a unit came to wait for too long, or the claim of one ended that did.
	Ended int
	Moved bool
}

// Claims says whether a unit may claim now, and how it waits from now on. atOnce: it need not wait for a claim.
func (o *Watch) Claims(now time.Time, w Wait, atOnce bool) (may bool, noted Wait) {
	begin, end := o.claim(&w, atOnce)
	switch {
	case begin.IsZero():
		return atOnce, w
	case now.Before(begin):
		return false, w
	case end.IsZero() || now.Before(end):
		return true, w
	case !w.Ended:
		w.Ended, o.Moved = true, o.Moved || w.Long
		o.Ended++
	}
	return false, w
}

// Note is how a unit waits that is found to claim, or to be short.
func (o *Watch) Note(now time.Time, w Wait, atOnce bool) Wait {
	if o.After <= 0 && (o.Timeout <= 0 || !atOnce) {
		return w
	}
	if w.Since.IsZero() {
		w.Since = now
	}
	begin, end := o.claim(&w, atOnce)
	long := w.Since.Add(o.After)
	if o.After > 0 && !w.Long && !now.Before(long) {
		w.Long, o.Moved = true, true
	}
	for _, at := range []time.Time{begin, end, long} {
		if at.After(now) {
			o.Next = ordered.Earlier(o.Next, at)
		}
	}
	return w
}

// Due says that a claim begins or ends, so that a pass finds another state than the one before.
func (o *Watch) Due(now time.Time) bool { return !o.Next.IsZero() && !now.Before(o.Next) }

// claim is when the claim of a unit begins and ends; zero where that is not known, or never.
func (r Rule) claim(w *Wait, atOnce bool) (begin, end time.Time) {
	if w.Since.IsZero() || !atOnce && r.After <= 0 {
		return time.Time{}, time.Time{}
	}
	begin = w.Since
	if !atOnce {
		begin = begin.Add(r.After)
	}
	if r.Timeout > 0 {
		end = begin.Add(r.Timeout)
	}
	return begin, end
}
