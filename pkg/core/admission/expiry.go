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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// A reservation that nothing uses ends: the job is suspended again and waits for a while before it is tried once more,
// longer each time. Otherwise a job that can never run, on purpose or not, would keep its quota from all others for
// ever. A unit whose consumer nobody watches is not known to have pods made: a queue may ask for a heartbeat. Pods on
// nodes keep a unit of which nobody can take them away: one without consumer, or of a job that cannot be suspended. A
// pod that waits keeps nothing: the gate has it wait on. A job that has run for as long as it may, or was tried as
// often as it may, is not tried again before a person says so.

// strayPatience is for how long an admitted unit may have pods that nothing lets go before it says so.
const strayPatience = time.Minute

// expiry is when a unit loses its reservation if nothing shows by then that it is used, and why.
type expiry struct {
	at      time.Time
	reason  unit.Reason
	timeout time.Duration
	// ofGroup: it is others of its gang group that took too long.
	ofGroup bool
	// movesTo is the quota that a unit names in place of the one that it holds quota in.
	movesTo string
}

// expiryOf is zero for a unit that never loses it, and for one of which nobody knows when it was admitted.
func (r *roster) expiryOf(now time.Time, u *record) (x expiry) {
	if u.stage != stageAdmitted || u.spec.Quarantined || !u.holding || u.spec.Admitted.IsZero() {
		return x
	}
	switch {
	case u.spec.Phase == unit.PhaseReserved:
		return r.reservedExpiry(u)
	case u.held.IsZero():
	case u.spec.ConsumerManaged:
		x = sooner(r.unusedExpiry(u), r.notReadyExpiry(u))
	default:
		x = r.heartbeatExpiry(now, u)
	}
	return sooner(x, r.executionExpiry(u))
}

// heartbeatExpiry is that of a unit whose consumer nobody watches. Pods on nodes show that it is used: those that
// nobody owns make such a unit. A heartbeat later than the next one has to be is none: otherwise one would do for ever.
func (r *roster) heartbeatExpiry(now time.Time, u *record) (x expiry) {
	timeout := u.queue.spec.HeartbeatTimeout
	if _, assigned := r.ledger.Pods(u.spec.Key); timeout <= 0 || assigned > 0 {
		return x
	}
	last := later(u.spec.Admitted, u.left)
	if beat := u.spec.Heartbeat; !beat.After(now.Add(timeout)) {
		last = later(last, beat)
	}
	return expiry{at: last.Add(timeout), reason: unit.ReasonNoHeartbeat, timeout: timeout}
}

// unusedExpiry is that of a unit of a managed job, none of whose pods is on a node.
func (r *roster) unusedExpiry(u *record) (x expiry) {
	if u.spec.Phase != unit.PhaseDequeued && u.spec.Phase != unit.PhaseSchedSucceed {
		return x
	}
	pods, assigned := r.ledger.Pods(u.spec.Key)
	x.timeout, x.reason = r.timeoutsOf(u).Idle, unit.ReasonIdleReservation
	if pods > 0 {
		x.timeout, x.reason = r.timeoutsOf(u).Unbound, unit.ReasonUnschedulable
	}
	if x.timeout <= 0 || assigned > 0 {
		return expiry{}
	}
	x.at = later(u.spec.Admitted, u.left).Add(x.timeout)
	return x
}

// notReadyExpiry is that of a unit of a managed job, not all of whose pods are ready. Pods of a job that cannot be
// suspended would only come back.
func (r *roster) notReadyExpiry(u *record) (x expiry) {
	since := u.spec.Admitted
	x.timeout, x.reason = r.timeoutsOf(u).PodsReady, unit.ReasonPodsReadyTimeout
	if !u.spec.NotReadySince.IsZero() {
		since = u.spec.NotReadySince
		x.timeout, x.reason = r.timeoutsOf(u).Recovery, unit.ReasonRecoveryTimeout
	}
	if x.timeout <= 0 || u.spec.Ready || u.spec.Unsuspendable || !u.spec.Phase.Releases() {
		return expiry{}
	}
	x.at = since.Add(x.timeout)
	return x
}

