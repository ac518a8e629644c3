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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// explain says why a unit does not fit, and in words, with the numbers.
func (w *why) explain(u *record) (unit.Finding, string) {
	list := w.shortages(u)
	reason := decide.ReasonOf(list)
	binding := decide.Bind(list, reason)
	if binding == nil {
		return unit.Finding{Reason: reason}, "not examined yet"
	}
	found := unit.Finding{Reason: reason, Level: binding.Level, Resource: binding.Resource}
	return found, sentenceOf(binding, u) + others(list) + w.whyNotLent(u, list, binding)
}

// sentenceOf is about one shortage alone. The owner of the unit reads it: it names no unit of another namespace.
func sentenceOf(sh *Shortage, u *record) string {
	quota := u.spec.Quota
	format := func(amount int64) string { return resources.Format(sh.Resource, amount) }
	numbers := fmt.Sprintf("(%s, used %s, reserved %s)", limited(sh), format(sh.Used), format(sh.Outstanding))
	if sh.Overspent {
		return fmt.Sprintf("%s: %s: over its %s by %s %s; nothing is admitted until that is freed",
			place(quota, sh.Level, sh.Bound == BoundMin), sh.Resource, sh.Bound, format(sh.Missing), numbers)
	}
	var claims string
	if sh.Claimed > 0 {
		if unit.InNamespace(sh.ClaimedBy, u.spec.Namespace()) {
			claims = fmt.Sprintf(", claimed ahead %s by %q", format(sh.Claimed), sh.ClaimedBy)
		} else {
			claims = ", claimed ahead " + format(sh.Claimed)
		}
		if sh.ClaimedIn != "" {
			claims += fmt.Sprintf(" of queue %q", sh.ClaimedIn)
		}
	}
	return fmt.Sprintf("%s: %s: request %s, free %s%s %s; %s must be freed",
		place(quota, sh.Level, sh.Bound == BoundMin), sh.Resource, u.ofLeast(format(sh.Request)), format(sh.Free), claims, numbers, format(sh.Missing))
}

// limited names the limit as what it is.
func limited(sh *Shortage) string {
	limit := fmt.Sprintf("%s %s", sh.Bound, resources.Format(sh.Resource, sh.Limit))
	if sh.Bound == decide.BoundRuntime && sh.HasMax {
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

// whyNotLent says why a unit that waits for its share is not admitted beyond it. It is empty where that is not the
// question, or the unit may not borrow for the same reason for which it does not fit.
func (w *why) whyNotLent(u *record, list []Shortage, binding *Shortage) string {
	a := &u.group.Notes.ask
	ofMin := slices.ContainsFunc(list, func(sh Shortage) bool { return sh.Bound == BoundMin })
	if binding.Bound != decide.BoundRuntime || w.partyOf(u) != nil || !a.Route.Shared || ofMin || w.behindItsOwn(u.group) {
		return ""
	}
	waits := func(t turn) bool { return t.group.Len() > 0 && t.group.Open() }
	switch o := w.pass.asks.WhyNotLent(a, w.claimsAhead(u, u, nil), waits); {
	case o.Level == nil:
		return ""
	case o.Missing > 0:
		return fmt.Sprintf("; not lent: %s of %s would be missing at %q",
			resources.Format(o.Resource, o.Missing), o.Resource, o.Level.Name())
	case o.Claimed:
		return fmt.Sprintf("; not lent: blocked units ahead claim what is free at %q", o.Level.Name())
	default:
		return fmt.Sprintf("; not lent: units within their share wait at %q", o.Level.Name())
	}
}

// behindItsOwn says that another group of the same queue and quota claims for both.
func (w *why) behindItsOwn(g *group) bool {
	own := func(c claim) bool { return c.Of.group == g }
	return g.Notes.ask.Blocking && !slices.ContainsFunc(w.pass.asks.Claims(), own)
}

// place names a limit for people.
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
