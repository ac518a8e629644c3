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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// The environment variables of hack/record-release.sh: the tree of the release, the directory of its scheduler and
// controller, its commit, and the directory to write.
const (
	recordSource = "JOBQUEUE_RECORD_SOURCE"
	recordBin    = "JOBQUEUE_RECORD_BIN"
	recordCommit = "JOBQUEUE_RECORD_COMMIT"
	recordInto   = "JOBQUEUE_RECORD_INTO"
)

// recordedCores are the cores of each quota of a recording, which is that of the namespace of its name.
var recordedCores = map[string]int{
	"full": 4, "block": 2, "numbers": 1, "held": 5, "over": 2, "parked": 2, "again": 1, "late": 1, "gangs": 2, "every": 1,
	"mapped": 1, "guests": 1, "partial": 1, "grown": 2, "adopted": 1,
}

const (
	// everyField is the Queue with every field that the kind had before.
	everyField = "team-a"
	// builtinQuota is Koordinator's own, of jobs that name none.
	builtinQuota = "koordinator-default-quota"
	// noNode is a label that no node of a recording has.
	noNode = "recorded-on"
)

// TestRecordRelease is no test: it has the processes of another release make what TestUpgrade starts from, and writes
// that down. Jobs run for an hour there, so that they run when they are recorded.
func TestRecordRelease(t *testing.T) {
	source, bin := os.Getenv(recordSource), os.Getenv(recordBin)
	if source == "" {
		t.Skip("hack/record-release.sh runs it")
	}
	c := startBare(t, "record", controlplane.Options{Components: controlplane.Full(), Nodes: 3, NodeCPU: "16"})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r := &recording{manifests: installable(t, source)}
	require.NoError(t, c.ApplyKoordinatorCRDs(ctx))
	require.NoError(t, c.Apply(ctx, r.manifests))
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{
		Binary: filepath.Join(bin, "koord-scheduler"), Config: filepath.Join(source, "scheduler-config.yaml"),
	}))
	require.NoError(t, c.StartController(ctx, controlplane.ControllerOptions{
		Binary: filepath.Join(bin, "jobqueue-controller"),
	}))
	c.makeRecordedWork(t)
	require.NoError(t, c.StopComponent(controlplane.Scheduler))
	r.Commit, r.Recorded = os.Getenv(recordCommit), time.Now().UTC().Truncate(time.Second)
	r.readStore(t, c)
	r.writeFiles(t, os.Getenv(recordInto))
}

// installable is what installs the release of a tree, without the descriptions in its definitions.
func installable(t *testing.T, source string) []byte {
	t.Helper()
	var all strings.Builder
	for _, dir := range []string{"overlays/fresh", "components/elasticquotatree"} {
		content, err := controlplane.BuildKustomize(filepath.Join(source, "manifests", dir))
		require.NoError(t, err)
		for document := range strings.SplitSeq(string(content), "\n---\n") {
			o := map[string]any{}
			require.NoError(t, yaml.Unmarshal([]byte(document), &o))
			if o["kind"] == "CustomResourceDefinition" {
				withoutDescriptions(o)
			}
			text, err := yaml.Marshal(o)
			require.NoError(t, err)
			all.WriteString("---\n")
			all.Write(text)
		}
	}
	return []byte(all.String())
}

func withoutDescriptions(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		for _, item := range v {
			withoutDescriptions(item)
		}
	case []any:
		for _, item := range v {
			withoutDescriptions(item)
		}
	}
}

// secret is what units of an earlier release hold of a job, too.
func secret(j *batchv1.Job) {
	main := &j.Spec.Template.Spec.Containers[0]
	main.Command = []string{"train", "--epochs=3"}
	main.Env = []corev1.EnvVar{{Name: "TOKEN", Value: "SECRET"}}
}

func ofClass(name string) jobOption {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = name }
}

