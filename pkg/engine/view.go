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

package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// View answers questions about the state. It is valid only within the function that Ask calls.
type View struct{ e *Engine }

// QueueInfo describes one queue. A queue that units name and that does not exist is described as well.
type QueueInfo struct {
	Name     string
	Exists   bool
	Policy   string
	Priority int32
	Held     bool
	// Pending units wait, Parked ones cannot be admitted as they are, Admitted ones hold quota.
	Pending, Parked, Admitted int
}

// UnitInfo describes one unit.
type UnitInfo struct {
	Key, Queue, Quota string
	Phase             admission.Phase
	Priority          int32
	// Explanation says why the unit waits, where it is in its queue, and all that it lacks.
	admission.Explanation
	// Requested by the unit; Held while it is admitted, of which Outstanding is not in assigned pods yet.
	Requested, Held, Outstanding resources.List
	// Writing: a decision about the unit is in flight.
	Writing bool
}

// Leading says whether this process decides.
func (v View) Leading() bool { return v.e.leading }

// RequestAudit is AuditSoon for anybody: no more than once a minute. It returns how long to wait before asking again,
// zero if an audit is made.
func (v View) RequestAudit() time.Duration {
	return v.e.audits.request(v.e.opts.Clock.Now())
}

// LastAudit is the result of the last audit, nil before there is one.
func (v View) LastAudit() *Audit { return v.e.LastAudit() }

// Queues lists all queues by name.
func (v View) Queues() []QueueInfo {
	byName := map[string]*QueueInfo{}
	for name, q := range v.e.queues {
		byName[name] = &QueueInfo{
			Name: name, Exists: true, Policy: q.spec.Policy, Priority: q.spec.Priority, Held: q.spec.Held,
		}
		if q.class != "" {
			byName[name].Priority = v.e.classes.priorityOf(q.class)
		}
	}
	for name, c := range v.countsByQueue() {
		if byName[name] == nil {
			if c.Pending+c.Parked+c.Admitted == 0 {
				continue
			}
			byName[name] = &QueueInfo{Name: name}
		}
		q := byName[name]
		q.Pending, q.Parked, q.Admitted = c.Pending, c.Parked, c.Admitted
	}
	out := make([]QueueInfo, 0, len(byName))
	for _, q := range byName {
		out = append(out, *q)
	}
	slices.SortFunc(out, func(a, b QueueInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Waiting lists n units of a queue in its order, after the first skip ones.
func (v View) Waiting(queue string, skip, n int) []admission.Waiting {
	first := v.e.core.read().First(queue, skip+n)
	return first[min(skip, len(first)):]
}

// Unit describes the unit with this key (namespace/name).
func (v View) Unit(key string) (UnitInfo, bool) {
	rec := v.e.units.get(key)
	if rec == nil {
		return UnitInfo{}, false
	}
	info := UnitInfo{
		Key: key, Queue: rec.queue, Quota: rec.quota, Phase: rec.object.phase,
		Priority: rec.priority, Requested: rec.object.request, Writing: rec.flight != nil,
	}
	info.Explanation, _ = v.e.core.read().Explain(key)
	if rec.object.phase.Holds() {
		info.Held = rec.object.holds()
		info.Outstanding = info.Held.Sub(v.e.pods.assigned(rec).Mask(info.Held)).Floor0()
	}
	return info, true
}

func (v View) countsByQueue() map[string]admission.QueueCounts {
	counts := map[string]admission.QueueCounts{}
	for _, c := range v.e.core.read().Counts() {
		sum := counts[c.Queue]
		sum.Pending += c.Pending
		sum.Admitted += c.Admitted
		sum.Parked += c.Parked
		counts[c.Queue] = sum
	}
	return counts
}
