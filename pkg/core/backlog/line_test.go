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

package backlog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type testUnit struct {
	item  queue.Item
	group *Group[*testUnit, int]
}

func (u *testUnit) Item() queue.Item { return u.item }

// Lines, groups and heads equal sorted lists, whatever units enter and leave (I5).
func TestLineEqualsSortedLists(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"Priority", "FIFO", "Block"}).Draw(t, "policy")
		policy := queue.Builtin()[name](0)
		l := NewLine[*testUnit, int](policy)
		units := map[int]*testUnit{}
		for range rapid.IntRange(0, effort.Steps(60)).Draw(t, "steps") {
			i := rapid.IntRange(0, 20).Draw(t, "unit")
			switch u := units[i]; {
			case u == nil:
				u = &testUnit{item: queue.Item{
					Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), Created: epoch.Add(time.Duration(i%3) * time.Second),
					UID: fmt.Sprint(i), Key: fmt.Sprint(i),
				}}
				var isNew bool
				u.group, isNew = l.Join(u, Key{Quota: fmt.Sprint(i % 3)})
				require.Equal(t, isNew, u.group.Notes == 0)
				u.group.Notes = 1
				units[i] = u
			case rapid.Bool().Draw(t, "part"):
				u.group.Part(u)
				delete(units, i)
			default:
				u.group.SetOpen(rapid.Bool().Draw(t, "open"))
			}
			requireSame(t, l, policy, units)
		}
	})
}

func requireSame(t *rapid.T, l *Line[*testUnit, int], policy queue.Policy, units map[int]*testUnit) {
	var want, got []*testUnit
	groups := map[*Group[*testUnit, int]][]*testUnit{}
	for _, u := range units {
		want = append(want, u)
	}
	slices.SortFunc(want, func(a, b *testUnit) int { return policy.Compare(a.item, b.item) })
	for i, u := range want {
		groups[u.group] = append(groups[u.group], u)
		require.Equal(t, i+1, l.Position(u))
	}
	l.Walk(func(u *testUnit) bool { got = append(got, u); return true })
	require.Equal(t, want, got)
	require.Equal(t, len(want), l.Len())
	require.Len(t, l.Groups(), len(groups))
	var heads []*testUnit
	for _, g := range l.Groups() {
		require.Equal(t, groups[g][0], g.Head())
		require.Equal(t, len(groups[g]), g.Len())
		if g.Open() {
			heads = append(heads, g.Head())
		}
		var behind []*testUnit
		g.WalkFrom(g.Head(), func(u *testUnit) bool { behind = append(behind, u); return true })
		require.Equal(t, len(groups[g])-1, len(behind))
	}
	slices.SortFunc(heads, func(a, b *testUnit) int { return policy.Compare(a.item, b.item) })
	var open []*testUnit
	l.Heads(func(g *Group[*testUnit, int]) bool { open = append(open, g.Head()); return true })
	require.Equal(t, heads, open)
}

// A unit that left, or has another place by now, is still where a walk through its group goes on.
func TestWalkFromWhereAUnitWas(t *testing.T) {
	l := NewLine[*testUnit, int](queue.Builtin()["FIFO"](0))
	var units []*testUnit
	for i := range 5 {
		u := &testUnit{item: queue.Item{Created: epoch.Add(time.Duration(i) * time.Second), Key: fmt.Sprint(i)}}
		u.group, _ = l.Join(u, Key{})
		units = append(units, u)
	}
	g, from := units[0].group, &testUnit{item: units[2].item}
	g.Part(units[2])
	var walked []*testUnit
	g.WalkFrom(from, func(u *testUnit) bool { walked = append(walked, u); return true })
	require.Equal(t, units[3:], walked)
}

func TestReorderOfALineWithUnits(t *testing.T) {
	l := NewLine[*testUnit, int](queue.Builtin()["FIFO"](0))
	u := &testUnit{}
	u.group, _ = l.Join(u, Key{})
	require.Panics(t, func() { l.Reorder(queue.Builtin()["Block"](0)) })
	u.group.Part(u)
	l.Reorder(queue.Builtin()["Block"](0))
	require.True(t, l.Policy().Blocks(0))
}

// A policy of others, of which the line knows no keys.
type foreign struct{ queue.Policy }

func TestPolicyOfOthers(t *testing.T) {
	builtin := NewLine[*testUnit, int](queue.Builtin()["Priority"](0))
	others := NewLine[*testUnit, int](foreign{queue.Builtin()["Priority"](0)})
	for i := range 6 {
		u := &testUnit{item: queue.Item{Priority: int32(i % 3), Created: epoch, UID: fmt.Sprint(i), Key: fmt.Sprint(i)}}
		builtin.Join(u, Key{})
		others.Join(u, Key{})
	}
	order := func(l *Line[*testUnit, int]) (keys string) {
		l.Walk(func(u *testUnit) bool { keys += u.item.Key; return true })
		return keys
	}
	require.Equal(t, "251403", order(others))
	require.Equal(t, "251403", order(builtin))
}

func TestBefore(t *testing.T) {
	l := NewLine[*testUnit, int](queue.Builtin()["FIFO"](0))
	a := &testUnit{item: queue.Item{Created: epoch, Key: "a"}}
	b := &testUnit{item: queue.Item{Created: epoch.Add(time.Second), Key: "b"}}
	require.True(t, l.Before(a, b))
	require.False(t, l.Before(b, a))
	require.False(t, l.Before(a, a))
}

// Groups are listed as they were made, and open as they are told.
func TestGroupsInOrder(t *testing.T) {
	l := NewLine[*testUnit, int](queue.Builtin()["FIFO"](0))
	var made []*Group[*testUnit, int]
	for i := range 5 {
		g, isNew := l.Join(&testUnit{item: queue.Item{Key: fmt.Sprint(i)}}, Key{Quota: fmt.Sprint(9 - i)})
		require.True(t, isNew)
		require.False(t, g.Open())
		made = append(made, g)
	}
	require.Equal(t, made, l.Groups())
	made[3].SetOpen(true)
	made[3].SetOpen(true)
	require.True(t, made[3].Open())
	head, some := l.Head()
	require.True(t, some)
	require.Same(t, made[3], head)
	made[3].SetOpen(false)
	require.False(t, made[3].Open())
	_, some = l.Head()
	require.False(t, some)
}
