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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koordinator-sh/koordinator/apis/extension"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// defaultsOfJobs configures them for plain Jobs, with this time.
func defaultsOfJobs(time string) []byte {
	return []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: koord-jobqueue-managed-jobs, namespace: koord-queue}
data:
  managedJobs: |
    jobDefaults:
    - kind: Job.v1.batch
      gang: {waitTime: 5m, mode: NonStrict}
      preemptible: false
      priorityClassName: batch
      maxExecutionTime: ` + time + `
`)
}

// saysOtherwise is a job that has its own setting in place of each default.
func saysOtherwise(j *batchv1.Job) {
	j.Annotations[schedulingv1alpha1.AnnotationMaxExecutionTime] = "600"
	j.Labels[schedulingv1alpha1.LabelPreemptible] = "true"
	j.Spec.Template.Annotations[extension.AnnotationGangMinNum] = "1"
	j.Spec.Template.Spec.PriorityClassName = "own"
}

// Jobs of a kind with defaults get them, and a job with values of its own keeps those. A changed default holds for jobs
// that are not admitted yet.
func TestJobDefaults(t *testing.T) {
	c := start(t, "jobdefaults", controlplane.Options{Nodes: 3})
	ns := c.namespace(t, "defaults")
	for name, value := range map[string]int32{"batch": 7, "own": 9} {
		_, err := c.kube.SchedulingV1().PriorityClasses().Create(t.Context(),
			&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, c.Apply(t.Context(), defaultsOfJobs("1h")))
	c.complete(t)
	c.quota(t, ns, "a", 4, 4)

	c.create(t,
		newJob(ns, "plain", ofQuota("a"), pods(2), runs(time.Minute)),
		newJob(ns, "own", ofQuota("a"), pods(2), runs(time.Minute), suspended, saysOtherwise))
	for _, name := range []string{"plain", "own"} {
		c.waitPhase(t, ns, name, schedulingv1alpha1.PhaseRunning)
		c.boundAfterAdmission(t, ns, name)
	}
	plain, own := c.unit(t, ns, "plain"), c.unit(t, ns, "own")
	require.EqualValues(t, 7, *plain.Spec.Priority)
	require.EqualValues(t, 3600, *plain.Spec.MaximumExecutionTimeSeconds)
	require.Equal(t, "false", plain.Labels[schedulingv1alpha1.LabelPreemptible])
	require.EqualValues(t, 9, *own.Spec.Priority)
	require.EqualValues(t, 600, *own.Spec.MaximumExecutionTimeSeconds)
	require.Equal(t, "true", own.Labels[schedulingv1alpha1.LabelPreemptible])
	for _, pod := range c.podsOf(t, ns, "plain") {
		require.Equal(t, "false", pod.Labels[schedulingv1alpha1.LabelPreemptible])
		require.Equal(t, "plain", pod.Annotations[extension.AnnotationGangName])
		require.Equal(t, "2", pod.Annotations[extension.AnnotationGangMinNum])
		require.Equal(t, "5m", pod.Annotations[extension.AnnotationGangWaitTime])
		require.Equal(t, "NonStrict", pod.Annotations[extension.AnnotationGangMode])
		require.Empty(t, pod.Spec.PriorityClassName)
	}
	for _, pod := range c.podsOf(t, ns, "own") {
		require.Equal(t, "true", pod.Labels[schedulingv1alpha1.LabelPreemptible])
		require.NotContains(t, pod.Annotations, extension.AnnotationGangName)
		require.Equal(t, "own", pod.Spec.PriorityClassName)
	}

	c.create(t, newJob(ns, "waits", ofQuota("a"), pods(2)))
	c.waitPhase(t, ns, "waits", schedulingv1alpha1.PhaseEnqueued, "")
	_, err := c.kube.BatchV1().Jobs(ns).Patch(t.Context(), "waits", types.MergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"priorityClassName":"batch"}}}}`), metav1.PatchOptions{})
	require.True(t, apierrors.IsInvalid(err), "so its pods cannot have the default class: %v", err)

	uids := c.uidsOf(t, ns, "plain")
	require.NoError(t, c.Apply(t.Context(), defaultsOfJobs("2h")))
	require.Eventually(t, func() bool {
		seconds := c.unit(t, ns, "waits").Spec.MaximumExecutionTimeSeconds
		return seconds != nil && *seconds == 7200
	}, soon, pace)
	stays(t, 2*second, "a job that runs keeps its time", func() bool {
		return *c.unit(t, ns, "plain").Spec.MaximumExecutionTimeSeconds == 3600
	})
	require.Equal(t, uids, c.uidsOf(t, ns, "plain"))
	require.NoError(t, c.kube.BatchV1().Jobs(ns).Delete(t.Context(), "own",
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	c.waitPhase(t, ns, "waits", schedulingv1alpha1.PhaseRunning, schedulingv1alpha1.PhaseSucceed)
	require.EqualValues(t, 7200, *c.unit(t, ns, "waits").Spec.MaximumExecutionTimeSeconds)
	c.agrees(t)
}
