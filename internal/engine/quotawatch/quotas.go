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

package quotawatch

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// Quotas answers from the live ElasticQuota state. It is called by the engine's goroutine only; a panic in it is
// recovered and the question asked again later.
type Quotas interface {
	// Resolve returns the leaf quota that pods with these labels in this namespace are charged to. A quota of that
	// name may not exist.
	Resolve(namespace string, labels map[string]string) string
	// Observe returns use and limits of the named quotas and all their ancestors, each once, leaf before parent, in a
	// stable order. gone lists the names that do not exist. Other quotas may be included.
	Observe(names []string) (found []admission.Quota, gone []string)
	// TotalMoved says whether a cluster total is another one than the last observation had, for at most one observation of
	// all to follow. It is asked in every step and costs only a read of the totals.
	TotalMoved() bool
	// All lists the names of all quotas, sorted.
	All() []string
}

// DefaultQuota is what Koordinator charges pods to whose quota does not exist.
const DefaultQuota = "koordinator-default-quota"
