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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// tape is a random source made of the bytes of a fuzzed input; when they are used up it says zero.
type tape struct{ bytes []byte }

func (t *tape) n(below int) int {
	if len(t.bytes) == 0 {
		return 0
	}
	b := t.bytes[0]
	t.bytes = t.bytes[1:]
	return int(b) % below
}

func (t *tape) more() bool { return len(t.bytes) > 0 }

func pick[T any](t *tape, from ...T) T { return from[t.n(len(from))] }

func (t *tape) list() resources.List {
	m := map[string]int64{}
	for i, k := range []string{"cpu", "gpu"} {
		if v := t.n(8); v > i {
			m[k] = int64(v)
		}
	}
	return resources.FromMap(m)
}

// FuzzDecide: any sequence of calls leaves the core whole, and it admits what sort-and-greedy admits (I1, I2, I4, I5,
// I7). A byte of the input is one choice.
func FuzzDecide(f *testing.F) {
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 200 {
			t.Skip()
		}
		in := &tape{input}
		w := newWorld()
		for _, name := range levelNames {
			w.fuzzQuota(in, name, treeParents[name])
		}
		for in.more() {
			w.fuzzStep(in)
			if in.n(4) == 0 {
				w.decide(t)
			}
		}
		w.decide(t)
		for _, key := range w.keys() {
			w.deleteUnit(key)
		}
		for _, name := range levelNames {
			require.True(t, w.s.Holdings().Read(name).Outstanding().IsZero(), "what is gone holds nothing (I7)")
		}
		for _, q := range w.s.lines.byName {
			require.Empty(t, q.line.Groups())
		}
	})
}

func (w *world) fuzzQuota(in *tape, name, parent string) {
	q := Quota{Name: name, Parent: parent, Limit: in.list(), Max: in.list(), Min: in.list(), Used: in.list()}
	if in.n(2) == 0 {
		q.Limit = resources.FromMap(map[string]int64{"cpu": 14, "gpu": 9})
		q.Max = q.Limit
	}
	if name == "root" {
		q.Max, q.Min = resources.List{}, resources.List{}
	}
	w.putQuota(q)
}

func (w *world) fuzzUnit(in *tape) unit.Unit {
	i := in.n(16)
	u := unit.Unit{
		Key: fmt.Sprintf("ns/u%d", i), UID: fmt.Sprintf("uid-%d", i+16*in.n(2)), Queue: pick(in, "q1", "q2", "q3"),
		Quota: pick(in, leafNames...), Priority: int32(in.n(4)), Created: epoch.Add(time.Duration(in.n(4)) * time.Second),
		Request: in.list(), Pods: int64(in.n(4)) - 1, Active: in.n(16) > 0, NonPreemptible: in.n(3) == 0,
		Phase: pick(in, unit.PhaseEnqueued, unit.PhaseEnqueued, unit.PhaseEnqueued, unit.PhaseNone, unit.PhaseRunning,
			unit.PhaseSucceed,
			unit.PhaseTimeoutBackoff, unit.PhasePreempted, unit.PhaseSchedFailed),
	}
	if u.Phase.Holds() {
		u.Held, u.Attempts = in.list(), 1+int64(in.n(3))
	}
	if in.n(4) == 0 {
		u.Expected = unit.Expected{Pods: int64(in.n(4)), Each: in.list()}
	}
	if in.n(8) == 0 {
		u.RequeueAt = epoch.Add(time.Duration(in.n(60)) * time.Second)
	}
	if in.n(8) == 0 {
		u.Consumer = unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", UID: pick(in, "j1", "j2")}
		u.Consumer.Name = "j" + u.Consumer.UID
		u.ConsumerManaged, u.OwnedByConsumer = in.n(2) == 0, in.n(2) == 0
	}
	return u
}

func (w *world) fuzzStep(in *tape) {
	now := w.now
	key := fmt.Sprintf("ns/u%d", in.n(16))
	switch in.n(12) {
	case 0, 1, 2, 3:
		w.upsertUnit(w.fuzzUnit(in))
	case 4:
		w.deleteUnit(key)
	case 5:
		name := pick(in, levelNames...)
		w.fuzzQuota(in, name, treeParents[name])
	case 6:
		name := pick(in, levelNames[1:]...)
		if in.n(2) == 0 {
			w.fuzzQuota(in, name, pick(in, levelNames...))
			return
		}
		w.deleteQuota(name)
		w.do(func(s *State) { s.DeleteQuota(now, name) })
	case 7:
		w.putQueue(queue.Spec{Name: pick(in, "q1", "q2", "q3"),
			Policy:   pick(in, "Priority", "FIFO", "Block", "Intelligent", "Nonsense"),
			Priority: int32(in.n(2)), Threshold: 2, Held: in.n(8) == 0, MaxPending: int32(in.n(6)) - 1,
			MaxAdmitted: int32(in.n(5)) - 1})
	case 8:
		p := Pod{UID: pick(in, "p1", "p2"), Quota: pick(in, leafNames...), Request: in.list(),
			NonPreemptible: in.n(2) == 0, Assigned: in.n(3) > 0}
		if in.n(3) == 0 {
			w.deletePod(key, p.UID)
			return
		}
		w.setPod(key, p)
	case 9:
		c := unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", UID: pick(in, "j1", "j2")}
		c.Name = "j" + c.UID
		w.consumer(c, in.n(4) > 0)
	case 10:
		for _, key := range w.keys() {
			if u := w.units[key]; u.inFlight() {
				w.settleUnit(key, u.attempt, pick(in, transition.Confirmed, transition.Confirmed, transition.Refuted,
					transition.Refused, transition.Unknown))
			}
		}
	case 11:
		w.now = now.Add(time.Duration(in.n(90)) * time.Second)
	}
}

