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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// badCheck cannot cope with units that are called bad.
type badCheck struct{}

func (badCheck) Key(u unit.Unit) string {
	if strings.Contains(u.Key, "bad") {
		return u.Key
	}
	return ""
}

func (badCheck) Check(u unit.Unit) (unit.Reason, string) {
	if strings.Contains(u.Key, "bad") {
		panic("a bomb in a check")
	}
	return "", ""
}

// badPolicy cannot cope with them either.
type badPolicy struct{ queue.Policy }

func (p badPolicy) Compare(a, b queue.Item) int {
	if strings.Contains(a.Key+b.Key, "bad") {
		panic("a bomb in a policy")
	}
	return p.Policy.Compare(a, b)
}

// A panic over one unit is counted and parks that unit; everything else goes on (F18).
func TestAPanicParksItsUnitAndOthersGoOn(t *testing.T) {
	first := func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["priority"] = int64(9) }
	for name, c := range map[string]struct {
		where   string
		prepare func(e *Engine)
		feed    func(r *rig)
	}{
		"check": {where: "extension", prepare: func(e *Engine) { e.core.Config.Checks = []queue.Check{badCheck{}} }},
		"policy": {where: "extension", prepare: func(e *Engine) {
			e.core.Config.Policies = map[string]queue.Factory{"Priority": func(threshold int32) queue.Policy {
				return badPolicy{queue.Builtin()["Priority"](threshold)}
			}}
		}},
		"decode": {where: "decode", feed: func(r *rig) {
			obj := r.api.get("team/bad")
			obj.SetResourceVersion("999999")
			u := unitFrom(obj)
			u.History = &objects.History{Panicked: true}
			u.Invalid = unit.ReasonInternalError
			r.engine.box.Unit(u)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, quotasOf(10, testQuota))
			registry := r.registry()
			if c.prepare != nil {
				c.prepare(r.engine)
				r.engine.core.Renew(time.Time{})
			}
			r.queue(testQuota).lead()
			bad := r.unit("bad", 1, first)
			if c.feed != nil {
				c.feed(r)
			}
			r.unit("a", 4)
			r.step()
			r.advance(time.Second)
			r.unit("b", 5)
			r.advance(time.Second)
			require.Equal(t, []string{"a", "b"}, keysOf(r.decisions()))
			reason, _, _ := r.engine.core.Read().Why(bad)
			require.Equal(t, unit.ReasonInternalError, reason)
			require.NotZero(t, gathered(t, registry, "panics_total")[c.where])
			require.Zero(t, r.audit().Found)
			r.drive.FeedUnit(r.api.get(bad), true)
			r.advance(time.Second)
			require.NotContains(t, r.engine.units.Keys(), bad)
			r.sound()
		})
	}
}

// badOrder cannot cope with a queue that such a unit is the first of.
type badOrder struct{ queue.FairOrder }

func (o badOrder) Compare(a, b queue.Rank) int {
	if strings.Contains(a.Head.Key+b.Head.Key, "bad") {
		panic("a bomb in the order of queues")
	}
	return o.FairOrder.Compare(a, b)
}

// A panic in Decide itself, where nothing recovers it, costs the state. If the same unit causes two, it is parked.
// Otherwise the state would be rebuilt forever, and no unit admitted.
func TestAPanicOfDecideParksWhatItLookedAt(t *testing.T) {
	r := newRig(t, quotasOf(20, testQuota))
	registry := r.registry()
	r.engine.core.Config.Order = badOrder{}
	r.engine.core.Renew(time.Time{})
	r.queue(testQuota).queue("other").queue("third").lead()
	in := func(queue string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["queue"] = queue }
	}
	r.unit("a", 4)
	bad := r.unit("bad", 1, in("other"))
	r.unit("behind", 1, in("other"))
	r.unit("z", 1, in("third"))
	for range 4 {
		r.advance(time.Second)
	}
	r.unit("b", 4)
	r.advance(time.Second)
	require.ElementsMatch(t, []string{"a", "behind", "z", "b"}, keysOf(r.decisions()))
	reason, message, _ := r.engine.core.Read().Why(bad)
	require.Equal(t, unit.ReasonInternalError, reason)
	require.Contains(t, message, "panicked")
	require.Equal(t, map[string]float64{"core": 2}, gathered(t, registry, "panics_total"))
	require.Equal(t, map[string]float64{"Panic": 2}, gathered(t, registry, "state_rebuilds_total"))
	require.Equal(t, map[string]float64{"": 0}, gathered(t, registry, "decision_backoff_seconds"))
	r.sound()

	r.feedAgain(bad) // another state of the same, which says nothing new
	r.advance(time.Second)
	_, parked := r.engine.core.Quarantine(bad)
	require.True(t, parked)
	r.engine.core.Config.Order = nil
	r.engine.core.Discard(recovery.Difference)
	u := r.api.get(bad)
	u.SetGeneration(u.GetGeneration() + 1)
	u.SetResourceVersion("999999")
	r.drive.FeedUnit(u, false)
	r.advance(time.Second)
	require.Contains(t, keysOf(r.decisions()), "bad", "its owner has changed it: it is tried again")
}

