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
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The stand-alone Koord-Queue leaves units that keep their phase, what they hold and their position.

// takeOver has a unit of Koord-Queue name the UID of its job. Without the UID the scheduler does not know whose pods
// the unit lets go. The owner reference says that the unit was made for this job, and not for an earlier one of the
// name.
func takeOver(s *Situation) (Decision, bool) {
	if s.rel != jobunit.Own || s.Kind.OfPods() || s.Unit.Spec.ConsumerRef.UID != "" ||
		!slices.ContainsFunc(s.Unit.OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.UID == s.Job.Object.GetUID()
		}) {
		return Decision{}, false
	}
	after := jobunit.TakenOver(s.Unit, s.ask().Unit)
	switch then := s.resumptionBy(after); {
	case !unit.Phase(s.Unit.Status.Phase).Holds():
		after.Spec.Queue = s.ask().Unit.Spec.Queue // Koord-Queue wrote there in which queue it was admitted last
		if corrected := jobunit.Corrected(after, s.ask().Unit); corrected != nil {
			after = corrected
		}
	case s.Job.Suspended() && !then.Truthful(): // Koord-Queue counts the pods of some kinds otherwise
		after = jobunit.Parked(after, &jobunit.Problem{Reason: unitcondition.ReasonEstimateChanged})
	}
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Normal("TakenOver", "Queue",
		fmt.Sprintf("QueueUnit %s of another controller stands for the job, at its position", s.Unit.Name))}), true
}

// giveBack has a unit wait again that holds quota until each of its pods has a Reservation. Koord-Queue made these in
// its strict mode, and nobody does any more.
func giveBack(s *Situation) (Decision, bool) {
	if s.Unit.Status.Phase != v1alpha1.PhaseSchedReady || s.Unit.Inactive() {
		return Decision{}, false
	}
	after := jobunit.Parked(s.Unit, &jobunit.Problem{Reason: unitcondition.ReasonNotPlaced})
	return do(PatchUnit{Before: s.Unit, After: after, Event: event.Normal(unitcondition.ReasonNotPlaced, "Queue",
		"nothing reserves nodes for the job any more; it waits again at its position")}), true
}
