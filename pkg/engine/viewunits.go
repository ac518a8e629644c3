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

package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/history"
)

// Quotas are up to n levels of the quota tree, by name, behind this one, and how many follow.
func (v View) Quotas(behind string, n int) (list []QuotaInfo, rest int) {
	page, rest := v.e.quotas.levelNames.page(behind, n)
	return describe(page, v.Quota), rest
}

// QuotasOf are up to n quotas that units of a namespace use, by name, behind this one, and how many follow.
func (v View) QuotasOf(namespace, behind string, n int) (list []QuotaInfo, rest int) {
	of := v.e.units.listing.namespaces[namespace]
	if of == nil {
		return nil, 0
	}
	page, rest := of.quotas.page(behind, n)
	return describe(page, v.Quota), rest
}

// UsesQuota says whether a namespace has units of a quota that are not over.
func (v View) UsesQuota(namespace, quota string) bool {
	of := v.e.units.listing.namespaces[namespace]
	return of != nil && of.quotas.has(quota)
}

// Quota says also whether the quota exists or has units.
func (v View) Quota(name string) (QuotaInfo, bool) {
	level, exists := v.e.quotas.last[name]
	info := QuotaInfo{Quota: level, Exists: exists}
	info.Name = name
	if exists {
		info.Limit, _ = admission.LimitOf(v.e.core.read(), name)
		info.Reserved = v.e.core.read().Holdings().Read(name).Outstanding().List().Mask(level.Max.Max(info.Limit))
	}
	if q := v.e.units.listing.quotas[name]; q != nil {
		info.Holding, info.Waiting = q.holding.Len(), q.waiting.Len()
	}
	return info, exists || info.Holding+info.Waiting > 0
}

// UnitsOf copies n units of a quota that are not over, after the first skip ones, and says how many there are. Those
// that hold something come first, each part by name.
func (v View) UnitsOf(quota string, skip, n int) (rows []UnitRow, all int) {
	of := v.e.units.listing.quotas[quota]
	if of == nil {
		return nil, 0
	}
	found := pageOf(of.holding, skip, n)
	found = append(found, pageOf(of.waiting, skip-of.holding.Len(), n-len(found))...)
	return v.rows(found), of.holding.Len() + of.waiting.Len()
}

// UnitsIn copies up to n units of a namespace, by name, behind this one, and says how many follow.
func (v View) UnitsIn(namespace, behind string, n int) (rows []UnitRow, rest int) {
	of := v.e.units.listing.namespaces[namespace]
	if of == nil {
		return nil, 0
	}
	skip := 0
	if behind != "" {
		key := namespace + "/" + behind
		at := &unitRecord{object: &objects.Unit{Path: key}}
		if skip = of.units.Rank(at); of.units.Contains(at) {
			skip++
		}
	}
	found := pageOf(of.units, skip, n)
	return v.rows(found), of.units.Len() - skip - len(found)
}

// pageOf returns n values of a tree, after the first skip ones.
func pageOf(tree *ordered.Tree[*unitRecord], skip, n int) (found []*unitRecord) {
	if n <= 0 {
		return nil
	}
	tree.WalkAt(skip, func(rec *unitRecord) bool {
		found = append(found, rec)
		return len(found) < n
	})
	return found
}

func (v View) rows(found []*unitRecord) []UnitRow {
	keys := make([]string, 0, len(found))
	for _, rec := range found {
		keys = append(keys, rec.object.Path)
	}
	places := v.e.core.read().Rows(keys)
	rows := make([]UnitRow, 0, len(found))
	for _, rec := range found {
		place := places[rec.object.Path]
		place.Finding.Reason, _ = objects.Told(rec.object, place.Finding.Reason, "")
		rows = append(rows, UnitRow{rec.state(), place.Position, place.Finding, place.DryRun})
	}
	return rows
}

// Unit describes the unit with this key (namespace/name).
func (v View) Unit(key string) (UnitInfo, bool) {
	rec := v.e.units.get(key)
	if rec == nil {
		return UnitInfo{}, false
	}
	state := v.e.core.read()
	info := UnitInfo{UnitRow: v.rows([]*unitRecord{rec})[0], Writing: rec.flight != nil}
	info.Explanation, _ = state.Explain(key)
	x := &info.Explanation
	x.Reason, x.Message = objects.Told(rec.object, x.Reason, x.Message)
	loses := admission.Of(state, key, v.Now(), life.ExpiryOf)
	info.LosesAt, info.LosesFor = loses.At, loses.Reason
	if info.Held.Len() > 0 {
		info.Outstanding = info.Held.Sub(state.PodsUse(key).Mask(info.Held)).Floor0()
	}
	return info, true
}

// state of the unit, as its object says and as it resolved.
func (rec *unitRecord) state() history.State {
	u := rec.object
	s := history.State{
		Key: u.Path, UID: string(u.UID), Kind: u.Consumer.Kind, Job: u.Consumer.Name, Queue: rec.queue, Quota: rec.quota,
		Phase: u.Phase, Priority: rec.priority, Attempts: u.Attempts, Created: u.CreationTimestamp.Time,
		Allocated: u.Admitted, ParkedFor: string(u.ParkedFor), Inactive: u.Inactive, Requested: u.Request,
		Observed: u.Observed,
	}
	if u.Phase.Holds() {
		s.Held = u.Holds()
	}
	if c := u.Condition(v1alpha1.ConditionEvicted); c != nil && c.Status == metav1.ConditionTrue {
		s.EvictedAt, s.EvictedFor = c.LastTransitionTime.Time, c.Reason
	}
	if c := u.Condition(v1alpha1.ConditionQuotaReserved); c != nil && c.Status == metav1.ConditionFalse && u.Observed {
		s.WaitsFor = c.Reason
	}
	return s
}
