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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

func (c *cluster) patchQueue(t *testing.T, name, patch string) {
	t.Helper()
	queues := c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace)
	require.Eventually(t, func() bool {
		_, err := queues.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err == nil
	}, soon, pace, "queue %s", name)
}

func (c *cluster) patchUnit(t *testing.T, namespace, name, patch string) {
	t.Helper()
	_, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(namespace).
		Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// deactivated waits until a unit was made inactive for a reason, and its job is suspended.
func (c *cluster) deactivated(t *testing.T, namespace, name, reason string) {
	t.Helper()
	c.waitEvent(t, namespace, name, "Deactivated")
	require.Eventually(t, func() bool {
		u := c.unit(t, namespace, name)
		target := meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionDeactivationTarget)
		return u.Inactive() && target != nil && target.Reason == reason &&
			len(u.Status.Admissions) == 0 && *c.job(t, namespace, name).Spec.Suspend
	}, soon, pace, "%s was not made inactive for %s", name, reason)
}

// A job that fits no node, and one that runs for too long, give their quota back. They are tried again when somebody
// reactivates them.
func TestTimeIsUp(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "time-is-up")
	c.quota(t, ns, "time-is-up", 4, 4)
	c.patchQueue(t, "time-is-up", `{"spec":{"timeouts":{"unboundSeconds":2},"backoffLimit":0,`+
		`"executionTime":{"maximumSeconds":6}}}`)
	c.create(t, newJob(ns, "nowhere", suspended, ofQuota("time-is-up"), cpu("4"), func(j *batchv1.Job) {
		j.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"}
	}))
	c.waitPhase(t, ns, "nowhere", schedulingv1alpha1.PhaseDequeued)
	c.create(t, newJob(ns, "long", suspended, ofQuota("time-is-up"), cpu("4"), runs(time.Hour), func(j *batchv1.Job) {
		j.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxExecutionTime: "7200"}
	}))
	c.deactivated(t, ns, "nowhere", "RequeueLimitReached")
	c.waitPhase(t, ns, "long", schedulingv1alpha1.PhaseRunning)
	require.EqualValues(t, 7200, *c.unit(t, ns, "long").Spec.MaximumExecutionTimeSeconds)
	c.deactivated(t, ns, "long", "MaximumExecutionTimeExceeded")
	c.patchQueue(t, "time-is-up", `{"spec":{"executionTime":{"maximumSeconds":600}}}`)
	c.patchUnit(t, ns, "long", `{"spec":{"active":true}}`)
	c.waitPhase(t, ns, "long", schedulingv1alpha1.PhaseRunning)
	require.EqualValues(t, 2, c.unit(t, ns, "long").Status.Attempts)
	// Its pod ends also if its job goes without it, and its owner cannot have it run on.
	pods := slices.DeleteFunc(c.podsOf(t, ns, "long"), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	require.Len(t, pods, 1)
	require.InDelta(t, 660, ptr.Deref(pods[0].Spec.ActiveDeadlineSeconds, 0), 30)
	for _, seconds := range []string{"null", "7200"} {
		_, err := c.kube.CoreV1().Pods(ns).Patch(t.Context(), pods[0].Name, types.MergePatchType,
			[]byte(`{"spec":{"activeDeadlineSeconds":`+seconds+`}}`), metav1.PatchOptions{})
		require.ErrorContains(t, err, "activeDeadlineSeconds")
	}
}

// A job whose pods a LimitRange refuses gives its quota back, and says what the refusal was.
func TestARefusedJobSaysWhy(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "refused")
	c.quota(t, ns, "refused", 2, 2)
	c.patchQueue(t, "refused", `{"spec":{"timeouts":{"idleReservationSeconds":2}}}`)
	_, err := c.kube.CoreV1().LimitRanges(ns).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypePod, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
		}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.create(t, newJob(ns, "j", suspended, ofQuota("refused"), cpu("2")))
	c.waitPhase(t, ns, "j", schedulingv1alpha1.PhaseTimeoutBackoff)
	c.waitEvent(t, ns, "j", "Evicted")
	require.Eventually(t, func() bool {
		evicted := meta.FindStatusCondition(c.unit(t, ns, "j").Status.Conditions, schedulingv1alpha1.ConditionEvicted)
		return strings.Contains(evicted.Message, "maximum cpu usage per Pod")
	}, soon, pace)
	require.True(t, *c.job(t, ns, "j").Spec.Suspend)
}

// A job that its owner suspends gives its quota back to others, stays suspended, and goes on when its owner says so.
func TestTheOwnerSuspendsAJob(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "owner-suspends")
	c.quota(t, ns, "owner-suspends", 2, 2)
	c.create(t, newJob(ns, "mine", suspended, ofQuota("owner-suspends"), cpu("2"), runs(time.Hour)))
	c.waitPhase(t, ns, "mine", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "next", suspended, ofQuota("owner-suspends"), cpu("2"), runs(3*time.Second)))
	c.patchJob(t, ns, "mine", `{"spec":{"suspend":true}}`)
	c.waitEvent(t, ns, "mine", "Held")
	c.waitPhase(t, ns, "next", schedulingv1alpha1.PhaseSucceed)
	u := c.unit(t, ns, "mine")
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, u.Status.Phase)
	require.Equal(t, "SuspendedByOwner",
		meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionQuotaReserved).Reason)
	require.True(t, *c.job(t, ns, "mine").Spec.Suspend)
	c.patchJob(t, ns, "mine", `{"metadata":{"annotations":{"koord-queue/hold":"false"}}}`)
	c.waitPhase(t, ns, "mine", schedulingv1alpha1.PhaseRunning)
	require.NotContains(t, c.job(t, ns, "mine").Annotations, schedulingv1alpha1.AnnotationHold)
}

