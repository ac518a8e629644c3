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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A job is charged to the quota that ElasticQuota charges its pods to: the label, the namespace, the default. The
// default one is nobody's, so nothing is queued there (H2).
func TestQuotaComesFromLabelNamespaceOrDefault(t *testing.T) {
	c := sharedCluster(t)
	byLabel, byNamespace, byDefault := c.namespace(t, "by-label"), c.namespace(t, "by-namespace"),
		c.namespace(t, "by-default")
	c.quota(t, byLabel, "labelled", 4, 4)
	c.quota(t, byNamespace, byNamespace, 4, 4)

	c.create(t,
		newJob(byLabel, "template", suspended, ofQuota("labelled")),
		newJob(byLabel, "object", suspended, jobOfQuota("labelled")),
		newJob(byNamespace, "plain", suspended, inQueue(byNamespace)),
		newJob(byDefault, "plain", suspended, inQueue("koordinator-default-quota")),
	)
	for _, want := range []struct{ namespace, job, quota string }{
		{byLabel, "template", "labelled"},
		{byLabel, "object", "labelled"},
		{byNamespace, "plain", byNamespace},
	} {
		c.waitPhase(t, want.namespace, want.job, schedulingv1alpha1.PhaseSucceed)
		u := c.unit(t, want.namespace, want.job)
		require.EqualValues(t, 1, u.Status.Attempts)
		require.Empty(t, u.Status.Admissions, "a finished unit holds nothing (I7)")
		for _, p := range c.podsOf(t, want.namespace, want.job) {
			if label := p.Labels[schedulingv1alpha1.LabelQuotaName]; label != "" {
				require.Equal(t, want.quota, label)
			}
		}
	}
	c.waitEvent(t, byLabel, "template", "Admitted")
	c.waitReason(t, byDefault, "plain", "QuotaNotNamed")
}

// A Job whose pods form a gang of Koordinator is admitted whole or not at all, and its pods are bound together.
func TestGangIsAdmittedAsOne(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "gangs")
	c.quota(t, ns, "gangs", 4, 4)
	watch := observe(t, c, map[string]int{ns: 4})

	c.create(t,
		newJob(ns, "first", ofQuota("gangs"), pods(3), gang("first", 3), runs(6*time.Second)),
		newJob(ns, "second", ofQuota("gangs"), pods(3), gang("second", 3)),
	)
	c.waitPhase(t, ns, "first", schedulingv1alpha1.PhaseRunning)
	require.Len(t, c.podsOf(t, ns, "first"), 3)
	c.waitDone(t, ns, 2, soon)
	c.boundAfterAdmission(t, ns, "second")
	watch.clean(t, map[string]int{ns + "/second": 3})
}

// A plain pod that asks for more than a full quota has left waits in Koordinator as it always did.
func TestPlainPodInAFullQuotaWaitsForTheQuota(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "plain-pods")
	c.quota(t, ns, "plain-pods", 2, 2)
	watch := observe(t, c, map[string]int{ns: 2})
	c.create(t, newJob(ns, "holder", ofQuota("plain-pods"), cpu("2"), runs(8*time.Second)))
	c.waitPhase(t, ns, "holder", schedulingv1alpha1.PhaseRunning)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "plain", Labels: map[string]string{schedulingv1alpha1.LabelQuotaName: "plain-pods"},
	}}
	pod.Spec = newJob(ns, "template").Spec.Template.Spec
	_, err := c.kube.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		p, err := c.kube.CoreV1().Pods(ns).Get(t.Context(), "plain", metav1.GetOptions{})
		require.NoError(t, err)
		return p.Spec.NodeName != ""
	}, soon, pace, "the plain pod is bound once the job has ended")
	watch.clean(t, nil)
}

// Plain pods cannot use reserved quota of an admitted unit, and run as soon as it is given back. No event of a pod or a
// quota reports that to the scheduler.
func TestPlainPodRunsWhenAReservationEnds(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "reserved")
	c.quota(t, ns, "reserved", 2, 2)
	c.createUnit(t, handMadeUnit(ns, "holder", "reserved", "2"))
	c.waitPhase(t, ns, "holder", schedulingv1alpha1.PhaseDequeued)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: ns, Name: "plain", Labels: map[string]string{schedulingv1alpha1.LabelQuotaName: "reserved"},
	}}
	pod.Spec = newJob(ns, "template").Spec.Template.Spec
	_, err := c.kube.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	get := func() *corev1.Pod {
		p, err := c.kube.CoreV1().Pods(ns).Get(t.Context(), "plain", metav1.GetOptions{})
		require.NoError(t, err)
		return p
	}
	require.Eventually(t, func() bool {
		for _, condition := range get().Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return strings.Contains(condition.Message, "reserved for admitted jobs")
			}
		}
		return false
	}, soon, pace, "the plain pod is told why it waits")
	require.NoError(t, c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(ns).
		Delete(t.Context(), "holder", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return get().Spec.NodeName != "" }, soon, pace,
		"the plain pod is bound once nothing is reserved")
}

