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

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/turns"
)

// Another job of 32 pods was resumed just now, on an API server that takes 16 pods in a second. The job is resumed in
// its turn, and keeps it however often it is reconciled.
func TestAJobIsResumedInItsTurn(t *testing.T) {
	w := newWorld(t, newJob())
	other := &v1alpha1.QueueUnit{Status: v1alpha1.QueueUnitStatus{Admissions: []v1alpha1.Admission{{Replicas: 32}}}}
	pace := turns.New(w.clock, func() int { return 1 })
	w.r.Shared.Turns = pace
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle(), "units are created at once")
	w.admit()
	require.NoError(t, pace.May(&turns.Turn{}, other))
	for passed := time.Duration(0); passed < 2*time.Second; passed += 100 * time.Millisecond {
		w.clock.SetTime(epoch.Add(passed))
		again := w.reconcile().RequeueAfter
		require.Positive(t, again)
		require.LessOrEqual(t, again, max(2*time.Second-passed, 20*time.Millisecond), "it is asked again in time")
		require.True(t, *w.job().Spec.Suspend)
	}
	w.clock.SetTime(epoch.Add(2001 * time.Millisecond))
	require.Equal(t, []string{"patch Job/j"}, w.settle())
	require.False(t, *w.job().Spec.Suspend)

	// The next attempt takes a turn of its own. To be suspended needs none.
	require.Error(t, pace.May(&turns.Turn{}, other))
	w.evict()
	require.Contains(t, w.settle(), "patch Job/j")
	require.True(t, *w.job().Spec.Suspend)
}
