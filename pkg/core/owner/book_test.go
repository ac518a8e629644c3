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

package owner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type testUnit struct{ is Candidate }

func (u *testUnit) Candidate() Candidate { return u.is }

func jobOf(name, uid string) unit.Consumer {
	return unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: name, UID: uid}
}

func unitOf(key string, c unit.Consumer, managed bool) *testUnit {
	return &testUnit{Candidate{
		Key: "ns/" + key, Namespace: "ns", UID: "uid-" + key, Created: epoch, Consumer: c,
		Managed: managed, Standing: Waiting,
	}}
}

func winner(b *Book[*testUnit], c unit.Consumer, managed bool) string {
	u, ok := b.Winner(&Candidate{Namespace: "ns", Consumer: c, Managed: managed})
	if !ok {
		return ""
	}
	return u.is.Key
}

func TestElection(t *testing.T) {
	for name, c := range map[string]struct{ better, worse func(*Candidate) }{
		"admitted before admitting": {func(c *Candidate) { c.Standing = Admitted },
			func(c *Candidate) { c.Standing = Admitting }},
		"admitting before its own": {func(c *Candidate) { c.Standing = Admitting }, func(c *Candidate) { c.Owned = true }},
		"its own before an older one": {func(c *Candidate) { c.Owned = true },
			func(c *Candidate) { c.Created = epoch.Add(-time.Hour) }},
		"the older one":            {func(c *Candidate) { c.Created = epoch.Add(-time.Hour) }, func(*Candidate) {}},
		"of the same age by UID":   {func(c *Candidate) { c.UID = "1" }, func(c *Candidate) { c.UID = "2" }},
		"one that can be admitted": {func(*Candidate) {}, func(c *Candidate) { c.Standing, c.Owned = Unfit, true }},
		"of one namespace, not others": {func(*Candidate) {},
			func(c *Candidate) { c.Namespace, c.Standing = "other", Admitted }},
		"of one kind, not others": {func(*Candidate) {},
			func(c *Candidate) { c.Consumer.Kind, c.Standing = "Foo.v1.x", Admitted }},
	} {
		t.Run(name, func(t *testing.T) {
			for _, managed := range []bool{true, false} {
				b := NewBook[*testUnit]()
				worse, better := unitOf("worse", jobOf("j", "1"), managed), unitOf("better", jobOf("j", "1"), managed)
				c.worse(&worse.is)
				c.better(&better.is)
				b.Add(worse)
				b.Add(better)
				require.Equal(t, "ns/better", winner(b, jobOf("j", "1"), managed))
				b.Remove(better)
				require.NotEqual(t, "ns/better", winner(b, jobOf("j", "1"), managed))
				b.Remove(worse)
				require.Zero(t, b.Len(), "nothing is left")
			}
		})
	}
}

// A unit can name a managed job by its UID and a wrong name. It is no rival of the unit with the right name.
func TestAnotherNameIsAnotherJob(t *testing.T) {
	b := NewBook[*testUnit]()
	right, wrong := unitOf("right", jobOf("j", "1"), true), unitOf("wrong", jobOf("k", "1"), true)
	wrong.is.Owned, wrong.is.Created = true, epoch.Add(-time.Hour)
	b.Add(wrong)
	b.Add(right)
	require.Equal(t, "ns/right", winner(b, jobOf("j", "1"), true))
	require.Equal(t, "ns/wrong", winner(b, jobOf("k", "1"), true))
	b.SetLive(jobOf("j", "1"), true)
	found, message := b.Check(&wrong.is)
	require.Equal(t, Another, found)
	require.Equal(t, `consumerRef names Job.v1.batch "k", but uid 1 is of Job.v1.batch "j"`, message)
}

// A job for which another unit stands is news, once. Under a name that is not its own nobody stands for a live job.
func TestContest(t *testing.T) {
	b := NewBook[*testUnit]()
	job := jobOf("j", "1")
	first, second := unitOf("first", job, true), unitOf("second", job, true)
	first.is.Created = epoch.Add(-time.Hour)
	wrong := unitOf("wrong", jobOf("k", "1"), true)
	add := func(u *testUnit) []*testUnit { return b.Contest(&u.is, func() { b.Add(u) }) }
	require.Equal(t, []*testUnit{second}, add(second))
	require.Equal(t, []unit.Consumer{job}, b.Elections())
	require.Equal(t, []*testUnit{second, first}, add(first))
	require.Equal(t, []unit.Consumer{job}, b.Elections())
	require.Empty(t, b.Contest(&second.is, func() { b.Remove(second) }))
	require.Empty(t, b.Elections(), "the same unit stands for it")

	b.SetLive(job, true)
	require.Equal(t, []unit.Consumer{job}, b.Elections(), "it came")
	require.Equal(t, []*testUnit{wrong}, add(wrong))
	require.Empty(t, b.Elections())
	for _, name := range []string{"j", "k"} {
		u, ok := b.StandsFor(jobOf(name, "1"), true)
		require.True(t, ok)
		require.Equal(t, first, u)
	}
}

