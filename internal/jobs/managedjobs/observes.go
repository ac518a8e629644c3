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

package managedjobs

import "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"

// Observes says whether jobs of a namespace with these labels are observed. The queue says when it would admit such a
// job, and neither suspends it nor gates its pods. The label of the namespace wins over the configuration. An unknown
// value has no effect.
func Observes(p *Predicate, namespaceLabels map[string]string) bool {
	switch Mode(namespaceLabels[v1alpha1.LabelMode]) {
	case ModeObserve:
		return true
	case ModeManage:
		return false
	default:
		return p != nil && p.observes
	}
}

// In is what becomes of such a job where jobs are observed: its pods pass.
func (u UnmanagedJobs) In(observed bool) UnmanagedJobs {
	if observed && u == UnmanagedGate {
		return UnmanagedWarn
	}
	return u
}
