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
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Holders are the units whose ends make room for one that waits.
type Holders struct {
	// Level and Resource are those of which there is too little. They are empty if the end of no unit helps.
	Level, Resource string
	// Total is the amount that all units hold there, of non-preemptible ones where the limit is min.
	Total int64
	// Rows are units of the level and below, the largest amount first.
	Rows []HolderRow
}

// HolderRow is a unit and the amount that it holds.
type HolderRow struct {
	// Key is namespace/name, Job the name of its job.
	Key, Job, Quota string
	// Since is the time of its admission.
	Since  time.Time
	Amount int64
}

const (
	// mostHolders is the number of units that one answer looks at: they take less than a millisecond.
	mostHolders = 1000
	// mostLevels bounds a path of quotas.
	mostLevels = 64
	// pageOfLevels is the number of names that are copied at a time.
	pageOfLevels = 200
)

// holdersOf are the holders at the level that decides about a unit of a quota. It looks at all quotas, and at the first
// 1,000 units that hold something, those of the quota itself before those of others.
func (v View) holdersOf(quota string, list []decide.Shortage) Holders {
	sh := Deciding(list)
	if sh == nil {
		return Holders{}
	}
	h := Holders{Level: sh.Level, Resource: sh.Resource, Total: resources.SaturatingAdd(sh.UsedByUnits, sh.Outstanding)}
	left := mostHolders
	look := func(name string) {
		if of := v.of.Units.OfQuota(name); of != nil && left > 0 && v.isBelow(name, sh.Level) {
			found := unitbook.PageOf(of.Holding, 0, left)
			left -= len(found)
			for _, rec := range found {
				h.add(rec, sh)
			}
		}
	}
	look(quota)
	for behind, rest := "", 1; rest > 0 && left > 0; {
		var names []string
		if names, rest = v.of.Quotas.LevelNames.Page(behind, pageOfLevels); len(names) == 0 {
			break
		}
		for _, name := range names {
			if name != quota {
				look(name)
			}
		}
		behind = names[len(names)-1]
	}
	slices.SortFunc(h.Rows, func(a, b HolderRow) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), strings.Compare(a.Key, b.Key))
	})
	return h
}

func (h *Holders) add(rec *unitbook.Record, sh *decide.Shortage) {
	u := rec.Object
	if sh.Kind == decide.LimitMin && !u.NonPreemptible {
		return
	}
	amount, holds := u.Holds().Get(sh.Resource)
	if sh.Resource == resources.Jobs {
		amount, holds = 1, true
	}
	if holds && amount > 0 {
		h.Rows = append(h.Rows, HolderRow{u.Path, u.Consumer.Name, rec.Quota, u.Admitted, amount})
	}
}

// isBelow says whether a quota is a level, or leads to it.
func (v View) isBelow(quota, level string) bool {
	for range mostLevels {
		if quota == level {
			return true
		}
		at, exists := v.of.Quotas.Last[quota]
		if !exists || at.Parent == "" {
			return false
		}
		quota = at.Parent
	}
	return false
}

// Deciding is the shortage that ends of other units remove; nil if no end does. It is the first one where units hold
// the limit. A share that is not in use does not decide: nobody can end there. The levels above say what is missing.
// Of a unit that fits but for claims, it is the first level with a claim.
func Deciding(list []decide.Shortage) *decide.Shortage {
	if slices.ContainsFunc(list, func(sh decide.Shortage) bool { return sh.Never }) {
		return nil
	}
	var share, claimed *decide.Shortage
	for i := range list {
		switch sh := &list[i]; {
		case sh.TooLarge:
		case !sh.Overspent && sh.Request <= sh.Free:
			if claimed == nil && sh.Missing > 0 {
				claimed = sh
			}
		case sh.Kind == decide.LimitRuntime && resources.SaturatingAdd(sh.Used, sh.Outstanding) < sh.Limit:
			if share == nil {
				share = sh
			}
		default:
			return sh
		}
	}
	return cmp.Or(share, claimed)
}
