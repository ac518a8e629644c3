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
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// showPreemptions has a job of one namespace preempt a job of another one. Each namespace has a viewer, and boss is the
// operator.
func (c *cluster) showPreemptions(t *testing.T) {
	borrower, owner := c.namespace(t, "borrower"), c.namespace(t, "owner")
	c.quota(t, owner, "preempt-all", 4, 4, isParent())
	c.quota(t, borrower, "preempt-borrower", 0, 4, under("preempt-all"))
	c.quota(t, owner, "preempt-owner", 4, 4, under("preempt-all"))
	c.patchQueue(t, "preempt-borrower", atOnce)
	c.patchQueue(t, "preempt-owner", `{"spec":{"stopPolicy":"Hold","preemption":{"reclaim":"Any"}}}`)
	c.bind(t, "bob", "jobqueue-viewer", borrower)
	c.bind(t, "olga", "jobqueue-viewer", owner)
	run := func(user string, args ...string) string {
		t.Helper()
		out, err := c.kubectlJobqueue(t, user, args...)
		require.NoError(t, err, out)
		t.Logf("%s: kubectl jobqueue %v\n%s", user, args, out)
		return out
	}
	require.Contains(t, run("bob", "preemptions", "-n", borrower), "No preemption is in progress.")

	c.create(t, newJob(borrower, "lent", suspended, ofQuota("preempt-borrower"), cpu("3"), runs(time.Hour)))
	c.waitPhase(t, borrower, "lent", v1alpha1.PhaseRunning)
	c.create(t, newJob(owner, "own", suspended, ofQuota("preempt-owner"), cpu("3"), runs(time.Hour)))
	c.waitReason(t, owner, "own", "QueueHeld")

	const taker = `owner +job/own +preempt-owner +preempt-owner +`
	c.patchQueue(t, "preempt-owner", `{"spec":{"stopPolicy":"None","preemption":{"dryRun":true}}}`)
	require.Eventually(t, func() bool {
		return c.metric(t, "dry_run_victims", `queue="preempt-owner"`) == 1
	}, soon, pace)
	require.Regexp(t, taker+`borrower/job/lent +preempt-borrower +Holds`, run("boss", "preemptions", "-A", "--dry-run"))
	require.Regexp(t, taker+`\(1 more\)`, run("olga", "preemptions", "-n", owner, "--dry-run"))
	require.Contains(t, run("bob", "preemptions", "-n", borrower, "--dry-run"), "would preempt others.")

	// The controller would suspend the victim. Without it, the preemption stays in progress.
	c.scale(t, "koord-queue", controllerDeployment, 0)
	c.patchQueue(t, "preempt-owner", `{"spec":{"preemption":{"dryRun":false}}}`)
	c.waitReason(t, borrower, "lent", "Reclaimed")
	require.Regexp(t, taker+`borrower/job/lent +preempt-borrower +Suspended`, run("boss", "preemptions", "-A"))
	require.Regexp(t, taker+`\(1 of other namespaces, or deleted\)`, run("olga", "preemptions", "-n", owner))
	require.Regexp(t, `Preempts, to be admitted:\n.*\n +borrower/job/lent `,
		run("boss", "why", "own", "-n", owner, "-o", "wide"))
	require.NotContains(t, run("olga", "why", "own", "-n", owner, "-o", "wide"), "lent")
	c.scale(t, "koord-queue", controllerDeployment, 1)
	c.waitPhase(t, owner, "own", v1alpha1.PhaseRunning)

	const row = `borrower +job/lent +preempt-borrower +preempt-borrower +Reclaimed +`
	const noNames = "Jobs of namespaces that you may not list have no name here."
	seen := run("bob", "preemptions", "-n", borrower, "-o", "wide")
	require.Regexp(t, row+`preempt-owner +1 +Suspended +- +quota "preempt-owner" takes back`, seen)
	require.Contains(t, seen, noNames)
	require.NotContains(t, seen, "job/own")
	seen = run("bob", "why", "lent", "-n", borrower, "-o", "wide")
	require.Regexp(t, `Preempted \S+ ago: Reclaimed\n +quota "preempt-owner" takes back`, seen)
	require.NotContains(t, seen, "job/own")
	require.NotContains(t, run("olga", "preemptions", "-n", owner), "lent")
	_, err := c.kubectlJobqueue(t, "bob", "preemptions", "-A")
	require.ErrorContains(t, err, "forbidden")

	for _, where := range [][]string{{"-A"}, {"-n", borrower}, {"-n", owner}, {"-A", "--queue", "preempt-owner"}} {
		seen = run("boss", append([]string{"preemptions", "-o", "wide"}, where...)...)
		require.Regexp(t, row+`preempt-owner +1 +Suspended +owner/job/own `, seen)
		require.NotContains(t, seen, noNames)
	}
	require.Contains(t, run("boss", "why", "lent", "-n", borrower, "-o", "wide"), "owner/job/own of quota preempt-owner")
	require.NotContains(t, run("boss", "preemptions", "-A", "--queue", "shared"), "lent")
	require.Equal(t, "queueunit.scheduling.x-k8s.io/lent\nqueueunit.scheduling.x-k8s.io/own\n",
		run("boss", "preemptions", "-A", "-o", "name"))

	// The object of a unit that was admitted again does not say why it was evicted. The record does.
	require.NoError(t, c.kube.BatchV1().Jobs(owner).Delete(t.Context(), "own",
		metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
	c.waitPhase(t, borrower, "lent", v1alpha1.PhaseRunning)
	require.Regexp(t, row+`- +1 +Resumed`, run("bob", "preemptions", "-n", borrower))
	var found answers.Preemptions
	require.NoError(t, json.Unmarshal([]byte(run("bob", "preemptions", "-n", borrower, "-o", "json")), &found))
	require.Empty(t, found.Taking)
	require.Len(t, found.Taken, 1)
	require.Equal(t, answers.VictimResumed, found.Taken[0].State)
}
