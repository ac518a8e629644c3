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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/patch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Holding quota is not releasing: pods of a reserved unit, whose checks or placement are not confirmed yet, stay in the
// gate.
func TestOnlyAReleasingPhaseOpensTheGate(t *testing.T) {
	for phase, want := range map[unit.Phase]struct{ holds, releases bool }{
		unit.PhaseReserved:     {true, false},
		unit.PhaseSchedReady:   {true, false},
		unit.PhaseSchedSucceed: {true, true},
		unit.PhaseDequeued:     {true, true},
		unit.PhaseRunning:      {true, true},
		"Levitating":           {true, false},
		unit.PhaseEnqueued:     {false, false},
	} {
		t.Run(string(phase), func(t *testing.T) {
			r := newRig(t, quotasOf(10, testQuota)).queue(testQuota).job("a", "job-a")
			status := map[string]any{"phase": string(phase), "attempts": int64(1)}
			if want.holds {
				status["admissions"] = []any{map[string]any{
					"name": "main", "replicas": int64(1), "resources": map[string]any{"cpu": "4"},
				}}
			}
			key := r.unit("a", 40, withConsumer("job-a"), withStatus(status))
			r.lead()

			requireGate := func(when string) {
				t.Helper()
				_, qu := r.engine.Snapshot().AdmittedUnit(key)
				require.Equal(t, want.releases, qu, when)
				require.Equal(t, want.releases, r.engine.Snapshot().AdmittedConsumer("job-a"), when)
			}
			requireGate("as it was found")
			require.Equal(t, want.holds, !r.engine.core.Read().Holdings().Read(testQuota).Outstanding().IsZero())

			// While the state waits for its rebuild, nothing is admitted and admitted units stay.
			r.engine.core.Built = r.clock.Now()
			r.engine.core.Discard(recovery.Difference)
			r.engine.facts.touch(r.clock.Now(), key, r.engine.units.Get(key))
			r.engine.publisher.Publish(r.engine.loaded, r.engine.pods)
			requireGate("while the state is not to be trusted")
		})
	}
}

// Pods that passed the gate do not pass it again after their unit is set back to a phase that only holds.
func TestAUnitThatIsSetBackToReservedClosesTheGate(t *testing.T) {
	for name, rebuild := range map[string]bool{"trusted": false, "to be built anew": true} {
		t.Run(name, func(t *testing.T) {
			r := ready(t, 10).job("a", "job-a")
			key := r.unit("a", 4, withConsumer("job-a"))
			r.step()
			r.send()
			require.True(t, r.engine.Snapshot().AdmittedConsumer("job-a"))

			if rebuild {
				r.engine.core.Built = r.clock.Now()
				r.engine.core.Discard(recovery.Difference)
			}
			r.api.setStatus(key, map[string]any{"phase": string(unit.PhaseReserved)})
			r.feed(key).step()
			require.False(t, r.engine.Snapshot().AdmittedConsumer("job-a"))
			if !rebuild {
				require.False(t, r.engine.core.Read().Holdings().Read(testQuota).Outstanding().IsZero(), "it still holds")
			}
		})
	}
}

// Every phase that is written passes the one table, whatever the core decided.
func TestAPhaseThatMayNotBeWrittenIsNotSent(t *testing.T) {
	holds := map[string]any{"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
		map[string]any{"name": "main", "replicas": int64(1), "resources": map[string]any{"cpu": "4"}},
	}}
	for name, c := range map[string]struct {
		given map[string]any // events that the core gets
		is    unit.Phase
		kind  statuswrite.Kind
	}{
		"an admission of what is admitted":    {map[string]any{"phase": "Enqueued"}, unit.PhaseRunning, statuswrite.Admit},
		"an admission of what is over":        {map[string]any{"phase": "Enqueued"}, unit.PhaseSucceed, statuswrite.Admit},
		"an admission of what nobody knows":   {map[string]any{"phase": "Enqueued"}, "Levitating", statuswrite.Admit},
		"taking back what is over":            {holds, unit.PhaseFailed, statuswrite.Evict},
		"taking back what holds nothing":      {holds, unit.PhaseSchedFailed, statuswrite.Evict},
		"taking back what waits in its queue": {holds, unit.PhaseEnqueued, statuswrite.Evict},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, quotasOf(10, testQuota)).queue(testQuota).job("a", "job-a")
			registry := r.registry()
			key := r.unit("a", 4, withConsumer("job-a"), withStatus(c.given), func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, c.kind == statuswrite.Admit, "spec", "active")
			})
			r.step()
			r.engine.units.Get(key).Object.Phase = c.is
			r.lead()

			require.Empty(t, r.decisions())
			require.Nil(t, r.engine.units.Get(key).Flight)
			require.False(t, r.engine.core.Read().InFlight(key), "the core was told")
			require.Equal(t, map[string]float64{string(c.kind): 1}, gathered(t, registry, "refused_transitions_total"))
			r.sound()

			r.step()
			require.Empty(t, r.decisions(), "it is not tried again at once")
		})
	}
}

// The phase that ends a back-off costs no write of its own: it goes with the reason that is written next.
func TestABackoffEndsWithTheNextReason(t *testing.T) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	u := &objects.Unit{Phase: unit.PhaseTimeoutBackoff, History: &objects.History{}}
	u.RequeueAt = epoch.Add(time.Minute)
	said := &transition.Explain{Unit: &unit.Unit{}, Saying: unit.Saying{Reason: unit.ReasonQuotaExceeded, Message: "no"}}
	at := func(now time.Time) patch.Status { return patch.Reason(said, &patch.Subject{Object: u}, now) }
	require.NotContains(t, at(epoch.Add(time.Minute-1)), "phase")
	require.Equal(t, "Enqueued", at(epoch.Add(time.Minute))["phase"])
	require.True(t, u.Phase.CanBecome(unit.PhaseEnqueued, unit.WriterScheduler))
	u.Phase = unit.PhaseDequeued
	require.NotContains(t, at(epoch.Add(time.Minute)), "phase")
}
