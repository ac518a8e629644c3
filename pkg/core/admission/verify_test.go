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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// placed has a unit that is admitted, one that is being admitted, two in line, one that is parked and one that is over.
func placed(t *testing.T) (*State, map[string]unit.Unit) {
	s := New(Config{RefusedBackoff: time.Second})
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(100)})
	s.SetQuota(epoch, Quota{Name: "team", Parent: "root", Limit: cpu(9), Max: cpu(20)})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	units := map[string]unit.Unit{}
	for name, change := range map[string]func(*unit.Unit){
		"admitted": func(u *unit.Unit) { u.Phase, u.Attempts, u.Held = unit.PhaseRunning, 1, cpu(4) },
		"flying":   func(u *unit.Unit) { u.Priority = 9 },
		"first":    func(u *unit.Unit) { u.Priority, u.Request = 8, cpu(5) },
		"second":   func(u *unit.Unit) { u.Priority, u.Request = 7, cpu(6) },
		"parked":   func(u *unit.Unit) { u.Active = false },
		"over":     func(u *unit.Unit) { u.Phase = unit.PhaseSucceed },
	} {
		u := unit.Unit{Key: "ns/" + name, UID: name, Queue: "q", Quota: "team", Created: epoch, Request: cpu(4), Pods: 1,
			Active: true, Phase: unit.PhaseEnqueued}
		change(&u)
		units[name] = u
		s.UpsertUnit(epoch, u)
	}
	require.Equal(t, []string{"ns/flying"}, keysOfPlan(byKind(s.Decide(epoch))))
	require.Empty(t, s.Audit().Places())
	return s, units
}

func TestVerifyPlacesFindsWhatIsOutOfPlace(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *State)
		want  Mismatch
	}{
		"in no line": {
			func(s *State) { s.lines.part(s.roster.units["ns/first"]) },
			Mismatch{"ns/first", "place", "in no line", "in line or parked"},
		},
		"in line and parked": {
			func(s *State) { s.roster.units["ns/first"].parked = unit.ReasonInactive },
			Mismatch{"ns/first", "place", "in line and parked", "in line or parked"},
		},
		"admitted and still in line": {
			func(s *State) { s.roster.join(epoch, s.roster.units["ns/admitted"]) },
			Mismatch{"ns/admitted", "place", "in line", "in no line"},
		},
		"over and still holding": {
			func(s *State) { s.roster.hold(s.roster.units["ns/over"], s.roster.units["ns/over"].spec.Request) },
			Mismatch{"ns/over", "holds", "cpu: 4m", "nothing"},
		},
		"out of order": {
			func(s *State) { s.roster.units["ns/first"].spec.Priority = 1 },
			Mismatch{"ns/second", "order in q", "behind ns/first", "ahead of it"},
		},
		"in a line of another queue": {
			func(s *State) {
				other := s.lines.queue("other").line
				s.roster.units["ns/first"].group, _ = other.Join(newRecord(), backlog.Key{})
			},
			Mismatch{"ns/first", "queue", "q", "another, or none"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := placed(t)
			c.spoil(s)
			require.Contains(t, s.Audit().Places(), c.want)
		})
	}
}

func TestVerifyFindsASumThatIsWrong(t *testing.T) {
	s, _ := placed(t)
	require.Empty(t, s.Audit().Ledger())
	amount := resources.FromMap(map[string]int64{"cpu": 1})
	s.roster.holdings.Hold("ns/ghost", holding.Place{Quota: "team"}, amount, false, unit.Expected{})
	require.Equal(t, []ledger.Difference{
		{Level: "root", Resource: "cpu", Ledger: 9, Rebuilt: 8},
		{Level: "root", Resource: resources.Jobs, Ledger: 3, Rebuilt: 2},
		{Level: "team", Resource: "cpu", Ledger: 9, Rebuilt: 8},
		{Level: "team", Resource: resources.Jobs, Ledger: 3, Rebuilt: 2},
	}, s.Audit().Ledger())
}

func TestVerifyUnitComparesWithTheObject(t *testing.T) {
	s, units := placed(t)
	for name, u := range units {
		require.Empty(t, s.Audit().Unit(u), name)
	}
	object := units["admitted"]
	object.Phase, object.Held = unit.PhaseEnqueued, resources.List{}
	require.Equal(t, []Mismatch{{"ns/admitted", "stage", "admitted", "waiting"}}, s.Audit().Unit(object))
	object = units["admitted"]
	object.Held = resources.FromMap(map[string]int64{"cpu": 7})
	require.Equal(t, []Mismatch{{"ns/admitted", "holds", "cpu: 4m", "cpu: 7m"}}, s.Audit().Unit(object))
	object = units["first"]
	object.Attempts, object.Request = 3, resources.List{}
	require.Equal(t, []Mismatch{
		{"ns/first", "attempts", "0", "3"}, {"ns/first", "request", "cpu: 5m", ""},
	}, s.Audit().Unit(object))
	flying := units["flying"]
	flying.Phase = unit.PhaseRunning
	require.Empty(t, s.Audit().Unit(flying), "its write is under way")
	s.Settle(epoch, "ns/flying", 1, transition.Confirmed)
	require.Empty(t, s.Audit().Unit(units["flying"]), "the object is older than the answer to its write")
	object = units["flying"]
	object.Attempts = 1
	was := []Mismatch{{"ns/flying", "stage", "admitted", "waiting"}}
	require.Equal(t, was, s.Audit().Unit(object), "it was taken back")
	object = units["over"]
	object.Phase = unit.PhaseRunning
	require.Equal(t, []Mismatch{{"ns/over", "stage", "over", "admitted"}}, s.Audit().Unit(object))
}
