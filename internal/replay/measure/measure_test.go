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

package measure

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

const second = time.Second

// example has four processors and five jobs. In order, they start at 0, 10, 10, 15 and 15 s.
func example() *trace.Workload {
	return &trace.Workload{Processors: 4, Jobs: []trace.Job{
		{Run: 10 * second, Size: 3, User: "a"},
		{Submit: second, Run: 5 * second, Size: 3, User: "b"},
		{Submit: 2 * second, Run: 15 * second, Size: 1, User: "a"},
		{Submit: 2 * second, Run: 30 * second, Size: 1, User: "b"},
		{Submit: 12 * second, Run: second, Size: 1, User: "c"},
	}}
}

func replayed(t require.TestingT, w *trace.Workload, name string) []replay.Hold {
	for _, p := range replay.References() {
		if p.Name == name {
			holds, err := p.Replay(w, func(int) error { return nil })
			require.NoError(t, err)
			return holds
		}
	}
	require.Fail(t, "no such policy", name)
	return nil
}

func TestFiguresByHand(t *testing.T) {
	w := example()
	f := Of(w, replayed(t, w, "fcfs"))
	require.Equal(t, 5, f.Jobs)
	require.InDelta(t, (0+9+8+13+3)/5.0, f.Mean, 1e-9)
	require.InDelta(t, 13, f.Longest, 1e-9)
	require.InDelta(t, (1+14/10.0+23/15.0+43/30.0+1)/5, f.Slowdown, 1e-9)
	require.InDelta(t, (10*3+2*4)/48.0, f.Use, 1e-9, "until 12 s")
	require.InDelta(t, 8/48.0, f.Loss, 1e-9, "one processor from 2 s to 10 s: the job of 1 s does not fit")
	require.InDelta(t, (32+6+0)*(32+6+0)/3.0/(32*32+6*6), f.Fairness, 1e-9)
	require.Equal(t, []Waits{
		{Name: "1", Jobs: 3, Mean: 8, Longest: 13, order: 1}, {Name: "2-4", Jobs: 2, Mean: 4.5, Longest: 9, order: 2},
	}, f.BySize)
	require.Equal(t, []Waits{
		{Name: "a", Jobs: 2, Mean: 4, Longest: 8, order: -32}, {Name: "b", Jobs: 2, Mean: 11, Longest: 13, order: -6},
		{Name: "c", Jobs: 1, Mean: 3, Longest: 3},
	}, f.ByUser)
	require.Zero(t, f.Evictions+f.Unstarted)
}

// The third job is evicted after 4 s, of which it loses 3, and goes on at 20 s. The second starts small and grows. The
// fourth never starts.
func TestFiguresOfEvictionsAndResizes(t *testing.T) {
	w := example()
	holds := []replay.Hold{
		{Job: 0, Start: 0, End: 10 * second, Size: 3},
		{Job: 2, Start: 2 * second, End: 6 * second, Size: 1, Evicted: true, Lost: 3 * second},
		{Job: 1, Start: 10 * second, End: 11 * second, Size: 1},
		{Job: 1, Start: 11 * second, End: 15 * second, Size: 3},
		{Job: 4, Start: 12 * second, End: 13 * second, Size: 1},
		{Job: 2, Start: 20 * second, End: 34 * second, Size: 1},
	}
	f := Of(w, holds)
	require.Equal(t, 1, f.Evictions)
	require.InDelta(t, 3, f.Lost, 1e-9)
	require.Equal(t, 1, f.Unstarted)
	require.Equal(t, 4, f.Jobs)
	require.InDelta(t, 9/4.0, f.Mean, 1e-9, "a wait ends at the first start")
	require.InDelta(t, (1+14/10.0+32/15.0+1)/4, f.Slowdown, 1e-9)
	require.InDelta(t, (30+4+1+3)/48.0, f.Use, 1e-9)
	// The fourth job from 6 s, where the third waits again, and both after 10 s.
	require.InDelta(t, (4+2+1)/48.0, f.Loss, 1e-9)
	series := Series(w, holds, 0, 34*second, 34)
	require.InDelta(t, 2, series[11].Waiting, 1e-9, "the third and the fourth, and not the second, which grows")
	require.InDelta(t, 1, series[33].Waiting, 1e-9, "the fourth")
}

