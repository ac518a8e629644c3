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
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// stream is the work of two departments that share a parent, more than fits at any time. It has jobs of one to three
// pods of one or two cores, which also borrow from each other.
func stream(namespace string, quotas [2]string, n int) []*batchv1.Job {
	jobs := make([]*batchv1.Job, 0, n)
	for i := range n {
		jobs = append(jobs, newJob(namespace, fmt.Sprintf("job-%03d", i), suspended, ofQuota(quotas[i%7%2]),
			pods(int32(1+i%3)), cpu(strconv.Itoa(1+i%2)), runs(time.Duration(1+i%4)*second/2), priority(i%5)))
	}
	return jobs
}

// streams makes the quotas of two departments below a parent that has the cores.
func (c *cluster) streams(t *testing.T, namespace, name string, cores int) (quotas [2]string) {
	t.Helper()
	quotas = [2]string{name + "-a", name + "-b"}
	c.quota(t, namespace, name+"-parent", cores, cores, isParent())
	c.quota(t, namespace, quotas[0], cores*2/3, cores, under(name+"-parent"))
	c.quota(t, namespace, quotas[1], cores/3, cores, under(name+"-parent"))
	return quotas
}

// Jobs that the queue admits fit, so ElasticQuota refuses none of their pods.
func TestElasticQuotaRefusesNoPodOfAnAdmittedJob(t *testing.T) {
	c := sharedCluster(t)
	const n, cores = 120, 12
	ns := c.namespace(t, "stream")
	quotas := c.streams(t, ns, "stream", cores)
	watch := observe(t, c, map[string]int{ns: cores})
	uncounted, limit := c.beyondRuntime(t, "Uncounted"), c.beyondRuntime(t, "Limit")
	jobs := stream(ns, quotas, n)
	c.create(t, jobs...)
	c.waitDone(t, ns, n, 3*time.Minute)
	watch.clean(t, nil)
	require.Empty(t, watch.refused(), "pods of the queue's jobs that ElasticQuota refused")
	t.Logf("through the queue: %d jobs, 0 pods refused; passed on reserved quota: "+
		"%v that ElasticQuota had not counted yet, %v beyond its limit",
		n, c.beyondRuntime(t, "Uncounted")-uncounted, c.beyondRuntime(t, "Limit")-limit)
	require.Zero(t, c.metric(t, `scheduler_jobqueue_pods_beyond_runtime_total{`, `result="Refuse"`, `quota="stream-`))
}

// Without the queue ElasticQuota tries and refuses pods of the same work again and again.
func TestPodsWithoutAQueueAreRefused(t *testing.T) {
	c := sharedCluster(t)
	const n, cores = 120, 12
	bare := c.namespace(t, "bare-stream")
	quotas := c.streams(t, bare, "bare-stream", cores)
	watch := observe(t, c, map[string]int{bare: cores})
	total := 0
	for _, j := range stream(bare, quotas, n) {
		for i := range *j.Spec.Parallelism {
			pod := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy(), Spec: *j.Spec.Template.Spec.DeepCopy()}
			pod.Namespace, pod.Name = bare, fmt.Sprintf("%s-%d", j.Name, i)
			_, err := c.kube.CoreV1().Pods(bare).Create(t.Context(), pod, metav1.CreateOptions{})
			require.NoError(t, err)
			total++
		}
	}
	require.Eventually(t, func() bool { return len(watch.refused()) > total/4 }, soon, pace,
		"without the queue most pods are refused")
	t.Logf("without the queue: %d of %d pods were refused so far", len(watch.refused()), total)
	require.NoError(t, c.kube.CoreV1().Pods(bare).DeleteCollection(t.Context(),
		metav1.DeleteOptions{}, metav1.ListOptions{}))
}

