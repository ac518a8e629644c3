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
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
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
	Reason  Reason
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

// Explain says why a unit waits. For any other unit it says what Why does. It costs O(depth x resources), beside the
// claims of other queues' heads, however many units there are.
func (s *State) Explain(unitKey string) (Explanation, bool) {
	reason, message, ok := s.Why(unitKey)
	if !ok {
		return Explanation{}, false
	}
	e := Explanation{Reason: reason, Message: message}
	u := s.units[unitKey]
	if u.stage != stageWaiting {
		return e, true
	}
	if u.group == nil {
		e.Until = s.parkedUntil(u)
		return e, true
	}
	line := u.group.queue.waiting
	e.Position, e.Waiting = line.Rank(u.group.queue.spot(u))+1, line.Len()
	if first, ok := line.Min(); ok && first.unit != u {
		e.First = first.unit.spec.Key
	}
	e.Shortages = s.shortages(u)
	bind(e.Shortages, reason)
	return e, true
}

// shortages lists what a unit in line lacks, in the order of its gates.
func (s *State) shortages(u *unit) []Shortage {
	if _, broken := s.pathTo(u.group.leaf); broken != "" {
		return nil
	}
	var out []Shortage
	for _, gt := range s.gatesFor(u.group) {
		first := len(out)
		for _, f := range gt.free {
			if gt.ample(u, f) {
				continue
			}
			if sh := s.shortageAt(gt, u, f.Name, f.Amount); sh.short() {
				out = append(out, sh)
			}
		}
		if !gt.isMin() {
			out = s.neverBeyond(gt, u, out)
		}
		slices.SortFunc(out[first:], func(a, b Shortage) int { return strings.Compare(a.Resource, b.Resource) })
	}
	return out
}

// ample says that there is enough of a resource for a unit beside all claims, so that it can lack nothing of it.
func (gt *gate) ample(u *unit, f resources.Item) bool {
	need := u.needs(f.Name)
	most, bounded := gt.level.spec.Max.Get(f.Name)
	if gt.isMin() {
		most, bounded = gt.level.spec.Min.Get(f.Name)
	}
	within := !bounded && !gt.isMin() || need <= most
	return within && f.Amount >= 0 && resources.SaturatingAdd(need, gt.book.claimed(f.Name)) <= f.Amount
}

// neverBeyond adds what the request asks beyond max where the limit does not name the resource.
func (s *State) neverBeyond(gt *gate, u *unit, out []Shortage) []Shortage {
	for _, it := range u.spec.Request.Items() {
		most, ok := gt.level.spec.Max.Get(it.Name)
		if _, limited := gt.level.spec.Limit.Get(it.Name); !ok || limited || it.Amount <= most {
			continue
		}
		used, _ := gt.used().Get(it.Name)
		used = resources.SaturatingAdd(used, s.outstandingAt(gt, it.Name))
		out = append(out, s.shortageAt(gt, u, it.Name, resources.SaturatingSub(most, used)))
	}
	return out
}

func (s *State) shortageAt(gt *gate, u *unit, resource string, free int64) Shortage {
	spec := gt.level.spec
	sh := Shortage{
		Level: gt.level.name, Resource: resource, Free: free, Outstanding: s.outstandingAt(gt, resource),
		UsedByUnits: s.assignedAt(gt, resource), leaf: gt.level == u.group.leaf,
	}
	sh.Max, sh.HasMax = spec.Max.Get(resource)
	sh.Min, sh.HasMin = spec.Min.Get(resource)
	sh.Request = u.needs(resource)
	sh.Used, _ = gt.used().Get(resource)
	// The ledger hears of a pod a moment before used counts it.
	sh.UsedByUnits = min(sh.UsedByUnits, sh.Used)
	sh.UsedByOthers = sh.Used - sh.UsedByUnits
	sh.Limit, sh.Bound = gt.bound(resource)
	most := sh.Max
	if gt.isMin() {
		most = sh.Min
	}
	sh.Never = (sh.HasMax || gt.isMin()) && sh.Request > most
	if sh.Request > 0 && gt.book.claims.Len() > 0 {
		sh.Claimed = s.claimedAhead(gt, resource, u)
		var ahead *unit
		if sh.Claimed > 0 {
			ahead = s.firstClaim(gt, resource, u)
		}
		if ahead != nil {
			sh.ClaimedBy = ahead.spec.Key
		}
		if ahead != nil && ahead.spec.Queue != u.spec.Queue {
			sh.claimedElsewhere = ahead.spec.Queue
		}
	}
	sh.overspent = sh.Request == 0 && sh.leaf && free < 0
	sh.Missing = max(0, resources.SaturatingSub(resources.SaturatingAdd(sh.Request, sh.Claimed), free))
	return sh
}