// executionExpiry is when a unit has run for as long as it may, with the time of its earlier runs. It counts from the
// admission: a later time is not known of every job. A unit whose job is gone holds nothing and has no such time.
func (r *roster) executionExpiry(u *record) (x expiry) {
	if !u.holding || !u.spec.Phase.Releases() {
		return x
	}
	most := r.executionTime(u)
	if most <= 0 {
		return x
	}
	return expiry{at: u.spec.Admitted.Add(most - u.spec.Executed), reason: unit.ReasonMaximumExecutionTime, timeout: most}
}

// notice is when a unit says what is wrong with it that it goes on with: it names another quota, or pods of it wait
// which nothing lets go, since they are charged to another quota than it was admitted with, or their job is marked as
// suspended.
func (r *roster) notice(u *record) (x expiry) {
	if u.stage != stageAdmitted || u.spec.Quarantined || !u.holding || u.spec.Admitted.IsZero() ||
		!u.spec.Phase.Releases() {
		return x
	}
	if u.spec.MovesTo != "" {
		return expiry{at: u.spec.Admitted, reason: unit.ReasonQuotaChanged, movesTo: u.spec.MovesTo}
	}
	x = expiry{at: u.spec.Admitted.Add(strayPatience), timeout: strayPatience}
	switch elsewhere, held := r.ledger.Astray(u.spec.Key); {
	case elsewhere > 0:
		x.reason = unit.ReasonPodsChargedElsewhere
	case held > 0:
		x.reason = unit.ReasonPodsHeldBySuspension
	default:
		return expiry{}
	}
	return x
}

// executionTime is for how long a unit may run in all; zero means for ever.
func (r *roster) executionTime(u *record) time.Duration {
	if r.keepsPods(u) {
		return 0
	}
	bounds, most := u.queue.spec.Execution, u.spec.MaximumExecution
	if most <= 0 {
		most = bounds.Default
	}
	if bounds.Most > 0 && (most <= 0 || most > bounds.Most) {
		most = bounds.Most
	}
	return most
}

// timeoutsOf a unit are those of its queue, if it has its own.
func (r *roster) timeoutsOf(u *record) *queue.Timeouts {
	if own := u.queue.spec.Timeouts; own != nil {
		return own
	}
	return &r.cfg.Timeouts
}

// sooner is the expiry that comes first, of those that come.
func sooner(a, b expiry) expiry {
	if a.at.IsZero() || !b.at.IsZero() && b.at.Before(a.at) {
		return b
	}
	return a
}

// over says that it is time.
func (x *expiry) over(now time.Time) bool { return !x.at.IsZero() && !now.Before(x.at) }

func (x *expiry) message() string {
	switch x.reason {
	case unit.ReasonUnschedulable:
		return fmt.Sprintf("no pod of the job came on a node within %s of its admission; events of its pods say why",
			x.timeout)
	case unit.ReasonNoHeartbeat:
		return fmt.Sprintf("nobody renewed the heartbeat of the unit for %s, which its queue asks for", x.timeout)
	case unit.ReasonPodsReadyTimeout:
		return fmt.Sprintf("not all pods of the job were ready within %s of its admission", x.timeout)
	case unit.ReasonRecoveryTimeout:
		return fmt.Sprintf("pods of the job stopped being ready, and not all were ready again within %s", x.timeout)
	case unit.ReasonCheckTimeout:
		if x.ofGroup {
			return fmt.Sprintf("the other jobs of its gang group did not pass their admission checks within %s", x.timeout)
		}
		return fmt.Sprintf("an admission check did not answer within %s", x.timeout)
	case unit.ReasonPodsChargedElsewhere:
		return "pods of the job are charged to another quota than the one that it was admitted with, " +
			"and are not scheduled: " +
			"the quota label of their template is missing or names another quota"
	case unit.ReasonPodsHeldBySuspension:
		return "pods of the job are not scheduled: the job is marked as suspended; " +
			"the controller removes its own mark as it resumes the job, and no other"
	case unit.ReasonQuotaChanged:
		return fmt.Sprintf("the job names quota %q now; the unit stays in the quota that it was admitted with while pods "+
			"of it are on nodes, and then waits for the other one", x.movesTo)
	case unit.ReasonMaximumExecutionTime:
		return fmt.Sprintf("the job has run for %s, which is as long as it may in all its runs together", x.timeout)
	default:
		return fmt.Sprintf("the job made no pod within %s of its admission; its own events may say why", x.timeout)
	}
}