// Two quotas share what their parent has; each is guaranteed four of ten cores and may use all. The first uses what the
// second leaves idle. When the second wants more, it gets its guarantee as jobs of the first end, before any other job
// of the first.
func TestAGuaranteeComesBackAsBorrowersEnd(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "guarantee")
	c.quota(t, ns, "lending", 10, 10, isParent())
	c.quota(t, ns, "borrower", 4, 10, under("lending"))
	c.quota(t, ns, "owner", 4, 10, under("lending"))
	watch := observe(t, c, map[string]int{ns: 10})
	jobs := func(quota, name string, n int, run time.Duration) {
		for i := range n {
			c.create(t, newJob(ns, fmt.Sprintf("%s-%02d", name, i), suspended, ofQuota(quota), runs(run)))
		}
	}
	jobs("owner", "small", 1, 20*second)
	c.waitPhase(t, ns, "small-00", schedulingv1alpha1.PhaseRunning)
	jobs("borrower", "lent", 8, 5*second)
	for i := range 8 {
		c.waitPhase(t, ns, fmt.Sprintf("lent-%02d", i), schedulingv1alpha1.PhaseDequeued, schedulingv1alpha1.PhaseRunning,
			schedulingv1alpha1.PhaseSucceed)
	}
	jobs("owner", "own", 6, 6*second)
	jobs("borrower", "late", 6, 6*second)
	c.waitDone(t, ns, 21, 3*time.Minute)
	watch.clean(t, nil)
	admitted := func(name string) (times []time.Time) {
		for i := range 6 {
			u := c.unit(t, ns, fmt.Sprintf("%s-%02d", name, i))
			require.NotNil(t, u.Status.LastAllocateTime, u.Name)
			times = append(times, u.Status.LastAllocateTime.Time)
		}
		slices.SortFunc(times, time.Time.Compare)
		return times
	}
	// Jobs that were created within one second go in no order of their names. Three of the owner and the small one are
	// its guarantee.
	own, late := admitted("own"), admitted("late")
	require.False(t, late[0].Before(own[2]), "jobs of the owner were admitted at %v, of the borrower at %v", own, late)
}

// atOnce has jobs of a queue be preempted however short they run.
const atOnce = `{"spec":{"preemption":{"minRunTimeSeconds":0}}}`

// The owner of a min gets it back while jobs that borrow it run. As many of them as needed are suspended, those of the
// least priority, and run again later. Each job ends once.
func TestAMinIsTakenBack(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "reclaim")
	c.quota(t, ns, "reclaim-all", 10, 10, isParent())
	c.quota(t, ns, "reclaim-borrower", 4, 10, under("reclaim-all"))
	c.quota(t, ns, "reclaim-owner", 6, 10, under("reclaim-all"))
	c.patchQueue(t, "reclaim-borrower", atOnce)
	c.patchQueue(t, "reclaim-owner", `{"spec":{"preemption":{"reclaim":"Any"}}}`)
	watch := observe(t, c, map[string]int{ns: 10})
	lent := func(i int) string { return fmt.Sprintf("lent-%d", i) }
	for i := range 5 {
		c.create(t, newJob(ns, lent(i), suspended, ofQuota("reclaim-borrower"), pods(2), priority(i), runs(20*second)))
	}
	for i := range 5 {
		c.waitPhase(t, ns, lent(i), schedulingv1alpha1.PhaseRunning)
	}

	c.create(t, newJob(ns, "own", suspended, ofQuota("reclaim-owner"), pods(6), runs(2*second)))
	c.waitPhase(t, ns, "own", schedulingv1alpha1.PhaseRunning)
	own := c.unit(t, ns, "own")
	taken := map[string]bool{}
	for i := range 5 {
		u := c.unit(t, ns, lent(i))
		if evicted := meta.FindStatusCondition(u.Status.Conditions, schedulingv1alpha1.ConditionEvicted); evicted != nil {
			require.Equal(t, "Reclaimed", evicted.Reason)
			require.Contains(t, evicted.Message, "reclaim-owner")
			taken[string(u.UID)+"/1"] = true
		}
		require.Equal(t, i < 3, taken[string(u.UID)+"/1"], "%s has priority %d", u.Name, i)
	}
	require.Len(t, own.Status.Preemption.Holds, len(taken))
	for _, hold := range own.Status.Preemption.Holds {
		require.True(t, taken[hold], "%s was written before it was taken", hold)
	}
	c.waitDone(t, ns, 6, 3*time.Minute)
	watch.clean(t, nil)
}

