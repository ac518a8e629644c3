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

package jobqueue

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// stragglerPeriod is how often held pods without a unit are examined again. The usual cause of their release, the
// arrival of their job or unit, does not wait for it.
const stragglerPeriod = time.Second

// stragglers are pods that the gate holds and that no unit in the engine could release: their job was not seen, or has
// no unit. They are examined until they pass, a unit takes them over, or they are gone. Nothing else would wake them,
// because the scheduler never retries gated pods on its own.
type stragglers struct {
	gate *Gate
	// pod returns the pod as it is now, nil if it is gone.
	pod func(namespace, name string) *corev1.Pod
	// activate hands pods to the scheduling queue again. It says false, and is asked again, until it can.
	activate func(pods []*corev1.Pod) bool
	// report says, once for a pod, that its grace period is over and what is thought of it.
	report func(pod *corev1.Pod, v verdict)
	grace  time.Duration
	clock  clock.WithTicker
	kick   chan struct{}

	// mu is taken in the gate, under the lock of the scheduling queue: it is never held while pods are activated.
	mu     sync.Mutex
	pods   map[types.UID]straggler
	owners map[types.UID]int
}

type straggler struct {
	namespace, name string
	owner           types.UID
	reported        bool
}

func newStragglers(c clock.WithTicker, grace time.Duration) *stragglers {
	return &stragglers{
		grace:  grace,
		clock:  c,
		kick:   make(chan struct{}, 1),
		pods:   map[types.UID]straggler{},
		owners: map[types.UID]int{},
	}
}

// watch takes note of a held pod.
func (s *stragglers) watch(pod *corev1.Pod, _ bool) {
	var owner types.UID
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		owner = ref.UID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.pods[pod.UID]; known {
		return
	}
	s.pods[pod.UID] = straggler{namespace: pod.Namespace, name: pod.Name, owner: owner}
	s.owners[owner]++
}

// arrived says that metadata of a job came.
func (s *stragglers) arrived(job types.UID) {
	s.mu.Lock()
	wanted := s.owners[job] > 0
	s.mu.Unlock()
	if wanted {
		select {
		case s.kick <- struct{}{}:
		default:
		}
	}
}

func (s *stragglers) run(ctx context.Context) {
	ticker := s.clock.NewTicker(stragglerPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-ticker.C():
		}
		s.look()
	}
}

func (s *stragglers) look() {
	var passing []*corev1.Pod
	for uid, held := range s.copy() {
		pod := s.pod(held.namespace, held.name)
		if pod == nil || pod.UID != uid || pod.Spec.NodeName != "" {
			s.forget(uid)
			continue
		}
		switch v := s.gate.verdict(pod); v {
		case waiting, beyond:
			s.forget(uid)
		case suspended, unmanaged:
			// Its job, when it comes without the mark or with a label, brings us back.
		case unknown, unseen:
			s.remind(pod, held, v)
		default:
			if v == overdue {
				s.remind(pod, held, v)
			}
			passing = append(passing, pod)
		}
	}
	if len(passing) == 0 || !s.activate(passing) {
		return
	}
	for _, pod := range passing {
		s.forget(pod.UID)
	}
}

func (s *stragglers) remind(pod *corev1.Pod, held straggler, v verdict) {
	if held.reported || s.clock.Since(pod.CreationTimestamp.Time) <= s.grace {
		return
	}
	s.report(pod, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, ok := s.pods[pod.UID]; ok {
		held.reported = true
		s.pods[pod.UID] = held
	}
}

func (s *stragglers) copy() map[types.UID]straggler {
	s.mu.Lock()
	defer s.mu.Unlock()
	pods := make(map[types.UID]straggler, len(s.pods))
	for uid, held := range s.pods {
		pods[uid] = held
	}
	return pods
}

func (s *stragglers) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held, ok := s.pods[uid]
	if !ok {
		return
	}
	delete(s.pods, uid)
	if s.owners[held.owner]--; s.owners[held.owner] <= 0 {
		delete(s.owners, held.owner)
	}
}
