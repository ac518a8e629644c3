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
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// Quotas answers from the live ElasticQuota state. It is called by the engine's goroutine only; a panic in it is
// recovered and the question asked again later.
type Quotas interface {
	// Resolve returns the leaf quota that pods with these labels in this namespace are charged to. A quota of that
	// name may not exist.
	Resolve(namespace string, labels map[string]string) string
	// Observe returns what the named quotas and all their ancestors use and may use now, each once, leaf before
	// parent, and in the same order each time; gone lists the names that do not exist. Others may come along.
	Observe(names []string) (found []admission.Quota, gone []string)
	// TotalMoved says whether a cluster total is another one than the last observation had, for at most one observation of
	// all to follow. It is asked in every step and costs only a read of the totals.
	TotalMoved() bool
	// All lists the names of all quotas, sorted.
	All() []string
}

// QuotaSink takes what happens to quotas. The engine's sink may be called under any lock: every method appends to the
// mailbox in O(1) and never blocks. It must be subscribed before New returns to the code that builds the scheduler;
// what happened before is not replayed, the engine observes all quotas before it decides.
type QuotaSink interface {
	// PodAssigned says that a pod begins (true) or ends (false) to count in used of the quota, just before it does.
	PodAssigned(quota string, pod *corev1.Pod, assigned bool)
	// PodLetGo says that a pod ends to count in used of the quota because that goes. It counts nowhere then, also once a
	// quota of that name is there again, until PodAssigned speaks of it. Nobody may ever see the quota missing.
	PodLetGo(quota string, pod *corev1.Pod)
	// QuotaChanged says that used, limits or existence of these quotas may have changed.
	QuotaChanged(names ...string)
	// MoreRequested says that a pod came that asks for a part of this quota.
	MoreRequested(name string)
	// TotalChanged says that the cluster total may have changed, and with it every limit.
	TotalChanged()
	// MappingChanged says that namespaces may be charged to other quotas than before.
	MappingChanged()
}

// defaultQuota is what Koordinator charges pods to whose quota does not exist.
const defaultQuota = "koordinator-default-quota"
