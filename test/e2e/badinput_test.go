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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// handMadeUnit asks for so much cpu of a quota and has no consumer.
func handMadeUnit(namespace, name, quota, cpuAmount string) *schedulingv1alpha1.QueueUnit {
	return &schedulingv1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{schedulingv1alpha1.LabelQuotaName: quota}},
		Spec: schedulingv1alpha1.QueueUnitSpec{
			Request: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpuAmount)},
		},
	}
}

func (c *cluster) createQueue(t *testing.T, q *schedulingv1alpha1.Queue) {
	t.Helper()
	q.TypeMeta = metav1.TypeMeta{APIVersion: schedulingv1alpha1.SchemeGroupVersion.String(), Kind: "Queue"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(q)
	require.NoError(t, err)
	_, err = c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(q.Namespace).
		Create(t.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// queue returns a Queue, nil if there is none.
func (c *cluster) queue(t *testing.T, name string) *unstructured.Unstructured {
	t.Helper()
	list, err := c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace).
		List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// A policy that the scheduler was not built with is taken by the API, told by the queue, and holds up its own units
// only.
func TestAnUnknownPolicyIsToldAndItsUnitsWait(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "unknown-policy")
	c.quota(t, ns, "unknown-policy", 4, 4, withPolicy("NewestFirst"))
	c.create(t, newJob(ns, "j", suspended, ofQuota("unknown-policy"), runs(time.Second)))
	require.Contains(t, c.waitReason(t, ns, "j", "UnknownPolicy"), "NewestFirst")
	require.Eventually(t, func() bool {
		conditions, _, _ := unstructured.NestedSlice(c.queue(t, "unknown-policy").Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(item any) bool {
			active, _ := item.(map[string]any)
			return active["type"] == "Active" && active["status"] == "False" && active["reason"] == "UnknownPolicy"
		})
	}, soon, pace)

	patch := []byte(`{"metadata":{"labels":{"` + schedulingv1alpha1.LabelQueuePolicy + `":"FIFO"}}}`)
	_, err := c.dyn.Resource(elasticQuotas).Namespace(ns).Patch(t.Context(), "unknown-policy", types.MergePatchType,
		patch, metav1.PatchOptions{})
	require.NoError(t, err)
	c.waitPhase(t, ns, "j", schedulingv1alpha1.PhaseSucceed)
}

// Each bad object is parked with a reason that its owner can read, and a good job runs all the same.
func TestBadInputIsParkedAndStopsNobody(t *testing.T) {
	c := sharedCluster(t)
	ns, elsewhere := c.namespace(t, "bad-input"), c.namespace(t, "bad-input-elsewhere")
	c.quota(t, ns, "bad-input", 4, 4, withPolicy(schedulingv1alpha1.PolicyBlock))
	c.quota(t, ns, "bad-input-min", 2, 4, withPolicy(schedulingv1alpha1.PolicyBlock))
	c.create(t, newJob(elsewhere, "victim", suspended, runs(time.Second)))

	c.create(t,
		newJob(ns, "no-such-queue", suspended, ofQuota("bad-input"), inQueue("no-such-queue")),
		newJob(ns, "no-such-quota", suspended, ofQuota("no-such-quota")),
		newJob(ns, "too-big", suspended, ofQuota("bad-input"), cpu("5"), priority(100)),
		newJob(ns, "above-min", suspended, ofQuota("bad-input-min"), cpu("3"), nonPreemptible, priority(100)),
		newJob(ns, "no-pods", suspended, ofQuota("bad-input"), paused),
		newJob(ns, "absurd", suspended, ofQuota("bad-input"), cpu("9000000000000000"), pods(1000000)),
	)
	for job, reason := range map[string]string{
		"no-such-queue": "UnknownQueue",
		"no-such-quota": "UnknownQuota",
		"too-big":       "ExceedsMax",
		"above-min":     "ExceedsMin",
		"no-pods":       "NoPods",
		"absurd":        "InvalidRequest",
	} {
		message := c.waitReason(t, ns, job, reason)
		require.NotEmpty(t, message)
		c.waitEvent(t, ns, job, reason)
	}

	// Written by hand, against the rules: another namespace, a consumer that is gone, one with another UID, a second
	// unit of a job.
	c.create(t, newJob(ns, "real", suspended, ofQuota("bad-input"), cpu("4"), runs(20*time.Second)))
	c.waitPhase(t, ns, "real", schedulingv1alpha1.PhaseRunning)
	real := c.job(t, ns, "real")
	consumer := func(name, namespace, uid string) *corev1.ObjectReference {
		return &corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Name: name, Namespace: namespace, UID: types.UID(uid),
		}
	}
	byHand := func(name string, ref *corev1.ObjectReference) {
		u := handMadeUnit(ns, name, "bad-input", "1")
		u.Spec.ConsumerRef = ref
		c.createUnit(t, u)
	}
	byHand("other-namespace", consumer("victim", elsewhere, string(c.job(t, elsewhere, "victim").UID)))
	byHand("gone", consumer("never-was", ns, "00000000-0000-0000-0000-000000000000"))
	byHand("other-uid", consumer("real", ns, "00000000-0000-0000-0000-000000000001"))
	byHand("second", consumer("real", ns, string(real.UID)))
	c.waitReason(t, ns, "other-namespace", "ConsumerOtherNamespace")
	for _, name := range []string{"gone", "other-uid", "second"} {
		c.waitParkedOrGone(t, ns, name)
	}

	// A policy that is not well formed the CRD refuses.
	_, err := c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace).
		Create(t.Context(),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "Queue", "metadata": map[string]any{"name": "odd"},
				"spec": map[string]any{"queuePolicy": "Odd one"},
			}}, metav1.CreateOptions{})
	require.ErrorContains(t, err, "Odd one")

	c.create(t,
		newJob(ns, "good", suspended, ofQuota("bad-input"), cpu("1")),
		newJob(ns, "good-min", suspended, ofQuota("bad-input-min"), cpu("2"), nonPreemptible))
	for _, job := range []string{"good", "good-min"} {
		c.waitPhase(t, ns, job, schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
	}
	require.True(t, *c.job(t, ns, "too-big").Spec.Suspend)

	// The missing quota appears, and the unit goes on.
	c.quota(t, ns, "no-such-quota", 2, 2)
	c.waitPhase(t, ns, "no-such-quota", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
}

// waitParkedOrGone: the unit never holds quota; it is parked with a reason or removed by the controller.
func (c *cluster) waitParkedOrGone(t *testing.T, namespace, name string) {
	t.Helper()
	var last string
	require.Eventually(t, func() bool {
		u := c.unit(t, namespace, name)
		if u == nil {
			return true
		}
		require.Empty(t, u.Status.Admissions, "%s holds quota", name)
		last = fmt.Sprint(u.Status.Conditions)
		for _, cond := range u.Status.Conditions {
			switch cond.Reason {
			case "ConsumerNotFound", "ConsumerUIDMismatch", "DuplicateUnit":
				return true
			}
		}
		return false
	}, soon, pace, "%s: %s", name, lazy(&last))
}

// A unit for a job of ours that somebody wrote with a false request is corrected to what the job asks.
func TestFalseRequestIsCorrected(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "false-request")
	c.quota(t, ns, "false-request", 4, 4)
	c.create(t, newJob(ns, "holder", suspended, ofQuota("false-request"), cpu("4"), runs(8*time.Second)))
	c.waitPhase(t, ns, "holder", schedulingv1alpha1.PhaseRunning)
	c.create(t, newJob(ns, "modest", suspended, ofQuota("false-request"), cpu("3")))
	require.Eventually(t, func() bool { return c.unit(t, ns, "modest") != nil }, soon, pace)
	_, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(ns).Patch(t.Context(), "modest",
		"application/merge-patch+json", []byte(`{"spec":{"request":{"cpu":"1m"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return ptr.To(c.unit(t, ns, "modest").Spec.Request[corev1.ResourceCPU]).Cmp(resource.MustParse("3")) == 0
	}, soon, pace, "the request is what the job asks")
	c.waitDone(t, ns, 2, soon)
}
