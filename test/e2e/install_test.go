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
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/auditlog"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// uninstall runs the documented way out as a person would.
func (c *cluster) uninstall(t *testing.T, waiting string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out bytes.Buffer
	command := cli.Command(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	command.SetArgs([]string{
		"uninstall", "--waiting=" + waiting, "--yes", "--kubeconfig=" + c.Kubeconfig(controlplane.Admin),
	})
	require.NoError(t, command.ExecuteContext(ctx), "%s", out.String())
	t.Logf("uninstall:\n%s", out.String())
}

// A simple job costs at most four object writes of both processes together, without the creation of its unit (I12). The
// audit log of the API server counts them. A refused request (conflict, time-out) wrote nothing. The first job of its
// kind that does not fit for explainAfter gets its reason in one more write.
func TestWritesPerJob(t *testing.T) {
	c := start(t, "writes", controlplane.Options{AuditPolicy: auditlog.Decisions})
	c.complete(t)
	ns := c.namespace(t, "writes")
	c.quota(t, ns, "writes", 10, 10)
	const n = 30
	for i := range n {
		c.create(t, newJob(ns, fmt.Sprintf("job-%02d", i), suspended, ofQuota("writes"), runs(2*time.Second)))
	}
	c.waitDone(t, ns, n, 2*time.Minute)
	for i := range n {
		c.waitPhase(t, ns, fmt.Sprintf("job-%02d", i), schedulingv1alpha1.PhaseSucceed)
	}
	log, err := os.Open(c.AuditLog())
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	writes, explained, kinds := map[string]int{}, map[string]int{}, map[string]int{}
	torn, err := auditlog.Read(log, func(e *auditlog.Event) {
		ours := e.User.Username == controlplane.SchedulerUser || e.User.Username == controlplane.ControllerUser
		if !ours || e.ObjectRef.Namespace != ns || e.ObjectRef.Resource == "pods" {
			return
		}
		switch {
		case !e.Succeeded():
		case e.ObjectRef.Subresource == "status" && e.RequestObject.Status.Phase == nil: // only tells why a unit waits
			explained[e.ObjectRef.Name]++
		default:
			writes[e.ObjectRef.Name]++
		}
		kinds[fmt.Sprintf("%s %s %d", e.Verb, e.Kind(), e.ResponseStatus.Code)]++
	})
	require.NoError(t, err)
	require.Zero(t, torn)
	t.Logf("writes of %d jobs: %v, of which told why a unit waits: %v", n, kinds, explained)
	require.Len(t, writes, n)
	for job, count := range writes {
		require.LessOrEqual(t, count, 4, "writes of %s", job)
		require.LessOrEqual(t, explained[job], 1, "explanations of %s", job)
	}
}

// With 10,000 units present the scheduler starts and admits within ten seconds. The time that it took is logged.
func TestStartWithTenThousandUnits(t *testing.T) {
	c := start(t, "many", controlplane.Options{})
	ns := c.namespace(t, "many")
	c.quota(t, ns, "many", 5, 5)
	c.createQueue(t, &schedulingv1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Namespace: schedulingv1alpha1.DefaultQueueNamespace, Name: "many"},
	})
	const n, workers = 10000, 16
	errs := make(chan error, workers)
	for w := range workers {
		go func() { errs <- c.createUnits(t.Context(), ns, w, n, workers) }()
	}
	for range workers {
		require.NoError(t, <-errs)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	require.NoError(t, c.StartScheduler(ctx, controlplane.SchedulerOptions{NoWait: true}))
	require.Eventually(t, func() bool {
		list, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(ns).
			Get(ctx, "unit-00000", metav1.GetOptions{})
		return err == nil && decodeUnit(t, list).Status.Phase == schedulingv1alpha1.PhaseDequeued
	}, soon, pace)
	took := time.Since(begin).Round(10 * time.Millisecond)
	t.Logf("from the start of the process to the first admission with %d units: %s", n, took)
	require.Less(t, took, 10*second)
}

// createUnits creates every workers-th unit of n, from the first-th on.
func (c *cluster) createUnits(ctx context.Context, namespace string, first, n, workers int) error {
	for i := first; i < n; i += workers {
		u := unstructuredUnit(namespace, fmt.Sprintf("unit-%05d", i), "many", n-i)
		if _, err := c.dyn.Resource(schedulingv1alpha1.QueueUnitResource).Namespace(namespace).
			Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}