// Knowledge about a job outlives a change of its only unit.
func TestChangeKeepsWhatIsKnown(t *testing.T) {
	b := NewBook[*testUnit]()
	u := unitOf("j", jobOf("j", "1"), false)
	b.Add(u)
	require.Equal(t, 1, b.Len(), "a job; of its name nothing is known")
	b.SetLive(jobOf("j", "1"), false)
	b.Change(u, func() { u.is.Managed = true })
	found, _ := b.Check(&u.is)
	require.Equal(t, Gone, found)
	require.Equal(t, 2, b.Len(), "the job and its name")
	b.Remove(u)
	require.Zero(t, b.Len())
}

// A name has one object: where another one is live under it, the former one is not.
func TestAnotherJobOfTheName(t *testing.T) {
	b := NewBook[*testUnit]()
	u := unitOf("j", jobOf("j", "1"), true)
	b.Add(u)
	b.SetLive(jobOf("j", "1"), true)
	require.True(t, b.IsLive(jobOf("j", "1")))
	b.SetLive(jobOf("j", "2"), true)
	require.False(t, b.IsLive(jobOf("j", "1")))
	require.True(t, b.IsLive(jobOf("j", "2")))
	found, message := b.Check(&u.is)
	require.Equal(t, Another, found)
	require.Equal(t, `Job.v1.batch "j" has uid 2, not 1`, message)
}

func TestTheOlderUnitIsBefore(t *testing.T) {
	a, b := unitOf("a", jobOf("j", "1"), true).is, unitOf("b", jobOf("j", "1"), true).is
	require.Negative(t, compare(&a, &b))
	require.Positive(t, compare(&b, &a))
	require.Zero(t, compare(&a, &a))
}

func TestLiveness(t *testing.T) {
	b := NewBook[*testUnit]()
	u := unitOf("j", jobOf("j", "1"), true)
	b.Add(u)
	check := func(want Liveness) {
		t.Helper()
		found, message := b.Check(&u.is)
		require.Equal(t, want, found, message)
	}
	check(NotSeen)
	require.Equal(t, []*testUnit{u}, b.SetLive(jobOf("j", "1"), true))
	check(Live)
	require.True(t, b.IsLive(jobOf("j", "1")))
	require.Empty(t, b.SetLive(jobOf("j", "1"), true), "no news")
	b.Change(u, func() { u.is.Owned = true })
	check(Live)
	require.Equal(t, []*testUnit{u}, b.SetLive(jobOf("j", "1"), false))
	check(Gone)
	b.Change(u, func() { u.is.Owned = false })
	check(Gone)
	require.Equal(t, []*testUnit{u}, b.SetLive(jobOf("j", "2"), true), "another job of the name")
	check(Another)
	b.SetLive(jobOf("j", "2"), false)
	require.False(t, b.IsLive(jobOf("j", "2")))
	b.Remove(u)
	require.Zero(t, b.Len())
}

// The election equals looking at all units of a job, whatever they become.
func TestElectionEqualsSorting(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		b, units := NewBook[*testUnit](), map[string]*testUnit{}
		draw := func(key string) Candidate {
			u := unitOf(key, jobOf("j", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "uid")), rapid.Bool().Draw(t, "managed"))
			u.is.Consumer.Name = rapid.SampledFrom([]string{"j", "k"}).Draw(t, "name")
			u.is.Owned = rapid.Bool().Draw(t, "owned")
			u.is.Standing = Standing(rapid.IntRange(int(Unfit), int(Admitted)).Draw(t, "standing"))
			u.is.Created = epoch.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second)
			return u.is
		}
		for range rapid.IntRange(0, effort.Steps(40)).Draw(t, "steps") {
			key := fmt.Sprint("u", rapid.IntRange(0, 5).Draw(t, "unit"))
			u, there := units[key]
			switch {
			case !there:
				u = &testUnit{draw(key)}
				units[key] = u
				b.Add(u)
			case rapid.IntRange(0, 2).Draw(t, "remove") == 0:
				b.Remove(u)
				delete(units, key)
			case rapid.Bool().Draw(t, "moved"):
				u.is.Standing = Standing(rapid.IntRange(int(Unfit), int(Admitted)).Draw(t, "next"))
				b.Moved(u)
			default:
				b.Change(u, func() { u.is = draw(key) })
			}
		}
		for _, c := range []unit.Consumer{jobOf("j", "1"), jobOf("k", "1"), jobOf("j", "2"), jobOf("k", "2")} {
			for _, managed := range []bool{true, false} {
				of := Candidate{Namespace: "ns", Consumer: c, Managed: managed}
				var same []Candidate
				for _, u := range units {
					if x := u.is; x.Standing != Unfit && x.Consumer.UID == c.UID && x.jobName() == of.jobName() {
						same = append(same, x)
					}
				}
				slices.SortFunc(same, func(a, b Candidate) int { return compare(&a, &b) })
				want := ""
				if len(same) > 0 {
					want = same[0].Key
				}
				require.Equal(t, want, winner(b, c, managed))
			}
		}
	})
}
