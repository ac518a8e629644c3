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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// In the order of the line, the first n units of each namespace are inside, and of those the first m. Each unit learns
// its side from the answers of Enter and Settle. Units that left leave nothing behind.
func TestBoundsEqualSortedLists(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		w := &bounded{inside: map[*testUnit]bool{}, line: NewLine[*testUnit, int](queue.Builtin()["Priority"](0))}
		each, all := rapid.IntRange(-1, 4).Draw(t, "each"), rapid.IntRange(-1, 6).Draw(t, "all")
		w.bounds = w.line.NewBounds(testNamespace, each, all)
		require.Equal(t, each < 0 && all < 0, w.bounds.None())
		number := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(1, 4).Draw(t, "changes at once") {
				if len(w.known) == 0 || rapid.IntRange(0, 2).Draw(t, "enter") > 0 {
					w.enter(drawUnit(t, number))
					number++
				} else {
					w.leave(w.known[rapid.IntRange(0, len(w.known)-1).Draw(t, "at")])
				}
			}
			w.settle(t)
			w.check(t, each, all)
		}
		for len(w.known) > 0 {
			w.leave(w.known[0])
			if rapid.Bool().Draw(t, "settle") {
				w.settle(t)
			}
		}
		require.True(t, w.bounds.Settled())
		require.Empty(t, w.bounds.ofEach)
	})
}

// bounded is a line and its bounds, and what was said of each unit.
type bounded struct {
	line   *Line[*testUnit, int]
	bounds *Bounds[*testUnit, int]
	known  []*testUnit
	inside map[*testUnit]bool
}

func (w *bounded) enter(u *testUnit) {
	w.inside[u] = w.bounds.Enter(u)
	w.known = append(w.known, u)
}

func (w *bounded) leave(u *testUnit) {
	w.bounds.Leave(u)
	w.bounds.Leave(u) // the unit is unknown now
	delete(w.inside, u)
	w.known = slices.DeleteFunc(w.known, func(o *testUnit) bool { return o == u })
}

// settle tells whether all were settled as Settled said.
func (w *bounded) settle(t *rapid.T) {
	settled := w.bounds.Settled()
	moved := w.bounds.Settle()
	require.Equal(t, settled, len(moved) == 0)
	for ; len(moved) > 0; moved = w.bounds.Settle() {
		for _, u := range moved {
			w.inside[u] = w.bounds.Enter(u)
		}
	}
	require.True(t, w.bounds.Settled())
}

func (w *bounded) check(t *rapid.T, each, all int) {
	order := func(a, b *testUnit) int {
		if w.line.Before(a, b) {
			return -1
		}
		return 1
	}
	slices.SortFunc(w.known, order)
	ofOwn, inAll := map[string]int{}, 0
	var outside []*testUnit
	for _, u := range w.known {
		namespace := testNamespace(u)
		ofOwn[namespace]++
		own := each < 0 || ofOwn[namespace] <= each
		if own {
			inAll++
		}
		want := own && (all < 0 || inAll <= all)
		require.Equal(t, want, w.inside[u], u.item.Key)
		require.Equal(t, want, w.bounds.Enter(u), "%s enters again", u.item.Key)
		require.Equal(t, !own, w.bounds.OutsideOwn(u), u.item.Key)
		if !want {
			outside = append(outside, u)
		}
	}
	got := w.bounds.Outside()
	slices.SortFunc(got, order)
	require.Equal(t, outside, got)
}

func testNamespace(u *testUnit) string {
	namespace, _, _ := strings.Cut(u.item.Key, "/")
	return namespace
}

func drawUnit(t *rapid.T, number int) *testUnit {
	return &testUnit{item: queue.Item{
		Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), UID: fmt.Sprint(number),
		Key: fmt.Sprintf("ns%d/%d", rapid.IntRange(0, 2).Draw(t, "namespace"), number),
	}}
}

// A line without bounds keeps nothing of its units, and does not ask its policy, which may panic.
func TestUnboundedKeepsNothing(t *testing.T) {
	l := NewLine[*testUnit, int](panicking{queue.Builtin()["Priority"](0)})
	b := l.NewBounds(testNamespace, -1, -1)
	u, v := &testUnit{item: queue.Item{Key: "ns/u"}}, &testUnit{item: queue.Item{Key: "ns/v"}}
	require.True(t, b.Enter(u))
	require.True(t, b.Enter(v))
	require.True(t, b.Settled())
	require.Empty(t, b.Outside())
	require.False(t, b.OutsideOwn(u))
	b.Leave(u)
	b.Leave(v)
	require.Zero(t, len(b.ofEach)+b.ofAll.len())
}

type panicking struct{ queue.Policy }

func (panicking) Compare(queue.Item, queue.Item) int { panic("asked") }
