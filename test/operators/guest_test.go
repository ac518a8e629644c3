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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// TestRayJobInAClusterOfOthers: the RayCluster was queued. Of the RayJob only the submitter waits, and the RayJob is
// never suspended: KubeRay would fail it.
func TestRayJobInAClusterOfOthers(t *testing.T) {
	c := queueCluster(t)
	c.logsOfFailure(t)
	const namespace = "guest-queue"
	i := slices.IndexFunc(jobKinds, func(k jobKind) bool { return k.name == "raycluster" })
	host := c.create(t, &jobKinds[i], namespace, true, inQuota(namespace))
	host.quota("1200m") // as much as the cluster asks for, with containers that KubeRay adds
	host.awaitRunning()
	host.awaitPhase(v1alpha1.PhaseRunning)

	_, job := manifest(t, "rayjob")
	inQuota(namespace)(job)
	spec := job.Object["spec"].(map[string]any)
	delete(spec, "rayClusterSpec")
	delete(spec, "shutdownAfterJobFinishes")
	spec["clusterSelector"] = map[string]any{"ray.io/cluster": host.name}
	require.NoError(t, unstructured.SetNestedField(job.Object, namespace,
		"spec", "submitterPodTemplate", "metadata", "labels", v1alpha1.LabelQuotaName))
	guest := &life{
		t: t, cluster: c, kind: host.kind, namespace: namespace, name: job.GetName(),
		client: c.resource(t, job.GroupVersionKind()).Namespace(namespace),
	}
	_, err := guest.client.Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)

	// KubeRay submits it at once, and its submitter waits for room in the quota.
	submitter := func() *corev1.Pod {
		pods := slices.DeleteFunc(guest.pods(), func(pod corev1.Pod) bool { return pod.Labels["job-name"] != guest.name })
		if len(pods) == 0 {
			return nil
		}
		return &pods[0]
	}
	guest.eventually("it is submitted", func(context.Context) (bool, error) { return submitter() != nil, nil })
	unit := guest.awaitUnit("sample-ray-qu", v1alpha1.PhaseEnqueued)
	require.Len(t, unit.Spec.PodSets, 1)
	require.Equal(t, "submitter", unit.Spec.PodSets[0].Name)
	require.Never(t, func() bool { return submitter().Spec.NodeName != "" || guest.suspended() }, 2*time.Second, pace)

	// There is room.
	host.setQuota("1300m")
	guest.eventually("its submitter runs", func(context.Context) (bool, error) {
		return submitter().Status.Phase == corev1.PodRunning, nil
	})
	unit = guest.awaitUnit(unit.Name, v1alpha1.PhaseRunning)
	requireEstimate(t, unit, []corev1.Pod{*submitter()})
	require.False(t, guest.suspended())
	ends := *guest
	ends.kind = &jobKind{decides: "submitter"}
	ends.endPods(true)
	ended := guest.awaitUnit(unit.Name, v1alpha1.PhaseSucceed)
	require.Empty(t, ended.Status.Admissions)
	host.awaitUnit("autoscaled-raycluster", v1alpha1.PhaseRunning)
}

// awaitUnit of this name, where a namespace has several.
func (l *life) awaitUnit(name string, phase v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
	l.t.Helper()
	unit := &v1alpha1.QueueUnit{}
	l.eventually(name+" is "+string(phase), func(context.Context) (bool, error) {
		object, err := l.units().Get(l.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // it comes
		}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, unit)
		return unit.Status.Phase == phase, err
	})
	return unit
}
