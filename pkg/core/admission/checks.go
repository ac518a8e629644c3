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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// unitCheck says why a unit must not be in its queue now, from the unit and its consumer. An empty reason passes.
type unitCheck func(r *roster, now time.Time, u *record) (unit.Reason, string)

// specChecks look at what the unit says alone. A unit that fails one of them can never be admitted as it is.
var specChecks = []unitCheck{
	checkDecoded,
	checkPods,
	checkRequest,
	checkConsumerNamespace,
}

// unitChecks in order: the first that fails gives the reason. The last ones pass by themselves.
var unitChecks = []unitCheck{
	checkDecoded,
	checkPods,
	checkRequest,
	checkPhase,
	checkActive,
	checkDeactivate,
	checkAdopting,
	checkConsumerNamespace,
	checkConsumerLive,
	checkDuplicate,
	checkRestoring,
	checkBackoff,
	checkRefused,
}

// groupCheck says why no unit of a group is eligible. A finding without a reason passes.
type groupCheck func(r *roster, g *group) (unit.Finding, string)

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

func checkSpec(u *record) (unit.Reason, string) { return firstOf(specChecks, nil, time.Time{}, u) }

func checkUnit(r *roster, now time.Time, u *record) (unit.Reason, string) {
	return firstOf(unitChecks, r, now, u)
}