// short says the same as measure does of the gate.
func (sh *Shortage) short() bool {
	return sh.overspent || (sh.Request > 0 && sh.Missing > 0) || sh.Never
}

// bound is the limit of a resource at a gate, and what it is.
func (gt *gate) bound(resource string) (int64, Bound) {
	limit, limited := gt.limit().Get(resource)
	most, named := gt.level.spec.Max.Get(resource)
	switch {
	case gt.isMin():
		return limit, BoundMin
	case !limited:
		return most, BoundMax
	case resource == resources.Jobs:
		return limit, BoundMax
	case gt.level.spec.Parent == "":
		return limit, BoundTotal
	case named && limit >= most:
		return limit, BoundMax
	default:
		return limit, BoundRuntime
	}
}

func (s *State) assignedAt(gt *gate, resource string) int64 {
	if gt.isMin() {
		return s.ledger.AssignedNonPreemptibleOf(gt.level.name, resource)
	}
	return s.ledger.AssignedOf(gt.level.name, resource)
}

func binds(sh *Shortage, reason Reason) bool {
	switch reason {
	case ReasonQuotaExceeded, ReasonMinExceeded:
		return sh.overspent || sh.Request > sh.Free
	case ReasonBlockedByHead:
		return true
	case ReasonExceedsMax:
		return sh.Never && sh.Bound != BoundMin
	case ReasonExceedsMin:
		return sh.Never && sh.Bound == BoundMin
	default:
		return false
	}
}

// bind marks the shortage that the reason is about.
func bind(list []Shortage, reason Reason) *Shortage {
	for i := range list {
		if sh := &list[i]; binds(sh, reason) {
			sh.Binds = true
			return sh
		}
	}
	return nil
}

// explain says in words, with the numbers, why a unit does not fit.
func (s *State) explain(u *unit, v *verdict) string {
	if v.stopped != "" {
		return v.message
	}
	list := s.shortages(u)
	binding := bind(list, v.reason())
	if binding == nil {
		return "not examined yet"
	}
	return binding.sentence(u.spec.Quota) + others(list) + s.whyNotLent(u.group, v)
}

// sentence is about one shortage alone.
func (sh *Shortage) sentence(quota string) string {
	format := func(amount int64) string { return resources.Format(sh.Resource, amount) }
	numbers := fmt.Sprintf("(%s, used %s, reserved %s)", sh.limited(), format(sh.Used), format(sh.Outstanding))
	if sh.overspent {
		return fmt.Sprintf("%s: %s: over its %s by %s %s; nothing is admitted until that is freed",
			sh.where(quota), sh.Resource, sh.Bound, format(sh.Missing), numbers)
	}
	var claims string
	if sh.Claimed > 0 {
		claims = fmt.Sprintf(", claimed ahead %s by %q", format(sh.Claimed), sh.ClaimedBy)
		if sh.claimedElsewhere != "" {
			claims += fmt.Sprintf(" of queue %q", sh.claimedElsewhere)
		}
	}
	return fmt.Sprintf("%s: %s: request %s, free %s%s %s; %s must be freed",
		sh.where(quota), sh.Resource, format(sh.Request), format(sh.Free), claims, numbers, format(sh.Missing))
}

// limited names the limit as what it is.
func (sh *Shortage) limited() string {
	limit := fmt.Sprintf("%s %s", sh.Bound, resources.Format(sh.Resource, sh.Limit))
	if sh.Bound == BoundRuntime && sh.HasMax {
		limit += " of max " + resources.Format(sh.Resource, sh.Max)
	}
	return limit
}

// othersNamed bounds the length of a sentence.
const othersNamed = 3

// others names what is short besides the one that binds.
func others(list []Shortage) string {
	var b strings.Builder
	n := 0
	for i := range list {
		sh := &list[i]
		if sh.Binds {
			continue
		}
		if n++; n > othersNamed {
			continue
		}
		separator := ", "
		if n == 1 {
			separator = "; also "
		}
		fmt.Fprintf(&b, "%s%s of %s at %q", separator, resources.Format(sh.Resource, sh.Missing), sh.Resource, sh.Level)
		if sh.Bound == BoundMin {
			b.WriteString(" (non-preemptible)")
		}
	}
	if n > othersNamed {
		fmt.Fprintf(&b, " and %d more", n-othersNamed)
	}
	return b.String()
}

func (sh *Shortage) where(quota string) string { return place(quota, sh.Level, sh.Bound == BoundMin) }

// name of a gate for people.
func (gt *gate) name(g *group) string { return place(g.leaf.name, gt.level.name, gt.isMin()) }

func place(quota, level string, isMin bool) string {
	where := fmt.Sprintf("quota %q", quota)
	if level != quota {
		where += fmt.Sprintf(" level %q", level)
	}
	if isMin {
		where += ": non-preemptible"
	}
	return where
}
