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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
)

// allows feeds a namespace that says how great a priority it allows.
func (r *rig) allows(namespace, most string) *rig {
	r.drive.FeedNamespace(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name": namespace, "annotations": map[string]any{v1alpha1.AnnotationMaxPriority: most},
		},
	}}, false)
	return r
}

func withPriority(n int64) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, n, "spec", "priority") }
}

// A tenant writes any priority into a unit, or names any class. Nobody loses what it holds for that, but as far as the
// namespace of the tenant allows.
func TestAPriorityTakesAsFarAsTheNamespaceAllows(t *testing.T) {
	r := newRig(t, quotasOf(2, testQuota))
	r.queueWith(testQuota, map[string]any{
		"preemption": map[string]any{"withinQueue": "LowerPriority", "minRunTimeSeconds": int64(0)},
	}).lead()
	r.job("low", "job-low").job("high", "job-high")
	r.unit("low", 2, withConsumer("job-low"), withPriority(5), withStatus(map[string]any{
		"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
			map[string]any{"name": "main", "replicas": int64(2), "resources": map[string]any{"cpu": "2"}},
		},
	}))
	high := r.unit("high", 2, withConsumer("job-high"), withPriority(1_000_000_000))
	for _, most := range []string{"", "0", "-1", "x", "5"} { // up to 5 both count alike
		r.allows(testNamespace, most).step()
		r.advance(2 * time.Second)
		require.Empty(t, r.of(statuswrite.Take), most)
	}
	_, why, _ := r.engine.core.Read().Why(high)
	require.Contains(t, why, "its priority 1000000000 counts as 5 when it takes from others")
	r.allows("other", "9").advance(2 * time.Second)
	require.Empty(t, r.of(statuswrite.Take), "another namespace")
	r.allows(testNamespace, "6").advance(2 * time.Second)
	require.Len(t, r.of(statuswrite.Take), 1)
}

// A namespace concerns its own units alone, and only where it allows something else than before.
func TestABoundLooksAtUnitsOfItsNamespaceAlone(t *testing.T) {
	r := ready(t, 1)
	key := r.unit("a", 4)
	u := r.api.get(key)
	u.SetNamespace("other")
	u.SetUID("unit-other")
	r.drive.FeedUnit(u, false)
	r.step()
	r.allows(testNamespace, "7").step()
	require.EqualValues(t, 7, r.engine.units.Get(key).MaxPriority)
	require.Zero(t, r.engine.units.Get("other/a").MaxPriority)
	require.Equal(t, []string{key}, r.engine.units.InNamespace(testNamespace))
	require.Empty(t, r.engine.units.InNamespace("empty"))
}

// Nothing is decided before it is known how great a priority each namespace allows.
func TestBoundsAreReadBeforeAnythingIsDecided(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: testNamespace, Annotations: map[string]string{v1alpha1.AnnotationMaxPriority: "5"},
	}}
	l := newLive(t, newFakeAPI(t), quotasOf(4, testQuota), []runtime.Object{namespace})
	var known int32
	l.until("all that existed is read", func() (loaded bool) {
		l.ask(func(questions.View) {
			loaded, known = l.engine.loaded, l.engine.facts.priorities.BoundOf(testNamespace)
		})
		return loaded
	})
	require.EqualValues(t, 5, known)
}