func onNoNode(j *batchv1.Job) { j.Spec.Template.Spec.NodeSelector = map[string]string{noNode: "true"} }

// makeRecordedWork makes one namespace for each case of TestUpgrade, and waits until everything is ready to be
// recorded. The controller has ended then.
func (c *cluster) makeRecordedWork(t *testing.T) {
	t.Helper()
	for _, name := range append(slices.Sorted(maps.Keys(recordedCores)), "builtin", "tree") {
		// No annotation that a release before did not know.
		_, err := c.kube.CoreV1().Namespaces().Create(t.Context(),
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		if cores := recordedCores[name]; cores > 0 {
			policy := schedulingv1alpha1.PolicyPriority
			if name == "block" {
				policy = schedulingv1alpha1.PolicyBlock
			}
			c.quota(t, name, name, cores, cores, withPolicy(policy))
		}
	}
	_, err := c.kube.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "urgent"}, Value: 100}, metav1.CreateOptions{})
	require.NoError(t, err)
	c.makeRunning(t)
	c.makeWaiting(t)
	c.makeOver(t)
	c.makeParked(t)
	c.makeHeld(t)
	c.makeUnresumed(t)
}

// makeRunning: jobs that run for an hour, each under another kind of quota.
func (c *cluster) makeRunning(t *testing.T) {
	t.Helper()
	hour := runs(time.Hour)
	tree := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"root": map[string]any{
		"name": "tree-root", "max": map[string]any{"cpu": "2"}, "min": map[string]any{"cpu": "2"},
		"children": []any{map[string]any{"name": "tree-leaf", "min": map[string]any{"cpu": "1"}}},
	}}}}
	tree.SetGroupVersionKind(v1beta1.ElasticQuotaTreeKind)
	tree.SetNamespace("kube-system")
	tree.SetName("tree")
	_, err := c.dyn.Resource(v1beta1.ElasticQuotaTreeResource).Namespace("kube-system").
		Create(t.Context(), tree, metav1.CreateOptions{})
	require.NoError(t, err)
	c.makeQueueOfEveryField(t)
	c.create(t,
		// The label on the job alone: resuming adds it to the template.
		newJob("full", "running", suspended, jobOfQuota("full"), pods(2), cpu("2"), hour, secret),
		newJob("block", "holder", suspended, ofQuota("block"), hour),
		newJob("numbers", "holder", suspended, ofQuota("numbers"), hour),
		newJob("again", "again", suspended, jobOfQuota("again"), hour, secret),
		newJob("builtin", "builtin", suspended, inQueue(builtinQuota), hour),
		newJob("gangs", "gang", suspended, ofQuota("gangs"), pods(2), gang("gang", 2), hour),
		newJob("tree", "leaf", suspended, ofQuota("tree-leaf"), hour),
		newJob("every", "every", suspended, ofQuota("every"), inQueue(everyField), nonPreemptible, hour),
		// The quota is that of the namespace; no label says so.
		newJob("mapped", "mapped", suspended, inQueue("mapped"), hour),
		// In the default queue of another quota.
		newJob("guests", "guest", suspended, ofQuota("guests"), inQueue("full"), hour),
		newJob("partial", "partial", suspended, ofQuota("partial"), one, hour),
		newJob("grown", "grown", suspended, ofQuota("grown"), one, hour),
		newJob("adopted", "adopted", hour),
	)
	require.Eventually(t, func() bool { return c.bound(t, "adopted", "adopted") == 1 }, soon, pace, "nobody queues it")
	c.patchJob(t, "adopted", "adopted", `{"metadata":{"labels":{"`+schedulingv1alpha1.LabelQuotaName+`":"adopted"}}}`)
	for _, job := range [][2]string{{"full", "running"}, {"block", "holder"}, {"numbers", "holder"}, {"again", "again"},
		{"gangs", "gang"}, {"tree", "leaf"}, {"every", "every"}, {"mapped", "mapped"}, {"partial", "partial"},
		{"grown", "grown"}, {"adopted", "adopted"}} {
		c.waitPhase(t, job[0], job[1], schedulingv1alpha1.PhaseRunning)
	}
	c.waitReason(t, "builtin", "builtin", "QuotaNotNamed")
	c.waitReason(t, "guests", "guest", "QuotaNotInQueue")
	c.podsSucceed(t, "partial", "partial")
	require.Eventually(t, func() bool { return c.bound(t, "partial", "partial") == 2 }, soon, pace, "its second pod runs")
	c.patchJob(t, "grown", "grown", `{"spec":{"parallelism":2}}`)
	require.Eventually(t, func() bool { return c.bound(t, "grown", "grown") == 2 }, soon, pace)
}

