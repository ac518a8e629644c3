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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/witness"
)

// asked is a witness that keeps what it was asked last.
type asked struct {
	witness.Nobody
	question witness.Question
}

func (a *asked) Foresee(q witness.Question) { a.question = q }

// Before a unit takes what others hold, it is asked whether its pods find nodes without the pods of those.
func TestNodesAreForeseenBeforeAUnitTakes(t *testing.T) {
	asked := &asked{}
	r := newRig(t, quotasOf(2, testQuota))
	r.engine.opts.Witness = asked
	r.queueWith(testQuota, map[string]any{
		"preemption":      map[string]any{"withinQueue": "LowerPriority", "minRunTimeSeconds": int64(0)},
		"admissionChecks": []any{map[string]any{"name": "nodes"}},
	}).lead()
	r.check("nodes", v1alpha1.PlacementController, "True")
	r.allows(testNamespace, "7").job("low", "job-low").job("high", "job-high")
	low := r.unit("low", 2, withConsumer("job-low"), func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
			map[string]any{"name": "main", "replicas": int64(2), "resources": map[string]any{"cpu": "2"}},
		}, "admissionChecks": []any{map[string]any{"name": "nodes", "state": "Ready"}}}
	})
	r.bound("low-0", "job-low", "1")
	r.pods(podFor("low-1", "job-low", "1")) // on no node
	r.bound("other", "job-other", "1")
	high := r.unit("high", 2, withConsumer("job-high"), func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "priority")
	})
	r.step()
	require.Equal(t, high, asked.question.Key)
	require.EqualValues(t, "unit-high", asked.question.UID)
	require.Len(t, asked.question.Gone, 1)
	require.Equal(t, "low-0", asked.question.Gone[0].Name)
	require.Empty(t, r.of(statuswrite.Take))

	asked.question.Answer(false, "0/3 nodes are available")
	r.step()
	require.Empty(t, r.of(statuswrite.Take))
	_, why, _ := r.engine.core.Read().Why(high)
	require.Contains(t, why, "0/3 nodes are available")

	r.advance(time.Minute)
	asked.question.Answer(true, "")
	r.step()
	require.Len(t, r.of(statuswrite.Take), 1)
	require.Equal(t, "Dequeued", r.phase(low), "nothing is lost before that is written")
}
