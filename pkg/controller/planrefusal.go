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
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// madeNoPod says that the unit lost its admission for its job made no pod.
func (p *planner) madeNoPod() bool {
	c := meta.FindStatusCondition(p.Unit.Status.Conditions, v1alpha1.ConditionEvicted)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == string(unit.ReasonIdleReservation)
}

// refused says why the job made no pod, where that is known.
func (p *planner) refused() string {
	if p.Refusal == nil || *p.Refusal == "" {
		return ""
	}
	return ": " + *p.Refusal
}

// tellRefusal puts that into the unit.
func (p *planner) tellRefusal() []Action {
	refused := p.refused()
	if refused == "" || strings.HasSuffix(p.Unit.Status.Message, refused) {
		return nil
	}
	after, now := p.Unit.DeepCopy(), p.Now
	after.Status.Message = p.Unit.Status.Message + refused
	after.Status.LastUpdateTime = &now
	setCondition(after, v1alpha1.ConditionEvicted, metav1.ConditionTrue, string(unit.ReasonIdleReservation),
		after.Status.Message, now)
	return []Action{PatchUnitStatus{Before: p.Unit, After: after}}
}
