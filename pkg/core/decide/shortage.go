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

package decide

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// LimitKind says what the limit of a level is.
type LimitKind string

// Kinds of limits.
const (
	LimitMax     LimitKind = "max"     // most that the quota may use
	LimitRuntime LimitKind = "runtime" // its fair share of what is there, below max
	LimitTotal   LimitKind = "total"   // total of the cluster, or of the tree of quotas
	LimitMin     LimitKind = "min"     // guarantee of the quota: the limit of non-preemptible units
	// LimitRightful bounds a unit that goes beyond the share: the amount of a level while others use their guarantees.
	LimitRightful LimitKind = "rightful"
)

// Shortage is a resource of which a level has too little for a unit.
type Shortage struct {
	Level, Resource string
	// Kind says what Limit is. Used, Outstanding and what follows from them are of the non-preemptible part alone
	// where it is min.
	Kind LimitKind
	// Binds: the reason and the sentence are about this one.
	Binds bool
	// Never: the unit asks for more than the level may ever have, its max or, non-preemptible, its min.
	Never bool
	// Beyond: the unit may go beyond the shares on its path.
	Beyond bool
	// TooLarge: the unit asks for more than Rightful, the amount of the level while others use their guarantees.
	TooLarge bool
	Rightful int64
	// Limit bounds Used + Outstanding. Max and Min are those of the quota, if it names the resource.
	Limit, Max, Min int64
	HasMax, HasMin  bool
	Used            int64 // by assigned pods, of queued jobs or not
	UsedByUnits     int64 // the part of Used that is pods of queued jobs
	UsedByOthers    int64 // the rest
	Outstanding     int64 // held quota of admitted units beyond their assigned pods
	Claimed         int64 // by blocking units ahead that wait for it as well
	Guaranteed      int64 // unused guarantees of levels below that the unit does not draw on
	Unusable        int64 // free on nodes that take no pods, in the whole cluster; shares are of what is left
	Request, Total  int64 // Total is Request and the held amount
	Free            int64 // Limit - Used - Outstanding - Guaranteed; negative where more is in use than allowed
	Missing         int64 // amount to free here before the unit fits together with the claims ahead of it
	// ClaimedBy is the key of the first of those units, and ClaimedIn its queue if that is another one.
	ClaimedBy, ClaimedIn string
	// Overspent: the unit asks for nothing of it, and nothing is admitted until more is free.
	Overspent bool
}

// Ahead is a claim that binds a unit. By is the key of the unit that claims, and In its queue if that is another one.
type Ahead[T any] struct {
	Claim  *Claim[T]
	By, In string
	// passed: it does not bind above the quota of the unit.
	passed bool
}

// bindsAt says whether the claim binds a bundle at a limit.
func (a *Ahead[T]) bindsAt(g *Bundle, lim *capacity.Limit) bool { return !a.passed || g.isLeaf(lim) }

// Shortages lists what a bundle lacks to fit together with the claims ahead of it, in the order of its limits and then
// by resource.
func (p *Pass[T]) Shortages(g *Bundle, ahead []Ahead[T]) (out []Shortage) {
	r := p.reachBehind(g, ahead)
	for _, lim := range g.limits() {
		for _, name := range g.namesAt(lim) {
			sh := g.shortageAt(lim, name)
			if number, named := p.tree.Number(name); named && g.Asks[0].Observed {
				sh.shade(p.shadow.At(lim, number))
			}
			if number, named := p.tree.Number(name); named && sh.Request > 0 {
				p.goBeyond(&sh, &r, g, lim, number)
				for i := range ahead {
					if c := &ahead[i]; r.Beyond() || c.bindsAt(g, lim) {
						sh.addClaim(c.Claim.at(lim, number), c.By, c.In)
					}
				}
			}
			sh.Overspent = sh.Overspent && (!r.Beyond() || sh.Free+sh.Total < 0)
			sh.Missing = max(0, resources.SaturatingSub(resources.SaturatingAdd(sh.Request, sh.Claimed), sh.Free))
			if sh.short() {
				out = append(out, sh)
			}
		}
	}
	return out
}

