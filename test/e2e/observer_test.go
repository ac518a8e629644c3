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
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// observer recomputes from a watch of pods what may never happen. One watch delivers pods in the order of the
// store, so the sum over bound pods is exact at every event.
type observer struct {
	mu sync.Mutex
	// maxCPU by namespace, in milli: all pods of the namespace together.
	maxCPU map[string]int64
	// bound cpu by namespace, and of each bound pod.
	bound map[string]int64
	pods  map[types.UID]int64
	// ran holds all pods of each job that were ever bound, by namespace/job.
	ran        map[string]map[types.UID]bool
	violations []string
}

// observe starts to watch; the watch ends with the test. In each namespace pods may use so many cores in all.
func observe(t *testing.T, c *cluster, maxCPU map[string]int) *observer {
	t.Helper()
	o := &observer{
		maxCPU: map[string]int64{}, bound: map[string]int64{}, pods: map[types.UID]int64{},
		ran: map[string]map[types.UID]bool{},
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for ns, cores := range maxCPU {
		o.maxCPU[ns] = int64(cores) * 1000
		lw := cache.NewListWatchFromClient(c.kube.CoreV1().RESTClient(), "pods", ns, fields.Everything())
		_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
			ListerWatcher: lw, ObjectType: &corev1.Pod{},
			Handler: cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { o.see(obj.(*corev1.Pod), false) },
				UpdateFunc: func(_, obj any) { o.see(obj.(*corev1.Pod), false) },
				DeleteFunc: func(obj any) {
					if p, ok := obj.(*corev1.Pod); ok {
						o.see(p, true)
					}
				},
			},
		})
		go informer.RunWithContext(ctx)
		require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
	}
	return o
}

func (o *observer) see(p *corev1.Pod, gone bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	job := p.Namespace + "/" + p.Labels["job-name"]
	if p.Spec.NodeName != "" {
		if o.ran[job] == nil {
			o.ran[job] = map[types.UID]bool{}
		}
		o.ran[job][p.UID] = true
	}
	ended := gone || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	now := int64(0)
	if p.Spec.NodeName != "" && !ended {
		for _, container := range p.Spec.Containers {
			now += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	o.bound[p.Namespace] += now - o.pods[p.UID]
	o.pods[p.UID] = now
	if limit := o.maxCPU[p.Namespace]; o.bound[p.Namespace] > limit {
		o.violations = append(o.violations, fmt.Sprintf("I1: bound pods of namespace %s ask for %dm of %dm when %s is bound", p.Namespace, o.bound[p.Namespace], limit, p.Name))
	}
}

// clean checks at the end of a test: no quota was passed, no job ran twice or without admission.
func (o *observer) clean(t *testing.T, podsPerJob map[string]int) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.violations)
	for job, n := range podsPerJob {
		require.Len(t, o.ran[job], n, "pods of job %s that were ever bound", job)
	}
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
