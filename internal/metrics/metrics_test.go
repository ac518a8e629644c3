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

package metrics

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/metrics"
)

func TestTableIsSound(t *testing.T) {
	type key struct {
		process Process
		name    Name
	}
	seen := map[key]bool{}
	name := regexp.MustCompile(`^[a-z][a-z_]*[a-z]$`)
	for _, r := range table {
		require.Regexp(t, name, string(r.name))
		require.False(t, seen[key{r.process, r.name}], "%s appears twice", r.name)
		seen[key{r.process, r.name}] = true
		require.NotEmpty(t, r.help)
		require.Equal(t, r.kind == counter, strings.HasSuffix(string(r.name), "_total"), "%s", r.name)
		require.Equal(t, r.kind == histogram && r.library == "", r.buckets != nil, "%s", r.name)
	}
}

// A job that waits for a week is in a bucket of its own.
func TestWaitsOfAWeekAreCounted(t *testing.T) {
	require.Greater(t, waitBuckets[len(waitBuckets)-1], (7 * 24 * time.Hour).Seconds())
}

func TestEveryMetricIsServed(t *testing.T) {
	for _, process := range []Process{Scheduler, Controller} {
		s := New(process)
		registry := metrics.NewKubeRegistry()
		s.MustRegister(registry.MustRegister)
		var want, served []string
		for d := range s.definitions() {
			want = append(want, string(d.name))
			labels := make([]string, len(d.labels))
			switch d.kind {
			case counter:
				s.Inc(d.name, labels...)
			case gauge:
				s.Set(d.name, 1, labels...)
			case histogram:
				s.Observe(d.name, 1, labels...)
			}
		}
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			served = append(served, f.GetName())
		}
		require.NotEmpty(t, want)
		require.ElementsMatch(t, want, served, process)
	}
}

func TestForgetTakesALabelSetAway(t *testing.T) {
	s := New(Scheduler)
	registry := metrics.NewKubeRegistry()
	s.MustRegister(registry.MustRegister)
	s.Set(PendingUnits, 1, "q", "a")
	s.Set(PendingUnits, 2, "q", "b")
	s.Forget(PendingUnits, "q", "a")
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Len(t, families[0].GetMetric(), 1)
}

// Counters and histograms of a queue that is gone go with it, whatever their other labels are.
func TestForgetCountedTakesAllOfALabelAway(t *testing.T) {
	s := New(Scheduler)
	s.ForgetCounted("queue", "before it is registered")
	registry := metrics.NewKubeRegistry()
	s.MustRegister(registry.MustRegister)
	for _, queue := range []string{"gone", "stays"} {
		s.Inc(AdmissionsTotal, queue, "gone")
		s.Inc(EvictedUnitsTotal, queue, "Reclaimed")
		s.Inc(EvictedUnitsTotal, queue, "Inactive")
		s.Observe(AdmissionWaitSeconds, 1, queue, "team")
	}
	s.Inc(ResyncsTotal)
	s.ForgetCounted("queue", "gone")
	families, err := registry.Gather()
	require.NoError(t, err)
	left := map[string]int{}
	for _, f := range families {
		left[f.GetName()] = len(f.GetMetric())
	}
	require.Equal(t, map[string]int{string(AdmissionsTotal): 1, string(EvictedUnitsTotal): 2,
		string(AdmissionWaitSeconds): 1, string(ResyncsTotal): 1}, left)
	require.NotPanics(t, func() { (*Set)(nil).ForgetCounted("queue", "gone") })
}

// A time between what two clocks say may be negative, and the sum of a histogram must not fall.
func TestNoHistogramTakesATimeThatIsNegative(t *testing.T) {
	s := New(Scheduler)
	registry := metrics.NewKubeRegistry()
	s.MustRegister(registry.MustRegister)
	s.Observe(AdmissionWaitSeconds, 2, "q", "team")
	s.Observe(AdmissionWaitSeconds, -5, "q", "team")
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	of := families[0].GetMetric()[0].GetHistogram()
	require.InDelta(t, 2, of.GetSampleSum(), 0)
	require.EqualValues(t, 2, of.GetSampleCount())
}

func TestNilSetCountsNothing(t *testing.T) {
	var s *Set
	s.Inc(ResyncsTotal)
	s.Set(ConfigDiffers, 1)
	s.Observe(CycleDurationSeconds, 1)
	s.Forget(PendingUnits, "q", "a")
}
