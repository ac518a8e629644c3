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
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// These are the cases of docs/operators/disaster.md. In each of them no pod that runs is killed, no quota is
// overdrawn, and all pending jobs run to their end.

// disaster is a cluster with running and pending jobs in one quota.
type disaster struct {
	*cluster
	ns    string
	watch *watched
	// ran are the pods of running jobs, by job.
	ran map[string][]types.UID
}

// disasterCores is max of the quota.
const disasterCores = 6

// startDisaster has two jobs that run and four that wait for them, in a quota of the name of the namespace.
func startDisaster(t *testing.T, name string, opts controlplane.Options) *disaster {
	t.Helper()
	d := &disaster{cluster: start(t, name, opts), ns: name}
	d.startBoth(t)
	d.namespace(t, name)
	d.quota(t, name, name, disasterCores, disasterCores)
	d.watch = observe(t, d.cluster, map[string]int{name: disasterCores})
	for i := range 2 {
		d.create(t, newJob(name, fmt.Sprintf("runs-%d", i), suspended, ofQuota(name), pods(2), runs(time.Hour), replaceable))
	}
	d.running(t, "runs-0", "runs-1")
	for i := range 4 {
		d.create(t, newJob(name, fmt.Sprintf("waits-%d", i), suspended, ofQuota(name), cpu("3")))
	}
	for i := range 4 {
		d.waitReason(t, name, fmt.Sprintf("waits-%d", i), "QuotaExceeded")
	}
	return d
}

// replaceable jobs make new pods for lost ones.
func replaceable(j *batchv1.Job) { j.Spec.BackoffLimit = ptr.To[int32](6) }

// startBoth starts scheduler and controller, with leader election as shipped.
func (d *disaster) startBoth(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, d.StartScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true, Mutate: auditOften}))
	require.NoError(t, d.StartController(ctx, controlplane.ControllerOptions{LeaderElect: true}))
}

// running waits until all pods of the jobs run, and takes their UIDs down.
func (d *disaster) running(t *testing.T, jobs ...string) {
	t.Helper()
	if d.ran == nil {
		d.ran = map[string][]types.UID{}
	}
	for _, job := range jobs {
		want := int(*d.job(t, d.ns, job).Spec.Parallelism)
		require.Eventually(t, func() bool {
			return len(d.podsIn(t, job, corev1.PodRunning)) == want
		}, soon, pace, "all pods of %s run", job)
		d.ran[job] = uidsOf(d.podsIn(t, job, corev1.PodRunning))
	}
}

func (d *disaster) podsIn(t *testing.T, job string, phase corev1.PodPhase) []corev1.Pod {
	t.Helper()
	return slices.DeleteFunc(d.podsOf(t, d.ns, job), func(p corev1.Pod) bool {
		return p.Status.Phase != phase || p.DeletionTimestamp != nil
	})
}

// undisturbed checks that the pods that ran still run, and that their jobs are not suspended.
func (d *disaster) undisturbed(t *testing.T, jobs ...string) {
	t.Helper()
	for _, job := range jobs {
		require.Equal(t, d.ran[job], uidsOf(d.podsIn(t, job, corev1.PodRunning)), "pods of %s", job)
		require.False(t, *d.job(t, d.ns, job).Spec.Suspend, job)
		d.waitPhase(t, d.ns, job, schedulingv1alpha1.PhaseRunning)
	}
}

// over ends the running jobs. All n jobs of the namespace are done then.
func (d *disaster) over(t *testing.T, n int, jobs ...string) {
	t.Helper()
	d.undisturbed(t, jobs...)
	for _, job := range jobs {
		d.podsSucceed(t, d.ns, job)
	}
	d.waitDone(t, d.ns, n, 3*time.Minute)
	d.watch.clean(t, nil)
	d.agrees(t)
}