// Either process is killed between the end of a time and its consequence. The job gives its quota back once, the next
// one gets it, and afterwards the first has its turn again.
func TestAProcessIsKilledAmidATimeout(t *testing.T) {
	c := sharedCluster(t)
	for _, component := range []controlplane.Component{controlplane.Scheduler, controlplane.Controller} {
		ns := c.namespace(t, "killed-amid-timeout-"+string(component))
		c.quota(t, ns, ns, 2, 2)
		c.patchQueue(t, ns, `{"spec":{"timeouts":{"unboundSeconds":3}}}`)
		watch := observe(t, c, map[string]int{ns: 2})
		c.create(t, newJob(ns, "nowhere", suspended, ofQuota(ns), cpu("2"), func(j *batchv1.Job) {
			j.Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"}
		}))
		c.waitPhase(t, ns, "nowhere", schedulingv1alpha1.PhaseDequeued)
		c.create(t, newJob(ns, "next", suspended, ofQuota(ns), cpu("2"), runs(2*time.Second)))
		require.Eventually(t, func() bool { return len(c.podsOf(t, ns, "nowhere")) == 1 }, soon, pace)
		require.NoError(t, c.Kill(component))
		if component == controlplane.Controller {
			// The scheduler takes the admission back, and nobody is there to suspend the job.
			c.waitPhase(t, ns, "nowhere", schedulingv1alpha1.PhaseTimeoutBackoff)
			require.False(t, *c.job(t, ns, "nowhere").Spec.Suspend)
		}
		require.NoError(t, c.Restart(t.Context(), component))
		c.waitPhase(t, ns, "nowhere", schedulingv1alpha1.PhaseTimeoutBackoff)
		require.Eventually(t, func() bool { return *c.job(t, ns, "nowhere").Spec.Suspend }, soon, pace)
		c.waitPhase(t, ns, "next", schedulingv1alpha1.PhaseSucceed)
		require.Len(t, c.podsOf(t, ns, "next"), 1, "it ran once (I3)")
		u := c.unit(t, ns, "nowhere")
		require.EqualValues(t, 1, *u.Status.RequeueState.Count)
		require.Empty(t, u.Status.Admissions)
		require.EqualValues(t, 1, u.Status.Attempts)
		watch.clean(t, map[string]int{ns + "/nowhere": 0, ns + "/next": 1})
	}
}

// Either process is killed while a job that grows gets more: it gets it once, and what others hold is not touched.
func TestAProcessIsKilledAmidAResize(t *testing.T) {
	c := sharedCluster(t)
	for _, component := range []controlplane.Component{controlplane.Scheduler, controlplane.Controller} {
		ns := c.namespace(t, "killed-amid-resize-"+string(component))
		c.quota(t, ns, ns, 4, 4)
		watch := observe(t, c, map[string]int{ns: 4})
		c.create(t, newJob(ns, "grower", suspended, ofQuota(ns), cpu("1"), runs(time.Hour), func(j *batchv1.Job) {
			j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](1), ptr.To[int32](6)
		}), newJob(ns, "other", suspended, ofQuota(ns), cpu("2"), runs(time.Hour)))
		c.waitPhase(t, ns, "grower", schedulingv1alpha1.PhaseRunning)
		c.waitPhase(t, ns, "other", schedulingv1alpha1.PhaseRunning)
		c.patchJob(t, ns, "grower", `{"spec":{"parallelism":3}}`)
		require.NoError(t, c.Kill(component))
		require.Eventually(t, func() bool { return len(c.podsOf(t, ns, "grower")) == 3 }, soon, pace)
		require.NoError(t, c.Restart(t.Context(), component))
		waits := func() bool {
			pending := meta.FindStatusCondition(c.unit(t, ns, "grower").Status.Conditions,
				schedulingv1alpha1.ConditionResizePending)
			return pending != nil && pending.Status == metav1.ConditionTrue
		}
		require.Eventually(t, waits, soon, pace)
		// There is room for one more. It waits for two, unless the scheduler alone was there to see pods come one by one:
		// then the first of them is let go.
		require.Eventually(t, func() bool {
			return int64(c.bound(t, ns, "grower")) == c.unit(t, ns, "grower").Status.Admissions[0].Replicas
		}, soon, pace, "it runs with what it holds")
		require.Less(t, c.bound(t, ns, "grower"), 3)
		require.NoError(t, c.Kill(component))
		watch.atMost(ns, 5)
		c.setQuotaMax(t, ns, ns, 5)
		require.NoError(t, c.Restart(t.Context(), component))
		require.Eventually(t, func() bool { return c.bound(t, ns, "grower") == 3 }, soon, pace)
		require.EqualValues(t, 3, c.unit(t, ns, "grower").Status.Admissions[0].Replicas)
		require.EqualValues(t, 1, c.unit(t, ns, "grower").Status.Attempts)
		require.Equal(t, 1, c.bound(t, ns, "other"))
		require.False(t, waits())
		watch.clean(t, map[string]int{ns + "/grower": 3, ns + "/other": 1})
	}
}
