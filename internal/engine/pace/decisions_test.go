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

package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func TestAPauseIsFourTimesTheDecisionAndBounded(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	p := NewDecisions(clock.Since)
	require.True(t, p.Ready(clock.Now()), "an idle engine decides at once")
	for took, pause := range map[time.Duration]time.Duration{
		0:                       0,
		time.Millisecond:        4 * time.Millisecond,
		2500 * time.Microsecond: 10 * time.Millisecond,
		time.Second:             10 * time.Millisecond,
	} {
		begun := clock.Now()
		clock.Step(took)
		p.Decided(begun, clock.Now(), time.Time{})
		require.True(t, p.Next().IsZero(), "nobody wants a decision")
		if pause > 0 {
			clock.Step(pause - 1)
			require.False(t, p.Ready(clock.Now()), "%s after one of %s", pause-1, took)
			require.Equal(t, clock.Now().Add(1), p.Next(), "one is owed")
			clock.Step(1)
		}
		require.True(t, p.Ready(clock.Now()), "%s after one of %s", pause, took)
		require.True(t, p.Next().IsZero())
	}
}

func TestWhatTheCoreAsksForWaitsForThePause(t *testing.T) {
	clock := clocktesting.NewFakeClock(start)
	p := NewDecisions(func(time.Time) time.Duration { return time.Millisecond })
	p.Decided(clock.Now(), clock.Now(), clock.Now())
	require.Equal(t, start.Add(4*time.Millisecond), p.Next(), "at once is after the pause")
	p.Decided(clock.Now(), clock.Now(), start.Add(time.Minute))
	require.Equal(t, start.Add(time.Minute), p.Next())
	p.Failed()
	require.True(t, p.Next().IsZero())
}
