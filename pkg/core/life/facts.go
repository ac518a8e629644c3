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

package life

import (
	"fmt"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Facts are all that a rule about one unit may look at.
type Facts struct {
	Now  time.Time
	Unit *unit.Unit
	// Queue that the unit names, empty unless QueueKnown.
	Queue      *queue.Spec
	QueueKnown bool
	// Job is what is known of its job, JobSaid that in words. Rival is the unit that stands for the job in its place.
	Job            owner.Liveness
	JobSaid, Rival string
	// Holds: it holds Held. Left is when its last pod left its node; zero where nobody saw that.
	Holds bool
	Held  resources.List
	Left  time.Time
	// Asking is since when it asks for more than it holds; zero if it does not.
	Asking ordered.Moment
	// Pods of it.
	Pods Pods
	// PreemptedFor is the quota of the unit that preempts this one; empty if none does.
	PreemptedFor string
	// GangsPassed: each other gang of its gang group has a unit that was let go, or has passed its own checks.
	GangsPassed bool
	Refused     Refusal
	Config      *Config
}

// Pods are those of one unit that exist.
type Pods struct {
	// All of them, and those on nodes.
	All, Assigned int
	// Elsewhere are those that wait and are charged to another quota than the unit holds quota in, Suspended those whose
	// job is marked as suspended.
	Elsewhere, Suspended int64
	// Charges are what those ask for that are charged to the quota of the unit.
	Charges ledger.Charges
}

// Refusal says that the API server, or a check, refused the unit. Nothing is tried before Until.
type Refusal struct {
	Until   time.Time
	Reason  unit.Reason
	Message string
}

// Refusals of a unit in a row, of which this is the last. Nobody writes one that a unit has: each makes another.
type Refusals struct {
	Refusal
	times int
}

// Again is one more. The unit is not tried for this time, which doubles with each up to 32 times.
func (r *Refusals) Again(now time.Time, base time.Duration, reason unit.Reason, message string) *Refusals {
	until := now.Add(base << min(r.times, 5))
	return &Refusals{Refusal: Refusal{Until: until, Reason: reason, Message: message}, times: r.times + 1}
}

// Accepted: the next refusal is the first in a row.
func (r *Refusals) Accepted() *Refusals {
	if r.times == 0 {
		return r
	}
	return &Refusals{Refusal: r.Refusal}
}

// refused says that nothing should be tried now.
func (f *Facts) refused() bool { return f.Now.Before(f.Refused.Until) }

// Config of the rules.
type Config struct {
	// Timeouts of units whose queue has none of its own.
	Timeouts queue.Timeouts
	// Selects says whether the selector of an admission check picks a unit of these labels; nil picks all.
	Selects func(selector, labels string) bool
	// Begun is when the process began to watch. Zero means that it has watched all the time.
	Begun time.Time
}

// rule has the name of what holds, as in backoffIsOver. It returns how a unit breaks it.
type rule func(f *Facts) breach

// breach is why something must not be, in a word and a sentence. Without a reason nothing is broken.
type breach struct {
	reason  unit.Reason
	message string
	// until is when it is over though nothing happens; zero for never.
	until time.Time
}

// broken is a breach that no time ends.
func broken(reason unit.Reason, format string, values ...any) breach {
	return breach{reason: reason, message: fmt.Sprintf(format, values...)}
}

// brokenUntil is a breach that is over at a time though nothing happens.
func brokenUntil(at time.Time, reason unit.Reason, format string, values ...any) breach {
	b := broken(reason, format, values...)
	b.until = at
	return b
}

// firstOf the rules that a unit breaks says how.
func firstOf(rules []rule, f *Facts) breach {
	for _, r := range rules {
		if b := r(f); b.reason != "" {
			return b
		}
	}
	return breach{}
}
