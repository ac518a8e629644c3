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
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// cluster has one quota of 10 cpu.
func cluster(policy string) *admission.State {
	s := admission.New(admission.Config{})
	s.SetQuota(epoch, admission.Quota{Name: "root", Limit: cpu(10), Max: cpu(10)})
	s.SetQuota(epoch, admission.Quota{Name: "q", Parent: "root", Limit: cpu(10), Max: cpu(10)})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: policy, MaxPending: -1, MaxAdmitted: -1})
	return s
}

// job of a namespace. Where it runs for some time already it holds what it asks for.
func job(key string, amount int64, limit, ran time.Duration) unit.Unit {
	u := unit.Unit{
		Key: key, UID: key, Queue: "q", Quota: "q", Active: true, Phase: unit.PhaseEnqueued, Pods: 1, Request: cpu(amount),
		Created: epoch, Stated: unit.Stated{MaximumExecution: limit},
	}
	if ran > 0 {
		u.Phase, u.Attempts, u.Admitted = unit.PhaseRunning, 1, epoch.Add(-ran)
		u.SetHeld(u.Request, 1)
	}
	return u
}

func factsOf(s *admission.State) *virtual.Facts { return virtual.FactsOf(s, admission.Config{}, epoch) }

func question(facts *virtual.Facts, past ...Ended) *Question {
	return &Question{Facts: facts, Now: epoch, Runs: NewRuns(past), Stop: func(int) bool { return false }}
}

// about a unit. The answer has no pointer to it.
func about(q *Question, key string) Answer {
	a := *Ask(q, unitIn(q.Facts, key))
	a.Unit = nil
	return a
}

func unitIn(f *virtual.Facts, key string) *unit.Unit {
	i := slices.IndexFunc(f.Units, func(u *unit.Unit) bool { return u.Key == key })
	return f.Units[i]
}

func ask(s *admission.State, key string, past ...Ended) Answer {
	return about(question(factsOf(s), past...), key)
}