// Either process is killed when it is written what a job takes. The owner has its min all the same, by as few victims
// as it needs, and each job ends once.
func TestAProcessIsKilledAmidAPreemption(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "killed-amid-preemption")
	c.quota(t, ns, "killed-all", 8, 8, isParent())
	c.quota(t, ns, "killed-borrower", 4, 8, under("killed-all"))
	c.quota(t, ns, "killed-owner", 4, 8, under("killed-all"))
	c.patchQueue(t, "killed-borrower", atOnce)
	c.patchQueue(t, "killed-owner", `{"spec":{"preemption":{"reclaim":"Any"}}}`)
	watch := observe(t, c, map[string]int{ns: 8})
	for round, component := range []controlplane.Component{controlplane.Scheduler, controlplane.Controller} {
		job := func(i int) string { return fmt.Sprintf("%s-%d", component, i) }
		for i := range 4 {
			c.create(t, newJob(ns, job(i), suspended, ofQuota("killed-borrower"), pods(2), runs(20*second)))
		}
		for i := range 4 {
			c.waitPhase(t, ns, job(i), schedulingv1alpha1.PhaseRunning)
		}
		own := "own-" + string(component)
		c.create(t, newJob(ns, own, suspended, ofQuota("killed-owner"), pods(4), runs(2*second)))
		require.Eventually(t, func() bool {
			u := c.unit(t, ns, own)
			return u != nil && u.Status.Preemption != nil
		}, soon, pace/10)
		require.NoError(t, c.Kill(component))
		require.NoError(t, c.Restart(t.Context(), component))
		c.waitPhase(t, ns, own, schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
		taken := 0
		for i := range 4 {
			if c.unit(t, ns, job(i)).Status.Attempts > 1 ||
				meta.FindStatusCondition(c.unit(t, ns, job(i)).Status.Conditions, schedulingv1alpha1.ConditionEvicted) != nil {
				taken++
			}
		}
		require.Equal(t, 2, taken)
		c.waitDone(t, ns, 5*(round+1), 3*time.Minute)
	}
	watch.clean(t, nil)
}

// A job takes quota of one with lower priority in its queue and quota. The victim is suspended, waits before later
// jobs, and runs again after the other has ended. Each job ends once. A job of the greatest class, in a namespace that
// allows no priority, takes nothing and gets no taken quota.
func TestAHigherPriorityTakesWithinItsQueue(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "within-queue")
	c.quota(t, ns, "within-queue", 4, 4)
	c.patchQueue(t, "within-queue", `{"spec":{"preemption":{"withinQueue":"LowerPriority","minRunTimeSeconds":0}}}`)
	watch := observe(t, c, map[string]int{ns: 4})
	job := func(name string, of int, run time.Duration) {
		c.create(t, newJob(ns, name, suspended, ofQuota("within-queue"), pods(4), priority(of), runs(run)))
	}
	job("low", 1, 20*second)
	c.waitPhase(t, ns, "low", schedulingv1alpha1.PhaseRunning)
	job("later", 1, second)
	const greedy = "within-greedy"
	named := metav1.ObjectMeta{Name: greedy}
	_, err := c.kube.CoreV1().Namespaces().
		Create(t.Context(), &corev1.Namespace{ObjectMeta: named}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = c.kube.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: named, Value: 1_000_000_000}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.create(t, newJob(greedy, "greedy", suspended, ofQuota("within-queue"), pods(4), ofClass(greedy), runs(second)))
	c.waitReason(t, ns, "later", "QuotaExceeded")
	c.waitReason(t, greedy, "greedy", "QuotaExceeded")

	job("high", 2, 5*second)
	c.waitPhase(t, ns, "high", schedulingv1alpha1.PhaseRunning)
	low := c.unit(t, ns, "low")
	evicted := meta.FindStatusCondition(low.Status.Conditions, schedulingv1alpha1.ConditionEvicted)
	require.NotNil(t, evicted)
	require.Equal(t, "PreemptedInQueue", evicted.Reason)
	require.Equal(t, []string{string(low.UID) + "/1"}, c.unit(t, ns, "high").Status.Preemption.Holds)
	require.True(t, *c.job(t, ns, "low").Spec.Suspend)
	require.Nil(t, c.unit(t, ns, "later").Status.LastAllocateTime)
	first := c.unit(t, greedy, "greedy")
	require.EqualValues(t, 1_000_000_000, *first.Spec.Priority)
	require.Nil(t, first.Status.Preemption)
	require.Nil(t, first.Status.LastAllocateTime)
	require.NoError(t, c.kube.BatchV1().Jobs(greedy).Delete(t.Context(), "greedy",
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))

	c.waitDone(t, ns, 3, 2*time.Minute)
	low, later := c.unit(t, ns, "low"), c.unit(t, ns, "later")
	require.True(t, low.Status.LastAllocateTime.Before(later.Status.LastAllocateTime), "the victim kept its position")
	require.EqualValues(t, 2, attempts(low))
	require.EqualValues(t, 1, attempts(later))
	watch.clean(t, nil)
}

