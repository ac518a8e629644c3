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
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// standAlone is the state of the stand-alone Koord-Queue when it is stopped. Its README says where each field is from.
const standAlone = "testdata/koord-queue"

// standAloneCores are the cores of each quota there, by the namespace that uses it.
var standAloneCores = map[string]int{
	"full": 4, "late": 3, "rolling": 2, "alibaba": 2, "over": 1, "waits": 6, "checked": 1, "hand": 2, "elsewhere": 2,
	"tree": 1, "kinds": 9,
}

// The stand-alone Koord-Queue is replaced as docs/operators/koord-queue.md has it, with jobs that run and wait.
func TestStandAloneKoordQueueIsReplaced(t *testing.T) {
	old := readRecording(t, standAlone)
	u := &upgrade{old: old, cluster: startBare(t, "takeover", controlplane.Options{
		Components: controlplane.Minimal(),
	})}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()

	// The cluster as it was, but for the two programs of Koord-Queue, which step 1 has stopped.
	require.NoError(t, u.ApplyKoordinatorCRDs(ctx))
	require.NoError(t, u.Apply(ctx, old.manifests))
	require.NoError(t, u.ApplyKustomize(ctx, "../../manifests/components/elasticquotatree")) // which it served too
	require.NoError(t, u.ApplyOperatorCRDs(ctx, controlplane.TrainingOperator, "pytorchjobs"))
	u.seen = u.followUnits(t, standAloneCores)
	u.watch = observe(t, u.cluster, standAloneCores)
	old.moveTo(time.Now().UTC().Truncate(time.Second))
	old.place(t, u.cluster)
	require.NoError(t, u.StartBase(ctx, controlplane.ControllerManager, controlplane.KWOK))

	_, err := u.kube.CoreV1().Namespaces().Patch(ctx, "full", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+schedulingv1alpha1.AnnotationMaxPriority+`":"100"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, u.takeOver(ctx))
	require.NoError(t, u.ManageKinds(ctx, controlplane.Kind{Name: "Job.v1.batch", Rights: "job"},
		controlplane.Kind{Name: "PyTorchJob.v1.kubeflow.org", Rights: "pytorchjob"}))
	require.NoError(t, u.StartScheduler(ctx, controlplane.SchedulerOptions{Mutate: auditOften}))
	require.NoError(t, u.StartController(ctx, controlplane.ControllerOptions{
		Config: map[string]any{"formerMetrics": true},
	}))
	u.settle(t)

	t.Run("jobs that run are left alone", func(t *testing.T) { takenOverRuns(t, u) })
	t.Run("dequeued jobs go on at once", func(t *testing.T) { takenOverGoesOn(t, u) })
	t.Run("jobs of other kinds go on", func(t *testing.T) { otherKindsGoOn(t, u) })
	t.Run("what is over stays so", u.overIsLeftAlone)
	t.Run("every unit that waits says why", func(t *testing.T) { takenOverSaysWhy(t, u) })
	t.Run("jobs end and others follow", func(t *testing.T) { othersFollowTakenOver(t, u) })
	t.Run("no unit is lost or new", func(t *testing.T) { sameUnits(t, u) })

	u.watch.clean(t, nil)
	u.seen.clean(t, "late/bare")
	u.agrees(t)
}

// runsThere are the jobs with pods on nodes, and goesOnThere those that had been dequeued and have none yet.
var (
	runsThere = [][2]string{
		{"full", "running"}, {"rolling", "rolling"}, {"alibaba", "running"}, {"elsewhere", "running"}, {"tree", "running"},
	}
	goesOnThere = [][2]string{{"late", "dequeued"}, {"late", "started"}, {"late", "bare"}, {"alibaba", "dequeued"}}
)

func takenOverRuns(t *testing.T, u *upgrade) {
	for _, job := range runsThere {
		ns, name := job[0], job[1]
		before, now := u.recorded(t, ns, name), u.unit(t, ns, name)
		u.samePods(t, ns, name)
		require.False(t, *u.job(t, ns, name).Spec.Suspend, "%s/%s", ns, name)
		require.Equal(t, schedulingv1alpha1.PhaseRunning, now.Status.Phase, "%s/%s", ns, name)
		require.Equal(t, before.Status.Attempts, now.Status.Attempts, "%s/%s", ns, name)
		require.Equal(t, before.Status.Admissions[0].Resources.Cpu().String(),
			now.Status.Admissions[0].Resources.Cpu().String(), "%s/%s holds what it held", ns, name)
	}
}

// A job that had been dequeued is resumed, or goes on. Nobody takes the quota that it holds.
func takenOverGoesOn(t *testing.T, u *upgrade) {
	for _, job := range goesOnThere {
		u.waitPhase(t, job[0], job[1], schedulingv1alpha1.PhaseRunning)
		now := u.unit(t, job[0], job[1])
		require.Equal(t, u.recorded(t, job[0], job[1]).Status.Attempts, attempts(now), "%s", job)
		require.Equal(t, "1", now.Status.Admissions[0].Resources.Cpu().String(), "%s", job)
	}
	for _, p := range append(u.podsOf(t, "late", "dequeued"), u.podsOf(t, "late", "bare")...) {
		require.Equal(t, "late-team", p.Labels[schedulingv1alpha1.LabelQuotaName], p.Name)
	}
	u.samePods(t, "late", "started")
	for _, name := range []string{"preempted", "backoff", "stuck", "sched-ready", "sched-succeed", "sched-failed"} {
		u.waitPhase(t, "waits", name, schedulingv1alpha1.PhaseSucceed)
	}
	// The use of pods on nodes is not held twice. A unit without pods holds the amount of its admission.
	for quota, outstanding := range map[string]float64{
		"full": 0, "late-team": 0, "rolling": 0, "elsewhere": 0, "hand": 1000,
	} {
		require.Eventually(t, func() bool {
			return u.metric(t, `scheduler_jobqueue_ledger_outstanding{`, `quota="`+quota+`"`, `resource="cpu"`) == outstanding
		}, soon, pace, quota)
	}
	for want, parts := range map[float64][]string{
		5: {"queueunits_by_job_type{", `namespace="full"`, `type="Job"`},
		4: {"dequeued_quota_usage_by_quota{", `quota="full"`, `resource="cpu"`},
		3: {"dequeued_quota_usage_by_namespace{", `namespace="late"`, `resource="cpu"`},
		1: {"queueunits_in_active_queue{", `queue="rolling"`},
	} {
		require.InDelta(t, want, u.metricOf(t, controlplane.Controller, parts...), 1e-9, parts)
	}
	for _, waiting := range [][2]string{
		{"full", "old"}, {"full", "young"}, {"full", "numbered"}, {"full", "urgent"}, {"late", "next"}, {"rolling", "next"},
		{"alibaba", "next"}, {"hand", "next"}, {"tree", "fresh"}, {"tree", "returned"},
	} {
		require.True(t, *u.job(t, waiting[0], waiting[1]).Spec.Suspend, "%s", waiting)
	}
}

// Without their operator these jobs make no pods. One of them had another count of its pods, so it waits again at its
// position.
func otherKindsGoOn(t *testing.T, u *upgrade) {
	jobs := u.dyn.Resource(schema.GroupVersionResource{Group: "kubeflow.org", Version: "v1", Resource: "pytorchjobs"})
	for name, attempt := range map[string]int64{"dequeued": 0, "estimated": 1, "waits": 1} {
		require.Eventually(t, func() bool {
			job, err := jobs.Namespace("kinds").Get(context.Background(), name, metav1.GetOptions{})
			require.NoError(t, err)
			suspended, _, _ := unstructured.NestedBool(job.Object, "spec", "runPolicy", "suspend")
			return !suspended
		}, soon, pace, name)
		require.Equal(t, attempt, attempts(u.unit(t, "kinds", name+"-py-qu")), name)
	}
}

func takenOverSaysWhy(t *testing.T, u *upgrade) {
	u.waitReason(t, "full", "urgent", "QuotaExceeded")
	u.waitReason(t, "hand", "next", "QuotaExceeded")
	u.waitReason(t, "checked", "reserved", "CheckNotFound")
	for _, o := range u.old.all("QueueUnit") {
		unit := u.unit(t, o.GetNamespace(), o.GetName())
		if unit.Status.Phase == schedulingv1alpha1.PhaseEnqueued {
			require.NotEmpty(t, unit.Status.Message, "%s/%s", o.GetNamespace(), o.GetName())
			require.Empty(t, unit.Status.Admissions, "%s/%s", o.GetNamespace(), o.GetName())
		}
	}
}

func othersFollowTakenOver(t *testing.T, u *upgrade) {
	for _, job := range append(slices.Clone(goesOnThere), runsThere...) {
		if job[0] != "rolling" {
			u.end(t, job[0], job[1])
		}
	}
	// A job that runs gets its further pods.
	u.podsSucceed(t, "rolling", "rolling")
	require.Eventually(t, func() bool { return u.bound(t, "rolling", "rolling") == 4 }, soon, pace)
	u.end(t, "rolling", "rolling")
	require.NoError(t, u.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace("hand").
		Delete(t.Context(), "by-hand", metav1.DeleteOptions{}))
	queues := u.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace)
	_, err := queues.Patch(t.Context(), "checked", types.MergePatchType,
		[]byte(`{"spec":{"admissionChecks":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	for namespace, order := range map[string][]string{
		"full": {"urgent", "numbered", "old", "young"}, "late": {"next"}, "rolling": {"next"}, "alibaba": {"next"},
		"checked": {"reserved"}, "hand": {"next"}, "tree": {"returned", "fresh"},
	} {
		for _, name := range order {
			u.waitPhase(t, namespace, name, schedulingv1alpha1.PhaseSucceed)
		}
		u.seen.catchUp(t)
		require.Equal(t, order, u.seen.admittedIn(namespace), namespace)
	}
	u.watch.clean(t, nil)
}

func sameUnits(t *testing.T, u *upgrade) {
	for _, o := range u.old.all("QueueUnit") {
		ns, name := o.GetNamespace(), o.GetName()
		if name == "by-hand" {
			continue
		}
		now := u.unit(t, ns, name)
		require.NotNil(t, now, "%s/%s", ns, name)
		require.Equal(t, o.GetUID(), now.UID, "%s/%s", ns, name)
		owner := metav1.GetControllerOf(now)
		require.Equal(t, ns != "over", owner != nil && owner.UID == o.GetOwnerReferences()[0].UID, "%s/%s", ns, name)
	}
	list, err := u.dyn.Resource(schedulingv1alpha1.QueueUnitResource).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, len(u.old.all("QueueUnit"))-1+1, "the one made by hand is gone, that of settle is new")
}
