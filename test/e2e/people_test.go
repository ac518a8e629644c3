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
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// TestPeopleChangeWhatWaits runs the commands of the plugin that change something, as a submitter and as an operator.
func TestPeopleChangeWhatWaits(t *testing.T) {
	c := visibilityCluster(t, "people")
	red, blue := c.sharedQueue(t)
	c.createQueue(t, &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "express", Namespace: v1alpha1.DefaultQueueNamespace},
	})
	c.bind(t, "rose", "edit", red)
	c.bind(t, "boss", "jobqueue-operator", "")
	c.bind(t, "root", "cluster-admin", "")
	run := func(t *testing.T, user string, args ...string) string {
		t.Helper()
		out, err := c.kubectlJobqueue(t, user, args...)
		require.NoError(t, err, out)
		t.Logf("%s: kubectl jobqueue %v\n%s", user, args, out)
		return out
	}
	refused := func(t *testing.T, user string, args ...string) {
		t.Helper()
		_, err := c.kubectlJobqueue(t, user, args...)
		require.ErrorContains(t, err, "forbidden", "%s %v", user, args)
	}

	t.Run("a submitter holds and releases its job", func(t *testing.T) {
		require.Contains(t, run(t, "rose", "hold", "second", "-n", red, "--dry-run=server"), "server dry run")
		run(t, "rose", "hold", "job/second", "-n", red)
		c.waitReason(t, red, "second", "HeldByOwner")
		run(t, "rose", "release", "second", "-n", red)
		c.waitReason(t, red, "second", "QuotaExceeded")
		_, err := c.kubectlJobqueue(t, "rose", "release", "second", "-n", red)
		require.ErrorContains(t, err, "not on hold")
		refused(t, "rose", "hold", "second", "-n", red, "--unit")
		refused(t, "rose", "priority", "second", "--to", "50", "-n", red)
		refused(t, "rose", "drain", "shared")
	})
	t.Run("the controller keeps the priority that an operator sets", func(t *testing.T) {
		run(t, "boss", "priority", "hidden", "--to", "50", "-n", blue)
		c.waitPhase(t, blue, "hidden", v1alpha1.PhaseRunning) // passes the head of a blocking queue
		require.Equal(t, int32(50), *c.unit(t, blue, "hidden").Spec.Priority)
	})
	t.Run("an operator drains and resumes a queue", func(t *testing.T) {
		run(t, "boss", "drain", "shared")
		c.waitReason(t, red, "running", "QueueHeld")
		require.Equal(t, int32(50), *c.unit(t, blue, "hidden").Spec.Priority)
		run(t, "boss", "resume", "shared")
		c.waitPhase(t, red, "running", v1alpha1.PhaseRunning)
	})
	t.Run("an operator holds a unit, and moves another", func(t *testing.T) {
		run(t, "boss", "hold", "hidden", "-n", blue, "--unit")
		c.waitReason(t, blue, "hidden", "Inactive")
		run(t, "boss", "priority", "hidden", "--clear", "-n", blue)
		require.Eventually(t, func() bool { return *c.unit(t, blue, "hidden").Spec.Priority == 6 }, soon, pace)
		run(t, "boss", "release", "hidden", "-n", blue, "--unit")
		_, err := c.kubectlJobqueue(t, "boss", "move", "second", "--queue", "nowhere", "-n", red)
		require.ErrorContains(t, err, "not found")
		run(t, "boss", "move", "second", "--queue", "express", "-n", red)
		require.Eventually(t, func() bool { return c.unit(t, red, "second").Spec.Queue == "express" }, soon, pace)
		require.Regexp(t, `job/second +express +1 +Pending`, run(t, "boss", "list", "-n", red))
	})
	t.Run("jobs are held, released and moved by what selects them", func(t *testing.T) {
		_, err := c.kubectlJobqueue(t, "rose", "hold", "--queue", "express", "-n", red)
		require.ErrorContains(t, err, "not confirmed")
		run(t, "rose", "hold", "--queue", "express", "-n", red, "--yes")
		c.waitReason(t, red, "second", "HeldByOwner")
		require.Contains(t, run(t, "rose", "release", "-A", "--yes"), "job/second released")
		out := run(t, "boss", "move", "--from", "express", "--queue", "shared", "--dry-run=server")
		require.Regexp(t, `^job/second .*waits in queue "shared" \(server dry run\)\n$`, out)
	})
	t.Run("a submitter follows its job to the end", func(t *testing.T) {
		c.quota(t, red, "quick", 1, 1)
		require.NoError(t, c.GrantUse(t.Context(), red, "quick"))
		file := filepath.Join(t.TempDir(), "job.yaml")
		require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: quick}
spec:
  template:
    metadata: {annotations: {`+controlplane.RunTimeAnnotation+`: 1s}}
    spec:
      schedulerName: koord-scheduler
      restartPolicy: Never
      containers: [{name: c, image: none, resources: {requests: {cpu: 500m}}}]
`), 0o600))
		out := run(t, "rose", "submit", "-f", file, "--quota", "quick", "-n", red, "--wait", "--timeout=1m")
		require.Contains(t, out, "jobs.batch/quick submitted\n")
		require.Contains(t, out, "jobs.batch/quick Succeeded\n")
	})
	t.Run("a job with the labels of the library runs as a gang", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "job.yaml")
		require.NoError(t, os.WriteFile(file, []byte(`
apiVersion: batch/v1
kind: Job
metadata: {name: labelled}
spec:
  parallelism: 2
  completions: 2
  template:
    metadata: {annotations: {`+controlplane.RunTimeAnnotation+`: 1s}}
    spec:
      restartPolicy: Never
      containers: [{name: c, image: none, resources: {requests: {cpu: 500m}}}]
`), 0o600))
		out := run(t, "rose", "label", "-f", file, "--queue=quick", "--gang=gangSchedulingStyle=Hard", "-n", red)
		require.Contains(t, out, "gang.scheduling.koordinator.sh/min-available: \"2\"")
		require.NoError(t, os.WriteFile(file, []byte(out), 0o600))
		out = run(t, "rose", "submit", "-f", file, "-n", red, "--wait", "--timeout=1m")
		require.Contains(t, out, "jobs.batch/labelled Succeeded\n")
	})
	t.Run("an operator looks at the whole", func(t *testing.T) {
		require.Regexp(t, `\n +red-quota +\d +no min`, run(t, "boss", "share", "-A"))
		file := filepath.Join(t.TempDir(), "state.yaml")
		run(t, "root", "snapshot", "-o", file, "--hash-names")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		facts, err := os.ReadFile(filepath.Join(filepath.Dir(file), "state.facts.json"))
		require.NoError(t, err)
		for _, name := range []string{"secret", "red-quota", "shared", "firm"} {
			require.NotContains(t, string(text), name)
			require.NotContains(t, string(facts), `:"`+name+`"`)
		}
		require.Contains(t, run(t, "boss", "simulate", "--live", "--hold=quick"), "Unchanged: ")
		out, err := c.kubectlJobqueue(t, "root", "doctor")
		require.NoError(t, err, out)
		require.Contains(t, out, "0 errors, 0 warnings")
	})
	c.agrees(t)
}
