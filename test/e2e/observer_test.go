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
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// podHistory recomputes from the history of all pods of a cluster what may never happen. The store delivers it in its
// order and without gaps, so the sum over bound pods is exact at every change, whatever is killed meanwhile.
type podHistory struct {
	store *observer.Observer
	end   context.CancelFunc

	mu sync.Mutex
	// maxCPU by namespace, in milli: all pods of the namespace together. Others have no limit.
	maxCPU map[string]int64
	// bound cpu by namespace, and of each bound pod.
	bound map[string]int64
	pods  map[types.UID]int64
	// ran holds when each pod of a job was created that was ever bound, by namespace/job.
	ran map[string]map[types.UID]time.Time
	// outages of the API server, in which the answer to the creation of a pod may be lost.
	outages [][2]time.Time
	// refusals holds what ElasticQuota, or the protection of reserved quota in it, last said to pods that it refused, by
	// namespace/name.
	refusals map[string]string
	// violations by namespace.
	violations map[string][]string
}

// follow starts to take down the history of a cluster, until end.
func follow(endpoint string) (*podHistory, error) {
	h := &podHistory{
		maxCPU: map[string]int64{}, bound: map[string]int64{}, pods: map[types.UID]int64{},
		ran: map[string]map[types.UID]time.Time{}, refusals: map[string]string{}, violations: map[string][]string{},
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
	p, ok := change.Object.(*corev1.Pod)
	if !ok {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.take(p, change.Deleted)
	if limit, limited := h.maxCPU[p.Namespace]; limited && h.bound[p.Namespace] > limit {
		h.violations[p.Namespace] = append(h.violations[p.Namespace], fmt.Sprintf(
			"I1: bound pods of namespace %s ask for %dm of %dm when %s is bound", p.Namespace,
			h.bound[p.Namespace], limit, p.Name))
	}
	return nil
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

func (h *podHistory) take(p *corev1.Pod, gone bool) {
	job := p.Namespace + "/" + p.Labels["job-name"]
	if p.Spec.NodeName != "" {
		if h.ran[job] == nil {
			h.ran[job] = map[types.UID]time.Time{}
		}
		h.ran[job][p.UID] = p.CreationTimestamp.Time
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			(strings.Contains(condition.Message, "Insufficient quotas") ||
				strings.Contains(condition.Message, "Insufficient non-preemptible quotas") ||
				strings.Contains(condition.Message, "CheckPod failed")) {
			h.refusals[p.Namespace+"/"+p.Name] = condition.Message
		}
	}
	ended := gone || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	now := int64(0)
	if p.Spec.NodeName != "" && !ended {
		for _, container := range p.Spec.Containers {
			now += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	h.bound[p.Namespace] += now - h.pods[p.UID]
	h.pods[p.UID] = now
}

// boundCPU is what the bound pods of a namespace ask for now, in milli.
func (h *podHistory) boundCPU(namespace string) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bound[namespace]
}

// atMost changes how many cores the pods of a namespace may use in all, from the next event on.
func (h *podHistory) atMost(namespace string, cores int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.maxCPU[namespace] = int64(cores) * 1000
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

// clean checks at the end of a test: no quota was passed, no job ran twice or without admission.
func (w *watched) clean(t *testing.T, podsPerJob map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	require.NoError(t, w.store.CaughtUp(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ns := range w.namespaces {
		require.Empty(t, w.violations[ns])
	}
	for job, n := range podsPerJob {
		require.Equal(t, n, w.runs(job), "pods of job %s that were ever bound: %v", job, w.ran[job])
		if len(w.ran[job]) != n {
			t.Logf("pods of job %s were created in an outage more than once: %v", job, w.ran[job])
		}
	}
}

// apiServerWasDown tells of an outage. The job controller takes a pod whose creation nobody answered for failed, and
// may create another one before it sees the first. Kubernetes promises no more than that a pod is started at least
// once; it is no second admission of the job.
func (h *podHistory) apiServerWasDown(from, to time.Time) {
	const lag = 5 * time.Second
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outages = append(h.outages, [2]time.Time{from.Add(-lag), to.Add(lag)})
}

// runs counts the pods of a job that were ever bound, those that were created in one outage as one.
func (h *podHistory) runs(job string) int {
	n := 0
	counted := make([]bool, len(h.outages))
	for _, created := range h.ran[job] {
		outage := slices.IndexFunc(h.outages,
			func(span [2]time.Time) bool { return created.After(span[0]) && created.Before(span[1]) })
		if outage >= 0 && counted[outage] {
			continue
		}
		if outage >= 0 {
			counted[outage] = true
		}
		n++
	}
	return n
}

// boundAfterAdmission checks that each pod of the job was bound no earlier than its unit was admitted. Both
// times have the resolution of the API: one second.
func (c *cluster) boundAfterAdmission(t *testing.T, namespace, job string) {
	t.Helper()
	u := c.unit(t, namespace, job)
	require.NotNil(t, u, "unit of %s", job)
	require.NotNil(t, u.Status.LastAllocateTime, "%s was never admitted", job)
	for _, p := range c.podsOf(t, namespace, job) {
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionTrue {
				require.False(t, cond.LastTransitionTime.Before(u.Status.LastAllocateTime),
					"I3: pod %s was bound at %s, its unit admitted at %s", p.Name, cond.LastTransitionTime, u.Status.LastAllocateTime)
			}
		}
	}
}
