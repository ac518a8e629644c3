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

package controller

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// lacksUpdates says whether pod templates of a job that was let go lack what the checks that its unit has passed ask
// for: somebody else resumed it, and its pods are not what was checked.
func (p *planner) lacksUpdates() bool {
	asked := checkUpdates(p.Unit)
	if len(asked) == 0 {
		return false
	}
	sets, err := p.Kind.Open(p.Job).PodSets()
	return err == nil && slices.ContainsFunc(sets, func(s jobs.PodSet) bool {
		update, ok := asked[s.Name]
		return ok && update.Lacking(s.Template.Labels, s.Template.Annotations, &s.Template.Spec) != ""
	})
}
