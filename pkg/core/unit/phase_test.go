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

package unit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

var allPhases = []Phase{
	PhaseNone, PhaseEnqueued, PhaseReserved, PhaseDequeued, PhaseRunning, PhaseSucceed, PhaseFailed,
	PhaseSchedReady, PhaseSchedSucceed, PhaseSchedFailed, PhaseTimeoutBackoff, PhasePreempted,
}

func TestPhasesAreAllPhases(t *testing.T) { require.ElementsMatch(t, allPhases, Phases()) }

func TestPhaseIsOneOfThree(t *testing.T) {
	for _, p := range allPhases {
		n := 0
		for _, is := range []bool{p.Waits(), p.Holds(), p.Terminal()} {
			if is {
				n++
			}
		}
		require.Equal(t, 1, n, "phase %q", p)
	}
	require.False(t, Phase("Levitating").Waits() || Phase("Levitating").Holds() || Phase("Levitating").Terminal())
}

func TestTransitions(t *testing.T) {
	seen := map[[2]Phase]bool{}
	for _, tr := range Transitions() {
		pair := [2]Phase{tr.From, tr.To}
		require.False(t, seen[pair], "%s to %s is in the table twice", tr.From, tr.To)
		seen[pair] = true
		require.Contains(t, append(allPhases, PhaseOther), tr.From)
		require.Contains(t, allPhases, tr.To)
		require.NotEmpty(t, tr.When)
		require.NotEmpty(t, tr.By)
		require.False(t, tr.From.Terminal(), "%s is the end", tr.From)
		require.NotEqual(t, tr.From, tr.To)
		for _, w := range tr.By {
			require.True(t, tr.From.CanBecome(tr.To, w))
		}
	}
}

// Every phase has an end, also one that is not known, and only the scheduler lets pods go that were not seen to run.
func TestEveryPhaseCanEnd(t *testing.T) {
	for _, p := range append(allPhases, "Levitating") {
		if p.Terminal() {
			continue
		}
		require.True(t, p.CanBecome(PhaseSucceed, WriterController), "phase %q cannot end", p)
		require.False(t, p.CanBecome(PhaseSucceed, WriterScheduler), "phase %q", p)
		if !p.Waits() {
			require.True(t, p.CanBecome(PhaseEnqueued, WriterScheduler), "what holds can be taken back: %q", p)
		}
	}
	require.False(t, Phase("Levitating").CanBecome(PhaseDequeued, WriterScheduler))
}

// The checkers and the table agree about each phase and each change.
func TestTheTableAgreesWithTheRulebook(t *testing.T) {
	for _, p := range append(allPhases, "Levitating") {
		require.Equal(t, rulebook.Waits(p), p.Waits(), "phase %q", p)
		require.Equal(t, rulebook.Holds(p), p.Holds(), "phase %q", p)
		require.Equal(t, rulebook.Releases(p), p.Releases(), "phase %q", p)
		require.Equal(t, rulebook.Over(p), p.Terminal(), "phase %q", p)
		for _, to := range append(allPhases, "Levitating") {
			for _, by := range []Writer{WriterScheduler, WriterController, "somebody"} {
				require.Equal(t, rulebook.Follows(p, to, by), p.CanBecome(to, by), "%s writes %q after %q", by, to, p)
			}
		}
	}
}

func TestTransitionsIsACopy(t *testing.T) {
	Transitions()[0].To = "spoiled"
	require.NotEqual(t, Phase("spoiled"), Transitions()[0].To)
}
