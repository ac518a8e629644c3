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

package coreplay

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Judged says how good forecasts were: of all jobs that were asked about, and of those that waited for a minute.
type Judged struct {
	All, Waited Score
}

// Score counts forecasts. Right: About was at most a minute off, or a quarter of the wait. Naive counts those that the
// median of the last 50 waits would have had right. Bounded had a Latest, and Held were admitted by then. Raw were
// admitted by the Latest that nothing had stretched.
type Score struct {
	Asked, Right, Naive, Bounded, Held, Raw int
}

const (
	tolerated  = time.Minute
	mostPast   = 2000
	mostWaits  = 50
	mostDraws  = 10
	quarter    = 4
	longEnough = time.Minute
)

// asked is what was said of a job when it was submitted.
type asked struct {
	*forecast.Answer
	at    time.Time
	naive time.Duration
}

// Judge asks about some jobs, evenly spread, when they are submitted, and compares that with what happens then.
func Judge(
	w *trace.Workload, config admission.Config, policy string, questions int, started func(int) error,
) (j Judged, err error) {
	s := newSchedule(w, config, policy)
	var past forecast.Calibration
	said, every := map[int]asked{}, max(len(w.Jobs)/max(questions, 1), 1)
	s.started = func(job int, at time.Time) {
		if a, some := said[job]; some {
			past.Learn(a.Unit.Namespace(), a.Answer, a.at, at)
		}
	}
	err = s.play(started, func(job int, at time.Time) {
		if job%every == every/2 {
			said[job] = s.ask(job, at, &past)
		}
	})
	for _, h := range s.holds {
		a, some := said[h.Job]
		if !some {
			continue
		}
		wait := origin.Add(h.Start).Sub(a.at)
		j.All.count(&a, wait)
		if wait >= longEnough {
			j.Waited.count(&a, wait)
		}
	}
	return j, err
}

func (c *Score) count(a *asked, wait time.Duration) {
	right := func(said time.Duration) bool { return (said - wait).Abs() <= max(tolerated, wait/quarter) }
	c.Asked++
	if !a.About.IsZero() && right(a.About.Sub(a.at)) {
		c.Right++
	}
	if right(a.naive) {
		c.Naive++
	}
	if a.Latest.IsZero() {
		return
	}
	c.Bounded++
	started, raw := a.at.Add(wait), a.Latest
	if !a.Raw.IsZero() {
		raw = a.Raw
	}
	if !started.After(a.Latest) {
		c.Held++
	}
	if !started.After(raw) {
		c.Raw++
	}
}

// ask has the world answer as a scheduler would that knows the runs and forecasts so far.
func (s *schedule) ask(job int, at time.Time, past *forecast.Calibration) asked {
	var ended []forecast.Ended
	var waits []time.Duration
	for _, h := range slices.Backward(s.holds) {
		j := &s.jobs[h.Job]
		if len(waits) < mostWaits {
			waits = append(waits, h.Start-j.Submit)
		}
		if !origin.Add(h.End).After(at) {
			u := unitOf(h.Job, j, at)
			ended = append(ended, forecast.Ended{
				User: u.Namespace(), Queue: u.Queue, Size: u.Request.Key(), Limit: j.Limit, Ran: j.Run,
			})
		}
		if len(ended) == mostPast {
			break
		}
	}
	u := unitOf(job, &s.jobs[job], at)
	by := past.Stretch(u.Namespace())
	a := asked{at: at, Answer: forecast.Ask(&forecast.Question{
		Facts: virtual.FactsOf(s.world.State(), s.config, at), Now: at, Runs: forecast.NewRuns(ended),
		Stretch: func(*unit.Unit) float64 { return by }, Stop: func(worlds int) bool { return worlds > mostDraws },
	}, &u)}
	if slices.Sort(waits); len(waits) > 0 {
		a.naive = waits[len(waits)/2]
	}
	return a
}
