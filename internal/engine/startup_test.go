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
	kubemetrics "k8s.io/component-base/metrics"
)

// A standby has read everything long before it leads; each stage is told once.
func TestTheStagesOfAStartAreTimed(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	stages := func() map[string]float64 { return gathered(t, registry, "startup_seconds") }
	r.queue(testQuota)
	first, second := r.unit("first", 4), r.unit("second", 4)
	r.clock.Step(2 * time.Second)
	r.engine.box.Call(r.engine.load)
	r.step()
	require.Equal(t, map[string]float64{"Synced": 2}, stages())

	told := r.clock.Now().Add(time.Minute)
	r.clock.SetTime(told.Add(3 * time.Second))
	r.engine.box.Call(func() { r.engine.takeLead(nil, told) })
	r.step()
	require.Equal(t, map[string]float64{"Synced": 2, "Leading": 62, "Deciding": 65}, stages())

	r.clock.Step(time.Second)
	r.send()
	require.Equal(t, "Dequeued", r.phase(first))
	all := map[string]float64{"Synced": 2, "Leading": 62, "Deciding": 65, "Admitted": 66}
	require.Equal(t, all, stages())

	r.api.setStatus(first, map[string]any{"phase": "Succeed"})
	r.feed(first).advance(time.Minute)
	r.send()
	require.Equal(t, "Dequeued", r.phase(second))
	require.Equal(t, all, stages())
}

// A replica that has nothing to admit when it starts has no such stage: what it admits an hour later did not wait for
// it.
func TestAnAdmissionLongAfterTheStartIsNoneOfIt(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	r.queue(testQuota).lead()
	r.advance(time.Hour)
	key := r.unit("late", 4)
	r.step()
	r.send()
	require.Equal(t, "Dequeued", r.phase(key))
	require.NotContains(t, gathered(t, registry, "startup_seconds"), "Admitted")
}
