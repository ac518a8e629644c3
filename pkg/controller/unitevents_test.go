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
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestAUnitByHandIsToldWhatAJobWouldBe(t *testing.T) {
	u := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "u-1"}}
	w := newWorld(t, u)
	r := &unitEvents{
		units: UnitReader{Reader: w.base, Live: w.base}, recorder: w.events, clock: w.clock, told: newTold(w.clock.Now()),
	}
	look := func() {
		_, err := r.Reconcile(context.Background(), request("team", "j"))
		require.NoError(t, err)
	}
	look()
	require.Empty(t, w.told(), "nobody has judged it yet")

	now := metav1.NewTime(w.clock.Now())
	u = w.unit()
	u.Status.Phase, u.Status.LastUpdateTime = v1alpha1.PhaseEnqueued, &now
	setCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionFalse, "QuotaExceeded", "cpu is short", now)
	w.updateStatus(u)
	look()
	look()
	require.Equal(t, []string{"Pending"}, w.told(), "once")

	for attempt := range int64(2) {
		u = w.unit()
		u.Status.Phase, u.Status.Attempts = v1alpha1.PhaseDequeued, attempt+1
		w.updateStatus(u)
		look()
		look()
		require.Equal(t, []string{"Admitted"}, w.told(), "once for each admission")
	}
}
