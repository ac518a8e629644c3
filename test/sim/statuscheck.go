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

package sim

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// statusCheck judges what our processes make of the status of a unit, as long as nobody else has written to it.
type statusCheck struct {
	w     *world
	facts *facts
}

// onUnit: phases and conditions follow each other as the API promises (I9).
func (c *statusCheck) onUnit(before *object, ch *change) {
	if before == nil || reflect.DeepEqual(before.u.Object["status"], ch.after.u.Object["status"]) {
		return
	}
	if ch.by.role == roleChecks || c.facts.tainted[ch.after.uid()] {
		return
	}
	if was, is := phaseOf(before), phaseOf(ch.after); was != is && !rulebook.Follows(was, is, ch.by.role) {
		c.w.violate("I9", "%s changed unit %s from %q to %q", ch.by.process, ch.key, was, is)
	}
	err := unitcondition.Unlawful(unitOf(before).Status.Conditions, unitOf(ch.after).Status.Conditions,
		unit.Writer(ch.by.role))
	if err != nil {
		c.w.violate("I9", "%s changed a condition of unit %s: %v", ch.by.process, ch.key, err)
	}
	c.conditions(ch.after)
}

// conditions that contradict the phase or each other (I9).
func (c *statusCheck) conditions(o *object) {
	u := unitOf(o)
	is := func(kind string) bool { return meta.IsStatusConditionTrue(u.Status.Conditions, kind) }
	phase := phaseOf(o)
	switch {
	case rulebook.Holds(phase) && !is(v1alpha1.ConditionQuotaReserved),
		!rulebook.Holds(phase) && (is(v1alpha1.ConditionQuotaReserved) || is(v1alpha1.ConditionAdmitted)),
		rulebook.Over(phase) != is(v1alpha1.ConditionFinished),
		is(v1alpha1.ConditionAdmitted) && is(v1alpha1.ConditionEvicted):
		var list []string
		for _, cond := range u.Status.Conditions {
			list = append(list, cond.Type+"="+string(cond.Status))
		}
		c.w.violate("I9", "unit %s in phase %q has conditions %v", o.key, phase, list)
	}
}
