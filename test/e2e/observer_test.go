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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// podHistory lets a checker judge all pods of a cluster. The store delivers them in order and without gaps, so the sum
// over bound pods is exact at every change, whatever is killed. The checker takes namespaces for quotas: a test says
// how much the pods of its own may use together.
type podHistory struct {
	store *observer.Observer
	end   context.CancelFunc

	mu     sync.Mutex
	checks *checker.Checker
	// outages of the API server, in which the answer to the creation of a pod may be lost.
	outages [][2]time.Time
	// refusals holds what ElasticQuota, or the protection of reserved quota in it, last said to pods that it refused, by
	// namespace/name.
	refusals map[string]string
}

// follow starts to take down the history of a cluster, until end.
func follow(endpoint string) (*podHistory, error) {
	h := &podHistory{checks: checker.New(nil), refusals: map[string]string{}}
	h.checks.Unanswered = func(created time.Time) bool {
		return slices.ContainsFunc(h.outages,
			func(span [2]time.Time) bool { return created.After(span[0]) && created.Before(span[1]) })
	}
	var err error
	if h.store, err = observer.New(endpoint, h.see); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.end = cancel
	go h.store.Run(ctx)
	return h, nil
}

func (h *podHistory) see(change observer.Change) error {
	e, ok, err := change.Event()
	if !ok {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch o := change.Object.(type) {
	case *unstructured.Unstructured:
		return nil // an ElasticQuota
	case *corev1.Pod:
		pod := e.Object.(checker.Pod)
		pod.Quota = o.Namespace
		e.Object = pod
		h.noteRefusal(o)
	}
	h.checks.Apply(e)
	return nil
}

func (h *podHistory) noteRefusal(p *corev1.Pod) {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			(strings.Contains(condition.Message, "Insufficient quotas") ||
				strings.Contains(condition.Message, "Insufficient non-preemptible quotas") ||
				strings.Contains(condition.Message, "CheckPod failed")) {
			h.refusals[p.Namespace+"/"+p.Name] = condition.Message
		}
	}
}

// watched is what a test asks of the history: about its own namespaces.
type watched struct {
	*podHistory
	namespaces []string
}

// observe has the history of the cluster compare from now on: in each namespace pods may use so many cores in all.
func observe(t *testing.T, c *cluster, maxCPU map[string]int) *watched {
	t.Helper()
	w := &watched{podHistory: c.history}
	for ns, cores := range maxCPU {
		w.namespaces = append(w.namespaces, ns)
		w.atMost(ns, cores)
	}
	return w
}

// boundCPU is what the bound pods of a namespace ask for now, in milli.
func (h *podHistory) boundCPU(namespace string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	running, _, _ := h.checks.Use(namespace, "cpu")
	return running
}

// atMost changes how many cores the pods of a namespace may use in all, from the next event on.
func (h *podHistory) atMost(namespace string, cores int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks.Apply(checker.Event{Object: checker.Quota{
		Name: namespace, Max: checker.Resources{"cpu": int64(cores) * 1000},
	}})
}

// refused returns what pods of the watched namespaces were told that quota kept out, by pod.
func (w *watched) refused() map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	refused := maps.Clone(w.refusals)
	maps.DeleteFunc(refused, func(pod, _ string) bool {
		namespace, _, _ := strings.Cut(pod, "/")
		return !slices.Contains(w.namespaces, namespace)
	})
	return refused
}

// broken returns the violations of a rule about a subject.
func (h *podHistory) broken(t *testing.T, rule checker.Rule, subject func(string) bool) (found []checker.Violation) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, h.store.CaughtUp(ctx))
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, v := range h.checks.Violations() {
		if v.Rule == rule && subject(v.Subject) {
			found = append(found, v)
		}
	}
	return found
}

// clean checks at the end of a test: no quota was passed, and as many pods of each job were bound as it has.
func (w *watched) clean(t *testing.T, podsPerJob map[string]int) {
	t.Helper()
	own := func(namespace string) bool { return slices.Contains(w.namespaces, namespace) }
	require.Empty(t, w.broken(t, checker.QuotaPassed, own))
	w.mu.Lock()
	defer w.mu.Unlock()
	for job, n := range podsPerJob {
		bound, spare := w.checks.Bound(job)
		require.True(t, n <= bound && bound <= n+spare, "%d pods of job %s were ever bound, %d may be in vain; it has %d",
			bound, job, spare, n)
	}
}

// apiServerWasDown tells of an outage.
func (h *podHistory) apiServerWasDown(from, to time.Time) {
	const lag = 5 * time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outages = append(h.outages, [2]time.Time{from.Add(-lag), to.Add(lag)})
}

// boundAfterAdmission checks that pods of a job were bound, and none while its unit was not admitted.
func (c *cluster) boundAfterAdmission(t *testing.T, namespace, job string) {
	t.Helper()
	name := namespace + "/" + job
	early := c.history.broken(t, checker.NotAdmitted, func(pod string) bool { return strings.HasPrefix(pod, name+"-") })
	require.Empty(t, early)
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	bound, _ := c.history.checks.Bound(name)
	require.NotZero(t, bound, "pods of job %s that were ever bound", name)
}
