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

package answers

import (
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// JobOf names the job of a unit as kubectl takes it, or the unit if it has no job.
func JobOf(u *v1alpha1.QueueUnit) string {
	if of := u.Spec.ConsumerRef; of != nil {
		return JobName(of.Kind, of.Name, u.Name)
	}
	return JobName("", "", u.Name)
}

// JobName is a job as kubectl takes it, or the unit if it has no job. The kind may have a version and a group.
func JobName(kind, job, unit string) string {
	if job == "" {
		return kindUnit + "/" + unit
	}
	kind, _, _ = strings.Cut(kind, ".")
	return strings.ToLower(kind) + "/" + job
}
