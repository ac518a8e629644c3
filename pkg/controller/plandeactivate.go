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
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
)

// The scheduler finds that a job is not to be tried again, and has no right to the spec of its unit. It says so in a
// condition, and the controller makes the unit inactive. That is for a person to undo: whoever makes it active again
// begins anew.

// deactivates says that the unit is to be made inactive. A condition from before its spec changed is of another time.
func (p *planner) deactivates() bool {
	return p.deactivation() != nil && (p.Unit.Spec.Active == nil || *p.Unit.Spec.Active)
}

func (p *planner) deactivation() *metav1.Condition {
	c := meta.FindStatusCondition(p.Unit.Status.Conditions, v1alpha1.ConditionDeactivationTarget)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != p.Unit.Generation {
		return nil
	}
	return c
}

func (p *planner) deactivate() Action {
	after, c, inactive := p.Unit.DeepCopy(), p.deactivation(), false
	after.Spec.Active = &inactive
	return PatchUnit{Before: p.Unit, After: after, Event: event.Warning("Deactivated", "Queue", event.Short(fmt.Sprintf(
		"%s: %s; it is not retried until an operator sets spec.active of QueueUnit %s to true",
		c.Reason, c.Message, p.Unit.Name)))}
}
