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

package e2e_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func atLeast(pods string) jobOption {
	return func(j *batchv1.Job) {
		if j.Annotations == nil {
			j.Annotations = map[string]string{}
		}
		j.Annotations[schedulingv1alpha1.AnnotationMinParallelism] = pods
	}
}

func indexed(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }

// onNodes is how many of the pods are bound.
func onNodes(pods []corev1.Pod) (n int) {
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// A job of five pods with a minimum of two runs with the three pods that fit. It does not grow when there is room for
// the rest. After the loss of its admission it has its own number again. Completions of an Indexed job follow.
func TestJobsAreAdmittedInPart(t *testing.T) {
	for name, mode := range map[string]jobOption{"plain": func(*batchv1.Job) {}, "indexed": indexed} {
		t.Run(name, func(t *testing.T) {
			c := sharedCluster(t)
			quota := "part-" + name
			ns := c.namespace(t, quota)
			c.quota(t, ns, quota, 3, 3)
			c.create(t, newJob(ns, "j", suspended, ofQuota(quota), cpu("1"), pods(5), runs(time.Hour), atLeast("2"), mode))
			counts := func() (now [2]int32) {
				j := c.job(t, ns, "j")
				return [2]int32{*j.Spec.Parallelism, *j.Spec.Completions}
			}
			whole, part := counts(), [2]int32{3, 5}
			if name == "indexed" {
				part[1] = 3
			}
			require.Equal(t, [2]int32{5, 5}, whole)
			c.waitPhase(t, ns, "j", schedulingv1alpha1.PhaseRunning)
			require.Equal(t, part, counts())
			require.Eventually(t, func() bool { return onNodes(c.podsOf(t, ns, "j")) == 3 }, soon, pace)
			require.Eventually(t, func() bool {
				return meta.IsStatusConditionTrue(c.unit(t, ns, "j").Status.Conditions, schedulingv1alpha1.ConditionPodsReady)
			}, 40*time.Second, pace, "all pods that were admitted are ready")
			u := c.unit(t, ns, "j")
			require.EqualValues(t, 5, u.Spec.PodSets[0].Count)
			require.EqualValues(t, 3, u.Status.Admissions[0].Replicas)
			reserved := meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionQuotaReserved)
			require.Contains(t, reserved.Message, "quota is reserved for 3 of 5 pods")

			c.setQuotaMax(t, ns, quota, 9)
			stays(t, 3*time.Second, "it runs with what it got", func() bool {
				return counts() == part && c.unit(t, ns, "j").Status.Admissions[0].Replicas == 3
			})

			c.patchUnit(t, ns, "j", `{"spec":{"active":false}}`)
			require.Eventually(t, func() bool { return counts() == whole && len(c.podsOf(t, ns, "j")) == 0 }, soon, pace)
			require.True(t, *c.job(t, ns, "j").Spec.Suspend)
			c.patchUnit(t, ns, "j", `{"spec":{"active":true}}`)
			c.waitPhase(t, ns, "j", schedulingv1alpha1.PhaseRunning)
			require.Equal(t, whole, counts())
			require.Eventually(t, func() bool { return onNodes(c.podsOf(t, ns, "j")) == 5 }, soon, pace)
		})
	}
}

// The owner of a job that was admitted in part wants more pods: they wait for quota like those of any job that grows.
func TestAJobInPartGrows(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "part-grows")
	c.quota(t, ns, "part-grows", 3, 3)
	c.create(t, newJob(ns, "j", suspended, ofQuota("part-grows"), cpu("1"), pods(5), runs(time.Hour), atLeast("2")))
	c.waitPhase(t, ns, "j", schedulingv1alpha1.PhaseRunning)
	_, err := c.kube.BatchV1().Jobs(ns).Patch(context.Background(), "j", types.MergePatchType,
		[]byte(`{"spec":{"parallelism":4}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		set := c.unit(t, ns, "j").Spec.PodSets[0]
		return set.Count == 4 && set.MinCount == nil
	}, soon, pace)
	require.Eventually(t, func() bool { return len(c.podsOf(t, ns, "j")) == 4 }, soon, pace)
	stays(t, 2*time.Second, "one of them waits", func() bool { return onNodes(c.podsOf(t, ns, "j")) == 3 })
	c.setQuotaMax(t, ns, "part-grows", 4)
	require.Eventually(t, func() bool { return onNodes(c.podsOf(t, ns, "j")) == 4 }, soon, pace)
}
