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

// Package priority reads the greatest priority that a namespace allows, and says for which jobs it holds.
package priority

import (
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// BoundOf is the greatest priority that a namespace with these annotations allows; nil if it does not say. A value that
// cannot be read says nothing.
func BoundOf(annotations map[string]string) *int32 {
	n, err := strconv.ParseInt(annotations[v1alpha1.AnnotationMaxPriority], 10, 32)
	if err != nil {
		return nil
	}
	return ptr.To(int32(n))
}

// Compared says that jobs of a queue with this policy preempt those of lower priority.
func Compared(p *v1alpha1.QueuePreemption) bool {
	return p != nil && (ptr.Deref(p.WithinQueue, "") == v1alpha1.PreemptLowerPriority ||
		ptr.Deref(p.Reclaim, "") == v1alpha1.PreemptLowerPriority)
}
