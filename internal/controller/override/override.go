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

// Package override reads values that an operator set on a QueueUnit in place of those of its job.
//
// An override is an annotation of the unit. The controller never copies it from a job, and keeps it when it corrects
// the unit. A unit that was deleted and created again has no overrides.
package override

import (
	"strconv"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Is says whether an annotation key is that of an override.
func Is(key string) bool {
	return strings.HasPrefix(key, v1alpha1.OverridePrefix)
}

// Apply sets queue and priority of the wanted unit as the annotations of the present unit say. A priority that is not a
// number of 32 bits is ignored.
func Apply(want, have *v1alpha1.QueueUnit) {
	if queue := have.Annotations[v1alpha1.AnnotationOverrideQueue]; queue != "" {
		want.Spec.Queue = queue
	}
	if n, err := strconv.ParseInt(have.Annotations[v1alpha1.AnnotationOverridePriority], 10, 32); err == nil {
		want.Spec.Priority = ptr.To(int32(n))
	}
}