// reachBehind says how far a bundle may go beyond shares behind these claims, and finds out which of them it passes.
func (p *Pass[T]) reachBehind(g *Bundle, ahead []Ahead[T]) (r rightful.Reach) {
	behind := slices.ContainsFunc(ahead, func(by Ahead[T]) bool {
		return by.In == "" && by.Claim.Ask.Blocking && by.Claim.Ask.Route == g.Asks[0].Route
	})
	var promised promise
	for i := range ahead {
		c := &ahead[i]
		c.passed = c.Claim.passable && c.In != "" && !g.together() && !behind &&
			promised.to(p.rights, g.Asks[0], g.Asks[0].Need)
	}
	if !slices.ContainsFunc(g.Asks, func(a *Ask) bool { return a.Route.Shared }) {
		return r
	}
	p.trial.Begin()
	for i := range ahead {
		for k, lim := range ahead[i].Claim.limits {
			p.trial.Claim(lim, ahead[i].Claim.amountsAt(k))
		}
	}
	r = p.rights.Reach(p.trial, g.parts())
	r.Exceeds = r.Exceeds && (!behind || g.together())
	return r
}

// goBeyond has the numbers be those of a bundle that may go beyond shares, or say that it can never rightfully do so.
func (p *Pass[T]) goBeyond(sh *Shortage, r *rightful.Reach, g *Bundle, lim *capacity.Limit, number int) {
	share, right := rightful.IsShare(lim, p.tree, number), int64(0)
	if share {
		right = p.rights.Rightful(lim.Level(), number)
	}
	if share && sh.Total > sh.Limit && sh.Total > right {
		sh.Rightful, sh.TooLarge = right, true
	}
	if !r.Beyond() || lim.IsMin() || lim.Bound(number) == capacity.Unlimited {
		return
	}
	sh.Beyond = true
	if share && right > sh.Limit {
		sh.Kind, sh.Limit = LimitRightful, right
	}
	inUse := resources.SaturatingAdd(sh.Used, sh.Outstanding)
	sh.Free = p.rights.Free(lim, g.path(), number)
	sh.Guaranteed = resources.SaturatingSub(resources.SaturatingSub(sh.Limit, inUse), sh.Free)
}

func (sh *Shortage) shade(held, unused int64) {
	sh.Outstanding = resources.SaturatingAdd(sh.Outstanding, held)
	sh.Used, sh.UsedByUnits = resources.SaturatingSub(sh.Used, unused), max(0, sh.UsedByUnits-unused)
	sh.Free = resources.SaturatingAdd(resources.SaturatingSub(sh.Free, held), unused)
}

func (sh *Shortage) addClaim(amount int64, by, in string) {
	if amount == 0 {
		return
	}
	sh.Claimed = resources.SaturatingAdd(sh.Claimed, amount)
	if sh.ClaimedBy == "" {
		sh.ClaimedBy, sh.ClaimedIn = by, in
	}
}

