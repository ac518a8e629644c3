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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

var (
	elasticQuotas = schema.GroupVersionResource{Group: "scheduling.sigs.k8s.io", Version: "v1alpha1",
		Resource: "elasticquotas"}
	// systems are those with real operators here, by the file of their descriptor.
	systems = []string{
		"job", "jobset", "trainjob", "pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob", "mpijob-v1",
		"rayjob", "raycluster",
	}
)

// queueing is the cluster where all kinds are queued; nil until first used.
var queueing *cluster

// queueCluster has the operators, and scheduler and controller that manage all kinds. The scheduler is told of them
// while it runs.
func queueCluster(t *testing.T) *cluster {
	t.Helper()
	if queueing != nil {
		return queueing
	}
	c := complete(t, "queueing")
	c.manage(t, systems...)
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	c.awaitManaged(t)
	queueing = c
	return c
}

// manage has jobs of kinds managed, by the files of their descriptors.
func (c *cluster) manage(t *testing.T, files ...string) {
	t.Helper()
	var kinds []controlplane.Kind
	for _, kind := range jobkind.Builtin() {
		if slices.Contains(files, kind.File()) {
			kinds = append(kinds, controlplane.Kind{Name: kind.String(), Rights: kind.File()})
		}
	}
	require.NoError(t, c.ManageKinds(t.Context(), kinds...))
}

func (c *cluster) configure(t *testing.T, text string) {
	t.Helper()
	maps := c.kube.CoreV1().ConfigMaps("koord-queue")
	configMap, err := maps.Get(t.Context(), managedjobs.ConfigMap, metav1.GetOptions{})
	require.NoError(t, err)
	configMap.Data[managedjobs.Key] = text
	_, err = maps.Update(t.Context(), configMap, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// awaitManaged waits until the scheduler works with the configuration.
func (c *cluster) awaitManaged(t *testing.T) {
	t.Helper()
	configMap, err := c.kube.CoreV1().ConfigMaps("koord-queue").Get(t.Context(), managedjobs.ConfigMap,
		metav1.GetOptions{})
	require.NoError(t, err)
	m, err := managedjobs.From(configMap.Data)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return strings.Contains(c.LogTail(controlplane.Scheduler, 10000), m.Hash())
	}, soon, pace, "the scheduler takes the configuration while it runs")
}

// quota makes one for so many cores in the namespace, which may use it.
func (l *life) quota(cores string) {
	l.t.Helper()
	amounts := map[string]any{"cpu": cores, "memory": "100Gi", "ephemeral-storage": "100Gi"}
	_, err := l.cluster.dyn.Resource(elasticQuotas).Namespace(l.namespace).Create(l.t.Context(),
		&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
			"metadata": map[string]any{"name": l.namespace, "labels": map[string]any{
				v1alpha1.LabelQuotaParent:                   "koordinator-root-quota",
				"quota.scheduling.koordinator.sh/is-parent": "false",
			}},
			"spec": map[string]any{"min": map[string]any{"cpu": "0"}, "max": amounts},
		}}, metav1.CreateOptions{})
	require.NoError(l.t, err)
}

func (l *life) setQuota(cores string) {
	l.t.Helper()
	_, err := l.cluster.dyn.Resource(elasticQuotas).Namespace(l.namespace).Patch(l.t.Context(), l.namespace,
		types.MergePatchType, fmt.Appendf(nil, `{"spec":{"max":{"cpu":%q}}}`, cores), metav1.PatchOptions{})
	require.NoError(l.t, err)
}

func (l *life) units() dynamic.ResourceInterface {
	return l.cluster.dyn.Resource(v1alpha1.QueueUnitResource).Namespace(l.namespace)
}

// bound are its pods on nodes.
func (l *life) bound() []corev1.Pod {
	l.t.Helper()
	return slices.DeleteFunc(l.pods(), func(pod corev1.Pod) bool { return pod.Spec.NodeName == "" })
}

// unit of the job; nil while there is none.
func (l *life) unit() *v1alpha1.QueueUnit {
	l.t.Helper()
	list, err := l.units().List(l.t.Context(), metav1.ListOptions{})
	require.NoError(l.t, err)
	if len(list.Items) == 0 {
		return nil
	}
	require.Len(l.t, list.Items, 1, "nothing that the job made is queued by itself")
	unit := &v1alpha1.QueueUnit{}
	require.NoError(l.t, runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[0].Object, unit))
	return unit
}