// A quota shrinks below its use, grows, moves to another parent, and is deleted and created again, while its jobs run
// and wait. Running jobs stay and keep counting, and pending ones continue at once.
func TestQuotaChangesUnderLoad(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "changes")
	c.quota(t, ns, "changes-old", 10, 10, isParent())
	c.quota(t, ns, "changes-new", 10, 10, isParent())
	c.quota(t, ns, "changes", 2, 6, under("changes-old"))
	watch := observe(t, c, map[string]int{ns: 6})
	const n = 48
	for i := range n {
		c.create(t, newJob(ns, fmt.Sprintf("job-%02d", i), suspended, ofQuota("changes"), runs(4*second)))
	}
	full := func() {
		t.Helper()
		require.Eventually(t, func() bool { return watch.boundCPU(ns) == 6000 }, soon, pace/4,
			"the quota is in use to its limit")
	}
	full()
	c.setQuotaMax(t, ns, "changes", 2)
	watch.atMost(ns, 6) // running jobs are not killed
	require.Eventually(t, func() bool { return watch.boundCPU(ns) <= 2000 }, soon, pace/4,
		"nothing new is admitted above the new limit")
	watch.atMost(ns, 2)
	stays(t, 5*second, "use stays below the new limit", func() bool { return watch.boundCPU(ns) <= 2000 })
	watch.atMost(ns, 6)
	c.setQuotaMax(t, ns, "changes", 6)
	full()

	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"changes-new"}}}`, schedulingv1alpha1.LabelQuotaParent)
	_, err := c.dyn.Resource(elasticQuotas).Namespace(ns).Patch(t.Context(), "changes", "application/merge-patch+json",
		[]byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	full()

	require.NoError(t, c.dyn.Resource(elasticQuotas).Namespace(ns).Delete(t.Context(), "changes", metav1.DeleteOptions{}))
	c.quota(t, ns, "changes", 2, 6, under("changes-new"))
	full()
	c.waitDone(t, ns, n, 3*time.Minute)
	watch.clean(t, nil)
	require.NotZero(t, c.metric(t, `scheduler_jobqueue_audits_total{`, `result="Clean"`), "audits while all that happened")
	for i := range n {
		require.EqualValues(t, 1, attempts(c.unit(t, ns, fmt.Sprintf("job-%02d", i))), "admissions (I3)")
	}
}

// Koordinator forgets the pods of a deleted quota, even if it is created again. No audit reports that as a difference,
// and reported shortages follow from held quota. A replaced quota is absent so briefly that nobody sees it missing.
func TestAQuotaThatGoesWhileItsPodsRun(t *testing.T) {
	c := start(t, "quota-goes", controlplane.Options{})
	c.complete(t)
	audits := func() float64 { return c.metric(t, `scheduler_jobqueue_audits_total{`) }
	afterAudits := func(t *testing.T, n float64) {
		t.Helper()
		until := audits() + n
		require.Eventually(t, func() bool { return audits() >= until }, soon, pace)
	}
	for _, tc := range []struct {
		name string
		away func(t *testing.T)
	}{
		{"seen missing", func(t *testing.T) {
			afterAudits(t, 2)
			c.agrees(t)
		}},
		{"replaced", func(*testing.T) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			name := strings.ReplaceAll(tc.name, " ", "-")
			ns := c.namespace(t, "quota-"+name)
			c.quota(t, ns, name, 10, 10)
			c.create(t, newJob(ns, "two", ofQuota(name), pods(2), runs(time.Hour)),
				newJob(ns, "four", ofQuota(name), pods(4), runs(time.Hour)))
			c.waitPhase(t, ns, "two", schedulingv1alpha1.PhaseRunning)
			c.waitPhase(t, ns, "four", schedulingv1alpha1.PhaseRunning)
			afterAudits(t, 2) // nothing is on its way any more
			quotas := c.dyn.Resource(elasticQuotas).Namespace(ns)
			require.NoError(t, quotas.Delete(t.Context(), name, metav1.DeleteOptions{}))
			tc.away(t)
			c.quota(t, ns, name, 10, 10)
			c.create(t, newJob(ns, "eight", ofQuota(name), pods(8)))
			message := c.waitReason(t, ns, "eight", "QuotaExceeded")
			require.Equal(t, `quota "`+name+`" has too little cpu left`, message)
			afterAudits(t, 2)
			c.agrees(t)
			require.Equal(t, message, c.waitReason(t, ns, "eight", "QuotaExceeded"))
		})
	}
}

// Two trees have totals of their own (feature MultiQuotaTree): a full tree keeps nobody of the other waiting.
func TestTreesDoNotCompete(t *testing.T) {
	c := start(t, "trees", controlplane.Options{})
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{
		Args: []string{"--feature-gates=MultiQuotaTree=true"},
	}))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	limits := map[string]int{}
	for _, tree := range []string{"left", "right"} {
		c.namespace(t, tree)
		c.quota(t, tree, tree+"-root", 4, 8, isParent(), treeRoot(tree, 4))
		c.quota(t, tree, tree, 0, 8, under(tree+"-root"), ofTree(tree))
		limits[tree] = 4
	}
	watch := observe(t, c, limits)
	c.create(t, newJob("left", "first", suspended, ofQuota("left"), pods(4), runs(10*second)))
	c.waitPhase(t, "left", "first", schedulingv1alpha1.PhaseRunning)
	c.create(t,
		newJob("left", "second", suspended, ofQuota("left"), pods(2)),
		newJob("right", "other", suspended, ofQuota("right"), pods(4), runs(2*second)),
	)
	c.waitPhase(t, "right", "other", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, "left", "second").Status.Phase)
	message := c.waitReason(t, "left", "second", "QuotaExceeded")
	require.Regexp(t, `quota "(koordinator-root-quota@)?left".* has too little cpu`, message, "its tree is full")
	c.waitDone(t, "left", 2, soon)
	c.waitDone(t, "right", 1, soon)
	watch.clean(t, map[string]int{"left/first": 4, "left/second": 2, "right/other": 4})
	require.Empty(t, watch.refused())
}

func ofTree(tree string) quotaOption {
	return func(q *unstructured.Unstructured) { setLabel(q, "quota.scheduling.koordinator.sh/tree-id", tree) }
}

// treeRoot makes a quota the root of a tree with so many cores, as the controller of ElasticQuotaProfile does.
func treeRoot(tree string, cores int) quotaOption {
	return func(q *unstructured.Unstructured) {
		ofTree(tree)(q)
		setLabel(q, "quota.scheduling.koordinator.sh/is-root", "true")
		q.SetAnnotations(map[string]string{
			"quota.scheduling.koordinator.sh/total-resource": fmt.Sprintf(`{"cpu":"%d","memory":"%dGi"}`, cores, 4*cores),
		})
	}
}

// beyondRuntime counts attempts to schedule pods that passed though the live runtime quota did not cover them.
func (c *cluster) beyondRuntime(t *testing.T, cause string) float64 {
	t.Helper()
	return c.metric(t, `scheduler_jobqueue_pods_beyond_runtime_total{`, `result="Pass"`, fmt.Sprintf("cause=%q", cause))
}

// metric sums the samples of the scheduler's metrics that contain all of the parts.
func (c *cluster) metric(t *testing.T, parts ...string) float64 {
	t.Helper()
	return c.metricOf(t, c.scheduler, parts...)
}

// metricOf sums those of a process.
func (c *cluster) metricOf(t *testing.T, of controlplane.Component, parts ...string) float64 {
	t.Helper()
	// The context of a test is over when its cleanup runs.
	request, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodGet,
		c.URL(of)+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	sum := 0.0
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		sample, value, ok := strings.Cut(lines.Text(), "} ")
		for _, part := range parts {
			ok = ok && strings.Contains(sample, part)
		}
		if !ok {
			continue
		}
		amount, err := strconv.ParseFloat(value, 64)
		require.NoError(t, err)
		sum += amount
	}
	require.NoError(t, lines.Err())
	return sum
}
