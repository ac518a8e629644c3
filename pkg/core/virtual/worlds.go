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

package virtual

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Worlds begin with the same facts. They share what does not depend on the runs.
type Worlds struct {
	now    time.Time
	config admission.Config
	quotas []admission.Quota
	queues []queue.Spec
	// apart are the units that each world knows from its beginning, in the order of their keys. crowds have all others.
	apart  []*unit.Unit
	crowds [][]*unit.Unit
}

// crowd names what the core decides by about units that wait. It decides units of one crowd alike, the older one first.
type crowd struct {
	queue, quota, quotas, request, sizes string
	priority, maxPriority                int32
	nonPreemptible                       bool
}

// Of facts of a time are all worlds that go on from there.
func Of(f *Facts, now time.Time) *Worlds {
	ws := &Worlds{now: now, config: f.Config, queues: make([]queue.Spec, len(f.Queues))}
	ws.config.ExplainAfter = 100 * 365 * 24 * time.Hour // nobody is told
	ws.config.Rules = life.Config{Selects: f.Config.Rules.Selects}
	ws.config.MostAdmissions = mostAdmissions
	for i, q := range f.Queues {
		q.AdmissionChecks, q.Timeouts, q.Execution, q.HeartbeatTimeout = nil, nil, queue.ExecutionTimes{}, 0
		q.MostEvictions = 0
		ws.queues[i] = q
	}
	ws.part(f.Units)
	ws.quotas = withoutHolds(f.Quotas, ws.apart)
	return ws
}

// part the units into crowds, where it makes no difference to the core that it does not know all of one.
func (ws *Worlds) part(units []*unit.Unit) {
	simple, numbers := ws.simpleQueues(), map[crowd]int{}
	for _, u := range units {
		if !simple[u.Queue] || !isPlain(u, ws.now) {
			ws.apart = append(ws.apart, u)
			continue
		}
		c := crowd{
			queue: u.Queue, quota: u.Quota, quotas: u.Quotas, request: u.Request.Key(), priority: u.Priority,
			maxPriority: u.MaxPriority, nonPreemptible: u.NonPreemptible,
		}
		if u.Sizes != nil {
			c.sizes = u.Sizes.String()
		}
		number, known := numbers[c]
		if !known {
			number = len(ws.crowds)
			numbers[c], ws.crowds = number, append(ws.crowds, nil)
		}
		ws.crowds[number] = append(ws.crowds[number], u)
	}
	slices.SortFunc(ws.apart, func(a, b *unit.Unit) int { return strings.Compare(a.Key, b.Key) })
	for _, c := range ws.crowds {
		slices.SortFunc(c, func(a, b *unit.Unit) int {
			return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.UID, b.UID), strings.Compare(a.Key, b.Key))
		})
	}
	slices.SortFunc(ws.crowds, func(a, b []*unit.Unit) int { return strings.Compare(a[0].Key, b[0].Key) })
}

// simpleQueues have a line without bounds, in the order of a built-in policy.
func (ws *Worlds) simpleQueues() map[string]bool {
	simple, builtin := make(map[string]bool, len(ws.queues)), queue.Builtin()
	for i := range ws.queues {
		q := &ws.queues[i]
		simple[q.Name] = q.MaxPending < 0 && q.PerNamespace == nil && builtin[q.Policy] != nil &&
			ws.config.Policies[q.Policy] == nil && ws.config.Checks == nil
	}
	return simple
}

// isPlain says that a unit waits in its line, and for nothing else.
func isPlain(u *unit.Unit, now time.Time) bool {
	return transition.StageOf(u) == transition.Waiting && u.Active && u.GangGroup == "" && u.Preempts == "" &&
		u.Invalid == "" && u.Deactivate == nil && !u.RequeueAt.After(now) && !u.Adopting && !u.Misnamed && !u.Observed
}

