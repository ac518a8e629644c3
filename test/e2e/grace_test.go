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
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koordinator-sh/koordinator/apis/extension"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func grace(seconds int) jobOption {
	return func(j *batchv1.Job) { j.Annotations[schedulingv1alpha1.AnnotationGrace] = fmt.Sprint(seconds) }
}

// evicted waits until a unit lost its admission, and returns when.
func (c *cluster) evicted(t *testing.T, namespace, name string) (at time.Time) {
	t.Helper()
	require.Eventually(t, func() bool {
		e := meta.FindStatusCondition(c.unit(t, namespace, name).Status.Conditions, schedulingv1alpha1.ConditionEvicted)
		if e == nil || e.Status != metav1.ConditionTrue {
			return false
		}
		at = e.LastTransitionTime.Time
		return true
	}, soon, pace, name)
	return at
}

// noticed waits until the pods of a job have the notice that it will be suspended at this time.
func (c *cluster) noticed(t *testing.T, namespace, name string, at time.Time) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	require.Eventually(t, func() bool {
		pods = c.podsOf(t, namespace, name)
		for i := range pods {
			if pods[i].Annotations[schedulingv1alpha1.AnnotationSuspendAt] != at.UTC().Format(time.RFC3339) {
				return false
			}
			soft, err := extension.GetSoftEvictionSpec(pods[i].Annotations)
			require.NoError(t, err)
			require.Equal(t, "Reclaimed", soft.Reason)
		}
		return len(pods) > 0
	}, soon, pace, name)
	return pods
}

// suspendedAt waits until the job controller has noted that a job is suspended, and returns when.
func (c *cluster) suspendedAt(t *testing.T, namespace, name string, within time.Duration) (at time.Time) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, condition := range c.job(t, namespace, name).Status.Conditions {
			if condition.Type == batchv1.JobSuspended && condition.Status == corev1.ConditionTrue {
				at = condition.LastTransitionTime.Time
				return true
			}
		}
		return false
	}, within, pace, name)
	return at
}

// The owner of a min takes it back from two jobs that have a grace. One asks for more than its queue gives, and its
// pods acknowledge: it is suspended long before the bound of the queue. The other one does not answer, and is suspended
// at the end of its grace. Then the owner runs, and the two after it.
func TestAGraceBeforeTheSuspension(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "grace")
	c.quota(t, ns, "grace-all", 10, 10, isParent())
	c.quota(t, ns, "grace-borrower", 4, 10, under("grace-all"))
	c.quota(t, ns, "grace-owner", 6, 10, under("grace-all"))
	c.patchQueue(t, "grace-owner", `{"spec":{"preemption":{"reclaim":"Any"}}}`)
	c.patchQueue(t, "grace-borrower", `{"spec":{"preemption":{"maxGraceSeconds":600,"minRunTimeSeconds":0}}}`)
	watch := observe(t, c, map[string]int{ns: 10})
	const silent = 15
	c.create(t, newJob(ns, "answers", suspended, ofQuota("grace-borrower"), pods(5), runs(40*second), grace(3600)),
		newJob(ns, "silent", suspended, ofQuota("grace-borrower"), pods(5), runs(40*second), grace(silent)))
	for _, name := range []string{"answers", "silent"} {
		c.waitPhase(t, ns, name, schedulingv1alpha1.PhaseRunning)
		require.Eventually(t, func() bool { return *c.job(t, ns, name).Status.Ready == 5 }, soon, pace)
	}
	c.create(t, newJob(ns, "own", suspended, ofQuota("grace-owner"), pods(6), runs(2*second)))

	bound := c.evicted(t, ns, "answers").Add(600 * second)
	end := c.evicted(t, ns, "silent").Add(silent * second)
	c.waitEvent(t, ns, "answers", "WillSuspend")
	c.noticed(t, ns, "silent", end)
	told := c.noticed(t, ns, "answers", bound)
	for i := range told {
		require.False(t, *c.job(t, ns, "answers").Spec.Suspend, "pod %d has not acknowledged", i)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, schedulingv1alpha1.AnnotationCheckpointed,
			time.Now().UTC().Format(time.RFC3339))
		_, err := c.kube.CoreV1().Pods(ns).Patch(t.Context(), told[i].Name, types.MergePatchType, []byte(patch),
			metav1.PatchOptions{})
		require.NoError(t, err)
	}
	require.True(t, c.suspendedAt(t, ns, "answers", soon).Before(bound.Add(-500*second)), "long before the bound")
	at := c.suspendedAt(t, ns, "silent", silent*second+soon)
	require.False(t, at.Before(end), "suspended at %v, told %v", at, end)
	require.WithinDuration(t, end, at, 10*second)
	c.waitPhase(t, ns, "own", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
	c.waitDone(t, ns, 3, 3*time.Minute)
	watch.clean(t, nil)
}

// A drain gives the same grace. If somebody deletes the unit during it, the job is suspended at once.
func TestAUnitThatIsDeletedDuringTheGrace(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "grace-deleted")
	c.quota(t, ns, "grace-deleted", 2, 2)
	c.patchQueue(t, "grace-deleted", `{"spec":{"preemption":{"maxGraceSeconds":600}}}`)
	c.create(t, newJob(ns, "j", suspended, ofQuota("grace-deleted"), pods(2), runs(time.Hour), grace(600)))
	c.waitPhase(t, ns, "j", schedulingv1alpha1.PhaseRunning)
	c.patchQueue(t, "grace-deleted", `{"spec":{"stopPolicy":"HoldAndDrain"}}`)
	c.waitEvent(t, ns, "j", "WillSuspend")
	require.False(t, *c.job(t, ns, "j").Spec.Suspend)
	require.NoError(t, c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(ns).Delete(t.Context(), "j",
		metav1.DeleteOptions{}))
	c.suspendedAt(t, ns, "j", soon)
	c.waitReason(t, ns, "j", "QueueHeld")
	require.Empty(t, c.unit(t, ns, "j").Status.Admissions)
}
