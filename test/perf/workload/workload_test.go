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

package workload

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const small = `
name: small
groups: 1
queuesPerGroup: 2
quota: {min: 2, max: 4, groupMax: 5}
classes:
- {name: low, count: 2, intervalMs: 100, runtimeMs: 1000, priority: 1, cpu: 2}
- {name: high, count: 1, intervalMs: 50, runtimeMs: 500, priority: 2, cpu: 500m}
`

func parse(t *testing.T, text string) *Workload {
	t.Helper()
	w, err := Parse([]byte(text))
	require.NoError(t, err)
	return w
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"name", "name: small", "name: Small Run", "name: Invalid value"},
		{"unknown field", "groups: 1", "groups: 1\nqueues: 3", `unknown field "queues"`},
		{"no groups", "groups: 1", "groups: 0", "groups: Invalid value: 0: must be from 1"},
		{"no queues", "queuesPerGroup: 2", "queuesPerGroup: -1", "queuesPerGroup: Invalid value: -1"},
		{"amount", "min: 2", "min: many", "quantities must match"},
		{"negative min", "min: 2", "min: -2", `quota.min: Invalid value: "-2": must not be negative`},
		{"min above max", "min: 2", "min: 6", `quota.min: Invalid value: "6": must not be above max 4`},
		{"sum of min", "groupMax: 5", "groupMax: 3", "quota.min: Invalid value: \"2\": 2 of it are more than groupMax 3"},
		{"no max", "max: 4, ", "", `quota.max: Invalid value: "0": must be positive`},
		{"no classes", small[strings.Index(small, "classes:"):], "", "classes: Required value"},
		{"same class twice", "name: high", "name: low", `classes[1].name: Duplicate value: "low"`},
		{"class without a name", "name: high, ", "", "classes[1].name: Invalid value"},
		{"count", "count: 2", "count: 0", "classes[0].count: Invalid value: 0"},
		{"interval", "intervalMs: 50", "intervalMs: -50", "classes[1].intervalMs: Invalid value: -50"},
		{"run time", "runtimeMs: 500", "runtimeMs: -1", "classes[1].runtimeMs: Invalid value: -1"},
		{"cpu", "cpu: 500m", "cpu: 0", `classes[1].cpu: Invalid value: "0": must be positive`},
		{"too large", "cpu: 2", "cpu: 4500m",
			`classes[0].cpu: Invalid value: "4500m": can never be admitted: quota.max is 4`},
		{"priority", "priority: 2", "priority: 3000000000", "priority"},
		{"policy", "groups: 1", "groups: 1\nqueuePolicy: Fast",
			`queuePolicy: Unsupported value: "Fast": supported values: "Priority"`},
		{"no YAML", "groups: 1", "groups: [", "yaml"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Contains(t, small, c.old)
			_, err := Parse([]byte(strings.Replace(small, c.old, c.new, 1)))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// shipped is where the files are.
const shipped = "../../cmd/perf"

func TestShippedFiles(t *testing.T) {
	for name, want := range map[string]struct{ units, queues int }{
		"baseline": {15_000, 30}, "large-scale": {50_000, 1000},
	} {
		w, err := Load(filepath.Join(shipped, name+".yaml"))
		require.NoError(t, err)
		require.Equal(t, name, w.Name)
		require.Equal(t, want.queues, w.Queues())
		units := w.Units()
		require.Len(t, units, want.units)
		require.Equal(t, int64(want.units), w.count())
	}
}

func TestUnits(t *testing.T) {
	const ms = time.Millisecond
	w := parse(t, small)
	require.Equal(t, []Unit{
		{Class: 0, Queue: 0}, {Class: 0, Queue: 1}, {Class: 1, Queue: 0}, {Class: 1, Queue: 1},
		{Class: 0, Queue: 0, Index: 1, At: 100 * ms}, {Class: 0, Queue: 1, Index: 1, At: 100 * ms},
	}, w.Units())
}

func TestGreedy(t *testing.T) {
	const ms = time.Millisecond
	// At 0 the two of high priority take 1 of 5 and two of low priority the rest. The other two wait until 1000.
	got := Greedy(parse(t, small))
	require.Equal(t, Schedule{Makespan: 2000 * ms, Waits: [][]time.Duration{{0, 0, 900 * ms, 900 * ms}, {0, 0}}}, got)

	// With less in the group the second of low priority waits until the first ends; a leaf alone may use 4.
	got = Greedy(parse(t, strings.Replace(small, "groupMax: 5", "groupMax: 4", 1)))
	require.Equal(t, [][]time.Duration{{0, 500 * ms, 900 * ms, 1400 * ms}, {0, 0}}, got.Waits)

	// A group does not lend to another.
	got = Greedy(parse(t, strings.Replace(small, "groups: 1", "groups: 3", 1)))
	require.Equal(t, 2000*ms, got.Makespan)
	require.Len(t, got.Waits[0], 12)
}

// TestGreedyOfTheBaseline: what the limits of the baseline leave is known from outside: 0.2, 11.4 and 44.7 seconds on
// average, and 66 seconds of work.
func TestGreedyOfTheBaseline(t *testing.T) {
	w, err := Load(filepath.Join(shipped, "baseline.yaml"))
	require.NoError(t, err)
	require.InDelta(t, 66, w.Work(w.Units())/float64(w.Capacity()), 0.001)
	got := Greedy(w)
	require.InDelta(t, 66, got.Makespan.Seconds(), 2)
	for class, want := range []float64{44.7, 11.4, 0.2} {
		require.InDelta(t, want, Summarize(got.Waits[class]).Mean/1000, 1, w.Classes[class].Name)
	}
}

func TestSummarize(t *testing.T) {
	require.Equal(t, Times{}, Summarize(nil))
	require.Equal(t, Times{Mean: 3, P50: 3, P90: 3, P95: 3, P99: 3, Max: 3},
		Summarize([]time.Duration{3 * time.Millisecond}))
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	require.Equal(t, Times{Mean: 100.5, P50: 100, P90: 180, P95: 190, P99: 198, Max: 200}, Summarize(all))
}
