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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

func fails(j *batchv1.Job) { j.Spec.Template.Annotations[controlplane.FailAnnotation] = "true" }

// A job that fails is mirrored as Failed, holds nothing any more, and the next one gets its quota.
func TestFailedJobGivesItsQuotaBack(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "failing")
	c.quota(t, ns, "failing", 1, 1)
	c.create(t, newJob(ns, "broken", suspended, ofQuota("failing"), fails, priority(10)),
		newJob(ns, "next", suspended, ofQuota("failing")))
	c.waitPhase(t, ns, "broken", schedulingv1alpha1.PhaseFailed)
	require.Empty(t, c.unit(t, ns, "broken").Status.Admissions)
	c.waitPhase(t, ns, "next", schedulingv1alpha1.PhaseSucceed)
}

// A unit that is deactivated while its job runs loses its admission. The job is suspended, its pods end, and its quota
// is free. After a reactivation it is admitted again.
func TestDeactivatedJobIsSuspendedAndComesBack(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "deactivated")
	c.quota(t, ns, "deactivated", 1, 1)
	c.create(t, newJob(ns, "held", suspended, ofQuota("deactivated"), runs(10*time.Second)))
	c.waitPhase(t, ns, "held", schedulingv1alpha1.PhaseRunning)
	c.setActive(t, ns, "held", false)
	require.Eventually(t, func() bool { return *c.job(t, ns, "held").Spec.Suspend && len(c.podsOf(t, ns, "held")) == 0 },
		soon, pace, "the job is suspended and has no pods")
	c.create(t, newJob(ns, "other", suspended, ofQuota("deactivated")))
	c.waitPhase(t, ns, "other", schedulingv1alpha1.PhaseSucceed)
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, c.unit(t, ns, "held").Status.Phase)
	c.setActive(t, ns, "held", true)
	c.waitPhase(t, ns, "held", schedulingv1alpha1.PhaseSucceed)
	require.EqualValues(t, 2, attempts(c.unit(t, ns, "held")))
}

// A job that its owner holds is suspended, gives its quota back, and goes on when it is let go.
func TestJobHeldByItsOwner(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "hold")
	c.quota(t, ns, "hold", 1, 1)
	c.create(t, newJob(ns, "held", suspended, ofQuota("hold"), runs(10*time.Second)))
	c.waitPhase(t, ns, "held", schedulingv1alpha1.PhaseRunning)
	hold := func(value string) {
		patch := []byte(`{"metadata":{"annotations":{"` + schedulingv1alpha1.AnnotationHold + `":` + value + `}}}`)
		_, err := c.kube.BatchV1().Jobs(ns).Patch(t.Context(), "held", types.MergePatchType, patch, metav1.PatchOptions{})
		require.NoError(t, err)
	}
	hold(`"true"`)
	require.Eventually(t, func() bool { return *c.job(t, ns, "held").Spec.Suspend && len(c.podsOf(t, ns, "held")) == 0 },
		soon, pace, "the job is suspended and has no pods")
	c.create(t, newJob(ns, "other", suspended, ofQuota("hold")))
	c.waitPhase(t, ns, "other", schedulingv1alpha1.PhaseSucceed)
	c.waitReason(t, ns, "held", "HeldByOwner")
	c.waitEvent(t, ns, "held", "Held")
	hold("null")
	c.waitPhase(t, ns, "held", schedulingv1alpha1.PhaseSucceed)
	require.EqualValues(t, 2, attempts(c.unit(t, ns, "held")))
}

// A queue that is drained has its jobs suspended, and they go on at their places when it is opened again. Others do not
// notice.
func TestDrainedQueue(t *testing.T) {
	c := sharedCluster(t)
	ns := c.namespace(t, "drained")
	c.quota(t, ns, "drained", 2, 2)
	c.quota(t, ns, "beside", 1, 1)
	c.create(t, newJob(ns, "runs", suspended, ofQuota("drained"), runs(10*time.Second)))
	c.create(t, newJob(ns, "other", suspended, ofQuota("beside"), runs(10*time.Second)))
	c.waitPhase(t, ns, "runs", schedulingv1alpha1.PhaseRunning)
	c.setStopPolicy(t, "drained", schedulingv1alpha1.StopHoldAndDrain)
	require.Eventually(t, func() bool { return *c.job(t, ns, "runs").Spec.Suspend && len(c.podsOf(t, ns, "runs")) == 0 },
		soon, pace, "the job is suspended and has no pods")
	unit := c.unit(t, ns, "runs")
	require.Equal(t, schedulingv1alpha1.PhaseEnqueued, unit.Status.Phase)
	require.Empty(t, unit.Status.Admissions)
	evicted := meta.FindStatusCondition(unit.Status.Conditions, schedulingv1alpha1.ConditionEvicted)
	require.Equal(t, "QueueDrained", evicted.Reason)
	c.waitPhase(t, ns, "other", schedulingv1alpha1.PhaseSucceed)
	require.EqualValues(t, 1, attempts(c.unit(t, ns, "other")))
	c.setStopPolicy(t, "drained", schedulingv1alpha1.StopNone)
	c.waitPhase(t, ns, "runs", schedulingv1alpha1.PhaseSucceed)
	require.EqualValues(t, 2, attempts(c.unit(t, ns, "runs")))
}

func (c *cluster) setStopPolicy(t *testing.T, queue string, policy schedulingv1alpha1.StopPolicy) {
	t.Helper()
	patch := []byte(`{"spec":{"stopPolicy":"` + string(policy) + `"}}`)
	_, err := c.dyn.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace).Patch(
		t.Context(), queue, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

func (c *cluster) setActive(t *testing.T, namespace, name string, active bool) {
	t.Helper()
	patch := `{"spec":{"active":false}}`
	if active {
		patch = `{"spec":{"active":true}}`
	}
	_, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(namespace).Patch(t.Context(), name,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
}

// Without the CRDs the scheduler says what is missing and how to get it, waits for it, and ends at once when asked to.
func TestSchedulerSaysWhatIsMissing(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cp, err := controlplane.Start(ctx, controlplane.Options{Dir: workDir + "/preflight"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = cp.Stop() })
	require.NoError(t, cp.StartScheduler(ctx, controlplane.SchedulerOptions{NoWait: true}))
	says := func(words ...string) func() bool {
		return func() bool {
			log := cp.LogTail(controlplane.Scheduler, 50)
			for _, w := range words {
				if !strings.Contains(log, w) {
					return false
				}
			}
			return true
		}
	}
	require.Eventually(t, says("elasticquotas.scheduling.sigs.k8s.io", "queueunits.scheduling.x-k8s.io", "kubectl apply"),
		soon, pace, "the log names what is missing")
	begin := time.Now()
	require.NoError(t, cp.StopComponent(controlplane.Scheduler))
	took := time.Since(begin)
	t.Logf("ended %s after SIGTERM", took.Round(time.Millisecond))
	require.Less(t, took, 3*time.Second)

	require.NoError(t, cp.StartScheduler(ctx, controlplane.SchedulerOptions{NoWait: true, Name: "waiting-scheduler"}))
	require.NoError(t, cp.Install(ctx))
	require.Eventually(t, func() bool {
		return strings.Contains(cp.LogTail("waiting-scheduler", 400), "Admission loop starts")
	}, soon, pace, "it goes on by itself when everything is there")
}
