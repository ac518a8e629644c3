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
	"strconv"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// groupCheck says why no unit of a group is eligible. A finding without a reason passes.
type groupCheck func(l *lines, g *group) (unit.Finding, string)

// The quota comes first: the default queue of a quota that does not exist does not exist either, and the quota is what
// its owner has to make.
var groupChecks = []groupCheck{
	checkQuotaKnown,
	checkQuotaOpen,
	checkQueueKnown,
	checkQuotaInQueue,
	checkPolicyKnown,
	checkMax,
	checkMin,
	checkAdmissionChecks,
	checkQueueOpen,
}

func checkGroup(l *lines, g *group) (unit.Finding, string) {
	for _, check := range groupChecks {
		if found, message := check(l, g); found.Reason != "" {
			return found, message
		}
	}
	return unit.Finding{}, ""
}

func checkQueueKnown(_ *lines, g *group) (unit.Finding, string) {
	switch q := g.Notes.queue; {
	case q.known:
		return unit.Finding{}, ""
	case q.name == "":
		return unit.Finding{Reason: unit.ReasonUnknownQueue}, "the unit names no queue"
	default:
		return unit.Finding{Reason: unit.ReasonUnknownQueue}, fmt.Sprintf("queue %q does not exist", q.name)
	}
}

func checkQuotaInQueue(_ *lines, g *group) (unit.Finding, string) {
	accepted := g.Notes.queue.spec.Quotas
	if accepted == nil || slices.Contains(accepted, g.Key().Quota) {
		return unit.Finding{}, ""
	}
	return unit.Finding{Reason: unit.ReasonQuotaNotInQueue}, fmt.Sprintf("queue %q does not accept quota %q",
		g.Notes.queue.name, g.Key().Quota)
}

func checkPolicyKnown(l *lines, g *group) (unit.Finding, string) {
	q := g.Notes.queue
	if q.fault != "" {
		return unit.Finding{Reason: unit.ReasonInternalError}, q.fault
	}
	if _, ok := l.policies[q.spec.Policy]; ok {
		return unit.Finding{}, ""
	}
	return unit.Finding{Reason: unit.ReasonUnknownPolicy}, fmt.Sprintf("queue %q has policy %q; known are: %s",
		q.name, q.spec.Policy, l.knownPolicies())
}

func checkQuotaKnown(_ *lines, g *group) (unit.Finding, string) {
	if broken := g.Notes.ask.Route.Broken; broken != "" {
		return unit.Finding{Reason: unit.ReasonUnknownQuota}, broken
	}
	return unit.Finding{}, ""
}

func checkQuotaOpen(_ *lines, g *group) (unit.Finding, string) {
	if !g.Notes.ask.Route.Levels[0].Spec().Closed {
		return unit.Finding{}, ""
	}
	return unit.Finding{Reason: unit.ReasonQuotaNotNamed}, fmt.Sprintf(
		"quota %q is not for queueing; name a quota of your own, by its label or that of the namespace", g.Key().Quota)
}

func checkMax(_ *lines, g *group) (unit.Finding, string) {
	return neverFits(g, unit.ReasonExceedsMax, func(q *capacity.Quota) resources.List { return q.Max })
}

// checkMin keeps a non-preemptible unit that is larger than min out of the line: it would claim without end.
func checkMin(_ *lines, g *group) (unit.Finding, string) {
	if !g.Notes.ask.NonPreemptible {
		return unit.Finding{}, ""
	}
	return neverFits(g, unit.ReasonExceedsMin, func(q *capacity.Quota) resources.List { return q.Min })
}

// neverFits finds the first level whose bound is below what a unit would hold, even if nothing else were in use.
func neverFits(g *group, reason unit.Reason, of func(*capacity.Quota) resources.List) (unit.Finding, string) {
	for _, l := range g.Notes.ask.Route.Levels {
		bound, total := of(l.Spec()), g.Notes.ask.Total
		if over := beyondAll(total, bound); over != "" {
			found := unit.Finding{Reason: reason, Level: l.Name(), Resource: over}
			request, _ := total.Get(over)
			most, _ := bound.Get(over)
			return found, words.Never(g.Head().reader(), found, request, most)
		}
	}
	return unit.Finding{}, ""
}

// beyondAll names the first resource of which more is asked for than a bound would allow if nothing were in use.
func beyondAll(request, bound resources.List) string {
	for _, it := range request.Items() {
		if most, ok := bound.Get(it.Name); ok && it.Amount > most {
			return it.Name
		}
	}
	return ""
}

func checkQueueOpen(_ *lines, g *group) (unit.Finding, string) {
	if g.Notes.queue.spec.Held {
		return unit.Finding{Reason: unit.ReasonQueueHeld}, fmt.Sprintf("queue %q is held", g.Notes.queue.name)
	}
	return unit.Finding{}, ""
}

// extensions are the checks that others brought.
type extensions []queue.Check

// keys joins the equivalence keys of a unit.
func (x extensions) keys(u *record) string {
	var b strings.Builder
	for _, check := range x {
		b.WriteString(strconv.Quote(check.Key(u.spec)))
	}
	return b.String()
}

// ask asks about the head of a group, once until something has it asked again.
func (x extensions) ask(g *group) answer {
	n := &g.Notes
	if n.answer.asked || len(x) == 0 {
		return n.answer
	}
	said := answer{asked: true}
	for _, check := range x {
		if said.reason, said.message = check.Check(g.Head().spec); said.reason != "" {
			break
		}
	}
	n.answer = said
	return said
}

// checkAdmissionChecks keeps from units what checks of their queue could not answer for, or did not.
func checkAdmissionChecks(_ *lines, g *group) (unit.Finding, string) {
	if a := &g.Notes.ask; g.Key().Unchecked {
		return unit.Finding{Reason: unit.ReasonCheckNeeded}, fmt.Sprintf("%s more, %s in all, is not what admission checks "+
			"answered for; a job that is suspended and admitted again is checked again", a.Request, a.Total)
	}
	if fault := g.Notes.queue.spec.Fault; fault != nil {
		return unit.Finding{Reason: fault.Reason}, fault.Message
	}
	return unit.Finding{}, ""
}
