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

// Package managed answers which owners and pods concern the queue, by the configuration of managed jobs that holds.
package managed

import (
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// Kinds has the configuration that holds; without one nothing is managed. It is safe for concurrent use.
type Kinds struct {
	atomic.Pointer[managedjobs.Predicate]
}

// KindOf is the kind of an owner, as units name it, and says whether it is a managed one.
func (k *Kinds) KindOf(owner *metav1.OwnerReference) (kind string, managed bool) {
	return k.Load().KindOf(*owner)
}

// UnitNamedBy is the unit that a pod names itself; empty if it names none.
func (k *Kinds) UnitNamedBy(pod *corev1.Pod) string { return k.Load().UnitNamedBy(pod) }

// Concerns says whether a pod can belong to a unit: the pod names one, or has an owner that can be a job.
func (k *Kinds) Concerns(pod *corev1.Pod) bool {
	if k.UnitNamedBy(pod) != "" {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	switch owner.Kind {
	case "ReplicaSet", "DaemonSet", "Node":
		p := k.Load()
		return p != nil && p.FollowsOwner(*owner)
	default:
		return true
	}
}
