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

// Package forecast says when units that wait will be admitted: the core itself is asked, on virtual time.
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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Draws are made for About, unless it takes too long.
const Draws = 30

// nearly all runs are shorter than what is believed where no limit is known.
const nearly = 0.9

// Question is when units will be admitted. All units of an answer have the same draws.
type Question struct {
	Facts *virtual.Facts
	Now   time.Time
	Runs  *Runs
	// Stretch of the bounds of a unit, as Calibration has it; nil stretches none.
	Stretch func(*unit.Unit) float64
	// Stop says that the answer takes too long; worlds is how many were played to their ends.
	Stop func(worlds int) bool
}

// Answer is when a unit will be admitted.
type Answer struct {
	Unit *unit.Unit
	// About is zero if it is not known, or if more than half of the draws do not end.
	About time.Time
	// Latest is zero if nothing bounds it. Raw is the same before it was stretched, if it rests on past runs.
	Latest, Raw time.Time
	// NotBefore is how far the world came before Stop, where there is neither About nor Latest.
	NotBefore time.Time
	// Checks is how long admission checks take after the reservation, as a part of About; zero if that is not known.
	Checks time.Duration
	Draws  int
	// Limits and Past count the runs that the unit waits for and whose end rests on their limit, or on past runs.
	Limits, Past int
	// Endless are the keys of units that hold quota while nothing says how long. They are not to be changed.
	Endless []string
}

// Ask about one unit, which has to wait.
func Ask(q *Question, u *unit.Unit) *Answer {
	ends := newEnds(q)
	t := ends.ask(u)
	if t.NotBefore = ends.play(bound, 0, 1); t.Latest.IsZero() {
		t.Limits, t.Past, t.Endless = ends.limits, ends.past, ends.endless
	}
	return &ends.drawn()[0]
}

// First asks about the first units with a bound that are accepted, most of them, in the order of their bounds.
func First(q *Question, most int, accept func(*unit.Unit) bool) []Answer {
	ends := newEnds(q)
	ends.accept = accept
	ends.play(bound, 0, most)
	ends.accept = nil
	return ends.drawn()
}

// drawn are the answers about all targets, after the world of their bounds.
func (e *ends) drawn() (answers []Answer) {
	for draw := 0; draw < Draws && len(e.targets) > 0 && !e.question.Stop(draw+1); draw++ {
		stopped := e.play(draw, draw+1, len(e.targets))
		for _, t := range e.targets {
			switch {
			case !t.at.IsZero():
				t.drawn = append(t.drawn, t.at)
			case stopped.IsZero():
				t.drawn = append(t.drawn, never)
			default:
				t.NotBefore = ordered.Later(t.NotBefore, stopped)
			}
		}
		if !stopped.IsZero() {
			break
		}
	}
	e.draw = middle
	for _, t := range e.targets {
		answers = append(answers, *e.conclude(t))
	}
	return answers
}

// conclude from the times of all worlds.
func (e *ends) conclude(t *target) *Answer {
	a, q := &t.Answer, e.question
	if a.Past > 0 && !a.Latest.IsZero() {
		if a.Raw = a.Latest; q.Stretch != nil {
			a.Latest = stretched(a.Raw, q.Now, q.Stretch(a.Unit))
		}
	}
	if a.Draws = len(t.drawn); a.Draws > 0 {
		slices.SortFunc(t.drawn, time.Time.Compare)
		if a.About = t.drawn[(a.Draws-1)/2]; a.About.Equal(never) {
			a.About = time.Time{}
		}
		if !a.Latest.IsZero() && a.About.After(a.Latest) {
			a.About = a.Latest
		}
	}
	if !a.About.IsZero() || !a.Latest.IsZero() {
		a.NotBefore, a.Checks = time.Time{}, e.checks(a.Unit, q.Now)
	}
	return a
}

// never is after all other times.
var never = time.Unix(1<<40, 0)