func (l *life) awaitPhase(phases ...v1alpha1.QueueUnitPhase) *v1alpha1.QueueUnit {
	l.t.Helper()
	var unit *v1alpha1.QueueUnit
	l.eventually(fmt.Sprintf("its unit is %v", phases), func(context.Context) (bool, error) {
		if unit = l.unit(); unit == nil {
			return false, nil
		}
		for _, phase := range phases {
			if unit.Status.Phase == phase {
				return true, nil
			}
		}
		return false, nil
	})
	return unit
}

func (l *life) setActive(active bool) {
	l.t.Helper()
	_, err := l.units().Patch(l.t.Context(), l.unit().Name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"active":%t}}`, active), metav1.PatchOptions{})
	require.NoError(l.t, err)
}

func inQuota(name string) func(*unstructured.Unstructured) {
	return func(job *unstructured.Unstructured) {
		labels := job.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[v1alpha1.LabelQuotaName] = name
		job.SetLabels(labels)
	}
}

func (l *life) suspended() bool {
	value, _, _ := unstructured.NestedBool(l.current().Object, l.kind.suspend...)
	return value
}

// TestQueue leads a job of each kind through a queue, with its real operator.
func TestQueue(t *testing.T) { queueEach(t, queueCluster(t), jobKinds) }

// TestQueueWithStandIn does the same where no operator can be had.
func TestQueueWithStandIn(t *testing.T) {
	queueEach(t, standInCluster(t), slices.Concat(standInKinds, ownKinds))
}

func queueEach(t *testing.T, c *cluster, kinds []jobKind) {
	for i := range kinds {
		kind := &kinds[i]
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			namespace := kind.name + "-queue"
			// Pods of a job that keeps them would lack the label from before it was suspended.
			l := c.create(t, kind, namespace, kind.keepsPods, inQuota(namespace), inTemplates(namespace))

			// The job was created unsuspended, and waits all the same: for its missing quota, then for room.
			waiting := l.awaitPhase(v1alpha1.PhaseEnqueued)
			l.quota("0")
			l.eventually("it is suspended", func(context.Context) (bool, error) { return l.suspended(), nil })
			// Pods that its operator was about to create appear, disappear, and reach no node.
			require.Never(t, func() bool { return len(l.bound()) > 0 || !l.suspended() }, 2*time.Second, pace)
			if !kind.keepsPods {
				l.awaitNoPods()
			}
			l.recordState("suspended-at-creation")

			// There is room: the operator makes its pods, and they ask for what was estimated.
			l.setQuota("100")
			pods := l.awaitRunning()
			unit := l.awaitPhase(v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
			require.Equal(t, waiting.UID, unit.UID)
			requireEstimate(t, unit, pods)
			l.requireCharged(unit, pods)
			l.awaitPhase(v1alpha1.PhaseRunning)
			l.recordState("running")
			l.recordPods()

			// An administrator takes it out: its pods go. It comes back, and runs again.
			if !kind.keepsPods {
				l.setActive(false)
				l.eventually("it is suspended again", func(context.Context) (bool, error) { return l.suspended(), nil })
				l.awaitNoPods()
				l.recordState("suspended-while-running")
				l.setActive(true)
				again := l.awaitRunning()
				l.requireCharged(unit, again)
				for _, pod := range again {
					for _, before := range pods {
						require.NotEqual(t, before.UID, pod.UID)
					}
				}
				l.awaitPhase(v1alpha1.PhaseRunning)
			}

			// The job ends, and its quota is free.
			if kind.endless {
				require.NoError(t, l.client.Delete(t.Context(), l.name, metav1.DeleteOptions{}))
				l.eventually("its unit goes with it", func(context.Context) (bool, error) { return l.unit() == nil, nil })
				return
			}
			l.endPods(true)
			ended := l.awaitPhase(v1alpha1.PhaseSucceed)
			require.Empty(t, ended.Status.Admissions)
			l.recordState("succeeded")
		})
	}
}

// requireCharged: its pods are charged to its quota, and known to be of the unit.
func (l *life) requireCharged(unit *v1alpha1.QueueUnit, pods []corev1.Pod) {
	l.t.Helper()
	for i := range pods {
		pod := &pods[i]
		require.Equal(l.t, l.namespace, pod.Labels[v1alpha1.LabelQuotaName])
		owners := [][]string{l.kind.owners}
		if l.kind.otherOwners != nil {
			owners = append(owners, l.kind.otherOwners)
		}
		require.Contains(l.t, owners, l.owners(pod))
		if len(l.kind.suspend) > 0 && !l.kind.early {
			require.Equal(l.t, l.namespace+"/"+unit.Name, pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit])
		}
	}
}

// TestGatedKinds: pods of what cannot be suspended wait on no node until there is quota for them.
func TestGatedKinds(t *testing.T) {
	c := standInCluster(t)
	for i := range gatedKinds {
		kind := &gatedKinds[i]
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			namespace := kind.name + "-gated"
			l := c.create(t, kind, namespace, false, inQuota(namespace), inTemplates(namespace))
			l.awaitPhase(v1alpha1.PhaseEnqueued)
			l.quota("0")
			require.Never(t, func() bool { return len(l.bound()) > 0 }, 2*time.Second, pace)
			l.recordState("waiting")
			l.setQuota("100")
			pods := l.awaitRunning()
			unit := l.awaitPhase(v1alpha1.PhaseDequeued, v1alpha1.PhaseRunning)
			requireEstimate(t, unit, pods)
			l.requireCharged(unit, pods)
			l.awaitPhase(v1alpha1.PhaseRunning)
			l.recordState("running")
			require.NoError(t, l.client.Delete(t.Context(), l.name, metav1.DeleteOptions{}))
			l.eventually("its unit goes with it", func(context.Context) (bool, error) { return l.unit() == nil, nil })
		})
	}
}

// inTemplates names the quota in the pod templates where users of a kind have to.
func inTemplates(name string) func(*unstructured.Unstructured) {
	return func(job *unstructured.Unstructured) {
		for _, path := range [][]string{
			{"spec", "template"}, {"spec", "leaderWorkerTemplate", "leaderTemplate"},
			{"spec", "leaderWorkerTemplate", "workerTemplate"},
			{"spec", "mpiReplicaSpecs", "Launcher", "template"},
		} {
			if _, there, _ := unstructured.NestedMap(job.Object, path...); there {
				path = append(slices.Clone(path), "metadata", "labels", v1alpha1.LabelQuotaName)
				_ = unstructured.SetNestedField(job.Object, name, path...)
			}
		}
	}
}

// requireEstimate compares the request of the unit with those of its pods, resource by resource.
func requireEstimate(t *testing.T, unit *v1alpha1.QueueUnit, pods []corev1.Pod) {
	t.Helper()
	sum := corev1.ResourceList{}
	for i := range pods {
		for name, quantity := range resourcehelper.PodRequests(&pods[i], resourcehelper.PodResourcesOptions{}) {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	require.True(t, equality.Semantic.DeepEqual(sum, unit.Spec.Request), "pods ask for %v, the unit for %v", sum,
		unit.Spec.Request)
}

// TestQueueOfFailures: a job that fails gives its quota back.
func TestQueueOfFailures(t *testing.T) { failEach(t, queueCluster(t), jobKinds) }

// TestQueueOfFailuresWithStandIn does the same where no operator can be had.
func TestQueueOfFailuresWithStandIn(t *testing.T) {
	failEach(t, standInCluster(t), slices.Concat(standInKinds, ownKinds))
}

func failEach(t *testing.T, c *cluster, kinds []jobKind) {
	for i := range kinds {
		kind := &kinds[i]
		if kind.endless {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			namespace := kind.name + "-queue-failure"
			l := c.create(t, kind, namespace, true, inQuota(namespace), inTemplates(namespace))
			l.quota("100")
			l.awaitRunning()
			l.endPods(false)
			require.Empty(t, l.awaitPhase(v1alpha1.PhaseFailed).Status.Admissions)
			l.recordState("failed")
		})
	}
}

// TestJobsOfCronJobs: what makes them waits for nothing, so they wait by themselves. This one is made as "kubectl
// create job --from" makes it, and as the controller of CronJobs does in time.
func TestJobsOfCronJobs(t *testing.T) {
	c := standInCluster(t)
	c.logsOfFailure(t)
	l := c.create(t, &ownKinds[0], "cronjob", false, inQuota("cronjob"), func(job *unstructured.Unstructured) {
		template, _, err := unstructured.NestedMap(job.Object, "spec")
		require.NoError(t, err)
		cronJob := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "batch/v1", "kind": "CronJob", "metadata": map[string]any{"name": "nightly"},
			"spec": map[string]any{"schedule": "0 3 * * *", "jobTemplate": map[string]any{"spec": template}},
		}}
		cronJob, err = c.resource(t, cronJob.GroupVersionKind()).Namespace("cronjob").Create(t.Context(), cronJob,
			metav1.CreateOptions{})
		require.NoError(t, err)
		job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(cronJob, cronJob.GroupVersionKind())})
	})
	l.quota("0")
	l.awaitPhase(v1alpha1.PhaseEnqueued)
	l.eventually("it is suspended", func(context.Context) (bool, error) { return l.suspended(), nil })
	require.Empty(t, l.bound())
	l.setQuota("100")
	l.awaitPhase(v1alpha1.PhaseRunning)
	require.Len(t, l.bound(), l.kind.pods)
}

// TestInstalledBesideRunningJobs: jobs that run when their kind becomes managed are counted and left alone, with quota
// labels and without.
func TestInstalledBesideRunningJobs(t *testing.T) {
	c := complete(t, "beside")
	t.Cleanup(func() { _ = c.Stop() })
	installBeside(t, c, jobKinds, systems)
}

// TestInstalledBesideRunningJobsWithStandIn does the same where no operator can be had, and with what has no
// suspension.
func TestInstalledBesideRunningJobsWithStandIn(t *testing.T) {
	c := standInAlone(t, "beside-played")
	require.NoError(t, c.ApplyStandInCRDs(t.Context()))
	stop := c.play(t)
	t.Cleanup(func() {
		stop()
		_ = c.Stop()
	})
	installBeside(t, c, slices.Concat(standInKinds, gatedKinds), standInFiles()) // Jobs are managed from the beginning
}

func installBeside(t *testing.T, c *cluster, kinds []jobKind, files []string) {
	c.logsOfFailure(t)
	type running struct {
		*life
		uids map[types.UID]bool
	}
	var all []running
	for i := range kinds {
		for _, labelled := range []bool{true, false} {
			namespace := fmt.Sprintf("%s-beside-%t", kinds[i].name, labelled)
			var edits []func(*unstructured.Unstructured)
			if labelled {
				edits = append(edits, inQuota(namespace), inTemplates(namespace))
			}
			all = append(all, running{c.create(t, &kinds[i], namespace, false, edits...), map[types.UID]bool{}})
		}
	}
	for _, r := range all {
		r.quota("100")
		for _, pod := range r.awaitRunning() {
			r.uids[pod.UID] = true
		}
	}
	c.manage(t, files...)
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	c.awaitManaged(t)
	for i, r := range all {
		if labelled := i%2 == 0; labelled {
			unit := r.awaitPhase(v1alpha1.PhaseRunning)
			require.Equal(t, "true", unit.Annotations[v1alpha1.AnnotationAdopted])
		}
	}
	require.Never(t, func() bool {
		for _, r := range all {
			if r.suspended() {
				return true
			}
		}
		return false
	}, 3*time.Second, 100*pace)
	for i, r := range all {
		pods := r.awaitRunning()
		for _, pod := range pods {
			require.True(t, r.uids[pod.UID], "%s: its pods are those from before", r.namespace)
		}
		if labelled := i%2 == 0; !labelled {
			require.Nil(t, r.unit(), "nobody asked for a queue")
		}
	}
}

// TestOperatorThatIsKilled: an operator that dies between admission and pods is waited for, and the job runs once.
func TestOperatorThatIsKilled(t *testing.T) {
	c := complete(t, "killed")
	t.Cleanup(func() { _ = c.Stop() })
	c.manage(t, systems...)
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	c.awaitManaged(t)
	killOperators(t, c, jobKinds, func() {
		for _, operator := range controlplane.Operators() {
			require.NoError(t, c.Kill(operator))
		}
	}, func() {
		for _, operator := range controlplane.Operators() {
			require.NoError(t, c.Restart(t.Context(), operator))
		}
	})
}

// TestStandInThatIsKilled does the same where no operator can be had.
func TestStandInThatIsKilled(t *testing.T) {
	c := standInCluster(t)
	killOperators(t, c, standInKinds, func() { stopPlaying() }, func() { stopPlaying = c.play(t) })
}

func killOperators(t *testing.T, c *cluster, kinds []jobKind, kill, restart func()) {
	c.logsOfFailure(t)
	var all []*life
	for i := range kinds {
		namespace := kinds[i].name + "-killed"
		l := c.create(t, &kinds[i], namespace, true, inQuota(namespace), inTemplates(namespace))
		l.quota("0")
		all = append(all, l)
	}
	for _, l := range all {
		l.awaitPhase(v1alpha1.PhaseEnqueued)
	}
	kill()
	for _, l := range all {
		l.setQuota("100")
	}
	for _, l := range all {
		l.awaitPhase(v1alpha1.PhaseDequeued)
	}
	restart()
	for _, l := range all {
		l.awaitRunning()
		l.awaitPhase(v1alpha1.PhaseRunning)
	}
}
