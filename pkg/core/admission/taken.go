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

package admission

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

func beneficiary(u *record) reclaim.Beneficiary {
	return reclaim.Beneficiary{Namespace: u.spec.Namespace(), Quota: u.spec.Quota}
}

// ReservedAt is what is kept from pods outside of units at a level and below it: what units hold beyond their pods, and
// what those ask for that take what others hold. What is taken comes free before the taker holds it, and a pod that waits
// would bind in that moment. So the top counts as well while something is taken; else it keeps nothing.
func ReservedAt(s *State, level string) resources.List {
	var taken resources.List
	for _, key := range s.roster.takers.Keys() {
		u, known := s.roster.units[key]
		if known && slices.ContainsFunc(s.lines.tree.Route(u.spec.Quota).Levels, func(l *capacity.Level) bool {
			return l.Name() == level
		}) {
			taken = taken.Add(u.asks())
		}
	}
	if top := len(s.lines.tree.Route(level).Levels) == 1; top && taken.IsZero() {
		return taken
	}
	return s.roster.holdings.Read(level).Outstanding().List().Add(taken)
}

// setTakes has those lose what they hold from whom a unit in line takes it.
func (r *roster) setTakes(now time.Time, u *record) {
	holds := ""
	if u.group != nil {
		holds = takesFrom(u)
	}
	changed := r.takers.Set(u.spec.Key, u.spec.Quota, holds, isTaking(u) && u.taking != "")
	spared := 0
	for _, use := range r.usesIfSome(changed) {
		if o, known := r.units[use.Key]; known && slices.Contains(changed, o.spec.Hold()) {
			r.touch(o)
			if use.Holds && o.stage != stageEvicting {
				spared++
			}
		}
	}
	r.judgeTaking(now, u, holds, len(changed) > spared)
}

// usesIfSome are all uses, if any hold has changed.
func (r *roster) usesIfSome(changed []string) []holding.Use {
	if len(changed) == 0 {
		return nil
	}
	return r.holdings.Uses()
}

// judgeTaking notes whether what a unit took was for nothing: it gives up after somebody has lost what it held for it,
// or gives back what it got before a pod of it is on a node.
func (r *roster) judgeTaking(now time.Time, u *record, holds string, lost bool) {
	switch {
	case holds != "" || isTaking(u):
	case u.holding && lost:
		u.own().took = true
	case u.holding && u.took:
		if _, assigned := r.holdings.Pods(u.spec.Key); assigned > 0 {
			u.tenure.took = false
			r.vain.Used(beneficiary(u))
		}
	case !u.holding && (lost || u.took):
		u.own().took = false
		r.vain.Note(now, beneficiary(u))
		r.progress.takenInVain++
	}
}
