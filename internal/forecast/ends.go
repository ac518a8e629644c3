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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// overdue is how much longer a unit is believed to hold quota that is beyond its limit.
const overdue = time.Second

// bound is the number of the world in which runs take their limits.
const bound = -1

// ends says in one world after the other how long units hold quota.
type ends struct {
	question *Question
	queues   map[string]*queue.Spec
	// units as the facts have them: those of a world have no time limit.
	units   map[string]*unit.Unit
	worlds  *virtual.Worlds
	targets []*target
	byKey   map[string]*target
	// accept more targets; nil accepts none.
	accept func(*unit.Unit) bool

	draw int
	// open is the number of targets that are still to be admitted in this world.
	open int
	// basis is what the end of each unit that holds quota rests on. endless are those units that have none, as they began.
	basis        map[string]basis
	endless      []string
	limits, past int
}

// target is a unit that is asked about, and when it is admitted in the present world; zero for not yet.
type target struct {
	Answer
	at time.Time
	// drawn are the times of all draws.
	drawn []time.Time
}

func newEnds(q *Question) *ends {
	e := &ends{
		question: q, queues: map[string]*queue.Spec{}, units: make(map[string]*unit.Unit, len(q.Facts.Units)),
		byKey: map[string]*target{}, basis: map[string]basis{}, worlds: virtual.Of(q.Facts, q.Now),
	}
	for _, u := range q.Facts.Units {
		e.units[u.Key] = u
	}
	for i := range q.Facts.Queues {
		e.queues[q.Facts.Queues[i].Name] = &q.Facts.Queues[i]
	}
	return e
}

type basis uint8

const (
	onNothing basis = iota
	onLimit
	onPast
)

// ask about a unit.
func (e *ends) ask(u *unit.Unit) *target {
	t := &target{Answer: Answer{Unit: u}}
	e.targets, e.byKey[u.Key] = append(e.targets, t), t
	return t
}

// play has a world go on until so many targets are admitted. Where that does not happen stopped is how far the world
// came if that took too long.
func (e *ends) play(draw, worlds, targets int) (stopped time.Time) {
	e.draw, e.open, e.basis, e.endless, e.limits, e.past = draw, targets, map[string]basis{}, nil, 0, 0
	for _, t := range e.targets {
		t.at = time.Time{}
	}
	w := e.worlds.Begin(e.run, e)
	for e.open > 0 && w.Step() {
		if e.open > 0 && e.question.Stop(worlds) {
			return w.Now()
		}
	}
	return time.Time{}
}

// run of a unit with the checks before it, see virtual.Run.
func (e *ends) run(of *unit.Unit, admitted time.Time) (time.Duration, bool) {
	u := e.units[of.Key]
	checks := e.checks(u, admitted)
	begun := admitted.Add(checks)
	limit, since := limitOf(u, e.queues[u.Queue]), limited(u, e.queues[u.Queue], begun, e.question.Now)
	pool := e.question.Runs.of(Ended{Queue: u.Queue, User: u.Namespace(), Size: u.Request.Key(), Limit: limit})
	passed := max(e.question.Now.Sub(begun), 0)
	left := max(since.Sub(begun)+limit-u.Executed, overdue)
	d, by := time.Duration(0), onPast
	switch {
	case e.draw == bound && limit > 0, len(pool) == 0 && limit > 0:
		d, by = left, onLimit
	case len(pool) == 0:
		e.basis[u.Key] = onNothing
		e.endless = append(e.endless, u.Key)
		return 0, false
	case e.draw == bound:
		d = take(pool, limit, passed, nearly)
	default:
		d = min(take(pool, limit, u.Executed+passed, part(e.draw, u.Key))-u.Executed, whole(limit, left))
	}
	e.basis[u.Key] = by
	if begun.Add(d).Before(e.question.Now) {
		d = passed + overdue
	}
	return checks + d, true
}

// checks is how long admission checks take of a unit whose quota was reserved at a time. A unit is admitted after them.
func (e *ends) checks(u *unit.Unit, reserved time.Time) time.Duration {
	q := e.queues[u.Queue]
	if q == nil || u.Phase.Releases() && reserved.Equal(u.Admitted) {
		return 0
	}
	asked := &life.Facts{Unit: u, Queue: q, Config: &e.question.Facts.Config.Rules}
	pool := e.question.Runs.checks[u.Queue]
	if len(pool) < fewest || len(life.AdmissionChecks(asked)) == 0 {
		return 0
	}
	at := 0.5
	if e.draw == bound {
		at = nearly
	}
	return take(pool, 0, max(e.question.Now.Sub(reserved), 0), at)
}

// limited is from when the time limit of a unit counts that is admitted at a time. A limit that the job names counts
// from the moment on in which its pods are ready, as package life has it.
func limited(u *unit.Unit, q *queue.Spec, admitted, now time.Time) time.Time {
	switch fromAdmission := u.MaximumExecution <= 0 || q != nil && q.Execution.Most > 0 || !u.ConsumerManaged; {
	case fromAdmission || !admitted.Equal(u.Admitted):
		return admitted
	case u.RanSince.IsZero():
		return now
	default:
		return ordered.Later(admitted, u.RanSince)
	}
}

// whole bounds a run by what is left of its limit, if it has one.
func whole(limit, left time.Duration) time.Duration {
	if limit <= 0 {
		return 1<<63 - 1
	}
	return left
}

// limitOf is for how long a unit may run, in all its runs; zero if nothing bounds it.
func limitOf(u *unit.Unit, q *queue.Spec) time.Duration {
	if q == nil {
		return u.MaximumExecution
	}
	return q.Execution.Limit(u.MaximumExecution)
}

// Admitted implements virtual.Watcher.
func (e *ends) Admitted(now time.Time, of *unit.Unit) {
	u := e.units[of.Key]
	t := e.byKey[u.Key]
	if t == nil && e.accept != nil && e.open > 0 && e.accept(u) {
		t = e.ask(u)
	}
	if t == nil || !t.at.IsZero() {
		return
	}
	e.open--
	if t.at = now.Add(e.checks(u, now)); e.draw == bound {
		t.Latest, t.Limits, t.Past, t.Endless = t.at, e.limits, e.past, e.endless
		if n := len(t.Endless); n > 0 && t.Endless[n-1] == u.Key {
			t.Endless = t.Endless[:n-1]
		}
	}
}

// Evicted implements virtual.Watcher.
func (e *ends) Evicted(_ time.Time, u *unit.Unit) {
	if by, holds := e.basis[u.Key]; holds && by == onNothing {
		// Answers have the list as it was.
		e.endless = slices.DeleteFunc(slices.Clone(e.endless), func(key string) bool { return key == u.Key })
	}
	delete(e.basis, u.Key)
}

// Ended implements virtual.Watcher.
func (e *ends) Ended(_ time.Time, u *unit.Unit) {
	if e.open == 0 {
		return
	}
	switch e.basis[u.Key] {
	case onLimit:
		e.limits++
	case onPast:
		e.past++
	case onNothing:
	}
	delete(e.basis, u.Key)
}
