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

package objects

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// mostQuotas are read of a queue, which are as many as the schema allows.
const mostQuotas = 16

// setQuotas reads the list of quotas, which the queue accepts in addition to others.
func (q *Queue) setQuotas(list []v1alpha1.QueueQuota) {
	for i := range list[:min(len(list), mostQuotas)] {
		of := &list[i]
		q.Spec.Lists = append(q.Spec.Lists, of.Name)
		if q.Spec.Quotas != nil && !slices.Contains(q.Spec.Quotas, of.Name) {
			q.Spec.Quotas = append(q.Spec.Quotas, of.Name)
		}
		if len(of.NodeSelector) > 0 {
			if q.Selectors == nil {
				q.Selectors = map[string]map[string]string{}
			}
			q.Selectors[of.Name] = of.NodeSelector
		}
	}
}

// ChoiceOf is the quota in which the queue of a unit admits it now, in the form of its object. It is nil for its own
// quota without a selector of nodes. The queue may be nil.
func ChoiceOf(u *unit.Unit, q *Queue) *v1alpha1.QuotaChoice {
	c := v1alpha1.QuotaChoice{Name: u.Quota, First: u.Quota}
	if u.Chosen {
		c.First = u.MovesTo
	}
	if q != nil {
		c.NodeSelector = q.Selectors[u.Quota]
	}
	if !u.Chosen && len(c.NodeSelector) == 0 {
		return nil
	}
	return &c
}

// ChoicePatch has a merge patch replace what the object said before with this; false if nothing was and is said.
func ChoicePatch(before, now *v1alpha1.QuotaChoice) (patch any, some bool) {
	if now == nil {
		return nil, before != nil
	}
	selector := map[string]any{}
	if before != nil {
		for key := range before.NodeSelector {
			selector[key] = nil
		}
	}
	for key, value := range now.NodeSelector {
		selector[key] = value
	}
	return map[string]any{"name": now.Name, "first": now.First, "nodeSelector": selector}, true
}

// LeaveQuota has the status of a unit that loses its admission name the quota to which it moves, if it moves. A choice
// with a selector stays until that is out of the templates.
func LeaveQuota(status map[string]any, to string, before *v1alpha1.QuotaChoice) {
	if to != "" {
		status["effective"].(map[string]any)["quota"] = to
	}
	if before != nil && len(before.NodeSelector) == 0 {
		status["quotaChoice"] = nil
	}
}
