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
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

// podKind are pods that nobody owns.
var podKind = jobKind{name: "pod", owners: []string{"Pod"}}

// plainPods is a namespace for them.
func (c *cluster) plainPods(t *testing.T, namespace string) *life {
	t.Helper()
	podKind.count(t)
	_, err := c.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return &life{
		t: t, cluster: c, kind: &podKind, namespace: namespace, name: "p0",
		client: c.resource(t, corev1.SchemeGroupVersion.WithKind("Pod")).Namespace(namespace),
	}
}

func (l *life) createPods(first, n int, group string, total int) {
	l.t.Helper()
	for i := first; i < first+n; i++ {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("p%d", i), Labels: map[string]string{v1alpha1.LabelQuotaName: l.namespace},
				Annotations: map[string]string{"pod-complete.stage.kwok.x-k8s.io/delay": "1h"},
			},
			Spec: corev1.PodSpec{SchedulerName: "koord-scheduler", Containers: []corev1.Container{{
				Name: "main", Image: "busybox", Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")},
				},
			}}},
		}
		if group != "" {
			pod.Labels[podgroup.LabelName] = group
			pod.Annotations[podgroup.AnnotationTotal] = fmt.Sprint(total)
		}
		_, err := l.cluster.kube.CoreV1().Pods(l.namespace).Create(l.t.Context(), pod, metav1.CreateOptions{})
		require.NoError(l.t, err)
	}
}

// TestPlainPods: pods that nobody owns wait for quota, by themselves or as a group that goes as a whole.
func TestPlainPods(t *testing.T) {
	c := standInCluster(t)
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		c.logsOfFailure(t)
		l := c.plainPods(t, "pod-alone")
		l.createPods(0, 1, "", 0)
		l.awaitPhase(v1alpha1.PhaseEnqueued)
		l.quota("0")
		require.Never(t, func() bool { return len(l.bound()) > 0 }, 2*time.Second, pace)
		l.setQuota("100")
		l.eventually("it is bound", func(context.Context) (bool, error) { return len(l.bound()) == 1, nil })
		requireEstimate(t, l.awaitPhase(v1alpha1.PhaseRunning), l.bound())
		l.endPods(true)
		require.Empty(t, l.awaitPhase(v1alpha1.PhaseSucceed).Status.Admissions)
		require.NoError(t, l.client.Delete(t.Context(), l.name, metav1.DeleteOptions{}))
		l.eventually("its unit goes with it", func(context.Context) (bool, error) { return l.unit() == nil, nil })
	})
	t.Run("group", func(t *testing.T) {
		t.Parallel()
		c.logsOfFailure(t)
		l := c.plainPods(t, "pod-group")
		l.quota("100")
		l.createPods(0, 2, "ring", 3)
		l.eventually("it says that a pod is missing", func(context.Context) (bool, error) {
			unit := l.unit()
			return unit != nil && unit.Inactive() && unit.Status.Message != "", nil
		})
		require.Never(t, func() bool { return len(l.bound()) > 0 }, 2*time.Second, pace)
		l.setQuota("0.5")
		l.createPods(2, 1, "ring", 3)
		l.eventually("it waits", func(context.Context) (bool, error) {
			unit := l.unit()
			return unit.Spec.Active == nil && unit.Spec.PodSets[0].Count == 3, nil
		})
		require.Never(t, func() bool { return len(l.bound()) > 0 }, 2*time.Second, pace)
		l.setQuota("100")
		l.eventually("it is bound", func(context.Context) (bool, error) { return len(l.bound()) == 3, nil })
		requireEstimate(t, l.awaitPhase(v1alpha1.PhaseRunning), l.bound())
		l.endPods(true)
		require.Empty(t, l.awaitPhase(v1alpha1.PhaseSucceed).Status.Admissions)
	})
}