func TestAnswers(t *testing.T) {
	past := func(n int, limit time.Duration, ran ...time.Duration) (list []Ended) {
		for range n {
			for _, d := range ran {
				list = append(list, Ended{User: "ns", Queue: "q", Limit: limit, Ran: d})
			}
		}
		return list
	}
	for name, c := range map[string]struct {
		units []unit.Unit
		past  []Ended
		want  Answer
	}{
		"it fits": {want: Answer{About: epoch, Latest: epoch, Draws: Draws}},
		"a limit": {
			units: []unit.Unit{job("ns/a", 8, time.Hour, 10*time.Minute)},
			want: Answer{
				About: epoch.Add(50 * time.Minute), Latest: epoch.Add(50 * time.Minute), Draws: Draws, Limits: 1,
			},
		},
		"beyond its limit": {
			units: []unit.Unit{job("ns/a", 8, time.Hour, 2*time.Hour)},
			want:  Answer{About: epoch.Add(time.Second), Latest: epoch.Add(time.Second), Draws: Draws, Limits: 1},
		},
		"runs that take half of their limit": {
			units: []unit.Unit{job("ns/a", 8, time.Hour, 10*time.Minute)},
			past:  past(5, time.Hour, 30*time.Minute),
			want: Answer{
				About: epoch.Add(20 * time.Minute), Latest: epoch.Add(50 * time.Minute), Draws: Draws, Limits: 1,
			},
		},
		"past runs without limits": {
			units: []unit.Unit{job("ns/a", 8, 0, time.Minute)},
			past:  past(5, 0, 10*time.Minute),
			want: Answer{
				About: epoch.Add(9 * time.Minute), Latest: epoch.Add(9 * time.Minute), Draws: Draws, Past: 1,
				Raw: epoch.Add(9 * time.Minute),
			},
		},
		"longer than all of them": {
			units: []unit.Unit{job("ns/a", 8, 0, time.Hour)},
			past:  past(5, 0, 10*time.Minute),
			want: Answer{
				About: epoch.Add(time.Hour), Latest: epoch.Add(time.Hour), Raw: epoch.Add(time.Hour), Draws: Draws, Past: 1,
			},
		},
		"neither": {
			units: []unit.Unit{job("ns/a", 8, 0, time.Hour)},
			want:  Answer{Draws: Draws, Endless: []string{"ns/a"}},
		},
		"one without either that it need not wait for": {
			units: []unit.Unit{job("ns/a", 2, 0, time.Hour), job("ns/b", 8, time.Hour, time.Minute)},
			want: Answer{
				About: epoch.Add(59 * time.Minute), Latest: epoch.Add(59 * time.Minute), Draws: Draws, Limits: 1,
				Endless: []string{"ns/a"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster("Priority")
			for _, u := range append(c.units, job("ns/x", 5, time.Hour, 0)) {
				s.UpsertUnit(epoch, u)
			}
			require.Equal(t, c.want, ask(s, "ns/x", c.past...))
		})
	}
}

// A bound that rests on past runs is stretched, and one of limits is not.
func TestAStretchedBound(t *testing.T) {
	twice := func(limit time.Duration) Answer {
		s := cluster("Priority")
		s.UpsertUnit(epoch, job("ns/a", 8, limit, time.Minute))
		s.UpsertUnit(epoch, job("ns/x", 5, time.Hour, 0))
		past := Ended{User: "ns", Queue: "q", Limit: limit, Ran: 10 * time.Minute}
		q := question(factsOf(s), past, past, past)
		q.Stretch = func(*unit.Unit) float64 { return 2 }
		return about(q, "ns/x")
	}
	raw := epoch.Add(9 * time.Minute)
	require.Equal(t, Answer{About: raw, Latest: epoch.Add(20 * time.Minute), Raw: raw, Draws: Draws, Past: 1}, twice(0))
	require.Equal(t,
		Answer{About: raw, Latest: epoch.Add(19 * time.Minute), Draws: Draws, Limits: 1}, twice(20*time.Minute))
}

// Checks take their time before the run of a unit, and before the admission of the one that is asked about.
func TestChecksTakeTime(t *testing.T) {
	with := func(phase unit.Phase, since time.Duration, took ...time.Duration) Answer {
		s := cluster("Priority")
		s.UpsertQueue(epoch, queue.Spec{
			Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1,
			AdmissionChecks: []queue.AdmissionCheck{{Name: "nodes"}},
		})
		a := job("ns/a", 8, time.Hour, since)
		a.Phase = phase
		s.UpsertUnit(epoch, a)
		s.UpsertUnit(epoch, job("ns/x", 5, time.Hour, 0))
		q := question(factsOf(s))
		q.Runs.Checked("q", took...)
		return about(q, "ns/x")
	}
	times := func(about, latest, checks time.Duration) Answer {
		return Answer{
			About: epoch.Add(about), Latest: epoch.Add(latest), Checks: checks, Draws: Draws, Limits: 1,
		}
	}
	minutes := []time.Duration{2 * time.Minute, 3 * time.Minute, 9 * time.Minute}
	require.Equal(t, times(58*time.Minute, 64*time.Minute, 3*time.Minute),
		with(unit.PhaseRunning, 5*time.Minute, minutes...))
	require.Equal(t, times(67*time.Minute, 73*time.Minute, 3*time.Minute),
		with(unit.PhaseReserved, 5*time.Minute, minutes...), "nine minutes are longer than five")
	require.Equal(t, times(55*time.Minute, 55*time.Minute, 0),
		with(unit.PhaseRunning, 5*time.Minute, minutes[:2]...), "two say nothing")
}

// A limit that a job names counts from when its pods were ready.
func TestALimitThatCountsFromReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		ready time.Time
		most  time.Duration
		want  time.Duration
	}{
		"not yet":           {want: time.Hour},
		"for some time":     {ready: epoch.Add(-10 * time.Minute), want: 50 * time.Minute},
		"a bound of queues": {ready: epoch.Add(-10 * time.Minute), most: 2 * time.Hour, want: 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := cluster("Priority")
			s.UpsertQueue(epoch, queue.Spec{
				Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1, Execution: queue.ExecutionTimes{Most: c.most},
			})
			a := job("ns/a", 8, time.Hour, 30*time.Minute)
			a.ConsumerManaged, a.Consumer, a.RanSince = true, unit.Consumer{Kind: "Job", Name: "a"}, c.ready
			s.UpsertUnit(epoch, a)
			s.UpsertUnit(epoch, job("ns/x", 5, time.Hour, 0))
			require.Equal(t, epoch.Add(c.want), ask(s, "ns/x").Latest)
		})
	}
}

// All units of an answer have the same draws, so each is what it is alone.
func TestFirst(t *testing.T) {
	s := cluster("Priority")
	s.UpsertUnit(epoch, job("ns/a", 8, 0, time.Minute))
	s.UpsertUnit(epoch, job("other/b", 2, 0, time.Minute))
	for i := range 9 {
		namespace := []string{"ns", "other"}[i%2]
		s.UpsertUnit(epoch, job(fmt.Sprintf("%s/%d", namespace, i), int64(1+i%5), 0, 0))
	}
	var past []Ended
	for i := range 20 {
		past = append(past, Ended{User: "ns", Queue: "q", Ran: time.Duration(1+i) * time.Minute})
	}
	q := question(factsOf(s), past...)
	first := First(q, 3, func(u *unit.Unit) bool { return unit.InNamespace(u.Key, "ns") })
	require.Len(t, first, 3)
	for i := range first {
		a := first[i]
		require.True(t, i == 0 || !a.Latest.Before(first[i-1].Latest))
		key := a.Unit.Key
		a.Unit = nil
		require.Equal(t, about(q, key), a)
	}
	require.Empty(t, First(q, 3, func(*unit.Unit) bool { return false }))
}