// All QueueUnits are deleted: the controller makes new ones, and jobs that run are adopted.
func TestDisasterQueueUnitsDeleted(t *testing.T) {
	d := startDisaster(t, "units-deleted", controlplane.Options{})
	units := d.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(d.ns)
	before, err := units.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, before.Items, 6)
	require.NoError(t, units.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	for i := range before.Items {
		require.Eventually(t, func() bool {
			u := d.unit(t, d.ns, before.Items[i].GetName())
			return u != nil && u.UID != before.Items[i].GetUID()
		}, soon, pace, before.Items[i].GetName())
	}
	for i := range 4 {
		d.waitReason(t, d.ns, fmt.Sprintf("waits-%d", i), "QuotaExceeded")
	}
	d.over(t, 6, "runs-0", "runs-1")
}

// The queue namespace is deleted, and with it the Queues, the configuration and the controller. The
// scheduler keeps the configuration until it is applied again.
func TestDisasterQueueNamespaceDeleted(t *testing.T) {
	d := startDisaster(t, "namespace-deleted", controlplane.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	restore := func() {
		require.NoError(t, d.ApplyObjects(ctx, configuration("namespaceSelector: {matchExpressions: "+
			"[{key: kubernetes.io/metadata.name, operator: NotIn, values: [elsewhere]}]}")))
		d.createQueue(t, &schedulingv1alpha1.Queue{
			ObjectMeta: metav1.ObjectMeta{Namespace: schedulingv1alpha1.DefaultQueueNamespace, Name: "ours",
				Annotations: map[string]string{schedulingv1alpha1.AnnotationAvailableQuota: d.ns}},
			Spec: schedulingv1alpha1.QueueSpec{QueuePolicy: schedulingv1alpha1.PolicyBlock},
		})
	}
	restore()
	d.create(t, newJob(d.ns, "ours", suspended, ofQuota(d.ns), inQueue("ours"), runs(time.Hour), replaceable))
	d.running(t, "ours")
	d.create(t, newJob(d.ns, "ours-waits", suspended, ofQuota(d.ns), inQueue("ours"), cpu("3")))
	d.waitReason(t, d.ns, "ours-waits", "QuotaExceeded")
	require.Eventually(t, func() bool {
		return strings.Contains(d.LogTail(controlplane.Scheduler, 4000), "Which jobs are managed changed")
	}, soon, pace)

	require.NoError(t, d.kube.CoreV1().Namespaces().Delete(ctx, schedulingv1alpha1.DefaultQueueNamespace,
		metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := d.kube.CoreV1().Namespaces().Get(ctx, schedulingv1alpha1.DefaultQueueNamespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, 2*soon, pace)
	require.NoError(t, d.Kill(controlplane.Controller)) // as its pods are gone
	d.waitReason(t, d.ns, "ours-waits", "UnknownQueue")
	require.Eventually(t, func() bool {
		return strings.Contains(d.LogTail(controlplane.Scheduler, 4000), "the ConfigMap of managed jobs is gone")
	}, soon, pace)
	// The policies refuse what they cannot judge.
	_, err := d.kube.BatchV1().Jobs(d.ns).Create(ctx, newJob(d.ns, "refused", ofQuota(d.ns)), metav1.CreateOptions{})
	require.ErrorContains(t, err, "no params found")

	require.NoError(t, d.install(ctx))
	restore()
	require.NoError(t, d.StartController(ctx, controlplane.ControllerOptions{LeaderElect: true}))
	require.Eventually(t, func() bool { return d.queue(t, d.ns) != nil }, soon, pace, "the default Queue is back")
	d.waitReason(t, d.ns, "ours-waits", "QuotaExceeded")
	d.over(t, 8, "runs-0", "runs-1", "ours")
}

// configuration is the ConfigMap of managed jobs.
func configuration(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "koord-jobqueue-managed-jobs", "namespace": "koord-queue"},
		"data":     map[string]any{"managedJobs": text},
	}}
}

