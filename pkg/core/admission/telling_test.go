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
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// crowd has n units of one queue in line, of which none fits.
func crowd(cfg Config, n int) *State {
	s := New(cfg)
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(1000)})
	s.SetQuota(epoch, Quota{Name: "team", Parent: "root", Limit: cpu(4), Max: cpu(4), Used: cpu(4)})
	s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
	for i := range n {
		s.UpsertUnit(epoch, unit.Unit{
			Key: fmt.Sprintf("ns/u%06d", n-i), UID: fmt.Sprint(i), Queue: "q", Quota: "team", Pods: 1, Active: true,
			Request: cpu(1), Created: epoch.Add(time.Duration(i-n) * time.Second),
		})
	}
	s.Decide(epoch)
	return s
}

// A reason that was not written is sent again, and one that the object has already is not.
func TestTheObjectIsTheTruthAboutWhatWasTold(t *testing.T) {
	s := crowd(Config{ExplainEvery: 10 * time.Second}, 2)
	told, _ := s.Telling().Next(epoch, 10)
	require.Len(t, told, 2)
	s.Telling().Failed(epoch, "ns/u000001")
	require.Equal(t, epoch.Add(10*time.Second), s.Telling().At(epoch))
	again, _ := s.Telling().Next(epoch.Add(10*time.Second), 10)
	require.Len(t, again, 1)
	require.Equal(t, told[1].Saying, again[0].Saying)
	require.Equal(t, "ns/u000001", again[0].Unit.Key)

	// A process that starts with the objects writes nothing (I8, I12).
	other := crowd(Config{}, 0)
	for i := range told {
		u := *told[i].Unit
		u.Said = &told[i].Saying
		other.UpsertUnit(epoch, u)
	}
	other.Decide(epoch)
	list, next := other.Telling().Next(epoch, 10)
	require.Empty(t, list)
	require.Zero(t, next)

	// Somebody wrote something else.
	u := *told[0].Unit
	u.Said = &unit.Saying{Reason: "Gossip", Message: "it is the weather"}
	other.UpsertUnit(epoch, u)
	list, _ = other.Telling().Next(epoch.Add(time.Minute), 10)
	require.Len(t, list, 1)
	require.Equal(t, told[0].Saying, list[0].Saying)
}

// After any events and lost writes, enough calls whose writes arrive give every pending unit the present reason of its
// group. No unit gets the same reason twice in a row, or reasons in quick succession, and then nothing more is written
// (I12).
func TestEveryUnitThatWaitsIsToldWhatIsTrue(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.populate(t)
		w.decide(t)
		last := map[*record]time.Time{}
		most := rapid.IntRange(1, 3).Draw(t, "told at once")
		for range rapid.IntRange(1, effort.Steps(60)).Draw(t, "steps") {
			w.step(t)
			w.decide(t)
			// Units without a written reason do not count.
			maps.DeleteFunc(last, func(u *record, _ time.Time) bool { return u.listener.SaidAt().IsZero() })
			if rapid.IntRange(0, 3).Draw(t, "tells") == 0 {
				w.tell(t, last, most, rapid.IntRange(0, 9).Draw(t, "lost") == 0)
			}
		}
		for range 4 * len(w.units) {
			w.now = w.now.Add(30 * time.Second)
			w.decide(t)
			w.tell(t, last, most, false)
		}
		w.checkTold(effort.Plain(t))
	})
}

// tell has the state tell, and writes it into the objects at once, or never if it is lost.
func (w *world) tell(t *rapid.T, last map[*record]time.Time, most int, lost bool) {
	list, _ := w.s.Telling().Next(w.now, most)
	require.LessOrEqual(effort.Plain(t), len(list), most)
	for i := range list {
		key := list[i].Unit.Key
		u, ok := w.s.roster.units[key]
		require.True(effort.Plain(t), ok)
		if u.spec.Said != nil {
			require.NotEqual(effort.Plain(t), *u.spec.Said, list[i].Saying, "%s was told so", key)
		}
		if at, before := last[u]; before {
			require.False(effort.Plain(t), w.now.Before(at.Add(30*time.Second)), "%s was told something at %s", key, at)
		}
		last[u] = w.now
		if lost {
			w.s.Telling().Failed(w.now, key)
			continue
		}
		object := w.units[key].Unit
		object.Said = &list[i].Saying
		w.upsertUnit(object)
		w.units[key].Said = object.Said
	}
}

// checkTold compares with the present truth, computed as in Explain, from the results of the last pass.
func (w *world) checkTold(t require.TestingT) {
	for key, u := range w.s.roster.units {
		if !u.waits() && (!u.isAdmitted() || u.group == nil) {
			continue
		}
		found := unit.Finding{Reason: u.parked}
		if u.group != nil {
			f := findings{why: newWhy(w.s), of: map[*group]unit.Finding{}}
			found = f.at(u.group)
		}
		if untold(found.Reason) {
			continue
		}
		require.NotNil(t, u.listener.Said(), "%s was told nothing; it is %v", key, found)
		require.Equal(t, found.Reason, u.listener.Said().Reason, key)
		if found.Level != "" {
			require.Contains(t, u.listener.Said().Message, fmt.Sprintf("%q", found.Level), key)
			if found.Resource != resources.Jobs {
				require.Contains(t, u.listener.Said().Message, found.Resource, key)
			}
		}
	}
}

// A backlog of 100,000 is told in an hour and a half at twenty a second, each unit once; then nothing is.
func TestABacklogIsTold(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a second")
	}
	const units, perSecond = 100_000, 20
	s := crowd(Config{ExplainAfter: 5 * time.Second, ExplainEvery: 10 * time.Second}, units)
	now, total := epoch.Add(5*time.Second), 0
	for ; !s.Telling().At(now).IsZero(); now = now.Add(time.Second / perSecond) {
		told, _ := s.Telling().Next(now, 1)
		total += len(told)
	}
	require.Equal(t, units, total)
	require.Less(t, now.Sub(epoch), 90*time.Minute)
	for range 100 {
		now = now.Add(time.Minute)
		s.Decide(now)
		told, _ := s.Telling().Next(now, perSecond)
		require.Empty(t, told)
	}
}

// BenchmarkTell: the cost of finding the next unit to write, in a group whose reason has changed.
func BenchmarkTell(b *testing.B) {
	for _, units := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(units), func(b *testing.B) {
			s, now, held := crowd(Config{}, units), epoch, false
			for b.Loop() {
				told, _ := s.Telling().Next(now, 1)
				if len(told) > 0 {
					continue
				}
				b.StopTimer()
				held, now = !held, now.Add(time.Second)
				s.UpsertQueue(now, queue.Spec{Name: "q", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1, Held: held})
				s.Decide(now)
				b.StartTimer()
			}
		})
	}
}
