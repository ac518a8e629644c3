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

package jobplan

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
)

// ignoredKeys reports keys without effect on this kind of job. They are keys of the stand-alone Koord-Queue, and of the
// system by whose label the job names its queue.
func ignoredKeys(job *jobs.Job, further alias.Further) []Action {
	honoured := []string{job.Kind.SuspendAnnotation}
	if jobs.CanBeSuspended(job) {
		honoured = append(honoured, v1alpha1.LabelPreemptibleFallback)
	}
	words := formerkey.Ignored(formerkey.Job, job.Object.GetLabels(), job.Object.GetAnnotations(), honoured...)
	said := slices.DeleteFunc([]string{words, further.Ignored}, func(words string) bool { return words == "" })
	if len(said) == 0 {
		return nil
	}
	return []Action{tell(event.Warning(formerkey.Reason, "Queue", event.Short(strings.Join(said, "; "))))}
}

// unkept tells of a job that asks to keep what it holds, while its unit was admitted without.
func unkept(job *jobs.Job, own *v1alpha1.QueueUnit) []Action {
	e, asks := own.Status.Effective, job.Object.GetAnnotations()[v1alpha1.AnnotationPreemptable] == "false"
	if !asks || e != nil && !ptr.Deref(e.Preemptable, true) {
		return nil
	}
	return []Action{tell(event.Warning(formerkey.Reason, "Resume", v1alpha1.AnnotationPreemptable+
		" has no effect: the job may be suspended for others. It counts at the admission, in a queue with "+
		"spec.preemption.allowUnpreemptable"))}
}
