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

package operators_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// elastic is a kind whose jobs change their size while they run.
type elastic struct {
	kind string
	// make has the job do with fewer workers than it asks for.
	make func(job *unstructured.Unstructured)
	// replicas is where the number of workers is, as a JSON pointer, and workers the name of their pod set.
	replicas, workers string
	// leave is where the names of the pods are that go, if the operator does not choose them.
	leave string
}

var elasticKinds = []elastic{
	{
		kind: "pytorchjob", replicas: "/spec/pytorchReplicaSpecs/Worker/replicas", workers: "worker",
		make: func(job *unstructured.Unstructured) {
			unstructured.RemoveNestedField(job.Object, "spec", "pytorchReplicaSpecs", "Master")
			_ = unstructured.SetNestedMap(job.Object, map[string]any{
				"minReplicas": int64(1), "maxReplicas": int64(4), "rdzvBackend": "c10d",
			}, "spec", "elasticPolicy")
		},
	},
	{
		// Its scaler is on, and names the workers that go.
		kind: "raycluster", replicas: "/spec/workerGroupSpecs/0/replicas", workers: "small-group",
		leave: "/spec/workerGroupSpecs/0/scaleStrategy",
		make: func(job *unstructured.Unstructured) {
			job.SetAnnotations(map[string]string{v1alpha1.AnnotationPartialAdmission: "true"})
		},
	},
}

// TestElasticJobs: a job that grows while it runs gets new pods when there is quota for them, and gives quota back when
// it shrinks.
func TestElasticJobs(t *testing.T) {
	c := queueCluster(t)
	for _, e := range elasticKinds {
		for i := range jobKinds {
			if jobKinds[i].name != e.kind {
				continue
			}
			t.Run(e.kind, func(t *testing.T) {
				t.Parallel()
				c.logsOfFailure(t)
				namespace := e.kind + "-elastic"
				l := c.create(t, &jobKinds[i], namespace, true, inQuota(namespace), e.make)
				l.quota("100")
				before := l.awaitPhase(v1alpha1.PhaseRunning)
				require.EqualValues(t, 1, *l.workers(before, e).MinCount)
				pods, workers := len(l.bound()), l.workers(before, e).Count

				// There is no room for another one.
				l.setQuota(before.Spec.Request.Cpu().String())
				l.resize(e, workers+1)
				l.eventually("its unit asks for more", func(context.Context) (bool, error) {
					return l.workers(l.unit(), e).Count == workers+1, nil
				})
				l.eventually("its new pod is there", func(context.Context) (bool, error) { return len(l.pods()) == pods+1, nil })
				require.Never(t, func() bool { return len(l.bound()) > pods }, 2*time.Second, pace)
				l.setQuota("100")
				l.eventually("its new pod is bound", func(context.Context) (bool, error) { return len(l.bound()) == pods+1, nil })
				requireEstimate(t, l.unit(), l.pods())

				l.resize(e, workers, l.newest())
				l.eventually("it gives the quota back", func(context.Context) (bool, error) {
					unit := l.unit()
					return len(l.pods()) == pods && l.workers(unit, e).Count == workers && held(unit) == int64(pods), nil
				})
				requireEstimate(t, l.unit(), l.pods())
				require.NotContains(t, []v1alpha1.QueueUnitPhase{v1alpha1.PhaseEnqueued, v1alpha1.PhaseFailed},
					l.unit().Status.Phase, "it ran all the time")
				l.inPart(e, workers)
			})
		}
	}
}

// inPart: the job waits for one worker too many, runs with as many as fit, and has its own number again when it waits
// again.
func (l *life) inPart(e elastic, workers int32) {
	l.t.Helper()
	l.hold(true)
	l.awaitNoPods()
	l.resize(e, workers+1)
	l.eventually("its unit asks for one worker more", func(context.Context) (bool, error) {
		unit := l.unit()
		return unit.Status.Phase == v1alpha1.PhaseEnqueued && l.workers(unit, e).Count == workers+1, nil
	})
	room := l.unit().Spec.Request.Cpu().DeepCopy()
	room.Sub(resource.MustParse("1m"))
	l.setQuota(room.String())
	pods := 0
	for i := range l.unit().Spec.PodSets {
		pods += int(l.unit().Spec.PodSets[i].Count)
	}
	l.hold(false)
	unit := l.awaitPhase(v1alpha1.PhaseRunning)
	require.EqualValues(l.t, pods-1, held(unit))
	require.Equal(l.t, workers+1, l.workers(unit, e).Count, "it asks for the whole when it waits again")
	require.Len(l.t, l.bound(), pods-1)
	require.Equal(l.t, workers, l.replicas(e))
	l.hold(true)
	l.eventually("it has its own number back", func(context.Context) (bool, error) {
		return l.suspended() && l.replicas(e) == workers+1, nil
	})
	l.awaitNoPods()
}

// hold has its owner hold the job, or let it go.
func (l *life) hold(held bool) {
	l.t.Helper()
	l.patch(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		v1alpha1.AnnotationHold: strconv.FormatBool(held),
	}}})
}

// replicas are how many workers the job has.
func (l *life) replicas(e elastic) int32 {
	l.t.Helper()
	var at any = l.current().Object
	for _, key := range strings.Split(strings.TrimPrefix(e.replicas, "/"), "/") {
		switch of := at.(type) {
		case map[string]any:
			at = of[key]
		case []any:
			i, err := strconv.Atoi(key)
			require.NoError(l.t, err)
			at = of[i]
		}
	}
	n, ok := at.(int64)
	require.True(l.t, ok, "%v", at)
	return int32(n)
}

// held is the number of pods that the unit holds quota for.
func held(unit *v1alpha1.QueueUnit) (pods int64) {
	for _, admission := range unit.Status.Admissions {
		pods += admission.Replicas
	}
	return pods
}

func (l *life) workers(unit *v1alpha1.QueueUnit, e elastic) *v1alpha1.PodSet {
	l.t.Helper()
	for i := range unit.Spec.PodSets {
		if unit.Spec.PodSets[i].Name == e.workers {
			return &unit.Spec.PodSets[i]
		}
	}
	require.Fail(l.t, "no such pod set", "%s in %v", e.workers, unit.Spec.PodSets)
	return nil
}

func (l *life) resize(e elastic, workers int32, leaving ...string) {
	l.t.Helper()
	patch := []map[string]any{{"op": "replace", "path": e.replicas, "value": workers}}
	if e.leave != "" && len(leaving) > 0 {
		patch = append(patch, map[string]any{
			"op": "add", "path": e.leave, "value": map[string]any{"workersToDelete": leaving},
		})
	}
	content, err := json.Marshal(patch)
	require.NoError(l.t, err)
	_, err = l.client.Patch(l.t.Context(), l.name, types.JSONPatchType, content, metav1.PatchOptions{})
	require.NoError(l.t, err)
}

// newest of its pods.
func (l *life) newest() string {
	l.t.Helper()
	return slices.MaxFunc(l.pods(), func(a, b corev1.Pod) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	}).Name
}
