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

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// summary is the result of both rounds; the last line of the output.
type summary struct {
	Seed    uint64  `json:"seed"`
	Seconds float64 `json:"seconds"` // of generation, in each of the two rounds
	// Objects that the hostile tenant made, managed; Requests has all that it asked for by kind.
	Objects  int              `json:"objects"`
	Requests map[string]count `json:"requests"`
	// Violations of both rounds, which Found has in words.
	Violations         int                 `json:"violations"`
	Found              []checker.Violation `json:"found,omitempty"`
	ProcessesRestarted int                 `json:"processesRestarted"`
	PeakRSSBytes       map[string]int64    `json:"peakRSSBytes"`
	UnmanagedRSSBytes  map[string]int64    `json:"unmanagedPeakRSSBytes"`
	// VictimThroughputRatio is the victim's jobs per minute with the managed objects, divided by those with the same
	// objects unmanaged.
	VictimThroughputRatio float64            `json:"victimThroughputRatio"`
	VictimJobsPerMinute   map[string]float64 `json:"victimJobsPerMinute"`
	// VictimLongestGap is the longest time in seconds without a finished job of the victim, in the round with managed
	// objects.
	VictimLongestGap float64 `json:"victimLongestGapSeconds"`
	VictimJobs       int     `json:"victimJobs"`
	States           int     `json:"states"` // of the store that were checked
	// Evictions by round, and by whose units lost what they held, and why.
	Evictions map[string]map[string]int `json:"evictions"`
	// ByAlias is in how many states a job held quota that only an alias has queued.
	ByAlias int `json:"heldByAlias"`
}

func summarize(o options, unmanaged, managed *result) *summary {
	s := &summary{
		Seed: o.seed, Seconds: o.duration.Seconds(), Objects: objects(managed.requests), Requests: managed.requests,
		Found:              slices.Concat(managed.violations, unmanaged.violations),
		ProcessesRestarted: managed.restarts + unmanaged.restarts,
		PeakRSSBytes:       managed.peak, UnmanagedRSSBytes: unmanaged.peak,
		VictimThroughputRatio: ratio(managed.perMinute, unmanaged.perMinute),
		VictimJobsPerMinute: map[string]float64{
			"managed": rounded(managed.perMinute), "unmanaged": rounded(unmanaged.perMinute)},
		VictimLongestGap: rounded(managed.gap.Seconds()),
		VictimJobs:       managed.victimJobs + unmanaged.victimJobs, States: managed.states + unmanaged.states,
		Evictions: map[string]map[string]int{"managed": managed.evictions, "unmanaged": unmanaged.evictions},
		ByAlias:   managed.byAlias,
	}
	s.Violations = len(s.Found)
	return s
}

// ratio of two rates; without any rate to compare with there is none.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return rounded(a / b)
}

func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

// failures says in words why the run failed; none if it did not.
func (s *summary) failures(minRatio float64) (all []string) {
	if s.Objects == 0 {
		all = append(all, "the hostile tenant made nothing")
	}
	if s.Violations > 0 {
		all = append(all, fmt.Sprintf("%d violations", s.Violations))
	}
	if n := s.Requests[namespaceKind].Changed; n > 0 {
		all = append(all, fmt.Sprintf("the hostile tenant changed the bound of its priorities %d times", n))
	}
	if s.Evictions["managed"][takenOfHostile] == 0 {
		all = append(all, "nothing was taken: the attack on preemption did not happen")
	}
	if s.Evictions["unmanaged"][takenOfHonest] == 0 {
		all = append(all, "nothing was taken where nothing manages the hostile objects: the rounds cannot be compared")
	}
	if s.ByAlias == 0 {
		all = append(all, "no job was admitted by an alias: there is no attack by that way")
	}
	if s.ProcessesRestarted > 0 {
		all = append(all, fmt.Sprintf("%d processes ended", s.ProcessesRestarted))
	}
	if s.VictimThroughputRatio < minRatio {
		all = append(all, fmt.Sprintf("the victim got %.3f of what it gets otherwise, %.3f are asked for",
			s.VictimThroughputRatio, minRatio))
	}
	return all
}

// print writes the summary for a person.
func (s *summary) print(w io.Writer, minRatio float64) {
	fmt.Fprintf(w, "\nSeed %d, %.0f seconds: %d hostile objects\n", s.Seed, s.Seconds, s.Objects)
	for _, kind := range slices.Sorted(maps.Keys(s.Requests)) {
		c := s.Requests[kind]
		fmt.Fprintf(w, "  %-14s %5d made, %5d changed, %5d refused\n", kind, c.Made, c.Changed, c.Refused)
	}
	fmt.Fprintf(w, "Victim: %.1f jobs a minute beside them, %.1f where nothing manages them: %.3f\n",
		s.VictimJobsPerMinute["managed"], s.VictimJobsPerMinute["unmanaged"], s.VictimThroughputRatio)
	for _, round := range []string{"managed", "unmanaged"} {
		for _, what := range slices.Sorted(maps.Keys(s.Evictions[round])) {
			fmt.Fprintf(w, "Evicted, %9s: %5d %s\n", round, s.Evictions[round][what], what)
		}
	}
	fmt.Fprintf(w, "Peaks of memory: scheduler %d MiB (%d), controller %d MiB (%d); processes that ended: %d\n",
		s.PeakRSSBytes["scheduler"]>>20, s.UnmanagedRSSBytes["scheduler"]>>20,
		s.PeakRSSBytes["controller"]>>20, s.UnmanagedRSSBytes["controller"]>>20, s.ProcessesRestarted)
	fmt.Fprintf(w, "Checked: %d states in the order of the store, %d jobs of the victim\n", s.States, s.VictimJobs)
	for _, v := range s.Found {
		fmt.Fprintln(w, "Violation:", v)
	}
	for _, failure := range s.failures(minRatio) {
		fmt.Fprintln(w, "Failed:", failure)
	}
}