// A decision that was due and panics is tried again after a while, not at once and over and over.
func TestAPanicOfADecisionThatWasDueDoesNotSpin(t *testing.T) {
	r := newRig(t, quotasOf(20, testQuota))
	r.engine.core.Config.Order = badOrder{}
	r.engine.core.Renew(time.Time{})
	r.queue(testQuota).queue("other").lead()
	r.unit("first", 15)
	r.unit("a", 10)
	r.unit("bad", 10, func(u *unstructured.Unstructured) {
		u.Object["spec"].(map[string]any)["queue"] = "other"
		u.Object["status"].(map[string]any)["requeueState"] = map[string]any{
			"count": int64(1), "requeueAt": testStart.Add(10 * time.Second).Format(time.RFC3339),
		}
	})
	r.step()
	registry := r.registry()
	for r.clock.Now().Before(testStart.Add(10 * time.Second)) {
		require.Empty(t, gathered(t, registry, "panics_total"))
		require.True(t, r.wake.After(r.clock.Now()))
		r.advance(min(r.wake.Sub(r.clock.Now()), time.Second))
	}
	require.Equal(t, map[string]float64{"core": 1}, gathered(t, registry, "panics_total"))
	require.True(t, r.wake.After(r.clock.Now()), "the next step is at %s", r.wake)
}

func (r *rig) feedAgain(key string) {
	r.api.edit(key, func(*unstructured.Unstructured) {})
	r.feed(key)
}

// A panic without a culprit stops decisions, and the state is rebuilt ever more rarely. Admitted units stay admitted:
// their pods pass, and their quota stays reserved (I1, I3).
func TestAPanicOfNobodyBacksOff(t *testing.T) {
	r := ready(t, 10)
	registry := r.registry()
	told := map[string]string{}
	r.engine.gauges.OutstandingAt = func(quota string, list, _ resources.List) { told[quota] = list.String() }
	r.job("a", "job-a")
	a := r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	require.Equal(t, "cpu: 4", told[testQuota])

	r.engine.core.Config.Policies = map[string]queue.Factory{"Priority": nil} // no queue can be made
	r.engine.core.Discard(recovery.Difference)
	b := r.unit("b", 1)
	for range 600 {
		r.advance(time.Second)
	}
	require.Empty(t, r.decisions())
	panics := gathered(t, registry, "panics_total")["core"]
	require.Less(t, gathered(t, registry, "state_rebuilds_total")["Panic"], 20.0, "1 + 2 + 4 + ... 64 + 64 ... seconds")
	require.Equal(t, map[string]float64{"": 64}, gathered(t, registry, "decision_backoff_seconds"))
	require.NotZero(t, panics)
	_, admitted := r.engine.Snapshot().AdmittedUnit(a)
	require.True(t, admitted)
	require.Equal(t, "cpu: 4", told[testQuota])
	require.Zero(t, r.engine.core.InQuarantine(), "nobody is to blame")
	r.engine.core.Call(a, func(s *admission.State) {
		s.DeleteUnit(r.clock.Now(), a)
		panic("half way")
	})
	r.engine.facts.touch(r.clock.Now(), a, r.engine.units.Get(a))
	r.feedAgain(b)
	r.step()
	_, admitted = r.engine.Snapshot().AdmittedUnit(a)
	require.True(t, admitted, "what its object says counts, not what the state says")
	r.feed(a)
	r.drive.FeedUnit(r.api.get(a), true)
	r.step()
	_, admitted = r.engine.Snapshot().AdmittedUnit(a)
	require.False(t, admitted, "who is gone is out at once")
	r.api.delete(a)

	r.engine.core.Config.Policies = nil
	r.advance(64 * time.Second)
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	require.Equal(t, map[string]float64{"": 0}, gathered(t, registry, "decision_backoff_seconds"))
	require.Equal(t, "cpu: 1", told[testQuota])
	r.sound()
}

// An unreadable pod leaves the held quota of its unit unchanged (I1).
func TestAPanicOverAPodCostsItsUnitNothing(t *testing.T) {
	r := ready(t, 10)
	registry := r.registry()
	r.engine.pods.Scheduler.PodRequest = func(*corev1.Pod) corev1.ResourceList { panic("a bomb in a pod") }
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	pod := podFor("a-0", "job-a", "1")
	r.drive.FeedPod(pod, false, false)
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.unit("b", 1)
	r.step()
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	require.NotZero(t, gathered(t, registry, "panics_total")["podRequest"])
}
