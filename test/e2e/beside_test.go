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
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// onNode has the pods of a job fit on one node only.
func onNode(i int) jobOption {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: controlplane.NodeName(i)}
	}
}

// outlivesLosses has a job not fail for pods that somebody else takes away.
func outlivesLosses(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](100) }

const urgentClass = "urgent"

// urgentPods makes sure that there is the class of pods of high priority.
func (c *cluster) urgentPods(t *testing.T) {
	t.Helper()
	_, err := c.kube.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: urgentClass}, Value: 1000}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// plainPod creates a pod that no queue manages, as the options make the template of a job.
func (c *cluster) plainPod(t *testing.T, namespace, name string, opts ...jobOption) {
	t.Helper()
	template := newJob(namespace, name, opts...).Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = namespace, name
	_, err := c.kube.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// waitPod waits until a pod is as it should be.
func (c *cluster) waitPod(t *testing.T, namespace, name, what string, is func(*corev1.Pod) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		pod, err := c.kube.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && is(pod)
	}, soon, pace, "pod %s %s", name, what)
}

func assigned(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" }

// refusedFor says whether the scheduler told that a pod has no node for this cause.
func refusedFor(cause string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, cause)
		})
	}
}

// uidsOf the pods of a job that are not being deleted.
func (c *cluster) uidsOf(t *testing.T, namespace, job string) (uids []types.UID) {
	t.Helper()
	for _, pod := range c.podsOf(t, namespace, job) {
		if pod.DeletionTimestamp == nil {
			uids = append(uids, pod.UID)
		}
	}
	slices.Sort(uids)
	return uids
}

// revokes has ElasticQuota evict pods of quotas that use more than their runtime for two seconds.
func revokes(config map[string]any) {
	args := pluginArgs(config, "ElasticQuota")
	args["monitorAllQuotas"], args["delayEvictTime"] = true, "2s"
}

func pluginArgs(config map[string]any, name string) map[string]any {
	for _, plugin := range config["profiles"].([]any)[0].(map[string]any)["pluginConfig"].([]any) {
		if plugin := plugin.(map[string]any); plugin["name"] == name {
			return plugin["args"].(map[string]any)
		}
	}
	return map[string]any{}
}

// Job preemption of Coscheduling deletes pods of any quota. It spares those of a queue with withinQueue. A job
// that lost pods keeps its quota, and gets new ones when there is room.
func TestCoschedulingSparesPodsOfAQueueThatPreempts(t *testing.T) {
	c := start(t, "beside", controlplane.Options{Nodes: 2, NodeCPU: "4"})
	c.complete(t)
	c.urgentPods(t)
	ns := c.namespace(t, "beside")
	c.quota(t, ns, "spared", 4, 4)
	c.quota(t, ns, "taken", 4, 4)
	c.patchQueue(t, "spared", `{"spec":{"preemption":{"withinQueue":"LowerPriority"}}}`)
	for i, name := range []string{"spared", "taken"} {
		c.create(t, newJob(ns, name, suspended, ofQuota(name), pods(4), runs(30*second), onNode(i), outlivesLosses))
	}
	c.waitPhase(t, ns, "spared", schedulingv1alpha1.PhaseRunning)
	c.waitPhase(t, ns, "taken", schedulingv1alpha1.PhaseRunning)
	spared := c.uidsOf(t, ns, "spared")

	c.plainPod(t, ns, "urgent-0", onNode(0), cpu("2"), runs(time.Hour), ofClass(urgentClass))
	c.plainPod(t, ns, "urgent-1", onNode(1), cpu("2"), runs(time.Hour), ofClass(urgentClass))
	require.Eventually(t, func() bool { return len(c.uidsOf(t, ns, "taken")) == 2 }, soon, pace, "two are deleted")
	c.waitPod(t, ns, "urgent-0", "is refused after preemption was tried", refusedFor("no potential victims"))
	require.Equal(t, spared, c.uidsOf(t, ns, "spared"))

	for _, name := range []string{"urgent-0", "urgent-1"} {
		require.NoError(t, c.kube.CoreV1().Pods(ns).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	c.waitDone(t, ns, 2, 3*time.Minute)
	require.EqualValues(t, 1, attempts(c.unit(t, ns, "taken")), "it kept its quota")
}

// ElasticQuota preempts within a quota for a pod of higher priority. A pod outside of the queue does not get held quota
// of an admitted job. So no pod of a job is deleted for it, while others are.
func TestElasticQuotaPreemptsNothingThatStaysReserved(t *testing.T) {
	c := sharedCluster(t)
	c.urgentPods(t)
	ns := c.namespace(t, "same-quota")
	c.quota(t, ns, "same-quota", 5, 5)
	c.create(t, newJob(ns, "steady", suspended, ofQuota("same-quota"), pods(4), runs(20*second), outlivesLosses))
	c.waitPhase(t, ns, "steady", schedulingv1alpha1.PhaseRunning)
	steady := c.uidsOf(t, ns, "steady")
	c.plainPod(t, ns, "plain", ofQuota("same-quota"), runs(time.Hour))
	c.waitPod(t, ns, "plain", "gets a node", assigned)

	c.plainPod(t, ns, "urgent-0", ofQuota("same-quota"), runs(time.Hour), ofClass(urgentClass))
	c.waitPod(t, ns, "urgent-0", "gets the node of a plain pod", assigned)
	c.plainPod(t, ns, "urgent-1", ofQuota("same-quota"), runs(second), ofClass(urgentClass))
	c.waitPod(t, ns, "urgent-1", "is refused", refusedFor("Insufficient quotas"))
	stays(t, 5*second, "the job keeps its pods", func() bool {
		return slices.Equal(steady, c.uidsOf(t, ns, "steady"))
	})
	c.waitDone(t, ns, 1, time.Minute)
	c.waitPod(t, ns, "urgent-1", "gets what the job gave back", assigned)
}

// Overuse revoke of ElasticQuota evicts pods of a job that has borrowed. The quota stays with the job until
// recoverySeconds are over. Then the job waits, and the owner has its min.
func TestARevokedJobGivesItsQuotaBack(t *testing.T) {
	c := start(t, "revoke", controlplane.Options{Nodes: 2})
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{Mutate: revokes}))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	ns := c.namespace(t, "revoke")
	c.bind(t, controlplane.SchedulerUser, "edit", ns) // needed to evict pods, which our own roles do not include
	c.quota(t, ns, "revoke", 8, 8, isParent())
	c.quota(t, ns, "borrower", 2, 8, under("revoke"))
	c.quota(t, ns, "owner", 6, 8, under("revoke"))
	c.patchQueue(t, "borrower", `{"spec":{"timeouts":{"recoverySeconds":1}}}`)
	c.create(t, newJob(ns, "lent", suspended, ofQuota("borrower"), pods(8), runs(time.Hour), outlivesLosses))
	c.waitPhase(t, ns, "lent", schedulingv1alpha1.PhaseRunning)

	own := []string{"own-0", "own-1", "own-2", "own-3", "own-4", "own-5"}
	for _, name := range own {
		c.plainPod(t, ns, name, ofQuota("owner"), runs(time.Hour))
	}
	require.Eventually(t, func() bool {
		conditions := c.unit(t, ns, "lent").Status.Conditions
		evicted := meta.FindStatusCondition(conditions, schedulingv1alpha1.ConditionEvicted)
		return evicted != nil && evicted.Reason == "RecoveryTimeout"
	}, soon, pace, "the job has lost pods and gives its quota back")
	for _, name := range own {
		c.waitPod(t, ns, name, "gets a node", assigned)
	}
}
