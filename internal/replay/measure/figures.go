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

// Package measure says how well a schedule served its jobs and its machine, in the measures of the literature.
package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// shortRun bounds the slowdown: shorter run times count as this one.
const shortRun = 10 * time.Second

// Figures are the measures of one schedule. Waits are in seconds, from submission to the first start. Use and loss are
// of the time from the first to the last submission, since the machine empties after that.
type Figures struct {
	Waits
	Unstarted int     // jobs that never started; the other figures leave them out
	Slowdown  float64 // mean bounded slowdown: time to the end over run time, which counts as 10 s at least
	Use       float64 // held processors, as a part of all
	Loss      float64 // free processors for which waiting jobs would fit, as a part of all
	Fairness  float64 // Jain's index of the use by users of equal shares: 1 is equal use. NaN without two users
	Evictions int
	Lost      float64 // processor-seconds whose results were lost by evictions
	BySize    []Waits
	ByUser    []Waits // the greatest use first
}

// Waits are waits of some jobs.
type Waits struct {
	Name          string // of the class or the user
	Jobs          int
	Mean, Longest float64

	order float64 // among the classes, or the users
}

func (w *Waits) add(wait float64) {
	w.Jobs++
	w.Mean += wait // the sum, until mean
	w.Longest = max(w.Longest, wait)
}

func (w *Waits) mean() { w.Mean /= max(float64(w.Jobs), 1) }

// Of measures a schedule of a workload.
func Of(w *trace.Workload, holds []replay.Hold) *Figures {
	f := &Figures{}
	first := slices.Repeat([]time.Duration{-1}, len(w.Jobs))
	last := make([]time.Duration, len(w.Jobs))
	window := span{w.Jobs[0].Submit, w.Jobs[len(w.Jobs)-1].Submit}
	used := map[string]float64{}
	for _, h := range holds {
		if first[h.Job] < 0 {
			first[h.Job] = h.Start
		}
		last[h.Job] = max(last[h.Job], h.End)
		if h.Evicted {
			f.Evictions++
			f.Lost += float64(h.Size) * h.Lost.Seconds()
		}
		used[w.Jobs[h.Job].User] += float64(h.Size) * window.shared(h.Start, h.End)
	}
	sizes, users := map[string]*Waits{}, map[string]*Waits{}
	for i := range w.Jobs {
		j := &w.Jobs[i]
		if first[i] < 0 {
			f.Unstarted++
			continue
		}
		wait := (first[i] - j.Submit).Seconds()
		class, order := classOf(j.Size)
		f.add(wait)
		in(sizes, class, order).add(wait)
		in(users, j.User, -used[j.User]).add(wait)
		f.Slowdown += max(1, (last[i]-j.Submit).Seconds()/max(j.Run, shortRun).Seconds())
	}
	f.Slowdown /= max(float64(f.Jobs), 1)
	f.mean()
	f.BySize, f.ByUser = sorted(sizes), sorted(users)
	f.Fairness = jain(users, used)
	f.Use, f.Loss = useAndLoss(w, holds, window)
	return f
}

func in(groups map[string]*Waits, name string, order float64) *Waits {
	if groups[name] == nil {
		groups[name] = &Waits{Name: name, order: order}
	}
	return groups[name]
}

func sorted(groups map[string]*Waits) []Waits {
	all := make([]Waits, 0, len(groups))
	for _, g := range groups {
		g.mean()
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Waits) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// classOf names a class of sizes: 1, 2-4, 5-16, 17-64 and so on.
func classOf(size int64) (name string, order float64) {
	low, high := int64(1), int64(1)
	for size > high {
		low, high = high+1, 4*high
	}
	if low == high {
		return fmt.Sprint(low), float64(low)
	}
	return fmt.Sprintf("%d-%d", low, high), float64(low)
}

func jain(users map[string]*Waits, used map[string]float64) float64 {
	if len(users) < 2 {
		return math.NaN()
	}
	amounts := make([]float64, 0, len(users))
	for name := range users {
		amounts = append(amounts, used[name])
	}
	slices.Sort(amounts) // sums of floats depend on the order
	sum, squares := 0.0, 0.0
	for _, x := range amounts {
		sum += x
		squares += x * x
	}
	return sum * sum / (float64(len(amounts)) * squares)
}

// useAndLoss are NaN if all jobs are submitted at once.
func useAndLoss(w *trace.Workload, holds []replay.Hold, window span) (use, loss float64) {
	walk(w, holds, func(m *moment) {
		seconds := window.shared(m.from, m.to)
		if seconds == 0 {
			return
		}
		free := w.Processors - m.held
		use += float64(m.held) * seconds
		loss += float64(min(free, m.fitting(free))) * seconds
	})
	all := float64(w.Processors) * (window.to - window.from).Seconds()
	return use / all, loss / all
}

type span struct{ from, to time.Duration }

// shared is the part of another span in this one, in seconds.
func (s span) shared(from, to time.Duration) float64 {
	return max(min(s.to, to)-max(s.from, from), 0).Seconds()
}
