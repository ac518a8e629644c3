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

package forecast

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Cause is why the latest time of an answer is later than that of one before.
type Cause string

// The causes.
const (
	// UnitChanged: priority, queue, quota or request of the unit is another.
	UnitChanged Cause = "UnitChanged"
	// ArrivalAhead: more units are ahead. They arrived, came back, or were moved there.
	ArrivalAhead Cause = "ArrivalAhead"
	// QuotaChanged: a quota on the path of the unit was closed or moved, or a bound of it fell.
	QuotaChanged Cause = "QuotaChanged"
	// CapacityChanged: the total of the cluster fell.
	CapacityChanged Cause = "CapacityChanged"
	// HolderBeyondItsLimit: a unit holds quota for longer than its time limit.
	HolderBeyondItsLimit Cause = "HolderBeyondItsLimit"
	// Other causes leave no trace in the facts.
	Other Cause = "Other"
)

// Grounds are the facts that say why an answer differs from one before.
type Grounds struct {
	unit     *unit.Unit
	position int
	// path of the unit, its quota first.
	path []admission.Quota
	// overdue: a unit is beyond its limit.
	overdue bool
}

// GroundsOf an answer about a unit, which has a position in its queue.
func GroundsOf(f *virtual.Facts, now time.Time, u *unit.Unit, position int) *Grounds {
	g := &Grounds{unit: u, position: position}
	quotas := make(map[string]*admission.Quota, len(f.Quotas))
	for i := range f.Quotas {
		quotas[f.Quotas[i].Name] = &f.Quotas[i]
	}
	for q := quotas[u.Quota]; q != nil && len(g.path) < len(quotas); q = quotas[q.Parent] {
		g.path = append(g.path, *q)
	}
	queues := make(map[string]*queue.Spec, len(f.Queues))
	for i := range f.Queues {
		queues[f.Queues[i].Name] = &f.Queues[i]
	}
	for _, other := range f.Units {
		limit := limitOf(other, queues[other.Queue])
		if limit > 0 && transition.StageOf(other) == transition.Admitted &&
			now.Sub(limited(other, queues[other.Queue], other.Admitted, now)) > limit-other.Executed {
			g.overdue = true
			break
		}
	}
	return g
}

// Cause is why an answer with these grounds is later than one with those before.
func (g *Grounds) Cause(before *Grounds) Cause {
	u, was := g.unit, before.unit
	switch {
	case u.Priority != was.Priority || u.Queue != was.Queue || u.Quota != was.Quota || !u.Request.Equal(was.Request):
		return UnitChanged
	case g.position > before.position:
		return ArrivalAhead
	case len(g.path) != len(before.path):
		return QuotaChanged
	}
	for i := range g.path {
		q, was := &g.path[i], &before.path[i]
		switch less := fell(q.Max, was.Max) || fell(q.Limit, was.Limit); {
		case less && q.Parent == "":
			return CapacityChanged
		case less, q.Name != was.Name, q.Closed && !was.Closed, fell(q.Min, was.Min):
			return QuotaChanged
		}
	}
	if g.overdue {
		return HolderBeyondItsLimit
	}
	return Other
}

// fell says that a bound is lower than it was. A new bound counts as lower.
func fell(now, was resources.List) bool {
	for _, it := range now.Items() {
		if amount, bounded := was.Get(it.Name); !bounded || it.Amount < amount {
			return true
		}
	}
	return false
}