// one pod at a time, of two.
func one(j *batchv1.Job) { j.Spec.Parallelism, j.Spec.Completions = ptr.To[int32](1), ptr.To[int32](2) }

// podsSucceed has the pods of a job succeed, as a kubelet does.
func (c *cluster) podsSucceed(t *testing.T, namespace, job string) {
	t.Helper()
	for _, p := range c.podsOf(t, namespace, job) {
		_, err := c.kube.CoreV1().Pods(namespace).Patch(t.Context(), p.Name, types.MergePatchType,
			[]byte(`{"status":{"phase":"`+string(corev1.PodSucceeded)+`"}}`), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
}

// makeQueueOfEveryField makes a Queue as the stand-alone Koord-Queue writes it.
func (c *cluster) makeQueueOfEveryField(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../apis/scheduling/v1alpha1/testdata/koord-queue/queue-every-field.yaml")
	require.NoError(t, err)
	o := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &o.Object))
	require.Equal(t, everyField, o.GetName())
	delete(o.Object, "status")
	// Any quota may come; the sample names others.
	annotations := o.GetAnnotations()
	delete(annotations, "koord-queue/available-quota-in-queue")
	o.SetAnnotations(annotations)
	spec := o.Object["spec"].(map[string]any)
	delete(spec, "admissionChecks") // nobody answers them here
	spec["maxAdmitted"], spec["maxPending"], spec["stopPolicy"] = int64(9), int64(99), "None"
	_, err = c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace).
		Create(t.Context(), o, metav1.CreateOptions{})
	require.NoError(t, err)
}

// makeWaiting: jobs that wait behind those that run. Names say nothing of their order.
func (c *cluster) makeWaiting(t *testing.T) {
	t.Helper()
	for _, job := range []*batchv1.Job{
		// The controller suspends it, and says so on it.
		newJob("full", "old", jobOfQuota("full"), cpu("4"), secret),
		newJob("full", "young", suspended, ofQuota("full"), cpu("4"), secret),
		newJob("full", "numbered", suspended, ofQuota("full"), cpu("4"), secret, priority(50)),
		newJob("full", "urgent", suspended, ofQuota("full"), cpu("4"), secret, ofClass("urgent")),
		newJob("block", "head", suspended, ofQuota("block"), cpu("2")),
		newJob("block", "small", suspended, ofQuota("block")),
		newJob("numbers", "modest", suspended, ofQuota("numbers")),
		newJob("numbers", "boaster", suspended, ofQuota("numbers"), priority(50)),
		newJob("mapped", "next", suspended, inQueue("mapped")),
		newJob("guests", "next", suspended, ofQuota("guests"), inQueue("full")),
		newJob("grown", "next", suspended, ofQuota("grown")),
		newJob("builtin", "huge", suspended, inQueue(builtinQuota), cpu("1000")),
	} {
		c.create(t, job)
		c.waitOlder(t, job.Namespace, job.Name)
	}
	require.Eventually(t, func() bool {
		return *c.job(t, "full", "old").Spec.Suspend && len(c.podsOf(t, "full", "old")) == 0
	}, soon, pace, "its pods go")
	c.waitReason(t, "full", "urgent", "QuotaExceeded")
	c.waitReason(t, "block", "head", "QuotaExceeded")
}

