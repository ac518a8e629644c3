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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// observer recomputes from a watch of pods what may never happen. One watch delivers pods in the order of the
// store, so the sum over bound pods is exact at every event. When the watch breaks and pods are listed again, what
// happened in between is not known in its order: the sum is taken once, over the whole list.
type observer struct {
	cluster *cluster

	mu sync.Mutex
	// maxCPU by namespace, in milli: all pods of the namespace together.
	maxCPU map[string]int64
	// bound cpu by namespace, and of each bound pod.
	bound map[string]int64
	pods  map[types.UID]boundPod
	// ran holds when each pod of a job was created that was ever bound, by namespace/job.
	ran map[string]map[types.UID]time.Time
	// outages of the API server, in which the answer to the creation of a pod may be lost.
	outages [][2]time.Time
	// refusals holds what ElasticQuota, or the protection of reserved quota in it, last said to pods that it refused.
	refusals   map[string]string
	violations []string
}

type boundPod struct {
	namespace string
	version   string
	cpu       int64
}

// observe starts to watch; the watch ends with the test. In each namespace pods may use so many cores in all.
func observe(t *testing.T, c *cluster, maxCPU map[string]int) *observer {
	t.Helper()
	o := &observer{
		cluster: c,
		maxCPU:  map[string]int64{}, bound: map[string]int64{}, pods: map[types.UID]boundPod{},
		ran: map[string]map[types.UID]time.Time{}, refusals: map[string]string{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for ns, cores := range maxCPU {
		o.maxCPU[ns] = int64(cores) * 1000
		lw := cache.NewListWatchFromClient(c.kube.CoreV1().RESTClient(), "pods", ns, fields.Everything())
		store := &observedPods{observer: o, namespace: ns, listed: make(chan struct{})}
		go cache.NewReflectorWithOptions(lw, &corev1.Pod{}, store, cache.ReflectorOptions{}).RunWithContext(ctx)
		select {
		case <-store.listed:
		case <-time.After(soon):
			t.Fatalf("no list of the pods of namespace %s", ns)
		}
	}
	return o
}

// observedPods hands the pods of a namespace to the observer as the watch delivers them.
type observedPods struct {
	observer  *observer
	namespace string
	once      sync.Once
	listed    chan struct{}
}

var _ cache.ReflectorStore = &observedPods{}

func (s *observedPods) Add(obj any) error    { return s.see(obj, false) }
func (s *observedPods) Update(obj any) error { return s.see(obj, false) }
func (s *observedPods) Delete(obj any) error { return s.see(obj, true) }
func (s *observedPods) Resync() error        { return nil }

func (s *observedPods) see(obj any, gone bool) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("want a pod, got %T", obj)
	}
	o := s.observer
	o.mu.Lock()
	defer o.mu.Unlock()
	o.take(p, gone)
	o.check(p.Namespace, p.Name)
	return nil
}

// Replace takes a new list of all pods of the namespace.
func (s *observedPods) Replace(list []any, _ string) error {
	o := s.observer
	o.mu.Lock()
	defer o.mu.Unlock()
	for uid, p := range o.pods {
		if p.namespace == s.namespace {
			delete(o.pods, uid)
		}
	}
	o.bound[s.namespace] = 0
	for _, obj := range list {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return fmt.Errorf("want a pod, got %T", obj)
		}
		o.take(p, false)
	}
	o.check(s.namespace, "the last of a list")
	s.once.Do(func() { close(s.listed) })
	return nil
}

func (o *observer) take(p *corev1.Pod, gone bool) {
	job := p.Namespace + "/" + p.Labels["job-name"]
	if p.Spec.NodeName != "" {
		if o.ran[job] == nil {
			o.ran[job] = map[types.UID]time.Time{}
		}
		o.ran[job][p.UID] = p.CreationTimestamp.Time
	}
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			(strings.Contains(condition.Message, "Insufficient quotas") || strings.Contains(condition.Message, "Insufficient non-preemptible quotas") ||
				strings.Contains(condition.Message, "CheckPod failed")) {
			o.refusals[p.Namespace+"/"+p.Name] = condition.Message
		}
	}
	ended := gone || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	now := int64(0)
	if p.Spec.NodeName != "" && !ended {
		for _, container := range p.Spec.Containers {
			now += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	o.bound[p.Namespace] += now - o.pods[p.UID].cpu
	o.pods[p.UID] = boundPod{p.Namespace, p.ResourceVersion, now}
}

func (o *observer) check(namespace, pod string) {
	if limit := o.maxCPU[namespace]; o.bound[namespace] > limit {
		o.violations = append(o.violations, fmt.Sprintf("I1: bound pods of namespace %s ask for %dm of %dm when %s is bound", namespace, o.bound[namespace], limit, pod))
	}
}

// boundCPU is what the bound pods of a namespace ask for now, in milli.
func (o *observer) boundCPU(namespace string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bound[namespace]
}

// atMost changes how many cores the pods of a namespace may use in all, from the next event on.
func (o *observer) atMost(namespace string, cores int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.maxCPU[namespace] = int64(cores) * 1000
}

// refused returns what pods were told that quota kept out, by pod.
func (o *observer) refused() map[string]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.refusals)
}

// upToDate is nil if the observer saw all pods that exist in their present versions. A watch that broke together with
// the API server is tried again after a back-off that may be longer than what is left of the test.
func (o *observer) upToDate() error {
	o.mu.Lock()
	namespaces := slices.Collect(maps.Keys(o.maxCPU))
	o.mu.Unlock()
	for _, ns := range namespaces {
		list, err := o.cluster.kube.CoreV1().Pods(ns).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		o.mu.Lock()
		for i := range list.Items {
			p := &list.Items[i]
			if seen := o.pods[p.UID].version; seen != p.ResourceVersion {
				err = fmt.Errorf("pod %s/%s has version %s, the observer saw %q", ns, p.Name, p.ResourceVersion, seen)
			}
		}
		o.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// clean checks at the end of a test: no quota was passed, no job ran twice or without admission.
func (o *observer) clean(t *testing.T, podsPerJob map[string]int) {
	t.Helper()
	var behind string
	require.Eventually(t, func() bool {
		err := o.upToDate()
		behind = fmt.Sprint(err)
		return err == nil
	}, time.Minute, pace, "%s", lazy(&behind))
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.violations)
	for job, n := range podsPerJob {
		require.Equal(t, n, o.runs(job), "pods of job %s that were ever bound: %v", job, o.ran[job])
		if len(o.ran[job]) != n {
			t.Logf("pods of job %s were created in an outage more than once: %v", job, o.ran[job])
		}
	}
}

// apiServerWasDown tells of an outage. The job controller takes a pod whose creation nobody answered for failed, and may
// create another one before it sees the first. Kubernetes promises no more than that a pod is started at least once; it is
// no second admission of the job.
func (o *observer) apiServerWasDown(from, to time.Time) {
	const lag = 5 * time.Second
	o.mu.Lock()
	defer o.mu.Unlock()
	o.outages = append(o.outages, [2]time.Time{from.Add(-lag), to.Add(lag)})
}

// runs counts the pods of a job that were ever bound, those that were created in one outage as one.
func (o *observer) runs(job string) int {
	n := 0
	counted := make([]bool, len(o.outages))
	for _, created := range o.ran[job] {
		outage := slices.IndexFunc(o.outages, func(span [2]time.Time) bool { return created.After(span[0]) && created.Before(span[1]) })
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