// withoutHolds are quotas less the amounts that units hold, which a state adds.
func withoutHolds(quotas []admission.Quota, units []*unit.Unit) []admission.Quota {
	holds := map[string]*resources.Sum{}
	for _, u := range units {
		if transition.StageOf(u) == transition.Admitted {
			if holds[u.Quota] == nil {
				holds[u.Quota] = &resources.Sum{}
			}
			holds[u.Quota].Add(u.Wants())
		}
	}
	out := slices.Clone(quotas)
	for i := range out {
		q := &out[i]
		if sum := holds[q.Name]; sum != nil {
			q.Requested = q.Requested.Sub(sum.List())
		}
		q.Requested = q.Requested.Floor0()
	}
	return out
}

// Begin a world.
func (ws *Worlds) Begin(run Run, watcher Watcher) *World {
	w := &World{
		now: ws.now, run: run, watcher: watcher, ends: map[string]*event{}, state: admission.New(ws.config),
		events: ordered.NewDue(func(e *event) ordered.Moment { return e.at }, func(a, b *event) int {
			return a.number - b.number
		}),
		apart: ws.apart, crowds: ws.crowds, members: map[string]*members{},
	}
	for i := range ws.queues {
		w.state.UpsertQueue(w.now, ws.queues[i])
	}
	for i := range ws.quotas {
		w.state.SetQuota(w.now, ws.quotas[i])
	}
	return w
}

const (
	// mostAdmissions of one call of Decide. A state knows more units of each crowd than that, or all of them. So it never
	// decides without a unit that could be admitted.
	mostAdmissions = 8
	// mostMembers of a crowd that a state learns at a time, and mostUnits in one step.
	mostMembers = 4 * mostAdmissions
	mostUnits   = 1000
)

// members of a crowd that have not been admitted yet.
type members struct {
	// known to the state; last is one of them, and counts for the others. rest is what these ask for.
	known  int
	last   string
	others []*unit.Unit
	rest   resources.Sum
}

// gather tells the state of units that it does not know yet, up to a number. It says whether there are more.
func (w *World) gather() (more bool) {
	n := min(mostUnits, len(w.apart))
	for _, u := range w.apart[:n] {
		w.add(u)
		if transition.StageOf(u) == transition.Admitted {
			w.begin(u, u.Admitted)
		}
	}
	w.apart = w.apart[n:]
	for ; n < mostUnits && len(w.crowds) > 0; w.crowds = w.crowds[1:] {
		m := &members{others: w.crowds[0]}
		for _, u := range m.others {
			m.rest.Add(u.Request)
		}
		w.refill(m)
		n += m.known
	}
	return len(w.apart)+len(w.crowds) > 0
}

// admitted counts down the members of a crowd. A unit that is evicted later waits in addition to them.
func (w *World) admitted(key string) {
	if m := w.members[key]; m != nil {
		delete(w.members, key)
		if m.known--; m.known <= mostAdmissions {
			w.refill(m)
		}
	}
}

func (w *World) refill(m *members) {
	n := min(len(m.others), mostMembers-m.known)
	if n == 0 {
		return
	}
	w.state.StandFor(w.now, m.last, resources.List{})
	for _, u := range m.others[:n] {
		m.last, w.members[u.Key] = u.Key, m
		m.rest.Sub(u.Request)
		w.add(u)
	}
	m.known, m.others = m.known+n, m.others[n:]
	w.state.StandFor(w.now, m.last, m.rest.List())
}

// add a unit, without all that only its pods and checks would change. Its job is there to the end.
func (w *World) add(of *unit.Unit) {
	u := *of
	u.KindUnlisted, u.Expected, u.Checks, u.Said = false, unit.Expected{}, nil, nil
	u.TemplatesWritten, u.Heartbeat, u.MaximumExecution, u.ResizePending = false, time.Time{}, 0, 0
	if transition.StageOf(&u) == transition.Admitted {
		u.Phase, u.Ready, u.NotReadySince = unit.PhaseRunning, true, time.Time{}
	}
	if u.ConsumerManaged {
		w.state.SetConsumer(w.now, u.Consumer, true)
	}
	w.state.UpsertUnit(w.now, u)
}