// waitOlder waits until a unit that is created now is younger: times have the resolution of a second.
func (c *cluster) waitOlder(t *testing.T, namespace, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		u := c.unit(t, namespace, name)
		return u != nil && time.Since(u.CreationTimestamp.Time) > time.Second
	}, soon, pace, "%s/%s", namespace, name)
}

// makeOver: a job that is done, one that failed, and one that lost its admission and is kept from another.
func (c *cluster) makeOver(t *testing.T) {
	t.Helper()
	c.create(t, newJob("over", "done", suspended, ofQuota("over")),
		newJob("over", "failed", suspended, ofQuota("over"), fails))
	c.waitPhase(t, "over", "done", schedulingv1alpha1.PhaseSucceed)
	c.waitPhase(t, "over", "failed", schedulingv1alpha1.PhaseFailed)
	c.create(t, newJob("over", "evicted", suspended, jobOfQuota("over"), runs(time.Hour)))
	c.waitPhase(t, "over", "evicted", schedulingv1alpha1.PhaseRunning)
	c.setActive(t, "over", "evicted", false)
	require.Eventually(t, func() bool {
		return *c.job(t, "over", "evicted").Spec.Suspend && len(c.podsOf(t, "over", "evicted")) == 0
	}, soon, pace)
	c.waitPhase(t, "over", "evicted", schedulingv1alpha1.PhaseEnqueued)
}

// makeParked: units that the scheduler parks, and units that the controller parks.
func (c *cluster) makeParked(t *testing.T) {
	t.Helper()
	c.create(t,
		newJob("parked", "unknown", suspended, ofQuota("unknown")),
		newJob("parked", "mismatch", suspended, ofQuota("parked"), jobOfQuota("full")))
	c.waitReason(t, "parked", "unknown", "UnknownQuota")
	c.waitReason(t, "parked", "mismatch", "QuotaMismatch")
}

// makeHeld: what holds quota without a pod on a node.
func (c *cluster) makeHeld(t *testing.T) {
	t.Helper()
	c.createUnit(t, handMadeUnit("held", "by-hand", "held", "1"))
	c.create(t,
		newJob("held", "unbound", suspended, ofQuota("held"), onNoNode),
		newJob("held", "unbound-for-days", suspended, ofQuota("held"), onNoNode))
	for _, name := range []string{"by-hand", "unbound", "unbound-for-days"} {
		c.waitPhase(t, "held", name, schedulingv1alpha1.PhaseDequeued)
	}
	for _, name := range []string{"unbound", "unbound-for-days"} {
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(c.podsOf(t, "held", name),
				func(p corev1.Pod) bool { return len(p.Status.Conditions) > 0 })
		}, soon, pace, "its pod cannot be scheduled")
	}
	c.createUnit(t, handMadeUnit("held", "by-hand-waiting", "held", "4"))
	c.waitReason(t, "held", "by-hand-waiting", "QuotaExceeded")
}

// makeUnresumed: a job that was admitted while no controller ran. The controller has ended then.
func (c *cluster) makeUnresumed(t *testing.T) {
	t.Helper()
	c.createUnit(t, handMadeUnit("late", "holder", "late", "1"))
	c.waitPhase(t, "late", "holder", schedulingv1alpha1.PhaseDequeued)
	c.create(t, newJob("late", "unresumed", suspended, jobOfQuota("late")))
	require.Eventually(t, func() bool { return c.unit(t, "late", "unresumed") != nil }, soon, pace)
	require.NoError(t, c.StopComponent(controlplane.Controller))
	require.NoError(t, c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace("late").
		Delete(t.Context(), "holder", metav1.DeleteOptions{}))
	c.waitPhase(t, "late", "unresumed", schedulingv1alpha1.PhaseDequeued)
}
