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

package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Only decisions wait: events are applied, published, activated and observed in the step that they cause.
func TestOnlyDecisionsWait(t *testing.T) {
	r := newRig(t, quotasOf(20, testQuota))
	r.drive.DecisionsTake(func() time.Duration { return 2 * time.Millisecond })
	r.job("a", "job-a").queue(testQuota)
	a := r.unit("a", 4, withConsumer("job-a"))
	r.drive.FeedPod(podFor("a-0", "job-a", "1"), false, false)
	r.lead()
	require.Equal(t, []string{"a"}, keysOf(r.decisions()), "an idle engine decides at once")
	r.unit("b", 4)
	r.activated = nil
	observed := r.quotas.observed
	r.engine.Sink().QuotaChanged(testQuota)
	r.send()
	require.Empty(t, r.decisions(), "the next decision waits")
	require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"), "nothing else does")
	_, ok := r.engine.Snapshot().AdmittedUnit(a)
	require.True(t, ok)
	require.Equal(t, []string{"team/a-0"}, r.activated)
	require.Greater(t, r.quotas.observed, observed)
	require.Equal(t, testStart.Add(8*time.Millisecond), r.wake)

	r.advance(8*time.Millisecond - 1)
	require.Empty(t, r.decisions())
	require.Equal(t, testStart.Add(8*time.Millisecond), r.wake)
	r.advance(1)
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	r.sound()

	r.unit("c", 4)
	r.advance(8 * time.Millisecond)
	require.Equal(t, []string{"b", "c"}, keysOf(r.decisions()), "the pause is over, and nobody had to wait")
}

// The core admits in portions and asks to be called again at once. The engine calls after the pause, and applies events
// in between.
func TestACoreThatWantsToGoOnNeitherSpinsNorStarvesOthers(t *testing.T) {
	r := ready(t, 20)
	r.drive.DecisionsTake(func() time.Duration { return 2 * time.Millisecond })
	r.unit("a", 4)
	r.step()
	r.engine.decisions.pace.Decided(r.clock.Now(), r.clock.Now(), r.clock.Now())
	examined := r.quotas.observed
	r.step()
	require.Equal(t, testStart.Add(8*time.Millisecond), r.wake)
	require.Equal(t, examined, r.quotas.observed, "there is nothing to do")
	r.unit("b", 4)
	r.step()
	require.Contains(t, r.engine.units.Keys(), "team/b")
	require.Equal(t, testStart.Add(8*time.Millisecond), r.wake)
	r.advance(8 * time.Millisecond)
	require.Equal(t, []string{"a", "b"}, keysOf(r.decisions()))
	require.True(t, r.wake.After(r.clock.Now()))
}
