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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Bound says what the limit of a level is.
type Bound string

// Bounds.
const (
	BoundMax     Bound = "max"     // what the quota may use at most
	BoundRuntime Bound = "runtime" // its fair share of what is there, below max
	BoundTotal   Bound = "total"   // what the cluster, or the tree of quotas, has
	BoundMin     Bound = "min"     // what it is guaranteed: the limit of what is non-preemptible
)

// Shortage is one resource on one level of which there is too little for a unit.
type Shortage struct {
	Level, Resource string
	// Bound says what Limit is. Used, Outstanding and what follows from them are of the non-preemptible part alone
	// where it is min.
	Bound Bound
	// Binds: the reason and the sentence are about this one.
	Binds bool
	// Never: the unit asks for more than the level may ever have, its max or, non-preemptible, its min.
	Never bool
	// Limit is of Used + Outstanding. Max and Min are those of the quota, if it names the resource.
	Limit, Max, Min  int64
	HasMax, HasMin   bool
	Used             int64  // by assigned pods, of queued jobs or not
	UsedByUnits      int64  // the part of Used that is pods of queued jobs
	UsedByOthers     int64  // the rest
	Outstanding      int64  // what admitted units hold beyond their assigned pods
	Claimed          int64  // by blocking units ahead that wait for it as well
	Request, Free    int64  // Free is Limit - Used - Outstanding; negative where more is in use than allowed
	Missing          int64  // what has to be freed here before the unit fits, beside the claims ahead of it
	ClaimedBy        string // the first of those units
	leaf, overspent  bool
	claimedElsewhere string // its queue, if that is another one
}

// Explanation says why a unit waits, with the numbers of now.
type Explanation struct {
	Reason  unit.Reason
	Message string
	// Position in the queue from 1, out of Waiting; zero for a unit that is not in line. First is the unit at the
	// front, if that is another one.
	Position, Waiting int
	First             string
	// Until: the unit is not tried before that time; zero if time alone does not keep it.
	Until time.Time
	// Shortages are all that the unit lacks, its leaf first, by resource. They are listed as well where something
	// else keeps the unit from its turn, unless it is parked by itself.
	Shortages []Shortage
}

// shortages lists what a unit in line lacks, in the order of its limits and then by resource.
func (w *why) shortages(u *record) []Shortage {
	if u.group.Notes.route.Broken != "" {
		return nil
	}
	var out []Shortage
	a := w.askOf(u)
	for _, lim := range a.limits() {
		names := namesOf(lim, a)
		for _, name := range names {
			free, limited := lim.Free(name)
			if !limited { // beyond max, which the limit does not repeat
				most, _ := lim.Level().Spec().Max.Get(name)
				used, _ := lim.Used().Get(name)
				free = resources.SaturatingSub(most, resources.SaturatingAdd(used, lim.Outstanding(name)))
			}
			if sh := w.shortageAt(lim, a, name, free); sh.short() {
				out = append(out, sh)
			}
		}
	}
	return out
}