// Where it takes too long the first units have answers, and the others none.
func TestFirstStops(t *testing.T) {
	s := cluster("FIFO")
	for i := range 100 {
		s.UpsertUnit(epoch, job(fmt.Sprintf("ns/%03d", i), 10, time.Hour, 0))
	}
	q, steps := question(factsOf(s)), 0
	q.Stop = func(worlds int) bool {
		steps++
		return steps > 10*(worlds+1)
	}
	first := First(q, 20, func(*unit.Unit) bool { return true })
	require.Len(t, first, 11)
	for i, a := range first {
		require.Equal(t, epoch.Add(time.Duration(i)*time.Hour), a.Latest)
		require.Equal(t, i < 9, a.Draws > 0, "%d: %v", i, a)
	}
}

// Where it takes too long the answer says how far it came.
func TestStop(t *testing.T) {
	s := cluster("FIFO")
	for i := range 100 {
		s.UpsertUnit(epoch, job(fmt.Sprintf("ns/%03d", i), 10, time.Hour, 0))
	}
	s.UpsertUnit(epoch, job("ns/x", 10, time.Hour, 0))
	steps := 0
	q := question(factsOf(s))
	q.Stop = func(worlds int) bool {
		steps++
		return steps > 10*(worlds+1)
	}
	require.Equal(t, Answer{NotBefore: epoch.Add(11 * time.Hour), Limits: 11}, about(q, "ns/x"))
}

// A world of many units that differ is not begun at once, so that even that can be stopped.
func TestStopBeforeTheBeginning(t *testing.T) {
	s := cluster("Priority")
	for i := range 3000 {
		u := job(fmt.Sprintf("ns/%04d", i), 10, time.Hour, 0)
		u.Priority = -int32(i)
		s.UpsertUnit(epoch, u)
	}
	for most, want := range []Answer{
		{NotBefore: epoch}, {NotBefore: epoch}, {NotBefore: epoch.Add(time.Hour), Limits: 1},
	} {
		q, steps := question(factsOf(s)), 0
		q.Stop = func(worlds int) bool {
			steps++
			return steps > most || worlds > 0
		}
		require.Equal(t, want, about(q, "ns/2999"), most)
	}
}

// A world in which nothing ends takes its time, too: it is made of all facts.
func TestStopBetweenWorlds(t *testing.T) {
	s := cluster("FIFO")
	s.UpsertUnit(epoch, job("ns/a", 8, 0, time.Hour))
	s.UpsertUnit(epoch, job("ns/x", 10, time.Hour, 0))
	q := question(factsOf(s))
	q.Stop = func(worlds int) bool { return worlds > 3 }
	require.Equal(t, Answer{Draws: 3, Endless: []string{"ns/a"}}, about(q, "ns/x"))
}

// A unit behind another makes that not later, and the order of facts is of no meaning. Under Priority a smaller one can
// make it later: nobody claims what that takes.
func TestAUnitBehindDelaysNobody(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		policy, least := rapid.SampledFrom([]string{"FIFO", "Block", "Priority"}).Draw(t, "policy"), int64(1)
		if policy == "Priority" {
			least = 10
		}
		s := cluster(policy)
		var past []Ended
		for range rapid.IntRange(0, 20).Draw(t, "past") {
			past = append(past, Ended{User: "ns", Queue: "q", Limit: time.Hour,
				Ran: time.Duration(rapid.IntRange(1, 60).Draw(t, "minutes")) * time.Minute})
		}
		used := int64(0)
		for i := range rapid.IntRange(1, 20).Draw(t, "units") {
			amount, ran := rapid.Int64Range(1, 10).Draw(t, "amount"), time.Duration(0)
			if used+amount <= 10 {
				used, ran = used+amount, time.Minute
			}
			s.UpsertUnit(epoch, job(fmt.Sprintf("ns/%02d", i), amount, time.Hour, ran))
		}
		x := job("ns/x", rapid.Int64Range(1, 10).Draw(t, "mine"), time.Hour, 0)
		x.Created = epoch.Add(time.Second)
		s.UpsertUnit(epoch, x)
		before := ask(s, "ns/x", past...)
		y := job("ns/y", rapid.Int64Range(least, 10).Draw(t, "behind"), time.Hour, 0)
		y.Created = epoch.Add(2 * time.Second)
		s.UpsertUnit(epoch, y)
		facts := factsOf(s)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(facts.Units), func(i, j int) {
			facts.Units[i], facts.Units[j] = facts.Units[j], facts.Units[i]
		})
		after := about(question(facts, past...), "ns/x")
		require.False(effort.Plain(t), after.About.After(before.About), "%v, and %v before", after, before)
		require.False(effort.Plain(t), after.Latest.After(before.Latest), "%v, and %v before", after, before)
	})
}