func TestFiguresWithoutATimeOfSubmission(t *testing.T) {
	w := &trace.Workload{Processors: 1, Jobs: []trace.Job{{Run: second, Size: 1}}}
	f := Of(w, replayed(t, w, "fcfs"))
	require.True(t, math.IsNaN(f.Use) && math.IsNaN(f.Loss) && math.IsNaN(f.Fairness))
}

func TestClasses(t *testing.T) {
	classes := map[int64]string{1: "1", 2: "2-4", 4: "2-4", 5: "5-16", 16: "5-16", 17: "17-64", 99: "65-256"}
	for size, want := range classes {
		name, _ := classOf(size)
		require.Equal(t, want, name)
	}
}

// Use, loss and series are those of somebody who looks at each second.
func TestMomentsAreThoseOfEachSecond(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w := &trace.Workload{Processors: rapid.Int64Range(1, 8).Draw(t, "processors")}
		at := 0
		for range rapid.IntRange(2, effort.Steps(80)+2).Draw(t, "jobs") {
			at += rapid.IntRange(0, 3).Draw(t, "gap")
			w.Jobs = append(w.Jobs, trace.Job{
				Submit: time.Duration(at) * second, Size: rapid.Int64Range(1, w.Processors).Draw(t, "size"),
				Run: time.Duration(rapid.IntRange(1, 8).Draw(t, "run")) * second,
			})
		}
		w.Jobs[len(w.Jobs)-1].Submit += second
		policy := rapid.SampledFrom([]string{"fcfs", "easy", "greedy"}).Draw(t, "policy")
		holds := replayed(t, w, policy)
		end, start := time.Duration(0), make([]time.Duration, len(w.Jobs))
		for _, h := range holds {
			end, start[h.Job] = max(end, h.End), h.Start
		}
		first, last := w.Jobs[0].Submit, w.Jobs[len(w.Jobs)-1].Submit
		held, lost := int64(0), int64(0)
		points := make([]Point, end/second)
		for now := range points {
			now := time.Duration(now) * second
			free, fits, waiting := w.Processors, int64(0), 0
			for i, j := range w.Jobs {
				if start[i] <= now && now < start[i]+j.Run {
					free -= j.Size
				}
				if j.Submit <= now && now < start[i] {
					waiting++
				}
			}
			for i, j := range w.Jobs {
				if j.Submit <= now && now < start[i] && j.Size <= free {
					fits += j.Size
				}
			}
			points[now/second] = Point{
				Waiting: float64(waiting), Use: float64(w.Processors-free) / float64(w.Processors),
			}
			if first <= now && now < last {
				held += w.Processors - free
				lost += min(free, fits)
			}
		}
		f := Of(w, holds)
		all := float64(w.Processors) * (last - first).Seconds()
		require.InDelta(t, float64(held)/all, f.Use, 1e-9)
		require.InDelta(t, float64(lost)/all, f.Loss, 1e-9)
		if policy == "greedy" {
			require.Zero(t, f.Loss)
		}
		series := Series(w, holds, 0, end, len(points))
		for i := range points {
			require.InDelta(t, points[i].Waiting, series[i].Waiting, 1e-6)
			require.InDelta(t, points[i].Use, series[i].Use, 1e-6)
		}
	})
}

func TestSeriesWithoutTime(t *testing.T) {
	w := example()
	require.Equal(t, make([]Point, 3), Series(w, replayed(t, w, "fcfs"), second, second, 3))
}

func TestShaken(t *testing.T) {
	w, err := trace.Lublin(2000, 64, 3)
	require.NoError(t, err)
	before, err := trace.Lublin(2000, 64, 3)
	require.NoError(t, err)
	shaken := Shaken(w, 5)
	require.Equal(t, before, w)
	require.Equal(t, shaken, Shaken(w, 5))
	require.NotEqual(t, shaken, Shaken(w, 6))
	former := map[string]trace.Job{}
	for _, j := range w.Jobs {
		former[j.ID] = j
	}
	last := time.Duration(0)
	for _, j := range shaken.Jobs {
		was := former[j.ID]
		require.InDelta(t, was.Submit.Seconds(), j.Submit.Seconds(), 1)
		require.InDelta(t, was.Run.Seconds(), j.Run.Seconds(), was.Run.Seconds()/100)
		require.True(t, j.Submit >= last && j.Run > 0 && j.Run <= j.Limit, "%+v", j)
		was.Submit, was.Run = j.Submit, j.Run
		require.Equal(t, was, j)
		last = j.Submit
	}
	require.Equal(t, Range{Mean: 2, Low: 1, High: 3}, RangeOf([]float64{3, 1, 2}))
}