// namesOf are the resources of which a unit may lack something at a limit: those that it names, and those of which the
// unit asks for more than max. They are sorted.
func namesOf(lim *capacity.Limit, a asker) []string {
	var names []string
	for _, it := range lim.List().Items() {
		names = append(names, it.Name)
	}
	if lim.IsMin() {
		return names
	}
	for _, u := range a.members() {
		for _, it := range u.total().Items() {
			most, bounded := lim.Level().Spec().Max.Get(it.Name)
			if bounded && a.total(lim, it.Name) > most && !slices.Contains(names, it.Name) {
				names = append(names, it.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func (w *why) shortageAt(lim *capacity.Limit, a asker, resource string, free int64) Shortage {
	spec := lim.Level().Spec()
	sh := Shortage{
		Level: lim.Level().Name(), Resource: resource, Free: free, Outstanding: lim.Outstanding(resource),
		UsedByUnits: lim.UsedByUnits(resource), leaf: a.leafIs(lim), Request: a.needs(lim, resource),
	}
	sh.Max, sh.HasMax = spec.Max.Get(resource)
	sh.Min, sh.HasMin = spec.Min.Get(resource)
	sh.Used, _ = lim.Used().Get(resource)
	// The ledger hears of a pod a moment before used counts it.
	sh.UsedByUnits = min(sh.UsedByUnits, sh.Used)
	sh.UsedByOthers = sh.Used - sh.UsedByUnits
	sh.Limit, sh.Bound = boundOf(lim, resource)
	most := sh.Max
	if lim.IsMin() {
		most = sh.Min
	}
	total := a.total(lim, resource)
	sh.Never = (sh.HasMax || lim.IsMin()) && total > most && resource != resources.Jobs
	if a.party != nil && resource == resources.Jobs {
		sh.Never = sh.Request > sh.Limit
	}
	if sh.Request > 0 {
		w.addClaims(&sh, lim, a)
	}
	sh.overspent = sh.Request == 0 && sh.leaf && free < 0
	sh.Missing = max(0, resources.SaturatingSub(resources.SaturatingAdd(sh.Request, sh.Claimed), free))
	return sh
}

// addClaims sums what the last pass claimed of a resource at a limit ahead of a unit, and names the first who did.
func (w *why) addClaims(sh *Shortage, lim *capacity.Limit, a asker) {
	number, named := w.tree.Number(sh.Resource)
	if !named {
		return
	}
	for i := range w.pass.claims {
		c := &w.pass.claims[i]
		amount := c.at(lim, number)
		if amount == 0 || a.has(c.unit) || !w.ahead(c, a.place) {
			continue
		}
		sh.Claimed = resources.SaturatingAdd(sh.Claimed, amount)
		if sh.ClaimedBy == "" {
			sh.ClaimedBy = c.unit.spec.Key
			if c.unit.spec.Queue != a.unit.spec.Queue {
				sh.claimedElsewhere = c.unit.spec.Queue
			}
		}
	}
}

// ahead says whether a claim binds a unit: of the same queue when the claimant is before it, of another queue when that
// queue is. One whose unit is not the head of its group any more binds nobody.
func (w *why) ahead(c *claim, u *record) bool {
	if c.unit.group != c.group || c.group.Head() != c.unit || c.unit == u || c.place.group == nil {
		return false
	}
	return w.servedBefore(c.place, u)
}

// short says the same as capacity.Limit.Short.
func (sh *Shortage) short() bool {
	return sh.overspent || (sh.Request > 0 && sh.Missing > 0) || sh.Never
}

// boundOf is the limit of a resource, and what it is.
func boundOf(lim *capacity.Limit, resource string) (int64, Bound) {
	limit, limited := lim.List().Get(resource)
	most, named := lim.Level().Spec().Max.Get(resource)
	switch {
	case lim.IsMin():
		return limit, BoundMin
	case !limited:
		return most, BoundMax
	case resource == resources.Jobs:
		return limit, BoundMax
	case lim.Level().Spec().Parent == "":
		return limit, BoundTotal
	case named && limit >= most:
		return limit, BoundMax
	default:
		return limit, BoundRuntime
	}
}

// reasonOf says which reason a list of shortages comes to.
func reasonOf(list []Shortage) unit.Reason {
	reason := unit.ReasonPending
	for i := range list {
		switch sh := &list[i]; {
		case !sh.overspent && sh.Request <= sh.Free:
			if sh.Missing > 0 {
				reason = unit.ReasonBlockedByHead
			}
		case sh.Bound == BoundMin:
			return unit.ReasonMinExceeded
		default:
			return unit.ReasonQuotaExceeded
		}
	}
	return reason
}

func binds(sh *Shortage, reason unit.Reason) bool {
	switch reason {
	case unit.ReasonQuotaExceeded, unit.ReasonMinExceeded:
		return sh.overspent || sh.Request > sh.Free
	case unit.ReasonBlockedByHead:
		return true
	case unit.ReasonExceedsMax:
		return sh.Never && sh.Bound != BoundMin
	case unit.ReasonExceedsMin:
		return sh.Never && sh.Bound == BoundMin
	default:
		return false
	}
}

// bind marks the shortage that the reason is about.
func bind(list []Shortage, reason unit.Reason) *Shortage {
	for i := range list {
		if sh := &list[i]; binds(sh, reason) {
			sh.Binds = true
			return sh
		}
	}
	return nil
}
