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

package inflight

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
)

// startsAt has a pace whose limit of writes the test sets.
func startsAt(writes *int) (*Starts, *clocktesting.FakePassiveClock) {
	clk := clocktesting.NewFakePassiveClock(start)
	return &Starts{clock: clk, writes: func() int { return *writes }}, clk
}

// A decision that releases 72 jobs of 150 pods has them start over time, and slower while the API server is busy.
func TestJobsOfOneDecisionStartOverTime(t *testing.T) {
	for name, writes := range map[string]int{"prompt": 32, "busy": 2} {
		t.Run(name, func(t *testing.T) {
			s, clk := startsAt(&writes)
			turns := []Turn{}
			for i := range 72 {
				turns = append(turns, s.Take([]int64{1, 1, 4, 1, 1, 4, 1, 4}[i%8]))
			}
			last := s.Take(1)
			require.Zero(t, s.Wait(turns[0]), "the first starts at once")
			for _, turn := range turns {
				clk.SetTime(clk.Now().Add(s.Wait(turn)))
				require.Zero(t, s.Wait(turn))
			}
			clk.SetTime(clk.Now().Add(s.Wait(last)))
			pods := 9.0 * (5 + 3*4)
			require.InDelta(t, pods/podsPerWrite/float64(writes), clk.Since(start).Seconds(), 0.01)
		})
	}
}

// An idle time saves nothing up: the next decision is spread, too.
func TestAnIdlePaceSavesNothingUp(t *testing.T) {
	writes := 2
	s, clk := startsAt(&writes)
	clk.SetTime(start.Add(time.Hour))
	require.Zero(t, s.Wait(s.Take(8)))
	require.Equal(t, time.Second, s.Wait(s.Take(8)).Round(time.Millisecond))
}

// A turn is as far away as the pace of now says.
func TestATurnComesSoonerOnceTheServerIsPrompt(t *testing.T) {
	writes := 2
	s, clk := startsAt(&writes)
	s.Take(64)
	turn := s.Take(1)
	require.Equal(t, 8*time.Second, s.Wait(turn).Round(time.Millisecond))
	clk.SetTime(start.Add(4 * time.Second))
	require.Equal(t, 4*time.Second, s.Wait(turn).Round(time.Millisecond))
	writes = 32
	require.Equal(t, 250*time.Millisecond, s.Wait(turn).Round(time.Millisecond))
}

// Whatever jobs there are and however slow the server is, each starts in its order and in finite time: no job waits
// longer than all before it count at the slowest pace.
func TestEachJobStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		writes := rapid.IntRange(1, 32)
		now := writes.Draw(t, "writes")
		s, clk := startsAt(&now)
		jobs := rapid.SliceOfN(rapid.Int64Range(-1, 100_000), 1, 50).Draw(t, "pods")
		turns := make([]Turn, len(jobs))
		for i, pods := range jobs {
			turns[i] = s.Take(pods)
		}
		before := 0.0
		for i, turn := range turns {
			for asked := 0; s.Wait(turn) > 0; asked++ {
				require.Less(t, asked, 100)
				clk.SetTime(clk.Now().Add(min(s.Wait(turn), time.Second)))
				now = writes.Draw(t, "writes")
			}
			require.LessOrEqual(t, clk.Since(start).Seconds(), before/podsPerWrite+1)
			for _, earlier := range turns[:i] {
				require.Zero(t, s.Wait(earlier), "in order")
			}
			before += float64(min(max(jobs[i], 1), mostPods))
		}
	})
}

func TestNoPaceHasEveryJobStartAtOnce(t *testing.T) {
	var s *Starts
	require.Zero(t, s.Wait(s.Take(1000)))
}
