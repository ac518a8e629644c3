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

package event

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// waitingFor is a unit that says that it waits for this reason.
// epoch of the tests.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func waitingFor(reason string) *v1alpha1.QueueUnit {
	return withReason(v1alpha1.PhaseEnqueued, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, reason)
}

func withReason(
	phase v1alpha1.QueueUnitPhase, condition string, status metav1.ConditionStatus, reason string,
) *v1alpha1.QueueUnit {
	at := metav1.NewTime(epoch.Add(time.Hour))
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j"}}
	u.Status.Phase, u.Status.LastUpdateTime = phase, &at
	u.Status.Conditions = []metav1.Condition{{Type: condition, Status: status, Reason: reason, Message: "words"}}
	return u
}

func TestWhatAJobWaitsForInWords(t *testing.T) {
	const more = "; for more: kubectl describe queueunit -n team j"
	for name, c := range map[string]struct {
		unit *v1alpha1.QueueUnit
		want *Event
	}{
		"no unit":       {nil, nil},
		"ordinary wait": {waitingFor("QuotaExceeded"), Normal("Pending", "Queue", "QuotaExceeded: words"+more)},
		"error":         {waitingFor("UnknownQueue"), Warning("Pending", "Queue", "UnknownQueue: words"+more)},
		"adopting":      {waitingFor("Adopting"), nil},
		"growth": {
			withReason(v1alpha1.PhaseRunning, v1alpha1.ConditionResizePending, metav1.ConditionTrue, "QuotaExceeded"),
			Normal("ResizePending", "Queue", "QuotaExceeded: words"+more),
		},
		"pods charged elsewhere": {
			withReason(v1alpha1.PhaseRunning, v1alpha1.ConditionResizePending, metav1.ConditionTrue, "PodsChargedElsewhere"),
			Warning("ResizePending", "Queue", "PodsChargedElsewhere: words"+more),
		},
		"grown": {
			withReason(v1alpha1.PhaseRunning, v1alpha1.ConditionResizePending, metav1.ConditionFalse, "Resized"), nil,
		},
		"admitted": {
			withReason(v1alpha1.PhaseDequeued, v1alpha1.ConditionQuotaReserved, metav1.ConditionTrue, "QuotaReserved"), nil,
		},
		"over": {
			withReason(v1alpha1.PhaseFailed, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, "QuotaExceeded"), nil,
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, waitEvent(c.unit)) })
	}
	long := waitingFor("Long")
	long.Status.Conditions[0].Message = string(make([]byte, 5000))
	require.Less(t, len(waitEvent(long).Note), 1024, "the API server refuses longer ones")
}

// A job hears each reason once, and something new once in a minute at most.
func TestAJobHearsOfEachReasonOnce(t *testing.T) {
	said, now := Said{}, epoch.Add(2*time.Hour)
	hears := func(u *v1alpha1.QueueUnit) (bool, time.Duration) {
		e, again := said.Waits(u, BegunAt(epoch), nil, now)
		return e != nil, again
	}
	told, again := hears(waitingFor("QuotaExceeded"))
	require.True(t, told)
	require.Zero(t, again)
	told, again = hears(waitingFor("QuotaExceeded"))
	require.False(t, told)
	require.Zero(t, again)

	now = now.Add(10 * time.Second)
	told, again = hears(waitingFor("QueueHeld"))
	require.False(t, told)
	require.Equal(t, 50*time.Second, again)
	now = now.Add(again)
	told, _ = hears(waitingFor("QueueHeld"))
	require.True(t, told)

	now = now.Add(time.Second)
	told, again = hears(withReason(v1alpha1.PhaseDequeued, v1alpha1.ConditionAdmitted, metav1.ConditionTrue, "Admitted"))
	require.False(t, told)
	require.Zero(t, again)
	_, again = hears(waitingFor("QueueHeld"))
	require.Equal(t, 59*time.Second, again, "it waits anew, and is told so in its time")

	other := Said{}
	e, _ := other.Waits(waitingFor("QueueHeld"), BegunAt(now.Add(time.Second)), nil, now.Add(time.Second))
	require.Nil(t, e, "an earlier process told it")
}

// All jobs together have a pace, in the order in which they ask.
func TestJobsAreToldAtAPace(t *testing.T) {
	said, slots, now := [50]Said{}, NewSlots(10), epoch.Add(2*time.Hour)
	begun, order := now, []int{}
	due := map[int]time.Time{}
	for i := range 50 {
		due[i] = now
	}
	for len(due) > 0 {
		for i := range 50 {
			at, some := due[i]
			if !some || now.Before(at) {
				continue
			}
			e, again := said[i].Waits(waitingFor("QuotaExceeded"), BegunAt(epoch), slots, now)
			if e != nil {
				require.Equal(t, corev1.EventTypeNormal, e.Type)
				order = append(order, i)
				delete(due, i)
				continue
			}
			require.Positive(t, again)
			due[i] = now.Add(again)
		}
		now = now.Add(100 * time.Millisecond)
	}
	require.Equal(t, 5*time.Second, now.Sub(begun))
	for i := range order {
		require.Equal(t, i, order[i])
	}
}
