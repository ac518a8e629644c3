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

package holding

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

// newBook has quotas a and b below root, and unit ns/u, which holds 4 in a, with two pods of 2 on nodes.
func newBook() *Book {
	l := ledger.New()
	tree := capacity.NewTree(l)
	for _, q := range []capacity.Quota{{Name: "root"}, {Name: "a", Parent: "root"}, {Name: "b", Parent: "root"}} {
		tree.Set(q)
	}
	b := NewBook(l, tree)
	b.Hold("ns/u", inA, cpu(4), false, unit.Expected{})
	b.SetPod(epoch, "ns/u", podOf("1"))
	b.SetPod(epoch, "ns/u", podOf("2"))
	return b
}

var (
	inA = Place{Queue: "q", Namespace: "ns", Quota: "a"}
	inB = Place{Queue: "p", Namespace: "ns", Quota: "b"}
)

func podOf(uid string) Pod { return Pod{UID: uid, Quota: "a", Request: cpu(2), Assigned: true} }

// counted is what a book counts in queue q, in its namespace ns, and among the jobs of both quotas.
type counted struct {
	queue, namespace, remnants int
	a, b                       int64
}

func countedBy(b *Book) counted {
	return counted{
		b.Count("q"), b.CountOf("q", "ns"), b.Remnants("q"), b.ledger.Read("a").Units(), b.ledger.Read("b").Units(),
	}
}

func TestPodsKeepThePlaceOfTheirUnit(t *testing.T) {
	b := newBook()
	require.Equal(t, counted{1, 1, 0, 1, 0}, countedBy(b))
	require.Equal(t, []string{"ns/u"}, b.Holders("q"))
	require.True(t, b.Release(epoch, "ns/u"))
	require.False(t, b.Release(epoch, "ns/u"))
	require.Empty(t, b.Holders("q"))
	require.Equal(t, counted{1, 1, 1, 1, 0}, countedBy(b))
	require.False(t, b.Keep(epoch, "ns/u", &inB), "it stays where it held quota, whatever its unit says")
	require.False(t, b.Keep(epoch, "ns/u", nil))
	require.False(t, b.DeletePod("ns/u", "1"))
	require.False(t, b.Keep(epoch, "ns/u", nil), "a pod is left")
	require.True(t, b.DeletePod("ns/u", "2"))
	require.True(t, b.Keep(epoch, "ns/u", nil))
	require.Equal(t, counted{}, countedBy(b))
}

func TestAUnitThatIsAdmittedAgainTakesThePlaceOfItsPods(t *testing.T) {
	for quota, want := range map[Place]counted{inA: {1, 1, 0, 1, 0}, inB: {0, 0, 0, 0, 1}} {
		b := newBook()
		b.Release(epoch, "ns/u")
		require.True(t, b.Hold("ns/u", quota, cpu(4), false, unit.Expected{}))
		require.Equal(t, want, countedBy(b))
		require.False(t, b.Hold("ns/u", quota, cpu(4), false, unit.Expected{}), "nothing new")
		require.Empty(t, b.Compare(func() *ledger.Ledger {
			rebuilt := b.Rebuild()
			rebuilt.Reserve("ns/u", quota.Quota, cpu(4), false)
			return rebuilt
		}()))
	}
}

func TestAHolderMovesBetweenQueuesAndQuotas(t *testing.T) {
	b := newBook()
	require.True(t, b.Hold("ns/u", Place{Queue: "p", Namespace: "ns", Quota: "a"}, cpu(4), false, unit.Expected{}))
	require.Equal(t, counted{0, 0, 0, 1, 0}, countedBy(b))
	require.True(t, b.Hold("ns/u", inB, cpu(4), false, unit.Expected{}))
	require.Equal(t, counted{0, 0, 0, 0, 1}, countedBy(b), "its pods are its own still")
	require.Equal(t, []string{"ns/u"}, b.Holders("p"))
}

