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

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func pod(uid string, cpus int64) Pod { return Pod{UID: uid, Level: "team", Request: cpu(cpus)} }

// goers are the pods of a unit that may go.
func goers(l *Ledger, unit string, uids ...string) (out []string) {
	for _, uid := range uids {
		if l.Granted(unit, uid) {
			out = append(out, uid)
		}
	}
	return out
}

func TestGrants(t *testing.T) {
	l := New()
	all := []string{"a", "b", "c", "d", "e"}
	l.SetPod("u", pod("b", 1), false)
	l.Open("u", cpu(9))
	require.Empty(t, goers(l, "u", all...), "the unit holds nothing")
	l.Reserve("u", "team", cpu(9), false)
	require.Empty(t, goers(l, "u", all...), "it is not open")
	l.Open("u", cpu(3))
	l.SetPod("u", pod("c", 1), false)
	l.SetPod("u", pod("a", 2), false)
	require.Equal(t, []string{"b", "c"}, goers(l, "u", all...), "who went stays, whoever comes before it then")
	l.SetPod("u", Pod{UID: "d", Level: "other", Request: cpu(1)}, false)
	require.False(t, l.Granted("u", "d"), "the unit holds nothing there")
	l.DeletePod("u", "b")
	require.Equal(t, []string{"a", "c"}, goers(l, "u", all...))
	l.SetPod("u", pod("c", 1), true)
	require.Equal(t, []string{"a", "c"}, goers(l, "u", all...), "it runs")
	l.SetPod("u", pod("e", 1), false)
	require.Equal(t, []string{"a", "c"}, goers(l, "u", all...))
	leaving := pod("c", 1)
	leaving.Leaving = true
	l.SetPod("u", leaving, true)
	require.Equal(t, []string{"a", "c", "e"}, goers(l, "u", all...), "its successor goes while it leaves")
	l.Open("u", cpu(1))
	require.Equal(t, []string{"c"}, goers(l, "u", all...), "the first one is too large now")
	l.Open("u", cpu(4))
	require.Equal(t, []string{"a", "c", "e"}, goers(l, "u", all...))
	l.SetPod("u", pod("a", 4), false)
	require.Equal(t, []string{"c", "e"}, goers(l, "u", all...), "it asks for more than it did")
	l.Close("u")
	require.Empty(t, goers(l, "u", all...))
	l.Open("u", cpu(9))
	l.Release("u")
	require.Empty(t, goers(l, "u", all...), "it holds nothing any more")
}

// After a start pods are heard of in any order: one that waits may be let go before those are known that were bound
// before. Then it is held back again.
func TestPodsThatWereBoundBeforeGoFirst(t *testing.T) {
	l := New()
	l.Reserve("u", "team", cpu(2), false)
	l.Open("u", cpu(2))
	l.SetPod("u", pod("a", 1), false)
	l.SetPod("u", pod("b", 1), false)
	require.Equal(t, []string{"a", "b"}, goers(l, "u", "a", "b", "c", "d"))
	l.SetPod("u", pod("d", 1), true)
	require.Equal(t, []string{"a", "d"}, goers(l, "u", "a", "b", "c", "d"))
	l.Grants()
	l.SetPod("u", pod("c", 1), true)
	require.Equal(t, []string{"c", "d"}, goers(l, "u", "a", "b", "c", "d"))
	require.Contains(t, l.Grants(), Grant{Unit: "u", Pod: "a"}, "whoever let it go hears of it")
}

