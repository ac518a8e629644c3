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

package questions

import (
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
)

// Quotas are up to n levels of the quota tree, by name, behind this one, and how many follow.
func (v View) Quotas(behind string, n int) (list []QuotaInfo, rest int) {
	page, rest := v.of.Quotas.LevelNames.Page(behind, n)
	return describe(page, v.Quota), rest
}

// QuotasOf are up to n quotas that units of a namespace use, by name, behind this one, and how many follow.
func (v View) QuotasOf(namespace, behind string, n int) (list []QuotaInfo, rest int) {
	of := v.of.Units.OfNamespace(namespace)
	if of == nil {
		return nil, 0
	}
	page, rest := of.Quotas.Page(behind, n)
	return describe(page, v.Quota), rest
}

// UsesQuota says whether a namespace has units of a quota that are not over.
func (v View) UsesQuota(namespace, quota string) bool {
	of := v.of.Units.OfNamespace(namespace)
	return of != nil && of.Quotas.Has(quota)
}

// Quota says also whether the quota exists or has units.
func (v View) Quota(name string) (QuotaInfo, bool) {
	level, exists := v.of.Quotas.Last[name]
	info := QuotaInfo{Quota: level, Exists: exists}
	info.Name = name
	if exists {
		info.Limit, _ = v.of.Core.Read().Limits().LimitOf(name)
		named := level.Max.Max(info.Limit)
		outstanding := v.of.Core.Read().Holdings().Read(name).Outstanding().List()
		info.Reserved = outstanding.Mask(named)
		info.Pending = v.of.Core.Read().Accounts().Demand(name).Sub(outstanding).Floor0().Mask(named)
	}
	if q := v.of.Units.OfQuota(name); q != nil {
		info.Holding, info.Waiting = q.Holding.Len(), q.Waiting.Len()
	}
	return info, exists || info.Holding+info.Waiting > 0
}

// UnitsOf copies n units of a quota that are not over, after the first skip ones, and says how many there are. Units
// that hold quota come first, each part by name.
func (v View) UnitsOf(quota string, skip, n int) (rows []UnitRow, all int) {
	of := v.of.Units.OfQuota(quota)
	if of == nil {
		return nil, 0
	}
	found := unitbook.PageOf(of.Holding, skip, n)
	found = append(found, unitbook.PageOf(of.Waiting, skip-of.Holding.Len(), n-len(found))...)
	return v.rows(found), of.Holding.Len() + of.Waiting.Len()
}

// Search copies units, and says behind which key to go on; empty if the search has ended. It costs its
// looks; some may be left.
func (v View) Search(s *unitbook.Search) (rows []UnitRow, resume string, looks int) {
	found, resume, looks := v.of.Units.Search(s)
	return v.rows(found), resume, looks
}

// NamespacesOf are up to n namespaces in which a search may find units, by name. resume is the key behind which the
// others are; empty if they are all.
func (v View) NamespacesOf(s *unitbook.Search, n int) (names []string, resume string) {
	return v.of.Units.NamespacesOf(s, n)
}

func (v View) rows(found []*unitbook.Record) []UnitRow {
	keys := make([]string, 0, len(found))
	for _, rec := range found {
		keys = append(keys, rec.Object.Path)
	}
	places := v.of.Core.Read().Rows(keys)
	rows := make([]UnitRow, 0, len(found))
	for _, rec := range found {
		place := places[rec.Object.Path]
		place.Finding.Reason, _ = objects.Told(rec.Object, place.Finding.Reason, "")
		if place.Finding.Reason == "" {
			place.Finding.Reason = objects.Stalled(rec.Object.Phase, rec.Object.Condition(v1alpha1.ConditionPodsReady))
		}
		rows = append(rows, UnitRow{rec.State(), place.Position, place.Finding, place.DryRun})
	}
	return rows
}

// Unit describes the unit with this key (namespace/name).
func (v View) Unit(key string) (UnitInfo, bool) {
	rec := v.of.Units.Get(key)
	if rec == nil {
		return UnitInfo{}, false
	}
	state := v.of.Core.Read()
	info := UnitInfo{UnitRow: v.rows([]*unitbook.Record{rec})[0], Writing: rec.Flight != nil}
	info.Explanation, _ = state.Explain(key)
	x := &info.Explanation
	x.Reason, x.Message = objects.Told(rec.Object, x.Reason, x.Message)
	info.Holders = v.holdersOf(info.Quota, x.Shortages)
	loses := admission.Of(state, key, v.Now(), life.ExpiryOf)
	info.LosesAt, info.LosesFor = loses.At, loses.Reason
	if info.Held.Len() > 0 {
		info.Outstanding = info.Held.Sub(state.PodsUse(key).Mask(info.Held)).Floor0()
	}
	return info, true
}
