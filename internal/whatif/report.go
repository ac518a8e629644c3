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

package whatif

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Report is what changes. Times are in seconds from AsOf.
type Report struct {
	AsOf time.Time `json:"asOf"`
	// HorizonSeconds is when the comparison ends. A job that does not start until then counts as waiting that long.
	HorizonSeconds int64    `json:"horizonSeconds"`
	RunTimes       RunTimes `json:"runTimes"`
	// Jobs whose fate changes, those that are new first, then those that change most.
	Jobs []Job `json:"jobs"`
	// Unchanged is the number of all others.
	Unchanged int     `json:"unchanged"`
	Queues    []Queue `json:"queues"`
	Evictions Counts  `json:"evictions"`
	// First is the job of each queue that waits in front after the change, and why.
	First []Waits `json:"first,omitempty"`
	// Extended says that the scheduler has policies or an order of queues of its own, which are not compared.
	Extended bool `json:"extended,omitempty"`
}

// RunTimes counts jobs by what their run time rests on. Endless ones have neither a limit nor past runs.
type RunTimes struct {
	Past    int `json:"past"`
	Limits  int `json:"limits"`
	Endless int `json:"endless"`
}

// Waits is a job that waits. Reason and Message are those that the condition QuotaReserved of its unit would have.
type Waits struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Queue     string `json:"queue"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// Counts before the change and after it.
type Counts struct {
	Before int `json:"before"`
	After  int `json:"after"`
}

// Seconds before the change and after it.
type Seconds struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Job is a job in both worlds. Before is absent for a new one.
type Job struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Queue     string `json:"queue"`
	Quota     string `json:"quota"`
	Before    *Fate  `json:"before,omitempty"`
	After     Fate   `json:"after"`

	change time.Duration
}

// Fate of a job. Holds: it holds quota now.
type Fate struct {
	Holds bool `json:"holds,omitempty"`
	// EvictedSeconds is when it loses that first, and StartSeconds when it is admitted first; absent for never.
	EvictedSeconds *int64 `json:"evictedSeconds,omitempty"`
	StartSeconds   *int64 `json:"startSeconds,omitempty"`
}

// Queue sums up the jobs that wait in a queue now, and start in at least one of the worlds.
type Queue struct {
	Name           string  `json:"name"`
	Jobs           int     `json:"jobs"`
	NotStarted     Counts  `json:"notStarted"`
	MeanSeconds    Seconds `json:"meanWaitSeconds"`
	LongestSeconds Seconds `json:"longestWaitSeconds"`
}

// moment is how much a start has to move for a change.
const moment = time.Minute

// Question is what changes until a time.
type Question struct {
	*forecast.Change
	// All: a start that moves less than a minute is a change, too.
	All, Extended bool
}

// Ask compares the worlds.
func Ask(q *Question) (*Report, error) {
	c, err := forecast.Compare(q.Change)
	if err != nil {
		return nil, err
	}
	r := &Report{
		AsOf: q.Now, HorizonSeconds: seconds(q.Until.Sub(q.Now)), RunTimes: RunTimes{c.Past, c.Limits, c.Endless},
		Jobs: []Job{}, Evictions: Counts{c.EvictionsBefore, c.EvictionsAfter}, Extended: q.Extended,
	}
	queues := map[string]*sums{}
	for i := range c.Pairs {
		p := &c.Pairs[i]
		if queues[p.Unit.Queue] == nil {
			queues[p.Unit.Queue] = &sums{}
		}
		queues[p.Unit.Queue].add(q, p)
		change, changed := q.change(p)
		if !changed {
			r.Unchanged++
			continue
		}
		job := Job{Queue: p.Unit.Queue, Quota: p.Unit.Quota, After: q.fate(p.Holds, p.After), change: change}
		job.Namespace, job.Name = jobOf(p.Unit)
		if !p.New {
			before := q.fate(p.Holds, p.Before)
			job.Before = &before
		}
		r.Jobs = append(r.Jobs, job)
	}
	for _, w := range c.First {
		namespace, name := jobOf(w.Unit)
		r.First = append(r.First, Waits{namespace, name, w.Unit.Queue, string(w.Reason), w.Message})
	}
	slices.SortFunc(r.Jobs, func(a, b Job) int {
		return cmp.Or(
			cmp.Compare(b.change, a.change), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Queue, b.Queue),
		)
	})
	for name, s := range queues {
		if s.Jobs > 0 {
			r.Queues = append(r.Queues, s.of(name))
		}
	}
	slices.SortFunc(r.Queues, func(a, b Queue) int { return cmp.Compare(a.Name, b.Name) })
	return r, nil
}

func jobOf(u *unit.Unit) (namespace, name string) {
	namespace, name, _ = strings.Cut(u.Key, "/")
	return namespace, cmp.Or(u.Consumer.Name, name)
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// wait is how long a unit waits from now on, and whether it starts before the end.
func (q *Question) wait(f forecast.Fate) (time.Duration, bool) {
	if f.Start.IsZero() || f.Start.After(q.Until) {
		return q.Until.Sub(q.Now), false
	}
	return f.Start.Sub(q.Now), true
}

// change is by how much the fate of a unit differs. New ones differ most, and then those that lose quota in one world
// alone.
func (q *Question) change(p *forecast.Pair) (d time.Duration, changed bool) {
	before, starts := q.wait(p.Before)
	after, startsToo := q.wait(p.After)
	d = (after - before).Abs()
	switch {
	case p.New:
		return 1<<63 - 1, true
	case p.Holds && p.Before.Evicted.IsZero() != p.After.Evicted.IsZero():
		return q.Until.Sub(q.Now), true
	case p.Holds && p.Before.Evicted.IsZero(): // all that is left is its end
		return 0, false
	}
	return d, starts != startsToo || d > moment || q.All && d > 0
}

func (q *Question) fate(holds bool, f forecast.Fate) (out Fate) {
	out.Holds = holds
	if wait, starts := q.wait(f); starts {
		out.StartSeconds = new(int64)
		*out.StartSeconds = seconds(wait)
	}
	if holds && !f.Evicted.IsZero() && !f.Evicted.After(q.Until) {
		out.EvictedSeconds = new(int64)
		*out.EvictedSeconds = seconds(f.Evicted.Sub(q.Now))
	}
	return out
}

type sums struct {
	Queue
	// before and after are the sums of the waits, in seconds.
	before, after int64
}

func (s *sums) add(q *Question, p *forecast.Pair) {
	before, starts := q.wait(p.Before)
	after, startsToo := q.wait(p.After)
	if p.New || p.Holds || !starts && !startsToo {
		return
	}
	s.Jobs++
	s.before, s.after = s.before+seconds(before), s.after+seconds(after)
	if !starts {
		s.NotStarted.Before++
	}
	if !startsToo {
		s.NotStarted.After++
	}
	s.LongestSeconds.Before = max(s.LongestSeconds.Before, seconds(before))
	s.LongestSeconds.After = max(s.LongestSeconds.After, seconds(after))
}

func (s *sums) of(name string) Queue {
	s.Name = name
	s.MeanSeconds = Seconds{s.before / int64(s.Jobs), s.after / int64(s.Jobs)}
	return s.Queue
}