// One generation of successors goes ahead of pods that are leaving, and none of one that has been leaving for long.
func TestOneGenerationOfSuccessorsGoesAhead(t *testing.T) {
	l := New()
	l.Reserve("u", "team", cpu(2), false)
	l.Open("u", cpu(2))
	all := []string{"a", "b", "c", "d", "e"}
	leaves := func(uid string) {
		leaving := pod(uid, 1)
		leaving.Leaving = true
		l.SetPod("u", leaving, true)
	}
	for _, uid := range []string{"a", "b"} {
		l.SetPod("u", pod(uid, 1), true)
	}
	leaves("a")
	leaves("b")
	l.SetPod("u", pod("c", 1), false)
	l.SetPod("u", pod("d", 1), false)
	require.Equal(t, []string{"a", "b", "c", "d"}, goers(l, "u", all...))
	l.SetPod("u", pod("c", 1), true)
	leaves("c")
	l.SetPod("u", pod("e", 1), false)
	require.False(t, l.Granted("u", "e"), "it would be of the second generation")
	l.DeletePod("u", "a")
	require.True(t, l.Granted("u", "e"))

	late := pod("b", 1)
	late.Late = true
	l.SetPod("u", late, true)
	require.Equal(t, []string{"b", "c", "d"}, goers(l, "u", all...), "it stands for what the unit holds")
	require.EqualValues(t, 1, outstanding(l, "team"))
	require.Equal(t, Charges{All: cpu(3), Assigned: cpu(1), Late: cpu(1), Idle: cpu(2), Pods: 3}, l.Charges("u", "team"))
}

// A pod keeps what its unit holds, whatever quota it is charged to since its labels were changed.
func TestAPodThatIsChargedElsewhereStandsForItsUnit(t *testing.T) {
	l := New()
	l.Reserve("u", "team", cpu(2), false)
	l.Open("u", cpu(2))
	l.SetPod("u", pod("a", 1), true)
	l.SetPod("u", pod("b", 1), true)
	l.SetPod("u", pod("c", 1), false)
	require.False(t, l.Granted("u", "c"))
	for _, uid := range []string{"a", "b"} {
		moved := pod(uid, 1)
		moved.Level = "other"
		l.SetPod("u", moved, true)
	}
	require.False(t, l.Granted("u", "c"), "both of its pods run still")
	require.EqualValues(t, 2, outstanding(l, "team"), "nobody else is admitted in their place")
	l.DeletePod("u", "a")
	require.True(t, l.Granted("u", "c"))
}

// Pods with a grant ask together for at most the amount of the unit, unless pods without a grant run. A listener of
// Grants knows all pods that may be scheduled.
func TestGrantsKeepWithinWhatIsHeld(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		l := New()
		told := map[string]bool{}
		l.Reserve("u", "team", cpu(6), false)
		upTo, open := int64(0), false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			uid := fmt.Sprintf("p%d", rapid.IntRange(0, 7).Draw(t, "pod"))
			before := map[string]bool{}
			for i := range 8 {
				before[fmt.Sprintf("p%d", i)] = l.Granted("u", fmt.Sprintf("p%d", i))
			}
			switch rapid.IntRange(0, 5).Draw(t, "event") {
			case 0, 1, 2:
				p := pod(uid, rapid.Int64Range(0, 3).Draw(t, "cpu"))
				p.Level = rapid.SampledFrom([]string{"team", "team", "other"}).Draw(t, "level")
				p.Leaving = rapid.IntRange(0, 4).Draw(t, "leaving") == 0
				l.SetPod("u", p, rapid.IntRange(0, 2).Draw(t, "assigned") == 0)
			case 3:
				l.DeletePod("u", uid)
			case 4:
				upTo, open = rapid.Int64Range(0, 6).Draw(t, "up to"), true
				l.Open("u", cpu(upTo))
			case 5:
				open = false
				l.Close("u")
			}
			for _, g := range l.Grants() {
				told[g.Pod] = g.MayGo
			}
			taken, fresh := int64(0), false
			for i := range 8 {
				uid := fmt.Sprintf("p%d", i)
				goes := l.Granted("u", uid)
				require.Equal(t, told[uid], goes, uid)
				e := l.entries["u"]
				_, idle := e.idle.pods[uid]
				fresh = fresh || (goes && idle && !before[uid] && amountOf(e.idle.pods[uid].Request) > 0)
				p, ok := e.assigned.pods[uid]
				if !ok {
					p, ok = e.idle.pods[uid]
				}
				if _, assigned := e.assigned.pods[uid]; ok && (goes || assigned) && !p.Leaving {
					taken += amountOf(p.Request)
				}
			}
			require.True(t, open || !fresh)
			if fresh {
				require.LessOrEqual(t, taken, upTo, "a pod was let go for which there is no room")
			}
		}
	})
}

func amountOf(list resources.List) int64 {
	amount, _ := list.Get("cpu")
	return amount
}
