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

package replay

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// tiny draws a workload with times of a few seconds, so that much happens at once.
func tiny(t *rapid.T) *trace.Workload {
	w := &trace.Workload{Processors: rapid.Int64Range(1, 6).Draw(t, "processors")}
	at := 0
	for range rapid.IntRange(1, effort.Steps(80)).Draw(t, "jobs") {
		at += rapid.IntRange(0, 2).Draw(t, "gap")
		j := trace.Job{
			Submit: time.Duration(at) * time.Second, Size: rapid.Int64Range(1, w.Processors).Draw(t, "size"),
			Run: time.Duration(rapid.IntRange(1, 8).Draw(t, "run")) * time.Second,
		}
		if rapid.Bool().Draw(t, "limited") {
			j.Limit = j.Run + time.Duration(rapid.IntRange(0, 8).Draw(t, "spare"))*time.Second
		}
		w.Jobs = append(w.Jobs, j)
	}
	return w
}

// slots is an oracle: it looks at each second, at each job, and recounts everything.
type slots struct {
	*trace.Workload
	exact   bool
	started []time.Duration // -1 if not yet
	now     time.Duration
}

func (s *slots) believed(job int) time.Duration {
	if j := s.Jobs[job]; !s.exact && j.Limit > 0 {
		return j.Limit
	}
	return s.Jobs[job].Run
}

// used is the use at a time if the jobs that run now run for a time that depends on the job.
func (s *slots) used(at time.Duration, run func(job int) time.Duration) (sum int64) {
	for job, start := range s.started {
		if start >= 0 && s.now < start+s.Jobs[job].Run && at < start+run(job) {
			sum += s.Jobs[job].Size
		}
	}
	return sum
}

func (s *slots) waiting(job int) bool { return s.Jobs[job].Submit <= s.now && s.started[job] < 0 }

func (s *slots) fits(job int) bool {
	return s.Jobs[job].Size <= s.Processors-s.used(s.now, func(job int) time.Duration { return s.Jobs[job].Run })
}

// couldStart is the first second at which a waiting job fits if nothing else starts.
func (s *slots) couldStart(job int) time.Duration {
	for at := s.now; ; at += time.Second {
		if s.Jobs[job].Size <= s.Processors-s.used(at, s.believed) {
			return at
		}
	}
}

// step starts what a policy starts in one second.
func (s *slots) step(name string) {
	head := -1
	for job := range s.Jobs {
		switch {
		case !s.waiting(job):
		case head < 0 && s.fits(job) || name == "greedy" && s.fits(job):
			s.started[job] = s.now
		case head < 0:
			head = job
		case name == "fcfs" || !s.fits(job):
		default: // the first job must not start later
			before := s.couldStart(head)
			s.started[job] = s.now
			if s.couldStart(head) > before {
				s.started[job] = -1
			}
		}
	}
}

func oracle(name string, w *trace.Workload) []time.Duration {
	s := &slots{Workload: w, exact: name == "easy-exact", started: slices.Repeat([]time.Duration{-1}, len(w.Jobs))}
	for ; slices.Contains(s.started, -1); s.now += time.Second {
		s.step(name)
	}
	return s.started
}

// starts of all jobs. The holds must be one for each job, in order.
func starts(t require.TestingT, p Policy, w *trace.Workload) []time.Duration {
	said := 0
	holds, err := p.Replay(w, func(jobs int) error {
		require.GreaterOrEqual(t, jobs, said)
		said = jobs
		return nil
	})
	require.NoError(t, err)
	require.Len(t, holds, len(w.Jobs))
	require.Equal(t, len(w.Jobs), said)
	all := slices.Repeat([]time.Duration{-1}, len(w.Jobs))
	last := time.Duration(0)
	for _, h := range holds {
		require.EqualValues(t, -1, all[h.Job])
		require.GreaterOrEqual(t, h.Start, last)
		j := w.Jobs[h.Job]
		require.Equal(t, Hold{Job: h.Job, Start: h.Start, End: h.Start + j.Run, Size: j.Size}, h)
		all[h.Job], last = h.Start, h.Start
	}
	return all
}

func TestReferencesDoWhatTheOracleDoes(t *testing.T) {
	for _, p := range References() {
		t.Run(p.Name, func(t *testing.T) {
			effort.Check(t, func(t *rapid.T) {
				w := tiny(t)
				require.Equal(t, oracle(p.Name, w), starts(t, p, w))
			})
		})
	}
}

// The machine has four processors. The first job uses three until 10 s, and its limit is 20 s.
func TestBackfilling(t *testing.T) {
	second := time.Second
	w := &trace.Workload{Processors: 4, Jobs: []trace.Job{
		{Run: 10 * second, Limit: 20 * second, Size: 3},
		{Submit: second, Run: 5 * second, Limit: 5 * second, Size: 3},       // waits for the first
		{Submit: 2 * second, Run: 15 * second, Limit: 18 * second, Size: 1}, // ends as the second may start
		{Submit: 2 * second, Run: 30 * second, Limit: 30 * second, Size: 1}, // fits next to the second
	}}
	for name, want := range map[string][]time.Duration{
		"fcfs":       {0, 10 * second, 10 * second, 15 * second},
		"easy":       {0, 10 * second, 2 * second, 15 * second},
		"easy-exact": {0, 10 * second, 2 * second, 15 * second},
		"greedy":     {0, 10 * second, 2 * second, 15 * second},
	} {
		for _, p := range References() {
			if p.Name == name {
				require.Equal(t, want, starts(t, p, w), name)
			}
		}
	}
}

func quietly(int) error { return nil }

func TestAReplayCanBeStopped(t *testing.T) {
	w, err := trace.Lublin(100, 4, 1)
	require.NoError(t, err)
	for _, p := range References() {
		_, err := p.Replay(w, func(int) error { return io.ErrClosedPipe })
		require.ErrorIs(t, err, io.ErrClosedPipe)
	}
}

func TestAScheduleThatNeverEnds(t *testing.T) {
	w := &trace.Workload{Processors: 1}
	for range 4 {
		w.Jobs = append(w.Jobs, trace.Job{Run: 90 * 365 * 24 * time.Hour, Size: 1})
	}
	for _, p := range References() {
		_, err := p.Replay(w, quietly)
		require.ErrorContains(t, err, p.Name+": the last jobs end after more than 250 years")
	}
}

func BenchmarkReferences(b *testing.B) {
	w, err := trace.Lublin(30_000, 128, 1)
	require.NoError(b, err)
	for _, p := range References() {
		b.Run(p.Name, func(b *testing.B) {
			for b.Loop() {
				_, err := p.Replay(w, quietly)
				require.NoError(b, err)
			}
		})
	}
}
