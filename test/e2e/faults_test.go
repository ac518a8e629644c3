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
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// A process is killed in the middle of 100 jobs and restarted. Every job runs exactly once, no quota is exceeded, and
// each unit is admitted once.
func TestNothingIsLostWhenAProcessIsKilled(t *testing.T) {
	c := sharedCluster(t)
	for _, component := range []controlplane.Component{
		controlplane.Scheduler, controlplane.Controller, controlplane.APIServer,
	} {
		t.Run(string(component), func(t *testing.T) {
			ns := c.namespace(t, "kill-"+string(component))
			c.quota(t, ns, ns, 20, 20)
			watch := observe(t, c, map[string]int{ns: 20})
			const n = 100
			c.createShort(t, ns, ns, n)
			c.waitDone(t, ns, 10, 2*time.Minute)
			killed := time.Now()
			require.NoError(t, c.Kill(component))
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			require.NoError(t, c.Restart(ctx, component))
			if component == controlplane.APIServer {
				watch.apiServerWasDown(killed, time.Now())
			}
			c.waitDone(t, ns, n, 4*time.Minute)
			c.ranOnce(t, watch, ns, n)
		})
	}
}

// createShort creates n jobs of one pod that runs for a second.
func (c *cluster) createShort(t *testing.T, namespace, quota string, n int) {
	t.Helper()
	for i := range n {
		c.create(t, newJob(namespace, fmt.Sprintf("job-%03d", i), suspended, ofQuota(quota), runs(time.Second)))
	}
}

// ranOnce checks of the jobs that createShort made, which are all of their namespace, that each was admitted once and
// had one pod bound (I3).
func (c *cluster) ranOnce(t *testing.T, watch *watched, namespace string, n int) {
	t.Helper()
	podsPerJob := map[string]int{}
	for i := range n {
		podsPerJob[fmt.Sprintf("%s/job-%03d", namespace, i)] = 1
	}
	watch.clean(t, podsPerJob)
	list, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(namespace).
		List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, n)
	for i := range list.Items {
		u := decodeUnit(t, &list.Items[i])
		require.EqualValues(t, 1, attempts(u), "admissions of %s (I3)", u.Name)
	}
}

// The environment variables by which hack/test.sh images names other programs: the directory of those that were
// unpacked from the images, and Koordinator's own scheduler.
const (
	imageBin       = "JOBQUEUE_IMAGE_BIN"
	stockScheduler = "JOBQUEUE_STOCK_SCHEDULER"
)

// The system is installed into a cluster with running labelled jobs: none is suspended, restarted or delayed, and
// what they use counts. Then it is taken out again, and what waited runs. Our scheduler without JobQueue stands for
// Koordinator's own, unless that is there.
func TestInstallIntoALivingClusterAndTakeOutAgain(t *testing.T) {
	c := start(t, "living", controlplane.Options{Bin: os.Getenv(imageBin)})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()

	stock := controlplane.SchedulerOptions{
		Name: "stock-scheduler", Binary: os.Getenv(stockScheduler), Mutate: controlplane.WithoutJobQueue,
	}
	require.NoError(t, c.StartScheduler(ctx, stock), "%s", c.LogTail(stock.Name, 20))
	ns := c.namespace(t, "living")
	c.quota(t, ns, "living", 50, 50)
	const n = 50
	for i := range n {
		c.create(t, newJob(ns, fmt.Sprintf("old-%02d", i), ofQuota("living"), runs(40*time.Second)))
	}
	require.Eventually(t, func() bool { return c.running(t, ns) == n }, soon, pace)
	before := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("old-%02d", i)
		before[name] = string(c.podsOf(t, ns, name)[0].UID)
	}

	// Install.
	require.NoError(t, c.StopComponent(stock.Name))
	c.complete(t)
	for i := range n {
		c.waitPhase(t, ns, fmt.Sprintf("old-%02d", i), schedulingv1alpha1.PhaseRunning)
	}
	c.create(t, newJob(ns, "new", suspended, ofQuota("living")))
	require.Contains(t, c.waitReason(t, ns, "new", "QuotaExceeded"), "cpu")
	for i := range n {
		name := fmt.Sprintf("old-%02d", i)
		j := c.job(t, ns, name)
		require.False(t, j.Spec.Suspend != nil && *j.Spec.Suspend, "%s is not suspended", name)
		running := c.podsOf(t, ns, name)
		require.Len(t, running, 1)
		require.Equal(t, before[name], string(running[0].UID), "the pod of %s is the same", name)
	}
	c.waitDone(t, ns, n+1, 2*time.Minute)

	// Uninstall: a job that would wait forever runs once the system is gone.
	c.create(t, newJob(ns, "waiting", suspended, ofQuota("living"), cpu("51")))
	c.waitReason(t, ns, "waiting", "ExceedsMax")
	require.NoError(t, c.StopComponent(controlplane.Controller))
	c.uninstall(t, "resume")
	require.NoError(t, c.StopComponent(controlplane.Scheduler))
	require.False(t, *c.job(t, ns, "waiting").Spec.Suspend)
	require.NotContains(t, fmt.Sprint(c.job(t, ns, "waiting").Annotations), "koord-queue")
	left, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, left.Items)
	c.setQuotaMax(t, ns, "living", 60)
	c.quota(t, ns, "other", 1, 1)
	require.NoError(t, c.StartScheduler(ctx, stock))
	c.create(t, newJob(ns, "after", ofQuota("other")))
	require.Eventually(t, func() bool { return jobDone(c.job(t, ns, "after")) }, soon, pace, "stock behaviour is back")
	require.NoError(t, c.StopComponent(stock.Name), "its rights are ours here")
	c.remove(t)
}

