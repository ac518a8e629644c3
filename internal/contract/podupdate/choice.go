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

package podupdate

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// quotaChoice stands for an admission check. The updates that the quota of an admission asks for are treated as those
// of checks: written, waited for and removed. No AdmissionCheck has a name with blanks.
const quotaChoice = "the quota of the admission"

// Of is all that is asked about the pods of a unit: by admission checks, and by the quota that it was admitted in.
func Of(u *v1alpha1.QueueUnit) []v1alpha1.AdmissionCheckState {
	sets := make([]string, 0, len(u.Spec.PodSets))
	for i := range u.Spec.PodSets {
		sets = append(sets, u.Spec.PodSets[i].Name)
	}
	return With(u.Status.AdmissionChecks, u.Status.QuotaChoice, sets)
}

// AllOf are the updates that are or were asked for about the pods of a unit, by pod set; nil for no unit. The scheduler
// keeps them when it asks the checks again.
func AllOf(u *v1alpha1.QueueUnit) map[string][]Update {
	if u == nil {
		return nil
	}
	return All(Of(u))
}

// With adds what the quota of an admission asks for to the answers of checks, for each of these pod sets.
func With(
	checks []v1alpha1.AdmissionCheckState, choice *v1alpha1.QuotaChoice, sets []string,
) []v1alpha1.AdmissionCheckState {
	if choice == nil || len(choice.NodeSelector) == 0 {
		return checks
	}
	asks := v1alpha1.AdmissionCheckState{Name: quotaChoice, State: v1alpha1.CheckState(unit.CheckReady)}
	for _, set := range sets {
		asks.PodSetUpdates = append(asks.PodSetUpdates, v1alpha1.PodSetUpdate{
			Name: set, NodeSelector: choice.NodeSelector,
		})
	}
	return append(slices.Clip(checks), asks)
}