// In a queue of policy Block nothing passes the head; in one of policy Priority smaller jobs do.
func TestPolicies(t *testing.T) {
	c := sharedCluster(t)
	for _, policy := range []schedulingv1alpha1.QueuePolicy{
		schedulingv1alpha1.PolicyBlock, schedulingv1alpha1.PolicyPriority, schedulingv1alpha1.PolicyFIFO,
	} {
		name := "policy-" + map[schedulingv1alpha1.QueuePolicy]string{
			schedulingv1alpha1.PolicyBlock: "block", schedulingv1alpha1.PolicyPriority: "priority",
			schedulingv1alpha1.PolicyFIFO: "fifo",
		}[policy]
		t.Run(name, func(t *testing.T) {
			ns := c.namespace(t, name)
			c.quota(t, ns, name, 4, 4, withPolicy(policy))
			watch := observe(t, c, map[string]int{ns: 4})
			c.create(t, newJob(ns, "running", suspended, ofQuota(name), cpu("3"), runs(10*time.Second)))
			c.waitPhase(t, ns, "running", schedulingv1alpha1.PhaseRunning)
			c.create(t, newJob(ns, "head", suspended, ofQuota(name), cpu("4"), priority(10)))
			require.Eventually(t, func() bool {
				head := c.unit(t, ns, "head")
				// Creation times have the resolution of a second: within one the UID decides, which is nobody's order.
				return head != nil && time.Since(head.CreationTimestamp.Time) > time.Second
			}, soon, pace)
			c.create(t, newJob(ns, "small", suspended, ofQuota(name), priority(1)))
			if policy == schedulingv1alpha1.PolicyPriority {
				c.waitPhase(t, ns, "small", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
				require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, ns, "head").Status.Phase)
			} else {
				c.waitPhase(t, ns, "head", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning,
					schedulingv1alpha1.PhaseSucceed)
				require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, ns, "small").Status.Phase)
			}
			c.waitDone(t, ns, 3, soon)
			watch.clean(t, map[string]int{ns + "/running": 1, ns + "/head": 1, ns + "/small": 1})
		})
	}
}

// Capacity that frees in one queue wakes another queue under the same parent at once, and a larger maximum
// admits at once.
func TestWakeUps(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "wake-ups")
	c.quota(t, ns, "wake-parent", 4, 4, isParent())
	c.quota(t, ns, "wake-a", 0, 4, under("wake-parent"))
	c.quota(t, ns, "wake-b", 0, 4, under("wake-parent"))
	watch := observe(t, c, map[string]int{ns: 6})
	c.create(t, newJob(ns, "a", suspended, ofQuota("wake-a"), cpu("4"), runs(5*time.Second)))
	c.waitPhase(t, ns, "a", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "b", suspended, ofQuota("wake-b"), cpu("2"), runs(5*time.Second)))
	require.Eventually(t, func() bool { return c.unit(t, ns, "b") != nil }, soon, pace)
	c.waitPhase(t, ns, "b", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
	require.True(t, jobDone(c.job(t, ns, "a")), "b waits for a")

	c.create(t, newJob(ns, "c", suspended, ofQuota("wake-a"), cpu("4")))
	require.Eventually(t, func() bool { return c.unit(t, ns, "c") != nil }, soon, pace)
	c.setQuotaMax(t, ns, "wake-parent", 6)
	c.waitDone(t, ns, 3, soon)
	watch.clean(t, map[string]int{ns + "/a": 1, ns + "/b": 1, ns + "/c": 1})
}

// Two groups of users with quotas of their own share one queue. Each job is charged to its own quota, and a full quota
// of one group delays nobody of the other.
func TestQueueSharedByTwoQuotas(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "shared-queue")
	c.quota(t, ns, "staff", 2, 2)
	c.quota(t, ns, "students", 2, 2)
	queue := &schedulingv1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{
		Namespace: schedulingv1alpha1.DefaultQueueNamespace, Name: "university",
		Annotations: map[string]string{schedulingv1alpha1.AnnotationAvailableQuota: "staff,students"},
	}}
	c.createQueue(t, queue)
	for i := range 3 {
		c.create(t, newJob(ns, fmt.Sprintf("student-%d", i), suspended, ofQuota("students"), inQueue("university"),
			cpu("2"), runs(3*time.Second)))
	}
	require.Eventually(t, func() bool { return c.unit(t, ns, "student-2") != nil }, soon, pace)
	c.create(t, newJob(ns, "staff-0", suspended, ofQuota("staff"), inQueue("university"), cpu("2"), runs(3*time.Second)))
	c.waitPhase(t, ns, "staff-0", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, ns, "student-2").Status.Phase)
	c.quota(t, ns, "strangers", 2, 2)
	c.create(t, newJob(ns, "stranger", suspended, ofQuota("strangers"), inQueue("university")))
	c.waitReason(t, ns, "stranger", "QuotaNotInQueue")
	c.waitDone(t, ns, 4, soon)
}

// Two queues draw on one quota. The queue of higher priority is served first, whichever job came first.
func TestQueuesOfDifferentPriority(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "queue-priorities")
	c.quota(t, ns, "contended", 2, 2)
	for name, priority := range map[string]int32{"urgent": 10, "patient": 1} {
		c.createQueue(t, &schedulingv1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: schedulingv1alpha1.DefaultQueueNamespace, Name: name,
				Annotations: map[string]string{schedulingv1alpha1.AnnotationAvailableQuota: "contended"},
			},
			Spec: schedulingv1alpha1.QueueSpec{Priority: &priority},
		})
	}
	create := func(name, queue string, length time.Duration) {
		c.create(t, newJob(ns, name, suspended, ofQuota("contended"), inQueue(queue), cpu("2"), runs(length)))
	}
	create("now", "patient", 8*time.Second)
	c.waitPhase(t, ns, "now", schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning)
	create("earlier", "patient", time.Second)
	c.waitReason(t, ns, "earlier", "QuotaExceeded")
	create("later", "urgent", 4*time.Second)
	c.waitPhase(t, ns, "later", schedulingv1alpha1.PhaseRunning)
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, ns, "earlier").Status.Phase)
	c.waitDone(t, ns, 3, soon)
}
