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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/victims"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// explain says why a unit does not fit, and in words, with the numbers.
func (w *why) explain(u *record) (unit.Finding, string) {
	list := w.shortages(u)
	found, binding := decide.Find(list)
	if binding == nil {
		return found, "not examined yet"
	}
	if hindered := u.group.Notes.obstacle.Finding(); hindered.Reason != "" {
		found = hindered
	}
	return found, words.Shortages(u.reader(), list, binding) + w.whyNotLent(u, list, binding) +
		words.TakesBack(len(victims.Holds(preemptedBy(u))), &u.group.Notes.obstacle, u.spec) + w.inOthers(u)
}

// inOthers says how much is free in the other quotas of the list of a unit.
func (w *why) inOthers(u *record) string {
	names, _ := namesOf(u.group)
	lacks := map[string][]decide.Shortage{}
	for i := range u.group.Notes.others {
		alone := decide.Alone(&u.group.Notes.others[i])
		lacks[alone.Asks[0].Leaf().Name()] = w.pass.asks.Shortages(&alone, w.claimsAhead(u, u, nil))
	}
	return words.Others(names, lacks)
}

// shortages lists what a unit in line lacks, in the order of its limits and then by resource.
func (w *why) shortages(u *record) []decide.Shortage {
	if u.group.Notes.ask.Route.Broken != "" {
		return nil
	}
	if gg := gangGroupOf(w.lines.gangs, u); gg != nil && slices.Contains(gg.members, u) && w.allMet(gg) {
		return w.pass.asks.Shortages(&gg.asks, w.claimsAhead(w.last(gg), u, gg.members))
	}
	alone := decide.Alone(&u.group.Notes.ask)
	return w.pass.asks.Shortages(&alone, w.claimsAhead(u, u, nil))
}

// claimsAhead are the claims of the last pass that bind a unit decided at the place of another unit of its gang group.
// They are ahead of that place, and no member made them.
func (w *why) claimsAhead(place, u *record, members []*record) (ahead []decide.Ahead[turn]) {
	claims := w.pass.asks.Claims()
	ahead = make([]decide.Ahead[turn], 0, len(claims))
	for i := range claims {
		c := &claims[i]
		by := c.Of.unit
		if by == u || slices.Contains(members, by) || !w.ahead(c, place) {
			continue
		}
		a := decide.Ahead[turn]{Claim: c, By: by.spec.Key}
		if by.spec.Queue != u.spec.Queue {
			a.In = by.spec.Queue
		}
		ahead = append(ahead, a)
	}
	return ahead
}

// ahead says whether a claim binds a unit: of the same queue when the claimant is before it, of another queue when that
// queue is. The claim of a preemptor binds all units that do not preempt. If the unit of a claim is not the head of its
// group any more, the claim binds nobody.
func (w *why) ahead(c *claim, u *record) bool {
	if !c.Of.stands() || c.Of.unit == u || c.At.unit.group == nil {
		return false
	}
	if preempts := c.Of.group.Notes.preempts; preempts != u.group.Notes.preempts {
		return preempts
	}
	return w.servedBefore(c.At.unit, u)
}

// whyNotLent says why a unit that waits for its share is not admitted beyond it. It is empty if the unit waits for
// something else, or may not borrow for the reason for which it does not fit.
func (w *why) whyNotLent(u *record, list []decide.Shortage, binding *decide.Shortage) string {
	a := &u.group.Notes.ask
	ofMin := slices.ContainsFunc(list, func(sh decide.Shortage) bool { return sh.Kind == decide.LimitMin })
	alone := gangGroupOf(w.lines.gangs, u) == nil
	if binding.Kind != decide.LimitRuntime || !alone || !a.Route.Shared || ofMin || w.behindItsOwn(u.group) {
		return ""
	}
	waits := func(t turn) bool { return t.group.Len() > 0 && t.group.Open() }
	return words.NoLoan(w.pass.asks.WhyNoLoan(a, w.claimsAhead(u, u, nil), waits))
}

// behindItsOwn says that another group of the same queue and quota claims for both.
func (w *why) behindItsOwn(g *group) bool {
	own := func(c claim) bool { return c.Of.group == g }
	return g.Notes.ask.Blocking && !g.Notes.ask.TooLarge(w.lines.rights) && !slices.ContainsFunc(w.pass.asks.Claims(), own)
}
