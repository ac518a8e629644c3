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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

func (c *cluster) setMode(t *testing.T, namespace string, mode managedjobs.Mode) {
	t.Helper()
	patch := []byte(`{"metadata":{"labels":{"` + v1alpha1.LabelMode + `":"` + string(mode) + `"}}}`)
	_, err := c.kube.CoreV1().Namespaces().
		Patch(t.Context(), namespace, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// observes has three jobs in an observed namespace, whose queue admits one at a time. All run, nobody writes them, and
// their units say who would wait. Jobs of a managed namespace wait as before. Then the observed one is managed.
func (c *cluster) observes(t *testing.T) {
	watched, managed := c.namespace(t, "watched"), c.namespace(t, "beside-watched")
	c.setMode(t, watched, managedjobs.ModeObserve)
	c.quota(t, watched, "observe-a", 4, 4)
	c.quota(t, managed, "observe-b", 1, 1)
	c.patchQueue(t, "observe-a", `{"spec":{"maxAdmitted":1}}`)
	names := []string{"first", "second", "third"}
	for _, name := range names {
		c.create(t, newJob(watched, name, ofQuota("observe-a"), runs(time.Hour)))
		created := c.job(t, watched, name).CreationTimestamp // by which they are ordered
		require.Eventually(t, func() bool {
			return c.bound(t, watched, name) == 1 && time.Since(created.Time) > time.Second
		}, soon, pace, "its pod runs")
	}
	c.create(t, newJob(managed, "runs", ofQuota("observe-b"), suspended, runs(time.Hour)))
	c.waitPhase(t, managed, "runs", v1alpha1.PhaseRunning)
	c.create(t, newJob(managed, "waits", ofQuota("observe-b"), suspended, runs(time.Hour)))
	c.waitReason(t, managed, "waits", "QuotaExceeded")

	c.waitPhase(t, watched, "first", v1alpha1.PhaseRunning)
	for _, name := range names[1:] {
		require.Contains(t, c.waitReason(t, watched, name, "QueueFull"), "would wait: ")
	}
	untouched := func(names ...string) {
		for _, name := range names {
			job := c.job(t, watched, name)
			require.False(t, ptr.Deref(job.Spec.Suspend, false), name)
			require.EqualValues(t, 1, job.Generation, name)
			require.Empty(t, job.Annotations[v1alpha1.AnnotationSuspendedBy], name)
			require.Equal(t, 1, c.bound(t, watched, name), name)
		}
	}
	untouched(names...)
	require.Empty(t, c.unit(t, watched, "first").Status.Effective.Held)
	run := func(args ...string) string {
		t.Helper()
		out, err := c.kubectlJobqueue(t, "boss", args...)
		require.NoError(t, err, out)
		t.Logf("kubectl jobqueue %v\n%s", args, out)
		return out
	}
	require.Regexp(t, `job/second +observe-a +\d+ +Observed \(Pending\) +QueueFull`, run("list", "-n", watched))
	require.Regexp(t, `(?s)Mode: +Observe.*Reason: QueueFull\n +would wait: queue "observe-a" has 1 admitted`,
		run("why", "third", "-n", watched, "-o", "wide"))

	require.NoError(t, c.kube.BatchV1().Jobs(watched).Delete(t.Context(), "first",
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	c.waitPhase(t, watched, "second", v1alpha1.PhaseRunning)
	untouched("second", "third")
	seen := run("observe", "-A", "--since", "1h")
	require.Contains(t, seen, "Jobs that would have waited: 2.")
	require.Regexp(t, `watched +job/second +observe-a +observe-a +cpu: 1 +1 +\S+ +QueueFull +Admitted`, seen)
	require.Regexp(t, `watched +job/third +observe-a +observe-a +cpu: 1 +1 +\S+ +QueueFull +Waits`, seen)
	require.GreaterOrEqual(t, c.metric(t, "observed_wait_seconds_count", `queue="observe-a"`), float64(2))

	// The jobs that run are adopted, and the next one waits.
	c.setMode(t, watched, managedjobs.ModeManage)
	for _, name := range names[1:] {
		require.Eventually(t, func() bool {
			u := c.unit(t, watched, name)
			return u != nil && u.Spec.Mode == "" && u.Status.Phase == v1alpha1.PhaseRunning
		}, soon, pace, name)
	}
	untouched("second", "third")
	c.create(t, newJob(watched, "fourth", ofQuota("observe-a"), runs(time.Hour)))
	c.waitReason(t, watched, "fourth", "QueueFull")
	require.True(t, *c.job(t, watched, "fourth").Spec.Suspend)
}