// FuzzPhase: an object has any phases, of any version and in any order, and writes have any outcome. The core writes
// only legal changes and no attempt twice, and takes nothing back without a cause (I3, I9).
func FuzzPhase(f *testing.F) {
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) > 400 {
			t.Skip()
		}
		liveThrough(t, &tape{input})
	})
}

// The same for histories that are drawn.
func TestPhaseHistories(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(rt *rapid.T) {
		liveThrough(effort.Plain(rt), &tape{rapid.SliceOfN(rapid.Byte(), 0, 20+effort.Steps(200)).Draw(rt, "history")})
	})
}

// liveThrough is the life of one unit.
func liveThrough(t require.TestingT, in *tape) {
	phases := append(unit.Phases(), "Levitating")
	now := epoch
	s := New(Config{RefusedBackoff: time.Second})
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	s.SetQuota(now, Quota{Name: "root", Limit: cpu(8)})
	s.SetQuota(now, Quota{Name: "team", Parent: "root", Limit: cpu(8), Max: cpu(8)})
	s.UpsertQueue(now, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	// object is the API object, as an API server would keep it; written are the attempts that were admitted.
	object := unit.Unit{
		Key: "ns/u", UID: "uid", Queue: "q", Quota: "team", Created: epoch, Request: cpu(3), Pods: 1, Active: true,
	}
	written := map[int64]bool{}
	for in.more() {
		switch in.n(4) {
		case 0: // somebody writes a phase
			object.Phase = pick(in, phases...)
			object.Held = resources.List{}
			if object.Phase.Holds() {
				object.Held = cpu(int64(in.n(5)))
			}
			object.Active = in.n(4) > 0
			s.UpsertUnit(now, object)
		case 1: // the watch repeats what there is
			s.UpsertUnit(now, object)
		case 2:
			now = now.Add(time.Second)
		case 3:
			plan := byKind(s.Decide(now))
			require.LessOrEqual(t, len(plan.Admit)+len(plan.Evict), 1)
			for _, a := range plan.Admit {
				require.True(t, a.Unit.Phase.CanBecome(unit.PhaseDequeued, unit.WriterScheduler) || a.Unit.Phase == "Levitating",
					"%q", a.Unit.Phase)
				require.Equal(t, a.Unit.Attempts+1, a.Attempt())
				object = applied(t, in, s, now, object, a, written)
			}
			for _, e := range plan.Evict {
				require.True(t, e.Unit.Phase.CanBecome(unit.PhaseEnqueued, unit.WriterScheduler), "%q", e.Unit.Phase)
				require.False(t, e.Unit.Active, "nothing else takes an admission back here")
				o := pick(in, transition.Confirmed, transition.Refuted, transition.Refused)
				if o == transition.Confirmed {
					object.Phase, object.Held = unit.PhaseEnqueued, resources.List{}
				}
				s.Settle(now, e.Unit.Key, e.Unit.Attempts, o)
			}
		}
		require.Empty(t, s.Audit().Ledger())
		require.Empty(t, s.Audit().Places())
	}
	s.UpsertUnit(now, object)
	require.Empty(t, s.Audit().Unit(object), "at rest the core agrees with the object (I8)")
}

// applied is what becomes of the write of an admission: applied or not, and told or not.
func applied(
	t require.TestingT, in *tape, s *State, now time.Time, object unit.Unit, a *transition.Admit, written map[int64]bool,
) unit.Unit {
	switch in.n(4) {
	case 0:
		s.Settle(now, object.Key, a.Attempt(), transition.Refuted)
		return object
	case 1:
		s.Settle(now, object.Key, a.Attempt(), transition.Refused)
		return object
	case 2: // unknown, then the same patch once more
		s.Settle(now, object.Key, a.Attempt(), transition.Unknown)
		require.True(t, s.InFlight(object.Key), "an unknown outcome keeps the reservation")
	}
	require.False(t, written[a.Attempt()], "attempt %d was admitted before (I3)", a.Attempt())
	written[a.Attempt()] = true
	object.Phase, object.Held, object.Attempts = unit.PhaseDequeued, a.Request, a.Attempt()
	s.Settle(now, object.Key, a.Attempt(), transition.Confirmed)
	return object
}
