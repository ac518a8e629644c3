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

// Package forecast says when a unit that waits will be admitted: the core itself is asked, on virtual time.
//
// An answer has two numbers. About is the median of several draws, in each of which every run takes as long as one like
// it took. Latest has each run take its limit, or nearly as long as the longest of those like it. Neither knows of jobs
// that arrive later.
//
// It is pure: it has no client and no clock. The caller says when it takes too long.
package forecast

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Draws are made for About, unless it takes too long.
const Draws = 30

// nearly all runs are shorter than what is believed where no limit is known.
const nearly = 0.9

// overdue is how much longer a unit is believed to hold quota that is beyond its limit.
const overdue = time.Second

// Question is when a unit will be admitted.
type Question struct {
	Facts *virtual.Facts
	Now   time.Time
	// Key of the unit.
	Key  string
	Runs *Runs
	// Stop says that the answer takes too long; worlds is how many were played to their ends.
	Stop func(worlds int) bool
}

// Answer is when the unit will be admitted.
type Answer struct {
	// About is zero if it is not known, or if more than half of the draws do not end.
	About time.Time
	// Latest is zero if nothing bounds it.
	Latest time.Time
	// NotBefore is how far the world came before Stop, where there is neither About nor Latest.
	NotBefore time.Time
	Draws     int
	// Limits and Past count the runs that the unit waits for and whose end rests on their limit, or on past runs.
	Limits, Past int
	// Endless are the keys of units that hold quota while nothing says how long, in order.
	Endless []string
}

// Ask answers a question. The unit has to wait, and to be among the facts.
func Ask(q *Question) (a Answer) {
	ends := newEnds(q)
	a.Latest, a.NotBefore = ends.play(bound, 0)
	a.Limits, a.Past, a.Endless = ends.limits, ends.past, ends.endless()
	var drawn []time.Time
	for draw := range Draws {
		if q.Stop(draw + 1) {
			break
		}
		at, stopped := ends.play(draw, draw+1)
		if !stopped.IsZero() {
			a.NotBefore = ordered.Later(a.NotBefore, stopped)
			break
		} else if at.IsZero() {
			at = never
		}
		drawn = append(drawn, at)
	}
	if a.Draws = len(drawn); a.Draws > 0 {
		slices.SortFunc(drawn, time.Time.Compare)
		if a.About = drawn[(len(drawn)-1)/2]; a.About.Equal(never) {
			a.About = time.Time{}
		}
		if !a.Latest.IsZero() && a.About.After(a.Latest) {
			a.About = a.Latest
		}
	}
	if !a.About.IsZero() || !a.Latest.IsZero() {
		a.NotBefore = time.Time{}
	}
	return a
}

// never is after all other times.
var never = time.Unix(1<<40, 0)

// bound is the number of the world in which runs take their limits.
const bound = -1

// ends says in one world after the other how long units hold quota.
type ends struct {
	question *Question
	queues   map[string]*queue.Spec
	// units as the facts have them: those of a world have no time limit.
	units  map[string]*unit.Unit
	worlds *virtual.Worlds
	draw   int
	// admitted is when the unit of the question was; zero for not yet.
	admitted time.Time
	// basis is what the end of each unit that holds quota rests on.
	basis        map[string]basis
	limits, past int
}

func newEnds(q *Question) *ends {
	e := &ends{
		question: q, queues: map[string]*queue.Spec{}, units: make(map[string]*unit.Unit, len(q.Facts.Units)),
		basis: map[string]basis{}, worlds: virtual.Of(q.Facts, q.Now),
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

// play has a world go on until the unit is admitted. If that does not happen the time is zero; stopped is how far the
// world came if that took too long.
func (e *ends) play(draw, worlds int) (at, stopped time.Time) {
	e.draw, e.admitted, e.basis, e.limits, e.past = draw, time.Time{}, map[string]basis{}, 0, 0
	w := e.worlds.Begin(e.run, e)
	for e.admitted.IsZero() && w.Step() {
		if e.admitted.IsZero() && e.question.Stop(worlds) {
			return time.Time{}, w.Now()
		}
	}
	return e.admitted, time.Time{}
}

// run of a unit, see virtual.Run.
func (e *ends) run(of *unit.Unit, admitted time.Time) (time.Duration, bool) {
	u := e.units[of.Key]
	limit := limitOf(u, e.queues[u.Queue])
	pool := e.question.Runs.of(Ended{Queue: u.Queue, User: u.Namespace(), Size: u.Request.Key(), Limit: limit})
	passed := max(e.question.Now.Sub(admitted), 0)
	left := max(limit-u.Executed, overdue)
	d, by := time.Duration(0), onPast
	switch {
	case e.draw == bound && limit > 0, len(pool) == 0 && limit > 0:
		d, by = left, onLimit
	case len(pool) == 0:
		e.basis[u.Key] = onNothing
		return 0, false
	case e.draw == bound:
		d = take(pool, limit, passed, nearly)
	default:
		d = min(take(pool, limit, u.Executed+passed, part(e.draw, u.Key))-u.Executed, whole(limit, left))
	}
	e.basis[u.Key] = by
	if admitted.Add(d).Before(e.question.Now) {
		d = passed + overdue
	}
	return d, true
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

// endless are the units that hold quota in the last world while nothing says how long.
func (e *ends) endless() (keys []string) {
	for key, by := range e.basis {
		if by == onNothing && key != e.question.Key {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Admitted implements virtual.Watcher.
func (e *ends) Admitted(now time.Time, u *unit.Unit) {
	if u.Key == e.question.Key {
		e.admitted = now
	}
}

// Evicted implements virtual.Watcher.
func (e *ends) Evicted(_ time.Time, u *unit.Unit) { delete(e.basis, u.Key) }

// Ended implements virtual.Watcher.
func (e *ends) Ended(_ time.Time, u *unit.Unit) {
	if !e.admitted.IsZero() {
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
