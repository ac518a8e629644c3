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

import (
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
)

// Placed is a set for ManagesLabels: that of a job in a namespace whose jobs get the path of a quota.
func Placed(p *Predicate, namespaceLabels map[string]string) map[string]string {
	if !p.placement.Select(namespaceLabels) {
		return nil
	}
	return map[string]string{v1alpha1.LabelQuotaName: "of the placement"}
}

// Path returns the path of the quota of a job, or "" if there is none. The job names it by our key or by labels of
// another system. Otherwise the namespace gives one to a job without a quota. A group of pods gets no path of its
// namespace, because nobody could write the label of the quota into the pods.
//
// plain is the job in the form that its owner wrote. Errors are jobs.ErrQuotaMismatch for two paths, and
// quotapath.ErrMalformed for a namespace whose name or label is no element of a path.
func Path(p *Predicate, plain *jobs.Job, named alias.Names, namespaceLabels map[string]string) (string, error) {
	path, err := jobs.QueuePath(plain)
	if err != nil || path != "" {
		return path, err
	}
	if quota, _ := plain.Quota(); named.Path != "" || named.Quota != "" || quota != "" || plain.Kind.OfPods() {
		return named.Path, nil
	}
	return p.placement.Path(plain.Object.GetNamespace(), namespaceLabels)
}
