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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Between the reservation of quota and the release of the pods a unit may have to pass checks that others answer: it is
// Reserved. A queue names them. They are asked anew each time that quota is reserved, in the write that reserves it:
// what was answered about a former reservation says nothing about this one. Whoever had let a unit go may take that
// back while it holds quota, since what he answered for may go while the job runs, such as nodes that were made for it.

// admissionChecks are those that a unit has to pass.
func (r *roster) admissionChecks(u *record) (out []queue.AdmissionCheck) {
	q := r.queues.byName[u.spec.Queue]
	if q == nil {
		return nil
	}
	for _, c := range q.spec.AdmissionChecks {
		if c.Selector == "" || r.cfg.Selects == nil || r.cfg.Selects(c.Selector, u.spec.Labels) {
			out = append(out, c)
		}
	}
	return out
}

// ruling is what follows from the answers about a reserved unit: that it passes, that it loses its reservation, or
// neither yet. Whoever rejects it goes before who would have it tried again.
type ruling struct {
	passes  bool
	reason  unit.Reason // why it loses its reservation; empty if it does not
	message string
	// retryAfter is as that of CheckAnswer. rejected: it is not tried again as it is. unasked: it waits for no back-off.
	retryAfter        time.Duration
	rejected, unasked bool
}

// rulingOn is for units in phase Reserved. They pass when all checks are ready that were asked, and all that their
// queue names. Where these differ, or nobody can say what the queue names, quota is reserved and checks are asked anew.
func (r *roster) rulingOn(u *record) (v ruling) {
	checks := r.admissionChecks(u)
	ready := 0
	for _, c := range checks {
		a, _ := u.spec.Checks.To(c.Name)
		switch a.State {
		case unit.CheckRejected:
			return ruling{rejected: true, reason: unit.ReasonCheckRejected, message: said(a, "rejects the job")}
		case unit.CheckRetry:
			if v.reason == "" {
				v.reason, v.message = unit.ReasonCheckRetry, said(a, "has the job tried again later")
			}
			v.retryAfter = max(v.retryAfter, a.RetryAfter)
		case unit.CheckReady:
			ready++
		case unit.CheckPending:
		}
	}
	if v.reason != "" {
		return v
	}
	if why := r.checksChanged(u); why != "" {
		return ruling{unasked: true, reason: unit.ReasonChecksChanged, message: why + "; quota is reserved anew"}
	}
	if ready < len(checks) {
		return v
	}
	if c := u.spec.Checks; c != nil && c.Conflict != "" {
		return ruling{reason: unit.ReasonCheckConflict, message: c.Conflict}
	}
	return ruling{passes: true}
}

// checksChanged is in words why the checks that a reserved unit was asked are not those that it has to pass; empty if
// they are. One that was ready about it has been passed, whoever names it now.
func (r *roster) checksChanged(u *record) string {
	q := r.queues.byName[u.spec.Queue]
	if q == nil || !q.known {
		return fmt.Sprintf("queue %q does not exist, so nobody says which admission checks it asks for", u.spec.Queue)
	}
	if fault := q.spec.Fault; fault != nil {
		return fault.Message
	}
	checks := r.admissionChecks(u)
	if len(checks) > 0 && u.spec.Sizes == nil && !u.held.Covers(u.spec.Request) {
		return fmt.Sprintf("the job asks for %s by now, which admission checks were not asked about", u.spec.Request)
	}
	for _, c := range checks {
		if _, asked := u.spec.Checks.To(c.Name); !asked {
			return fmt.Sprintf("admission check %q was not asked about this reservation", c.Name)
		}
	}
	if u.spec.Checks == nil {
		return ""
	}
	for _, a := range u.spec.Checks.Answers {
		if a.State != unit.CheckReady && !slices.ContainsFunc(checks,
			func(c queue.AdmissionCheck) bool { return c.Name == a.Name }) {
			return fmt.Sprintf("admission check %q was asked about this reservation, and is not any more", a.Name)
		}
	}
	return ""
}

// waitsForChecks says in words which checks of a reserved unit have yet to answer.
func (r *roster) waitsForChecks(u *record) string {
	var pending []string
	for _, c := range r.admissionChecks(u) {
		if a, _ := u.spec.Checks.To(c.Name); a.State != unit.CheckReady {
			pending = append(pending, c.Name)
		}
	}
	switch {
	case len(pending) > 0:
	case r.parties.isHeldBack(u):
		return fmt.Sprintf("quota is reserved: %s; waits for the other jobs of its gang group to pass their admission checks",
			u.held)
	default:
		return "passed its admission checks; that has yet to be written"
	}
	return fmt.Sprintf("quota is reserved: %s; waits for admission checks: %s", u.held, quoted(pending))
}

