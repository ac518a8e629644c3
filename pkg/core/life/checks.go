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

package life

import (
	"fmt"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A queue names admission checks. A unit is Reserved between the reservation of its quota and the answers of all its
// checks. The write that reserves quota resets the answers, because an answer about a former reservation says nothing
// about this one. A check can take back its answer while the unit holds quota: nodes made for the job, for example, can
// disappear while the job runs.

// AdmissionChecks are those that a unit has to pass. An observed unit passes none: checks make nodes.
func AdmissionChecks(f *Facts) (out []queue.AdmissionCheck) {
	if f.Unit.Observed {
		return nil
	}
	for _, c := range f.Queue.AdmissionChecks {
		if c.Selector == "" || f.Config.Selects == nil || f.Config.Selects(c.Selector, f.Unit.Labels) {
			out = append(out, c)
		}
	}
	return out
}

// ruling is what follows from the answers about a reserved unit: that it passes, that it loses its reservation, or
// neither yet. A check that rejects the unit goes before one that would have the unit tried again.
type ruling struct {
	passes  bool
	reason  unit.Reason // why it loses its reservation; empty if it does not
	message string
	// retryAfter is as that of CheckAnswer. rejected: it is not tried again as it is. unasked: it waits for no back-off.
	retryAfter        time.Duration
	rejected, unasked bool
	// heldBack: it passes, and waits for other gangs of its group to pass theirs.
	heldBack bool
}

// rulingOn is for units in phase Reserved. They pass when all checks are ready that were asked, and all that their
// queue names. If these differ, or nobody can say what the queue names, quota is reserved again, and the checks are
// asked again.
func rulingOn(f *Facts) (v ruling) {
	if v = objection(f, "rejects the job", "has the job tried again later"); v.reason != "" {
		return v
	}
	if why := checksChanged(f); why != "" {
		return ruling{unasked: true, reason: unit.ReasonChecksChanged, message: why + "; quota is reserved again"}
	}
	if len(unready(f)) > 0 {
		return v
	}
	if c := f.Unit.Checks; c != nil && c.Conflict != "" {
		return ruling{reason: unit.ReasonCheckConflict, message: c.Conflict}
	}
	return ruling{passes: true}
}

// objection is what follows from checks that reject a unit or have it tried again, with the words for either.
func objection(f *Facts, rejects, retries string) (v ruling) {
	for _, c := range AdmissionChecks(f) {
		a, _ := f.Unit.Checks.To(c.Name)
		switch a.State {
		case unit.CheckRejected:
			return ruling{rejected: true, reason: unit.ReasonCheckRejected, message: said(a, rejects)}
		case unit.CheckRetry:
			if v.reason == "" {
				v.reason, v.message = unit.ReasonCheckRetry, said(a, retries)
			}
			v.retryAfter = max(v.retryAfter, a.RetryAfter)
		case unit.CheckPending, unit.CheckReady:
		}
	}
	return v
}

// unready are the checks of a unit that are not ready.
func unready(f *Facts) (out []queue.AdmissionCheck) {
	for _, c := range AdmissionChecks(f) {
		if a, _ := f.Unit.Checks.To(c.Name); a.State != unit.CheckReady {
			out = append(out, c)
		}
	}
	return out
}

// checksChanged is in words why the checks that a reserved unit was asked are not those that it has to pass; empty if
// they are. A check that was ready about the reservation has been passed, even if the queue does not name that check
// any more.
func checksChanged(f *Facts) string {
	if !f.QueueKnown {
		return fmt.Sprintf("queue %q does not exist, so nobody says which admission checks it asks for", f.Unit.Queue)
	}
	if fault := f.Queue.Fault; fault != nil {
		return fault.Message
	}
	checks := AdmissionChecks(f)
	if len(checks) > 0 && f.Unit.Sizes == nil && !f.Held.Covers(f.Unit.Request) {
		return fmt.Sprintf("the job asks for %s by now, which admission checks were not asked about", f.Unit.Request)
	}
	for _, c := range checks {
		if _, asked := f.Unit.Checks.To(c.Name); !asked {
			return fmt.Sprintf("admission check %q was not asked about this reservation", c.Name)
		}
	}
	if f.Unit.Checks == nil {
		return ""
	}
	for _, a := range f.Unit.Checks.Answers {
		if a.State != unit.CheckReady && !slices.ContainsFunc(checks,
			func(c queue.AdmissionCheck) bool { return c.Name == a.Name }) {
			return fmt.Sprintf("admission check %q was asked about this reservation, and is not any more", a.Name)
		}
	}
	return ""
}

// WaitsForChecks says in words which checks of a reserved unit have yet to answer.
func WaitsForChecks(f *Facts) string {
	var pending []string
	for _, c := range unready(f) {
		pending = append(pending, c.Name)
	}
	switch {
	case len(pending) > 0:
	case rulingNow(f).heldBack:
		return fmt.Sprintf("quota is reserved: %s; waits for the other jobs of its gang group to pass their admission checks",
			f.Held)
	default:
		return "passed its admission checks; that has yet to be written"
	}
	return fmt.Sprintf("quota is reserved: %s; waits for admission checks: %s", f.Held, unit.Quoted(pending))
}

// said is an answer in words.
func said(a unit.CheckAnswer, what string) string {
	text := fmt.Sprintf("admission check %q %s", a.Name, what)
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// reservedExpiry is the time-out of a reserved unit that waits for its checks. A unit that waits for checks of its gang
// group has as long as its own slowest check.
func reservedExpiry(f *Facts, heldBack bool) (x Expiry) {
	if heldBack {
		x.Timeout, x.Reason, x.OfGroup = slowest(AdmissionChecks(f)), unit.ReasonCheckTimeout, true
		if x.At = f.Unit.Admitted.Add(x.Timeout); x.Timeout <= 0 {
			return Expiry{}
		}
		return x
	}
	for _, c := range unready(f) {
		if c.Timeout > 0 {
			x = sooner(x, Expiry{At: f.Unit.Admitted.Add(c.Timeout), Reason: unit.ReasonCheckTimeout, Timeout: c.Timeout})
		}
	}
	return x
}

// slowest is the longest that one of the checks may take; zero if one of them has no timeout.
func slowest(checks []queue.AdmissionCheck) (longest time.Duration) {
	for _, c := range checks {
		if c.Timeout <= 0 {
			return 0
		}
		longest = max(longest, c.Timeout)
	}
	return longest
}

// withdrawal is the consequence of an answer that was taken back from a released unit: it was Ready, and is Retry or
// Rejected now. Other changes of an answer have no effect, so a unit runs on if its check disappears. Pods that nobody
// can remove stay, and so does their unit.
func withdrawal(f *Facts) (v ruling) {
	if f.Unit.Checks == nil || keepsPods(f) {
		return v
	}
	return objection(f, "takes back that the job may go, and rejects it",
		"takes back that the job may go, to try it again later")
}

// rulingNow is what follows from the answers about a unit that holds quota.
func rulingNow(f *Facts) (v ruling) {
	switch {
	case f.Unit.Phase == unit.PhaseReserved:
		v = rulingOn(f)
		v.heldBack = v.passes && !f.GangsPassed
		return v
	case f.Unit.Phase.Releases():
		return withdrawal(f)
	default:
		return v
	}
}