func firstOf(checks []unitCheck, r *roster, now time.Time, u *record) (unit.Reason, string) {
	for _, check := range checks {
		if reason, message := check(r, now, u); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

func checkGroup(r *roster, g *group) (unit.Finding, string) {
	for _, check := range groupChecks {
		if found, message := check(r, g); found.Reason != "" {
			return found, message
		}
	}
	return unit.Finding{}, ""
}

// whyParked is the message of the reason for which a unit is parked.
func whyParked(r *roster, u *record) string {
	if u.parked == unit.ReasonQueueOverflow {
		return r.whyOverflow(u)
	}
	for _, check := range unitChecks {
		if reason, message := check(r, time.Time{}, u); reason == u.parked {
			return message
		}
	}
	return ""
}

// checkAdmitted says why an admitted unit must lose its admission. gone means that its job is known not to
// exist, so that nothing can use what it holds.
func checkAdmitted(r *roster, u *record) (reason unit.Reason, message string, gone bool) {
	if reason, message = checkConsumerNamespace(r, time.Time{}, u); reason != "" {
		return reason, message, false
	}
	c := candidateOf(&u.spec)
	// A consumer that nobody has reported yet is no reason: informers of two kinds race.
	switch found, message := r.owners.Check(&c); found {
	case owner.Another:
		return unit.ReasonConsumerUIDMismatch, message, true
	case owner.Gone:
		return unit.ReasonConsumerNotFound, message, true
	case owner.Live, owner.NotSeen:
	}
	if reason, message = checkActive(r, time.Time{}, u); reason != "" {
		return reason, message, false
	}
	if reason, message = checkDuplicate(r, time.Time{}, u); reason != "" {
		return reason, message, false
	}
	if reason, message = checkDrained(r, u); reason != "" {
		return reason, message, false
	}
	if reason, message = checkMoves(r, u); reason != "" {
		return reason, message, false
	}
	reason, message = checkUnanswered(r, u)
	return reason, message, false
}

// checkMoves has a unit that names another quota than it holds quota in wait for that one, as soon as none of its pods
// is on a node. Until then it stays where its pods are charged.
func checkMoves(r *roster, u *record) (unit.Reason, string) {
	if _, assigned := r.ledger.Pods(u.spec.Key); u.spec.MovesTo == "" || assigned > 0 {
		return "", ""
	}
	return unit.ReasonQuotaChanged, fmt.Sprintf(
		"the job names quota %q now; it gives back what it holds in quota %q and waits",
		u.spec.MovesTo, u.spec.Quota)
}

// checkUnanswered has a unit that was let go and holds nothing wait in line, if admission checks have to answer for all
// that it asks for. It could not get that as growth, and has nothing to lose.
func checkUnanswered(r *roster, u *record) (unit.Reason, string) {
	if !u.spec.Phase.Releases() || !u.spec.Wants().IsZero() || u.spec.Request.IsZero() || len(r.admissionChecks(u)) == 0 {
		return "", ""
	}
	if reason, _ := checkSpec(u); reason != "" {
		return "", ""
	}
	if _, assigned := r.ledger.Pods(u.spec.Key); assigned > 0 {
		return "", ""
	}
	return unit.ReasonChecksChanged, fmt.Sprintf("the job holds nothing and asks for %s, which admission checks did not "+
		"answer for; it waits to be admitted with that", u.spec.Request)
}

func checkDecoded(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	return u.spec.Invalid, u.spec.InvalidMessage
}

func checkPods(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if u.spec.Pods == 0 && u.spec.Request.IsZero() {
		return unit.ReasonNoPods, "the unit asks for nothing: no request and no pods"
	}
	return "", ""
}

func checkRequest(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if u.spec.Pods < 0 {
		return unit.ReasonInvalidRequest, fmt.Sprintf("the number of pods is negative: %d", u.spec.Pods)
	}
	for _, it := range u.spec.Request.Items() {
		if it.Amount < 0 {
			return unit.ReasonInvalidRequest, fmt.Sprintf("resource %q: negative amount %s", it.Name,
				resources.Format(it.Name, it.Amount))
		}
		if it.Amount > resources.Greatest {
			return unit.ReasonInvalidRequest, fmt.Sprintf("resource %q: absurd amount %s", it.Name,
				resources.Format(it.Name, it.Amount))
		}
	}
	return "", ""
}

func checkPhase(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if p := u.spec.Phase; !p.Waits() && !p.Holds() && !p.Terminal() {
		return unit.ReasonUnknownPhase, fmt.Sprintf("phase %q is not known to this version", p)
	}
	return "", ""
}

func checkActive(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if !u.spec.Active {
		return unit.ReasonInactive, "the unit is held: spec.active is false"
	}
	return "", ""
}

// checkDeactivate keeps a unit out that is to be made inactive, until somebody has done so.
func checkDeactivate(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if d := u.spec.Deactivate; d != nil {
		return d.Reason, d.Message
	}
	return "", ""
}

// checkDrained leaves those alone whose pods cannot be taken away: they would use quota that nobody holds.
func checkDrained(r *roster, u *record) (unit.Reason, string) {
	if q := r.queues.byName[u.spec.Queue]; q == nil || !q.spec.Drains || r.keepsPods(u) {
		return "", ""
	}
	return unit.ReasonQueueDrained, fmt.Sprintf("queue %q takes back what it has admitted", u.spec.Queue)
}

func checkAdopting(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if u.spec.Adopting {
		return unit.ReasonAdopting, "the job runs already; its unit waits to be marked as running"
	}
	return "", ""
}

func checkConsumerNamespace(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if of := u.spec.Consumer.Namespace; of != "" && of != u.spec.Namespace() {
		return unit.ReasonConsumerOtherNamespace,
			fmt.Sprintf("consumerRef names namespace %q; the unit is in %q", of, u.spec.Namespace())
	}
	return "", ""
}

func checkConsumerLive(r *roster, _ time.Time, u *record) (unit.Reason, string) {
	if !u.spec.ConsumerManaged {
		return "", ""
	}
	c := candidateOf(&u.spec)
	switch found, message := r.owners.Check(&c); found {
	case owner.Another:
		return unit.ReasonConsumerUIDMismatch, message
	case owner.NotSeen, owner.Gone:
		if found == owner.NotSeen && u.spec.KindUnlisted {
			return unit.ReasonKindNotListed, fmt.Sprintf("jobs of kind %s could not be listed yet", u.spec.Consumer.Kind)
		}
		return unit.ReasonConsumerNotFound, message
	case owner.Live:
	}
	return "", ""
}

func checkDuplicate(r *roster, _ time.Time, u *record) (unit.Reason, string) {
	if u.spec.Misnamed {
		return unit.ReasonDuplicateUnit, fmt.Sprintf("the unit of %s has another name", u.spec.Consumer)
	}
	c := candidateOf(&u.spec)
	if w, ok := r.owners.Winner(&c); ok && w != u {
		return unit.ReasonDuplicateUnit, fmt.Sprintf("unit %q stands for the same %s", w.spec.Key, u.spec.Consumer)
	}
	return "", ""
}

func checkBackoff(_ *roster, now time.Time, u *record) (unit.Reason, string) {
	if now.Before(u.spec.RequeueAt) {
		return unit.ReasonBackoff, "waits until " + u.spec.RequeueAt.UTC().Format(time.RFC3339) + " before it is tried again"
	}
	return "", ""
}

func checkRefused(_ *roster, now time.Time, u *record) (unit.Reason, string) {
	if now.Before(u.refusal.until) {
		return u.refusal.reason, u.refusal.message
	}
	return "", ""
}

func checkQueueKnown(_ *roster, g *group) (unit.Finding, string) {
	switch q := g.Notes.queue; {
	case q.known:
		return unit.Finding{}, ""
	case q.name == "":
		return unit.Finding{Reason: unit.ReasonUnknownQueue}, "the unit names no queue"
	default:
		return unit.Finding{Reason: unit.ReasonUnknownQueue}, fmt.Sprintf("queue %q does not exist", q.name)
	}
}

func checkQuotaInQueue(_ *roster, g *group) (unit.Finding, string) {
	accepted := g.Notes.queue.spec.Quotas
	if accepted == nil || slices.Contains(accepted, g.Key().Quota) {
		return unit.Finding{}, ""
	}
	return unit.Finding{Reason: unit.ReasonQuotaNotInQueue}, fmt.Sprintf("queue %q does not accept quota %q",
		g.Notes.queue.name, g.Key().Quota)
}

func checkPolicyKnown(r *roster, g *group) (unit.Finding, string) {
	q := g.Notes.queue
	if q.fault != "" {
		return unit.Finding{Reason: unit.ReasonInternalError}, q.fault
	}
	if _, ok := r.queues.policies[q.spec.Policy]; ok {
		return unit.Finding{}, ""
	}
	return unit.Finding{Reason: unit.ReasonUnknownPolicy}, fmt.Sprintf("queue %q has policy %q; known are: %s",
		q.name, q.spec.Policy, r.queues.knownPolicies())
}

func checkQuotaKnown(_ *roster, g *group) (unit.Finding, string) {
	if broken := g.Notes.route.Broken; broken != "" {
		return unit.Finding{Reason: unit.ReasonUnknownQuota}, broken
	}
	return unit.Finding{}, ""
}

func checkQuotaOpen(_ *roster, g *group) (unit.Finding, string) {
	if !g.Notes.route.Levels[0].Spec().Closed {
		return unit.Finding{}, ""
	}
	return unit.Finding{Reason: unit.ReasonQuotaNotNamed}, fmt.Sprintf(
		"quota %q is not for queueing; name a quota of your own, by its label or that of the namespace", g.Key().Quota)
}

func checkMax(_ *roster, g *group) (unit.Finding, string) {
	return neverFits(g, unit.ReasonExceedsMax, "max", func(q *capacity.Quota) resources.List { return q.Max })
}

// checkMin keeps a non-preemptible unit that is larger than what is promised out of the line: it would claim for ever.
func checkMin(_ *roster, g *group) (unit.Finding, string) {
	if !g.Notes.nonPreemptible {
		return unit.Finding{}, ""
	}
	return neverFits(g, unit.ReasonExceedsMin, "min", func(q *capacity.Quota) resources.List { return q.Min })
}

// neverFits finds the first level whose bound is below what a unit would hold, even if nothing else were in use.
func neverFits(
	g *group, reason unit.Reason, name string, of func(*capacity.Quota) resources.List,
) (unit.Finding, string) {
	for _, l := range g.Notes.route.Levels {
		bound := of(l.Spec())
		over := beyondAll(g.Notes.total, bound)
		if over == "" {
			continue
		}
		request, _ := g.Notes.total.Get(over)
		most, _ := bound.Get(over)
		return unit.Finding{
				Reason: reason, Level: l.Name(), Resource: over,
			}, fmt.Sprintf("%s: %s: request %s is above %s %s, so it can never fit",
				place(g.Key().Quota, l.Name(), reason == unit.ReasonExceedsMin), over,
				g.Head().ofLeast(resources.Format(over, request)), name, resources.Format(over, most))
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

func checkQueueOpen(_ *roster, g *group) (unit.Finding, string) {
	if g.Notes.queue.spec.Held {
		return unit.Finding{Reason: unit.ReasonQueueHeld}, fmt.Sprintf("queue %q is held", g.Notes.queue.name)
	}
	return unit.Finding{}, ""
}

// extensions are the checks that others brought.
type extensions []Check

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
