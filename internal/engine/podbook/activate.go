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

package podbook

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/latest"
)

// activateChunk bounds the pods of one Activate: it holds the lock of the scheduler's queue.
const activateChunk = 500

// Activation has the scheduler look again at pods that became free to go.
type Activation struct {
	*env.Env
	scheduler *Scheduler
	index     *podIndex
	gate      gate
	pending   latest.Map[types.UID, struct{}]
}

// Free has pods activated.
func (p *Activation) Free(some []types.UID) {
	for _, uid := range some {
		p.pending.Put(uid, struct{}{})
	}
}

// FreeIdle has the pods activated that are not on a node; those that the newest snapshot lets go alone, or all that
// could be.
func (p *Activation) FreeIdle(grantedOnly bool) {
	for _, uid := range slices.Sorted(maps.Keys(p.index.idle)) {
		if !grantedOnly || p.gate.Granted(uid) {
			p.gate.TouchPod(uid) // the time of its unit may be another one
			p.pending.Put(uid, struct{}{})
		}
	}
}

// HandOver has the scheduler look again at the pods that became free to go. The snapshot that lets them pass is
// published before. It says whether the scheduler could take them.
func (p *Activation) HandOver() bool {
	if len(p.pending.Items) == 0 {
		return true
	}
	if !p.scheduler.Ready() {
		return false
	}
	list := p.pending.Items
	p.pending = latest.Map[types.UID, struct{}]{}
	chunk := make(map[string]*corev1.Pod, min(len(list), activateChunk))
	flush := func() {
		if len(chunk) > 0 && !p.Guard("activate", func() { p.scheduler.Activate(chunk) }) {
			p.Log.Info("Pods were not activated; the next pass over all pods does it", "pods", len(chunk))
		}
		chunk = make(map[string]*corev1.Pod, activateChunk)
	}
	for _, it := range list {
		rec := p.index.byUID[it.Key]
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