func said(a unit.CheckAnswer, what string) string {
	text := fmt.Sprintf("admission check %q %s", a.Name, what)
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// reservedExpiry is that of a reserved unit some of whose checks have not answered, or that waits for those of others
// of its gang group, for as long as the slowest of its own may take.
func (r *roster) reservedExpiry(u *record) (x expiry) {
	checks := r.admissionChecks(u)
	if r.parties.isHeldBack(u) {
		x.timeout, x.reason, x.ofGroup = slowest(checks), unit.ReasonCheckTimeout, true
		if x.at = u.spec.Admitted.Add(x.timeout); x.timeout <= 0 {
			return expiry{}
		}
		return x
	}
	for _, c := range checks {
		if a, _ := u.spec.Checks.To(c.Name); a.State != unit.CheckReady && c.Timeout > 0 {
			x = sooner(x, expiry{at: u.spec.Admitted.Add(c.Timeout), reason: unit.ReasonCheckTimeout, timeout: c.Timeout})
		}
	}
	return x
}

// slowest is the longest that one of the checks may take; zero if one of them may take for ever.
func slowest(checks []queue.AdmissionCheck) (longest time.Duration) {
	for _, c := range checks {
		if c.Timeout <= 0 {
			return 0
		}
		longest = max(longest, c.Timeout)
	}
	return longest
}

// withdrawal is what follows for a released unit from an answer that was taken back since: it was Ready about what it
// holds, and is Retry or Rejected. Anything else changes nothing, so that a unit runs on whatever becomes of its check.
// Pods that cannot be taken away stay, and so does their unit.
func (r *roster) withdrawal(u *record) (v ruling) {
	if u.spec.Checks == nil || r.keepsPods(u) {
		return v
	}
	for _, c := range r.admissionChecks(u) {
		a, _ := u.spec.Checks.To(c.Name)
		switch a.State {
		case unit.CheckRejected:
			return ruling{
				rejected: true, reason: unit.ReasonCheckRejected, message: said(a,
					"takes back that the job may go, and rejects it"),
			}
		case unit.CheckRetry:
			if v.reason == "" {
				v.reason, v.message = unit.ReasonCheckRetry, said(a, "takes back that the job may go, to try it again later")
			}
			v.retryAfter = max(v.retryAfter, a.RetryAfter)
		case unit.CheckPending, unit.CheckReady:
		}
	}
	return v
}

// rulingNow is what follows from the answers about a unit that holds quota.
func (r *roster) rulingNow(u *record) (v ruling) {
	switch {
	case u.spec.Phase == unit.PhaseReserved:
		return r.rulingOn(u)
	case u.spec.Phase.Releases():
		return r.withdrawal(u)
	default:
		return v
	}
}

// cleared says whether a unit was let go, or may be as far as its own checks say.
func (r *roster) cleared(u *record) bool {
	if u.spec.GangGroup == "" || !u.holding || u.stage == stageAdmitting || u.stage == stageEvicting {
		return false
	}
	return u.spec.Phase.Releases() || u.spec.Phase == unit.PhaseReserved && r.rulingOn(u).passes
}

// placeChecked has a reserved unit let go once it has passed its checks, and says why a unit has to lose what it holds
// over them; or when to try again.
func (r *roster) placeChecked(now time.Time, u *record) (reason unit.Reason, again time.Time) {
	v := r.rulingNow(u)
	switch {
	case !v.passes:
	case !r.parties.mayGo(u):
		r.parties.holdBack(u)
	case now.Before(u.refusal.until):
		again = u.refusal.until
	default:
		r.dequeues[u] = struct{}{}
	}
	return v.reason, again
}

// refuseChecked has a unit lose what it holds over its checks. Its quota is for others until it is tried again.
func (r *roster) refuseChecked(now time.Time, u *record) (d Evict, refused bool) {
	v := r.rulingNow(u)
	d = Evict{Unit: u.spec, Reason: v.reason, Message: v.message}
	switch {
	case v.reason == "":
		return d, false
	case v.unasked:
	case v.rejected:
		d.Deactivate = v.reason
	default:
		r.putOff(now, u, &d, v.retryAfter)
	}
	return d, true
}

// dequeue puts in flight that units which have passed their checks are let go. A place among those to be let go ends
// with what it was for: so it does for one that has to wait for others of its gang group by now.
func (r *roster) dequeue(now time.Time, plan *Plan) {
	for _, u := range inOrder(r.dequeues) {
		if !r.parties.mayGo(u) {
			r.change(u, func() { r.place(now, u) })
			continue
		}
		r.change(u, func() {
			r.unplace(u) // what it asks for beyond what it holds waits for that
			u.stage, u.own().attempt = stageDequeuing, u.spec.Attempts
		})
		plan.Dequeue = append(plan.Dequeue, Dequeue{Unit: u.spec})
	}
}

func (u *record) settleDequeue(now time.Time, base time.Duration, o Outcome) {
	u.stage = stageAdmitted
	switch o {
	case OutcomeConfirmed:
		u.spec.Phase, u.spec.Admitted = unit.PhaseDequeued, now
		u.tenure.left = time.Time{}
	case OutcomeRefused:
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses the release of this unit; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.observed = true
	}
}

// checkAdmissionChecks keeps from units what checks of their queue could not answer for, or did not.
func checkAdmissionChecks(_ *roster, g *group) (unit.Finding, string) {
	if n := &g.Notes; g.Key().Unchecked {
		return unit.Finding{Reason: unit.ReasonCheckNeeded}, fmt.Sprintf("%s more, %s in all, is not what admission checks "+
			"answered for; a job that is suspended and admitted again is checked anew", n.asks, n.total)
	}
	if fault := g.Notes.queue.spec.Fault; fault != nil {
		return unit.Finding{Reason: fault.Reason}, fault.Message
	}
	return unit.Finding{}, ""
}

// checkRestoring keeps a unit from a reservation while pod templates of its job may have what checks asked for about
// the last one: what they are asked next takes its place, and nobody would know any more what is to go.
func checkRestoring(_ *roster, _ time.Time, u *record) (unit.Reason, string) {
	if u.spec.TemplatesWritten {
		return unit.ReasonRestoring, "what admission checks asked to write into the pods of the job is being taken out again"
	}
	return "", ""
}
