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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// An unused reservation ends: the job is suspended again and waits before the next attempt, longer each time. Otherwise
// a job that can never run would keep its quota from all others forever. If nobody watches the consumer of a unit,
// nobody knows whether it makes pods, so a queue can ask for a heartbeat. Pods on nodes keep their unit if nobody can
// remove them: the unit has no consumer, or its job cannot be suspended. A pod that waits keeps nothing, because the
// gate goes on holding it. A job that has used up its time or its attempts waits until a person allows another attempt.

// strayPatience is for how long an admitted unit may have pods that nothing lets go before it says so.
const strayPatience = time.Minute

// settling is how long a new process knows less than there is. After an outage the controller has to report first which
// pods are ready, and the scheduler has to place those that came during the outage.
const settling = 5 * time.Minute

// Expiry is when a unit loses its reservation if nothing shows by then that it is used, and why.
type Expiry struct {
	At      time.Time
	Reason  unit.Reason
	Timeout time.Duration
	// OfGroup: it is others of its gang group that took too long.
	OfGroup bool
	// MovesTo is the quota that a unit names in place of the one that it holds quota in.
	MovesTo string
}

// expiryOf is zero for a unit that never loses it, and for one of which nobody knows when it was admitted.
func expiryOf(f *Facts, heldBack bool) (x Expiry) {
	if f.Unit.Quarantined || f.Unit.Observed || !f.Holds || f.Unit.Admitted.IsZero() {
		return x
	}
	switch {
	case f.Unit.Phase == unit.PhaseReserved:
		return reservedExpiry(f, heldBack)
	case f.Held.IsZero():
	case f.Unit.ConsumerManaged:
		x = sooner(settled(f, unusedExpiry(f)), settled(f, notReadyExpiry(f)))
	default:
		x = heartbeatExpiry(f)
	}
	return sooner(x, executionExpiry(f))
}

// heartbeatExpiry is the time-out of a unit whose consumer nobody watches. Pods on nodes show that the unit is used. A
// heartbeat further in the future than the timeout does not count: otherwise a single one would be enough forever.
func heartbeatExpiry(f *Facts) (x Expiry) {
	timeout := f.Queue.HeartbeatTimeout
	if timeout <= 0 || f.Pods.Assigned > 0 {
		return x
	}
	last := ordered.Later(f.Unit.Admitted, f.Left)
	if beat := f.Unit.Heartbeat; !beat.After(f.Now.Add(timeout)) {
		last = ordered.Later(last, beat)
	}
	return Expiry{At: last.Add(timeout), Reason: unit.ReasonNoHeartbeat, Timeout: timeout}
}

// unusedExpiry is that of a unit of a managed job, none of whose pods is on a node.
func unusedExpiry(f *Facts) (x Expiry) {
	if f.Unit.Phase != unit.PhaseDequeued && f.Unit.Phase != unit.PhaseSchedSucceed {
		return x
	}
	x.Timeout, x.Reason = timeoutsOf(f).Idle, unit.ReasonIdleReservation
	if f.Pods.All > 0 {
		x.Timeout, x.Reason = timeoutsOf(f).Unbound, unit.ReasonUnschedulable
	}
	if x.Timeout <= 0 || f.Pods.Assigned > 0 {
		return Expiry{}
	}
	x.At = ordered.Later(f.Unit.Admitted, f.Left).Add(x.Timeout)
	return x
}

// settled puts a time-out that waits for pods off while the process settles. If nobody placed pods or reported them for
// longer than the time-out, jobs that run would be evicted otherwise.
func settled(f *Facts, x Expiry) Expiry {
	if begun := f.Config.Begun; !x.At.IsZero() && !begun.IsZero() {
		x.At = ordered.Later(x.At, begun.Add(min(x.Timeout, settling)))
	}
	return x
}

// notReadyExpiry is that of a unit of a managed job, not all of whose pods are ready. Pods of a job that cannot be
// suspended would only come back.
func notReadyExpiry(f *Facts) (x Expiry) {
	since := f.Unit.Admitted
	x.Timeout, x.Reason = timeoutsOf(f).PodsReady, unit.ReasonPodsReadyTimeout
	if !f.Unit.NotReadySince.IsZero() {
		since = f.Unit.NotReadySince
		x.Timeout, x.Reason = timeoutsOf(f).Recovery, unit.ReasonRecoveryTimeout
	}
	if x.Timeout <= 0 || f.Unit.Ready || f.Unit.Unsuspendable || !f.Unit.Phase.Releases() {
		return Expiry{}
	}
	x.At = since.Add(x.Timeout)
	return x
}

// executionExpiry is when a unit has run for as long as it may, with the time of its earlier runs. A unit whose job is
// gone holds nothing and has no such time.
func executionExpiry(f *Facts) (x Expiry) {
	if !f.Holds || !f.Unit.Phase.Releases() {
		return x
	}
	most, since := executionTime(f), runsSince(f)
	if most <= 0 || since.IsZero() {
		return x
	}
	return Expiry{At: since.Add(most - f.Unit.Executed), Reason: unit.ReasonMaximumExecutionTime, Timeout: most}
}

