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

package turns

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// paceOf has a pace whose limit of writes the test sets.
func paceOf(writes *int) (*Pace, *clocktesting.FakePassiveClock) {
	clk := clocktesting.NewFakePassiveClock(start)
	return New(clk, func() int { return *writes }), clk
}

// A decision that releases 72 jobs of 150 pods has them start over time, and slower while the API server is busy.
func TestJobsOfOneDecisionStartOverTime(t *testing.T) {
	for name, writes := range map[string]int{"prompt": 32, "busy": 2} {
		t.Run(name, func(t *testing.T) {
			s, clk := paceOf(&writes)
			turns := []float64{}
			for i := range 72 {
				turns = append(turns, s.take([]int64{1, 1, 4, 1, 1, 4, 1, 4}[i%8]))
			}
			last := s.take(1)
			require.Zero(t, s.wait(turns[0]), "the first starts at once")
			for _, turn := range turns {
				clk.SetTime(clk.Now().Add(s.wait(turn)))
				require.Zero(t, s.wait(turn))
			}
			clk.SetTime(clk.Now().Add(s.wait(last)))
			pods := 9.0 * (5 + 3*4)
			require.InDelta(t, pods/float64(podsPerWrite*writes), clk.Since(start).Seconds(), 0.01)
		})
	}
}

// An idle time saves nothing up: the next decision is spread, too.
func TestAnIdlePaceSavesNothingUp(t *testing.T) {
	writes := 2
	s, clk := paceOf(&writes)
	clk.SetTime(start.Add(time.Hour))
	require.Zero(t, s.wait(s.take(2*podsPerWrite)))
	require.Equal(t, time.Second, s.wait(s.take(2*podsPerWrite)).Round(time.Millisecond))
}

// A turn is as far away as the pace of now says.
func TestATurnComesSoonerOnceTheServerIsPrompt(t *testing.T) {
	writes := 1
	s, clk := paceOf(&writes)
	s.take(4 * podsPerWrite)
	turn := s.take(1)
	require.Equal(t, 4*time.Second, s.wait(turn).Round(time.Millisecond))
	clk.SetTime(start.Add(2 * time.Second))
	require.Equal(t, 2*time.Second, s.wait(turn).Round(time.Millisecond))
	writes = 8
	require.Equal(t, 250*time.Millisecond, s.wait(turn).Round(time.Millisecond))
}

// Whatever jobs there are and however slow the server is, each starts in its order and in finite time. The wait is
// bounded by the count of all jobs before it at the slowest pace.
func TestEachJobStarts(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		writes := rapid.IntRange(1, 32)
		now := writes.Draw(t, "writes")
		s, clk := paceOf(&now)
		jobs := rapid.SliceOfN(rapid.Int64Range(-1, 100_000), 1, 50).Draw(t, "pods")
		turns := make([]float64, len(jobs))
		for i, pods := range jobs {
			turns[i] = s.take(pods)
		}
		before := 0.0
		for i, turn := range turns {
			for asked := 0; s.wait(turn) > 0; asked++ {
				require.Less(t, asked, 100)
				clk.SetTime(clk.Now().Add(min(s.wait(turn), time.Second)))
				now = writes.Draw(t, "writes")
			}
			require.LessOrEqual(t, clk.Since(start).Seconds(), before/podsPerWrite+1)
			for _, earlier := range turns[:i] {
				require.Zero(t, s.wait(earlier), "in order")
			}
			before += float64(min(max(jobs[i], 1), mostPods))
		}
	})
}

func TestNoPaceHasEveryJobStartAtOnce(t *testing.T) {
	var p *Pace
	require.NoError(t, p.May(&Turn{}, nil))
}

// A job keeps its turn for one admission, and takes another for the next.
func TestAJobKeepsItsTurn(t *testing.T) {
	writes := 1
	p, clk := paceOf(&writes)
	unit := func(attempt int64, replicas int64) *v1alpha1.QueueUnit {
		return &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{UID: "u"}, Status: v1alpha1.QueueUnitStatus{
			Attempts: attempt, Admissions: []v1alpha1.Admission{{Replicas: replicas}, {Replicas: 1}},
		}}
	}
	var first, second Turn
	require.NoError(t, p.May(&first, unit(1, 2*podsPerWrite-1)))
	for range 3 {
		err := p.May(&second, unit(1, 1))
		require.EqualError(t, err, "the turn of the job is expected in 2.000000001s")
		again, later := AskAgain(fmt.Errorf("wrapped: %w", err))
		require.True(t, later)
		require.Equal(t, 500*time.Millisecond, again.Round(time.Millisecond))
	}
	clk.SetTime(start.Add(2 * time.Second))
	require.NoError(t, p.May(&second, unit(1, 1)))
	require.Error(t, p.May(&second, unit(2, 1)))
	clk.SetTime(start.Add(time.Minute))
	require.NoError(t, p.May(&first, nil), "a job without a unit")
	_, later := AskAgain(errors.New("another"))
	require.False(t, later)
}