// running counts the running pods of a namespace.
func (c *cluster) running(t *testing.T, namespace string) int {
	t.Helper()
	list, err := c.kube.CoreV1().Pods(namespace).
		List(t.Context(), metav1.ListOptions{FieldSelector: "status.phase=" + string(corev1.PodRunning)})
	require.NoError(t, err)
	return len(list.Items)
}

// Two replicas of the scheduler: the standby admits nothing, and takes over with what the API holds when the leader is
// killed. No unit is admitted twice by the two (I3).
func TestStandbyTakesOver(t *testing.T) {
	const standby = controlplane.Component("standby-scheduler")
	c := start(t, "standby", controlplane.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true}))
	require.NoError(t,
		c.StartScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true, Name: standby, NoWait: true}))
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{}))
	ns := c.namespace(t, "standby")
	c.quota(t, ns, "standby", 5, 5)
	watch := observe(t, c, map[string]int{ns: 5})
	const n = 40
	c.createShort(t, ns, "standby", n)
	c.waitDone(t, ns, 5, soon)
	require.NotContains(t, c.LogTail(standby, 400), "Admission loop starts")
	require.NoError(t, c.Kill(controlplane.Scheduler))
	begin := time.Now()
	require.Eventually(t, func() bool { return strings.Contains(c.LogTail(standby, 400), "Admission loop starts") },
		soon, pace)
	t.Logf("the standby leads %s after the leader was killed", time.Since(begin).Round(100*time.Millisecond))
	c.waitDone(t, ns, n, 2*time.Minute)
	c.ranOnce(t, watch, ns, n)
}

// A rolling upgrade ends the leader with SIGTERM. The leader gives its lease back, so the standby does not wait for its
// end, and no unit is admitted twice (I3).
func TestALeaderThatIsAskedToEndHandsOver(t *testing.T) {
	const standby, standbyController = controlplane.Component("standby-scheduler"),
		controlplane.Component("standby-controller")
	c := start(t, "handover", controlplane.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true}))
	require.NoError(t,
		c.StartScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true, Name: standby, NoWait: true}))
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{LeaderElect: true}))
	require.Eventually(t, func() bool { return c.holder(t, controllerLease) != "" }, soon, pace)
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{LeaderElect: true, Name: standbyController}))
	ns := c.namespace(t, "handover")
	c.quota(t, ns, "handover", 5, 5)
	watch := observe(t, c, map[string]int{ns: 5})
	const n = 40
	c.createShort(t, ns, "handover", n)
	for _, step := range []struct {
		component controlplane.Component
		lease     types.NamespacedName
		done      int
	}{{controlplane.Scheduler, schedulerLease, 5}, {controlplane.Controller, controllerLease, 15}} {
		c.waitDone(t, ns, step.done, soon)
		before := c.holder(t, step.lease)
		require.NotEmpty(t, before)
		begin := time.Now()
		require.NoError(t, c.StopComponent(step.component))
		ended := time.Now()
		require.NotEqual(t, before, c.holder(t, step.lease), "the lease was given back")
		require.Eventually(t, func() bool { return !slices.Contains([]string{"", before}, c.holder(t, step.lease)) },
			soon, pace)
		t.Logf("%s ended after %s, and another one led %s later", step.component,
			ended.Sub(begin).Round(100*time.Millisecond), time.Since(ended).Round(100*time.Millisecond))
	}
	c.waitDone(t, ns, n, 2*time.Minute)
	c.ranOnce(t, watch, ns, n)
}

// A leader that was paused for longer than it has to renew its lease in ends when it goes on, whatever became of the
// lease.
func TestALeaderThatWasPausedEnds(t *testing.T) {
	c := start(t, "paused", controlplane.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{LeaderElect: true}))
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{LeaderElect: true}))
	// A lease that was written is not known to its holder yet.
	require.Eventually(t, func() bool {
		return strings.Contains(c.LogTail(controlplane.Controller, 400), "Starting workers")
	}, soon, pace)
	both := []controlplane.Component{controlplane.Scheduler, controlplane.Controller}
	for _, name := range both {
		require.NoError(t, c.Pause(name))
	}
	const longer = 7 * time.Second // than renewDeadline as shipped, and shorter than the lease
	time.Sleep(longer)
	for _, name := range both {
		require.NoError(t, c.Resume(name))
	}
	for _, name := range both {
		require.Eventually(t, func() bool { return !c.Running(name) }, soon, pace, "%s:\n%s", name, c.LogTail(name, 20))
		require.Contains(t, c.LogTail(name, 400), "stood still", name)
	}
}

// The leases of leader election as shipped.
var (
	schedulerLease  = types.NamespacedName{Namespace: "koordinator-system", Name: "koord-scheduler"}
	controllerLease = types.NamespacedName{Namespace: "koord-queue", Name: "jobqueue-controller"}
)

// holder is who leads, "" if nobody does.
func (c *cluster) holder(t *testing.T, key types.NamespacedName) string {
	t.Helper()
	lease, err := c.kube.CoordinationV1().Leases(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	require.NoError(t, err)
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}
