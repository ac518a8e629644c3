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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// bomb panics wherever it is looked at.
type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("a bomb in a template") }

// badCheck cannot cope with units that are called bad.
type badCheck struct{}

func (badCheck) Key(u admission.Unit) string {
	if strings.Contains(u.Key, "bad") {
		return u.Key
	}
	return ""
}

func (badCheck) Check(u admission.Unit) (admission.Reason, string) {
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
		"check": {where: "extension", prepare: func(e *Engine) { e.core.Checks = []admission.Check{badCheck{}} }},
		"policy": {where: "extension", prepare: func(e *Engine) {
			e.core.Policies = map[string]queue.Factory{"Priority": func(threshold int32) queue.Policy {
				return badPolicy{queue.Builtin()["Priority"](threshold)}
			}}
		}},
		"decode": {where: "decode", feed: func(r *rig) {
			u := r.api.get("team/bad")
			u.SetResourceVersion("999999")
			delete(u.Object["spec"].(map[string]any), "request")
			u.Object["spec"].(map[string]any)["podSet"] = []any{map[string]any{"name": "main", "template": bomb{}}}
			r.engine.FeedUnit(u, false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, quotasOf(10, testQuota))
			registry := r.registry()
			if c.prepare != nil {
				c.prepare(r.engine)
				r.engine.state = r.engine.newState()
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
			reason, _, _ := r.engine.state.Why(bad)
			require.Equal(t, admission.ReasonInternalError, reason)
			require.NotZero(t, gathered(t, registry, "panics_total")[c.where])
			require.Zero(t, r.audit().Found)
			r.engine.FeedUnit(r.api.get(bad), true)
			r.advance(time.Second)
			require.NotContains(t, r.engine.units, bad)
			r.sound()
		})
	}
}

// What cannot be read of a pod leaves with its unit what the unit holds (I1).
func TestAPanicOverAPodCostsItsUnitNothing(t *testing.T) {
	r := ready(t, 10)
	registry := r.registry()
	r.engine.opts.PodRequest = func(*corev1.Pod) corev1.ResourceList { panic("a bomb in a pod") }
	r.job("a", "job-a")
	r.unit("a", 4, withConsumer("job-a"))
	r.step()
	r.send()
	pod := podFor("a-0", "job-a", "1")
	r.engine.FeedPod(pod, false, false)
	r.engine.Sink().PodAssigned(testQuota, pod, true)
	r.unit("b", 1)
	r.step()
	require.Equal(t, []string{"b"}, keysOf(r.decisions()))
	require.Equal(t, "cpu: 4", r.outstanding(testQuota))
	require.NotZero(t, gathered(t, registry, "panics_total")["podRequest"])
}