// Pods without a known unit keep a place among the jobs of the quota that they are charged to, and in no queue.
func TestPodsOfAnUnknownUnit(t *testing.T) {
	b := newBook()
	b.SetPod(epoch, "ns/x", podOf("3"))
	require.True(t, b.Keep(epoch, "ns/x", nil))
	require.Equal(t, counted{1, 1, 0, 2, 0}, countedBy(b))
	require.True(t, b.Keep(epoch, "ns/x", &inA), "its unit came")
	require.Equal(t, counted{2, 2, 1, 2, 0}, countedBy(b))
	require.True(t, b.Keep(epoch, "ns/x", &inB), "it waits in another quota")
	require.Equal(t, counted{1, 1, 0, 1, 1}, countedBy(b))
}

// Pods that are left of a unit are on their way out for a minute, or until their grace period is over. After that they
// are pods that stay.
func TestUntilWhenPodsAreOnTheirWayOut(t *testing.T) {
	leaving := func(grace time.Duration) func(*Pod) {
		return func(p *Pod) { p.Leaving, p.LeavingSince, p.GoneBy = true, epoch, epoch.Add(grace) }
	}
	stays := func(*Pod) {}
	for name, tc := range map[string]struct {
		one, two func(*Pod)
		want     time.Duration
	}{
		"nobody deletes them":         {stays, stays, orderlyExit},
		"one is deleted":              {stays, leaving(5 * time.Minute), orderlyExit},
		"both are":                    {leaving(30 * time.Second), leaving(5 * time.Minute), 5*time.Minute + orderlyExit},
		"with a grace of a year":      {leaving(30 * time.Second), leaving(365 * 24 * time.Hour), longestExit},
		"with no grace, by finalizer": {leaving(0), leaving(0), orderlyExit},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			one, two := podOf("1"), podOf("2")
			tc.one(&one)
			tc.two(&two)
			b.SetPod(epoch, "ns/u", one)
			b.SetPod(epoch, "ns/u", two)
			b.Release(epoch, "ns/u")
			b.Keep(epoch.Add(time.Second), "ns/u", nil)
			use, some := b.Use("ns/u")
			require.True(t, some)
			require.Equal(t, epoch.Add(tc.want), use.LeavesBy)
			require.Equal(t, []string{"ns/u"}, b.Users())
		})
	}
}

// A job is made again for another quota, and pods of the former one are leaving theirs. They are no use of the new one.
func TestPodsThatLeaveUseTheirOwnQuota(t *testing.T) {
	b := newBook()
	uses := func() resources.List {
		use, _ := b.Use("ns/u")
		return use.Amount
	}
	former := podOf("former")
	former.Quota, former.Former, former.Leaving, former.LeavingSince = "b", true, true, epoch
	b.SetPod(epoch, "ns/u", former)
	require.Equal(t, cpu(4), uses())
	former.Quota = "a"
	b.SetPod(epoch, "ns/u", former)
	require.Equal(t, cpu(6), uses())
	b.DeletePod("ns/u", "former")
	require.Equal(t, cpu(4), uses())
}

// For a while the successor of a pod that is being deleted may go ahead of it. Then the pod counts as any other.
func TestAPodIsLate(t *testing.T) {
	b := newBook()
	leaving := podOf("1")
	leaving.Leaving, leaving.LeavingSince = true, epoch
	b.SetPod(epoch, "ns/u", leaving)
	require.Equal(t, cpu(2), b.Charges("ns/u", "a").Assigned)
	require.Equal(t, epoch.Add(replacementGrace), b.NextLate())
	_, _, some := b.Late(epoch.Add(replacementGrace - time.Second))
	require.False(t, some)
	key, p, some := b.Late(epoch.Add(replacementGrace))
	require.True(t, some)
	b.SetPod(epoch.Add(replacementGrace), key, p)
	require.Equal(t, cpu(4), b.Charges("ns/u", "a").Assigned)
	require.Equal(t, cpu(2), b.Charges("ns/u", "a").Late)
	require.Zero(t, b.NextLate())
	b.SetPod(epoch, "ns/u", leaving)
	b.DeletePod("ns/u", "1")
	require.Zero(t, b.NextLate())
}
