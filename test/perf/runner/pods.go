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

package runner

import (
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func podsPath(namespace string) string { return "/api/v1/namespaces/" + namespace + "/pods" }

func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }
func jobName(i int) string { return fmt.Sprintf("job-%06d", i) }

// podObject is a pod in a quota, or in none.
func podObject(name, quota string) (metadata, spec, pod map[string]any) {
	metadata = map[string]any{"name": name}
	if quota != "" {
		metadata["labels"] = map[string]any{v1alpha1.LabelQuotaName: quota}
	}
	spec = map[string]any{
		"schedulerName": "koord-scheduler",
		"containers": []any{map[string]any{
			"name": "main", "image": "example.invalid/work",
			"resources": map[string]any{"requests": map[string]any{"cpu": milli(podCPU), "memory": "64Mi"}},
		}},
	}
	return metadata, spec, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}

// podBody is a pod of nobody's job.
func podBody(name, quota string) []byte {
	_, _, pod := podObject(name, quota)
	return encode(pod)
}

// gatedPodBody is a pod of a Job, with a gate of Kubernetes or without.
func gatedPodBody(name, quota string, job int, uid string, gate bool) []byte {
	metadata, spec, pod := podObject(name, quota)
	metadata["ownerReferences"] = ownerReferences(job, uid)
	if gate {
		spec["schedulingGates"] = []any{map[string]any{"name": "perf.example.invalid/waits"}}
	}
	return encode(pod)
}

func ownerReferences(job int, uid string) []any {
	return []any{
		map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": jobName(job), "uid": uid, "controller": true},
	}
}

// ownedByJob makes a unit that of a Job: a unit of another name stands for none.
func ownedByJob(unit map[string]any, job int, uid string) {
	metadata, _ := unit["metadata"].(map[string]any)
	spec, _ := unit["spec"].(map[string]any)
	metadata["name"] = jobName(job)
	metadata["ownerReferences"] = ownerReferences(job, uid)
	spec["consumerRef"] = map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "name": jobName(job), "namespace": unitNamespace, "uid": uid,
	}
}

// bindings notes, by the clock of this process, when pods were seen to exist and to be bound.
type bindings struct {
	mu    sync.Mutex
	pods  map[string]binding
	bound int
}

type binding struct{ created, bound time.Time }

func newBindings(pods int) *bindings { return &bindings{pods: make(map[string]binding, pods)} }

func (b *bindings) take(e watch.EventType, object runtime.Object, now time.Time) {
	seen, ok := object.(*corev1.Pod)
	if !ok || e == watch.Deleted {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	pod := b.pods[seen.Name]
	if pod.created.IsZero() {
		pod.created = now
	}
	if seen.Spec.NodeName != "" && pod.bound.IsZero() {
		pod.bound = now
		b.bound++
	}
	b.pods[seen.Name] = pod
}

func (b *bindings) counts() (created, bound int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pods), b.bound
}

// result is by the name of the pod.
func (b *bindings) result() map[string]binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.pods)
}