// Both processes are down for an hour. An hour makes times old, which the test writes into the units, and compacts the
// store. A job that was not ready when they went down, and is ready since, is not evicted for that.
func TestDisasterBothProcessesDown(t *testing.T) {
	d := startDisaster(t, "both-down", controlplane.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	queues := d.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace)
	_, err := queues.Patch(ctx, d.ns, types.MergePatchType,
		[]byte(`{"spec":{"timeouts":{"podsReadySeconds":600,"recoverySeconds":600}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	d.ready(t, "runs-1", corev1.ConditionFalse)
	require.Eventually(t, func() bool {
		return !d.unitReady(t, "runs-1")
	}, soon, pace, "the unit of runs-1 is not ready")
	for _, process := range []controlplane.Component{controlplane.Scheduler, controlplane.Controller} {
		require.NoError(t, d.Kill(process))
	}

	d.ready(t, "runs-1", corev1.ConditionTrue)
	d.podsSucceed(t, d.ns, "runs-0")
	require.Eventually(t, func() bool { return jobDone(d.job(t, d.ns, "runs-0")) }, soon, pace)
	background := metav1.DeletePropagationBackground
	require.NoError(t, d.kube.BatchV1().Jobs(d.ns).Delete(ctx, "waits-0",
		metav1.DeleteOptions{PropagationPolicy: &background}))
	d.create(t, newJob(d.ns, "comes", suspended, ofQuota(d.ns), cpu("3")))
	d.create(t, newJob(d.ns, "comes-running", ofQuota(d.ns), cpu("3")))
	d.anHourPasses(t)
	d.compact(t)

	d.startBoth(t)
	d.waitDone(t, d.ns, 4, 3*time.Minute) // of three cores each, while runs-1 holds two
	d.over(t, 7, "runs-1")
	require.Nil(t, d.unit(t, d.ns, "waits-0"))
}

// ready has the pods of a job ready, or not.
func (d *disaster) ready(t *testing.T, job string, status corev1.ConditionStatus) {
	t.Helper()
	for _, p := range d.podsOf(t, d.ns, job) {
		_, err := d.kube.CoreV1().Pods(d.ns).Patch(t.Context(), p.Name, types.StrategicMergePatchType,
			[]byte(fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)), metav1.PatchOptions{},
			"status")
		require.NoError(t, err)
	}
}

func (d *disaster) unitReady(t *testing.T, name string) bool {
	t.Helper()
	for _, condition := range d.unit(t, d.ns, name).Status.Conditions {
		if condition.Type == schedulingv1alpha1.ConditionPodsReady {
			return condition.Status == metav1.ConditionTrue
		}
	}
	return false
}

// anHourPasses moves all times of the QueueUnits in the store back.
func (d *disaster) anHourPasses(t *testing.T) {
	t.Helper()
	client := d.storeClient(t)
	response, err := client.Get(t.Context(), "/registry/scheduling.x-k8s.io/queueunits/", clientv3.WithPrefix())
	require.NoError(t, err)
	require.NotEmpty(t, response.Kvs)
	for _, kv := range response.Kvs {
		var object map[string]any
		require.NoError(t, json.Unmarshal(kv.Value, &object))
		content, err := json.Marshal(shift(object, -time.Hour))
		require.NoError(t, err)
		_, err = client.Put(t.Context(), string(kv.Key), string(content))
		require.NoError(t, err)
	}
}

// compact has the store forget its history, which the observer has taken down.
func (d *disaster) compact(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, d.history.store.CaughtUp(ctx))
	client := d.storeClient(t)
	response, err := client.Get(ctx, "\x00")
	require.NoError(t, err)
	_, err = client.Compact(ctx, response.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
}

// Half of the nodes are lost with what ran there. The other pods run on though the quota holds more than the nodes
// have, and nothing is admitted until nodes are back.
func TestDisasterNodePoolLost(t *testing.T) {
	d := startDisaster(t, "nodes-lost", controlplane.Options{Nodes: 2, NodeCPU: "3"})
	lost, kept := "", map[string][]types.UID{}
	onNode := map[string]int{}
	for _, job := range []string{"runs-0", "runs-1"} {
		for _, p := range d.podsOf(t, d.ns, job) {
			onNode[p.Spec.NodeName]++
		}
	}
	require.Len(t, onNode, 2, "pods are on both nodes")
	lost = controlplane.NodeName(1)
	for job := range d.ran {
		for _, p := range d.podsOf(t, d.ns, job) {
			if p.Spec.NodeName != lost {
				kept[job] = append(kept[job], p.UID)
			}
		}
		slices.Sort(kept[job])
	}
	require.NoError(t, d.kube.CoreV1().Nodes().Delete(t.Context(), lost, metav1.DeleteOptions{}))

	gone := func() bool { // Kubernetes collects pods of nodes that do not exist
		list, err := d.kube.CoreV1().Pods(d.ns).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return !slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == lost })
	}
	require.Eventually(t, gone, 4*time.Minute, pace)
	d.compareKept(t, kept)
	for i := range 4 {
		d.waitPhase(t, d.ns, fmt.Sprintf("waits-%d", i), schedulingv1alpha1.PhaseEnqueued)
	}

	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, d.CreateNodes(ctx, 2))
	d.running(t, "runs-0", "runs-1")
	d.compareKept(t, kept)
	d.over(t, 6, "runs-0", "runs-1")
}

func (d *disaster) compareKept(t *testing.T, kept map[string][]types.UID) {
	t.Helper()
	for job, uids := range kept {
		now := uidsOf(d.podsIn(t, job, corev1.PodRunning))
		for _, uid := range uids {
			require.Contains(t, now, uid, "a pod of %s", job)
		}
	}
}

// The store is restored to the state of yesterday. All of its clients are started again.
func TestDisasterStoreRestored(t *testing.T) {
	d := startDisaster(t, "restored", controlplane.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	store, yesterday := filepath.Join(d.Dir(), "etcd"), filepath.Join(t.TempDir(), "etcd")
	// A disk snapshot: the store is at rest while its files are copied.
	require.NoError(t, d.Pause(controlplane.Etcd))
	err := os.CopyFS(yesterday, os.DirFS(store))
	require.NoError(t, d.Resume(controlplane.Etcd))
	require.NoError(t, err)

	// Today one job ends, two that waited follow, and a job comes that yesterday does not know.
	d.podsSucceed(t, d.ns, "runs-1")
	d.waitDone(t, d.ns, 5, 2*time.Minute)
	d.create(t, newJob(d.ns, "unknown", suspended, ofQuota(d.ns), cpu("4"), runs(time.Hour)))
	d.running(t, "unknown")
	d.undisturbed(t, "runs-0")

	all := []controlplane.Component{controlplane.Etcd, controlplane.APIServer, controlplane.ControllerManager,
		controlplane.KWOK, controlplane.Scheduler, controlplane.Controller}
	d.watch.clean(t, nil)
	d.history.end()
	for _, process := range slices.Backward(all) {
		require.NoError(t, d.StopComponent(process))
	}
	require.NoError(t, os.RemoveAll(store))
	require.NoError(t, os.CopyFS(store, os.DirFS(yesterday)))
	for _, process := range all {
		require.NoError(t, d.Restart(ctx, process))
		if process == controlplane.Etcd {
			d.history, err = follow(d.URL(controlplane.Etcd))
			require.NoError(t, err)
			d.watch = observe(t, d.cluster, map[string]int{d.ns: disasterCores})
		}
	}

	_, err = d.kube.BatchV1().Jobs(d.ns).Get(ctx, "unknown", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	for i := range 4 {
		d.waitReason(t, d.ns, fmt.Sprintf("waits-%d", i), "QuotaExceeded")
	}
	d.over(t, 6, "runs-0", "runs-1")
}