// keepsPods says that a unit has pods on nodes that cannot be taken away: those that nobody owns, whose unit has no
// consumer, and those of a job that cannot be suspended.
func (r *roster) keepsPods(u *record) bool {
	if u.spec.Consumer != (unit.Consumer{}) && !u.spec.Unsuspendable {
		return false
	}
	_, assigned := r.ledger.Pods(u.spec.Key)
	return assigned > 0
}

// expiryChanged says whether an admitted unit may have to be placed again after its pods have changed.
func (r *roster) expiryChanged(now time.Time, u *record) bool {
	x, n := r.expiryOf(now, u), r.notice(u)
	switch u.overdue.reason {
	case "":
		return ordered.MomentOf(sooner(x, n).at) != u.retryAt
	case n.reason:
		return ordered.MomentOf(x.at) != u.retryAt
	default:
		return true
	}
}

// expire has the unit lose what nothing uses, if its time is over still. After it has run for as long as it may it is
// to be made inactive.
func (r *roster) expire(now time.Time, u *record) (d Evict, expired bool) {
	x := r.expiryOf(now, u)
	if !x.over(now) {
		return d, false
	}
	d = Evict{Unit: u.spec, Reason: x.reason, Message: x.message()}
	if x.reason == unit.ReasonMaximumExecutionTime {
		d.Deactivate = x.reason
	} else {
		r.putOff(now, u, &d, 0)
	}
	return d, true
}

// outstay is why a unit has to go that nothing but its own doing, or the want of it, takes quota from.
func (r *roster) outstay(now time.Time, u *record) Evict {
	d, goes := r.refuseChecked(now, u)
	if !goes {
		d, _ = r.expire(now, u)
	}
	return d
}

// putOff has a unit wait after its eviction: for so long or, if that is zero, for longer each time. After it was tried
// as often as its queue allows it is to be made inactive.
func (r *roster) putOff(now time.Time, u *record, d *Evict, wait time.Duration) {
	n, most := u.spec.Requeues+1, u.queue.spec.MostEvictions
	if most > 0 && n >= most {
		d.Deactivate = unit.ReasonRequeueLimitReached
		d.Message += fmt.Sprintf("; it lost its admission so %d times in a row, and its queue allows no more", n)
		return
	}
	d.RequeueAt, d.Requeues = now.Add(wait), n
	if wait <= 0 {
		d.RequeueAt = backlog.RequeueAt(now, u.spec.UID, n)
	}
}

// executed is for how long the job of a unit has run in all when it loses its admission; zero where no time bounds it,
// and once it is over, so that it may run for as long again if somebody makes it active.
func (r *roster) executed(now time.Time, u *record, d *Evict) time.Duration {
	if d.Deactivate != "" || !u.holding || u.spec.Admitted.IsZero() || r.executionTime(u) <= 0 {
		return 0
	}
	if !u.spec.Phase.Releases() {
		return u.spec.Executed // it has not begun to run again
	}
	return u.spec.Executed + max(now.Sub(u.spec.Admitted), 0)
}

// podsLeft notes when the last pod of a unit left its node. A new process does not know it, and counts from the
// admission.
func (r *roster) podsLeft(now time.Time, u *record, assignedBefore int) {
	if _, assigned := r.ledger.Pods(u.spec.Key); assignedBefore > 0 && assigned == 0 && u.holding {
		u.own().left = now
	}
}