// runsSince is from when the present run of a unit counts; zero if it does not count yet. A time that the job names
// counts once its pods were ready. If the queue bounds the time of its jobs, it counts from admission: otherwise a job
// whose pods never become ready would run without end. So does the time of a unit of which nobody reports its pods.
func runsSince(f *Facts) time.Time {
	if f.Unit.MaximumExecution <= 0 || f.Queue.Execution.Most > 0 || !f.Unit.ConsumerManaged {
		return f.Unit.Admitted
	}
	if f.Unit.RanSince.IsZero() {
		return time.Time{}
	}
	return ordered.Later(f.Unit.Admitted, f.Unit.RanSince)
}

// notice is the time when a unit reports a fault with which it continues. Either it names another quota, or nothing
// releases its pods. In that case the pods are charged to another quota than that of the admission, or their job is
// marked as suspended.
func notice(f *Facts) (x Expiry) {
	if f.Unit.Quarantined || f.Unit.Observed || !f.Holds || f.Unit.Admitted.IsZero() ||
		!f.Unit.Phase.Releases() {
		return x
	}
	if f.Unit.Leaves() {
		return Expiry{At: f.Unit.Admitted, Reason: unit.ReasonQuotaChanged, MovesTo: f.Unit.MovesTo}
	}
	x = Expiry{At: f.Unit.Admitted.Add(strayPatience), Timeout: strayPatience}
	switch {
	case f.Pods.Elsewhere > 0:
		x.Reason = unit.ReasonPodsChargedElsewhere
	case f.Pods.Suspended > 0:
		x.Reason = unit.ReasonPodsHeldBySuspension
	default:
		return Expiry{}
	}
	return x
}

// executionTime is for how long a unit may run in all; zero is no bound.
func executionTime(f *Facts) time.Duration {
	if keepsPods(f) {
		return 0
	}
	return f.Queue.Execution.Limit(f.Unit.MaximumExecution)
}

// timeoutsOf a unit are those of its queue, if it has its own.
func timeoutsOf(f *Facts) *queue.Timeouts {
	if own := f.Queue.Timeouts; own != nil {
		return own
	}
	return &f.Config.Timeouts
}

// sooner is the expiry that comes first, of those that come.
func sooner(a, b Expiry) Expiry {
	if a.At.IsZero() || !b.At.IsZero() && b.At.Before(a.At) {
		return b
	}
	return a
}

// Over says that it is time.
func (x *Expiry) Over(now time.Time) bool { return !x.At.IsZero() && !now.Before(x.At) }

// Message is the sentence of the reason.
func (x *Expiry) Message() string {
	switch x.Reason {
	case unit.ReasonUnschedulable:
		return fmt.Sprintf("no pod of the job came on a node within %s of its admission; events of its pods say why",
			x.Timeout)
	case unit.ReasonNoHeartbeat:
		return fmt.Sprintf("nobody renewed the heartbeat of the unit for %s, which its queue asks for", x.Timeout)
	case unit.ReasonPodsReadyTimeout:
		return fmt.Sprintf("not all pods of the job were ready within %s of its admission", x.Timeout)
	case unit.ReasonRecoveryTimeout:
		return fmt.Sprintf("pods of the job stopped being ready, and not all were ready again within %s", x.Timeout)
	case unit.ReasonCheckTimeout:
		if x.OfGroup {
			return fmt.Sprintf("the other jobs of its gang group did not pass their admission checks within %s", x.Timeout)
		}
		return fmt.Sprintf("an admission check did not answer within %s", x.Timeout)
	case unit.ReasonPodsChargedElsewhere:
		return "pods of the job are charged to another quota than the one that it was admitted with, " +
			"and are not scheduled: " +
			"the quota label of their template is missing or names another quota"
	case unit.ReasonPodsHeldBySuspension:
		return "pods of the job are not scheduled: the job is marked as suspended; " +
			"the controller removes its own mark as it resumes the job, and no other"
	case unit.ReasonQuotaChanged:
		return fmt.Sprintf("the job names quota %q now; the unit stays in the quota that it was admitted with while pods "+
			"of it are on nodes, and then waits for the other one", x.MovesTo)
	case unit.ReasonMaximumExecutionTime:
		return fmt.Sprintf("the job has run for %s, which is as long as it may in all its runs together", x.Timeout)
	default:
		return fmt.Sprintf("the job made no pod within %s of its admission; its own events may say why", x.Timeout)
	}
}

// ExpiryOf is when a unit loses its reservation if it goes on as it is, and why; zero for never.
func ExpiryOf(f *Facts) Expiry {
	v := rulingNow(f)
	return expiryOf(f, v.heldBack)
}

// RunsUntil is when a unit has run for as long as it may; zero for never. Pods of a unit without a job that could be
// suspended have no such time.
func RunsUntil(f *Facts) time.Time {
	if f.Unit.Admitted.IsZero() || f.Unit.Unsuspendable || f.Unit.Observed || (f.Unit.Consumer == unit.Consumer{}) {
		return time.Time{}
	}
	x := executionExpiry(f)
	return x.At
}
