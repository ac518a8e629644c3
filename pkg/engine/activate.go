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

package engine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// activateChunk bounds the pods of one Activate: it holds the lock of the scheduler's queue.
const activateChunk = 500

// free has pods activated.
func (p *pods) free(some []types.UID) {
	for _, uid := range some {
		p.activate.put(uid, struct{}{})
	}
}

// freeIdle has the pods activated that are not on a node; those that the newest snapshot lets go alone, or all that
// could be.
func (p *pods) freeIdle(grantedOnly bool) {
	newest := p.publisher.newest()
	for _, uid := range sortedUIDs(p.index.idle) {
		if !grantedOnly || newest.Granted(uid) {
			p.publisher.touchPod(uid) // the time of its unit may be another one
			p.activate.put(uid, struct{}{})
		}
	}
}

// handOver has the scheduler look again at the pods that became free to go. The snapshot that lets them pass is
// published before. It says whether the scheduler could take them.
func (p *pods) handOver() bool {
	if len(p.activate.items) == 0 {
		return true
	}
	if !p.opts.Ready() {
		return false
	}
	list := p.activate.items
	p.activate = latest[types.UID, struct{}]{}
	chunk := make(map[string]*corev1.Pod, min(len(list), activateChunk))
	flush := func() {
		if len(chunk) > 0 && !p.guard("activate", func() { p.opts.Activate(chunk) }) {
			p.log.Info("Pods were not activated; the next pass over all pods does it", "pods", len(chunk))
		}
		chunk = make(map[string]*corev1.Pod, activateChunk)
	}
	for _, it := range list {
		rec := p.index.byUID[it.key]
		if rec == nil || rec.pod == nil || rec.pod.Spec.NodeName != "" || rec.quota != "" {
			continue
		}
		chunk[rec.pod.Namespace+"/"+rec.pod.Name] = rec.pod
		if len(chunk) == activateChunk {
			flush()
		}
	}
	flush()
	return true
}

// activatePods hands pods over once this process leads.
func (e *Engine) activatePods(now time.Time) {
	if e.leading && !e.pods.handOver() {
		e.retryIn(now, time.Second)
	}
}