// namesAt are the resources that a bundle may lack at a limit, sorted: those that the limit names, and those whose
// request is above max.
func (g *Bundle) namesAt(lim *capacity.Limit) []string {
	var names []string
	for _, it := range lim.List().Items() {
		names = append(names, it.Name)
	}
	if lim.IsMin() {
		return names
	}
	for _, a := range g.Asks {
		for _, it := range a.Total.Items() {
			most, bounded := lim.Level().Spec().Max.Get(it.Name)
			if !bounded || slices.Contains(names, it.Name) {
				continue
			}
			if _, total := g.at(lim, it.Name); total > most {
				names = append(names, it.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// shortageAt has the numbers of a resource at a limit, claims aside.
func (g *Bundle) shortageAt(lim *capacity.Limit, resource string) Shortage {
	spec := lim.Level().Spec()
	sh := Shortage{
		Level: lim.Level().Name(), Resource: resource, Outstanding: lim.Outstanding(resource),
		UsedByUnits: lim.UsedByUnits(resource),
	}
	sh.Max, sh.HasMax = spec.Max.Get(resource)
	sh.Min, sh.HasMin = spec.Min.Get(resource)
	sh.Used, _ = lim.Used().Get(resource)
	// The ledger hears of a pod a moment before used counts it.
	sh.UsedByUnits = min(sh.UsedByUnits, sh.Used)
	sh.UsedByOthers = sh.Used - sh.UsedByUnits
	sh.Limit, sh.Kind = limitOf(lim, resource)
	limited, top := false, g.Asks[0].Route.Levels[len(g.Asks[0].Route.Levels)-1].Spec()
	if sh.Free, limited = lim.Free(resource); !limited { // beyond max, which the limit does not repeat
		sh.Free = resources.SaturatingSub(sh.Max, resources.SaturatingAdd(sh.Used, sh.Outstanding))
	}
	if usable, named := top.Limit.Get(resource); named {
		all, _ := top.Max.Get(resource)
		sh.Unusable = max(0, resources.SaturatingSub(all, usable))
	}
	sh.Request, sh.Total = g.at(lim, resource)
	switch {
	case lim.IsMin():
		sh.Never = sh.Total > sh.Min
	case resource != resources.Jobs:
		sh.Never = sh.HasMax && sh.Total > sh.Max
	case g.together():
		sh.Never = sh.Request > sh.Limit
	}
	sh.Overspent = sh.Request == 0 && sh.Free < 0 && g.isLeaf(lim)
	return sh
}

// short says the same as capacity.View.Short.
func (sh *Shortage) short() bool {
	return sh.Overspent || (sh.Request > 0 && sh.Missing > 0) || sh.Never
}

// limitOf is the limit of a resource, and what it is.
func limitOf(lim *capacity.Limit, resource string) (int64, LimitKind) {
	limit, limited := lim.List().Get(resource)
	most, named := lim.Level().Spec().Max.Get(resource)
	switch {
	case lim.IsMin():
		return limit, LimitMin
	case !limited:
		return most, LimitMax
	case resource != resources.Jobs && lim.Level().Spec().Parent == "":
		return limit, LimitTotal
	case resource == resources.Jobs || named && limit >= most:
		return limit, LimitMax
	default:
		return limit, LimitRuntime
	}
}

// ReasonOf says which reason a list of shortages comes to.
func ReasonOf(list []Shortage) unit.Reason {
	reason := unit.ReasonPending
	if slices.ContainsFunc(list, func(sh Shortage) bool { return sh.TooLarge }) {
		return unit.ReasonExceedsGuaranteedShare
	}
	for i := range list {
		switch sh := &list[i]; {
		case !sh.Overspent && sh.Request <= sh.Free:
			if sh.Missing > 0 {
				reason = unit.ReasonBlockedByHead
			}
		case sh.Kind == LimitMin:
			return unit.ReasonMinExceeded
		default:
			return unit.ReasonQuotaExceeded
		}
	}
	return reason
}

// Find is what a list of shortages comes to. It marks and returns the shortage that this is about; nil if it is about
// none.
func Find(list []Shortage) (found unit.Finding, binding *Shortage) {
	found.Reason = ReasonOf(list)
	if binding = Bind(list, found.Reason); binding != nil {
		found.Level, found.Resource = binding.Level, binding.Resource
	}
	return found, binding
}

// Bind marks and returns the shortage that a reason is about; nil if it is about none.
func Bind(list []Shortage, reason unit.Reason) *Shortage {
	for i := range list {
		if sh := &list[i]; sh.binds(reason) {
			sh.Binds = true
			return sh
		}
	}
	return nil
}

func (sh *Shortage) binds(reason unit.Reason) bool {
	switch reason {
	case unit.ReasonQuotaExceeded, unit.ReasonMinExceeded:
		return sh.Overspent || sh.Request > sh.Free
	case unit.ReasonBlockedByHead:
		return true
	case unit.ReasonExceedsGuaranteedShare:
		return sh.TooLarge
	case unit.ReasonExceedsMax:
		return sh.Never && sh.Kind != LimitMin
	case unit.ReasonExceedsMin:
		return sh.Never && sh.Kind == LimitMin
	default:
		return false
	}
}
