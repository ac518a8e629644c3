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

package sim

import (
	"fmt"
	"strings"
	"time"
)

// Lease is the timing of leader election.
type Lease struct{ Duration, RenewDeadline, RetryPeriod time.Duration }

// ShippedLease is that of the shipped configuration of the scheduler; StockLease is what kube-scheduler does by
// default.
var (
	ShippedLease = Lease{20 * time.Second, 6 * time.Second, 2 * time.Second}
	StockLease   = Lease{15 * time.Second, 10 * time.Second, 2 * time.Second}
)

// String is how a plan writes it.
func (l Lease) String() string {
	return fmt.Sprintf("%s/%s/%s", l.Duration, l.RenewDeadline, l.RetryPeriod)
}

func parseLease(text string, otherwise Lease) Lease {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return otherwise
	}
	l := Lease{}
	for i, into := range []*time.Duration{&l.Duration, &l.RenewDeadline, &l.RetryPeriod} {
		d, err := time.ParseDuration(parts[i])
		if err != nil {
			return otherwise
		}
		*into = d
	}
	return l
}

// lease is the object by which replicas agree who leads. Version changes with each write.
type lease struct {
	holder  *replica
	version int64
}

// elector is client-go's LeaderElector in one process. After a renewal it waits a retry period, and then tries for the
// renew deadline. So it leads for up to their sum after its last answer.
type elector struct {
	observed   int64
	observedAt time.Time
	round      time.Time // when the present tries to renew began
}

func (r *replica) elect() {
	w, e := r.world, &r.elector
	next := w.plan.Lease.RetryPeriod
	switch {
	case r.leading:
		if r.renew() {
			return
		}
		if w.loop.now.Sub(e.round) >= w.plan.Lease.RenewDeadline {
			r.crash() // the process of a leader that cannot renew ends
			w.countFault("lease lost")
			w.restartLater(r.name)
			return
		}
	case r.read() != nil:
	default:
		if e.observed != w.lease.version {
			e.observed, e.observedAt = w.lease.version, w.loop.now
		}
		if w.lease.holder == nil || w.variants != nil && w.variants.Usurp ||
			!w.loop.now.Before(e.observedAt.Add(w.plan.Lease.Duration)) {
			w.lease.version++
			w.lease.holder = r
			r.leading = true
			e.round = w.loop.now.Add(w.plan.Lease.RetryPeriod)
			w.failovers++
			r.lead()
		}
		next += r.dice.between(0, 400*time.Millisecond)
	}
	r.later(next, r.elect)
}

// renew writes the lease. The answer may come late; only then the leader knows. It says whether an answer is on its
// way.
func (r *replica) renew() bool {
	w, e := r.world, &r.elector
	usurped := w.lease.holder != r && (w.variants == nil || !w.variants.Usurp)
	if r.read() != nil || usurped || !w.healed && w.loop.now.Before(w.noRenew[r.name]) {
		return false
	}
	w.lease.version++
	back := time.Duration(0)
	if w.slowLease(r.process) {
		back = r.dice.between(0, w.plan.Lease.RenewDeadline-w.loop.now.Sub(e.round))
		w.countFault("slow lease")
	}
	r.later(back, func() {
		e.round = w.loop.now.Add(w.plan.Lease.RetryPeriod)
		r.later(w.plan.Lease.RetryPeriod, r.elect)
	})
	return true
}
