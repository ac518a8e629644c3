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

package accounts

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// books are accounts and the tree where they keep their sums.
type books struct {
	*Accounts
	tree *capacity.Tree
}

func newBooks() books {
	l := ledger.New()
	tree := capacity.NewTree(l)
	tree.Set(capacity.Quota{Name: "root"})
	tree.Set(capacity.Quota{Name: "a", Parent: "root", Limit: cpu(9)})
	return books{New(tree), tree}
}

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }

func (b books) wanted(t *testing.T, want int64) {
	t.Helper()
	amount, _ := b.tree.Wanted("a").Get("cpu")
	require.Equal(t, want, amount, "wanted of a")
}

// asked compares the demand of the units beyond the requests of pods.
func (b books) asked(t *testing.T, want int64) {
	t.Helper()
	b.tree.Refresh()
	got := int64(0)
	if asked := b.tree.Route("a").Levels[0].Asked(); len(asked) > 0 {
		got = asked[0]
	}
	require.Equal(t, want, got, "asked of a")
}

var inA = Pair{"q", "a"}

// A unit contributes once: the next contribution takes the place of the former one.
func TestReplace(t *testing.T) {
	none := Counts{Queue: "q"}
	for name, c := range map[string]struct {
		next          Contribution
		of            Counts
		wanted, asked int64
	}{
		"nothing": {Contribution{}, none, 0, 0},
		"parked":  {Contribution{Of: inA, As: Parked}, Counts{Queue: "q", Parked: 1}, 0, 0},
		"admitted": {
			Contribution{Of: inA, As: Admitted, Asks: cpu(2)}, Counts{Queue: "q", Admitted: 1}, 2, 2,
		},
		"less than its pods": {
			Contribution{Of: inA, As: Admitted, Asks: cpu(5), Less: cpu(1)}, Counts{Queue: "q", Admitted: 1}, 5, 4,
		},
		"elsewhere": {Contribution{Of: Pair{"p", "a"}, As: Pending, Asks: cpu(3)}, none, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			b, unit := newBooks(), Contribution{}
			b.Replace(&unit, Contribution{Of: inA, As: Pending, Asks: cpu(7)})
			require.Equal(t, Counts{Queue: "q", Pending: 1}, b.CountsOf("q"))
			b.wanted(t, 7)
			b.asked(t, 7)

			b.Replace(&unit, c.next)
			require.Equal(t, c.next, unit)
			require.Equal(t, c.of, b.CountsOf("q"))
			b.wanted(t, c.wanted)
			b.asked(t, c.asked)

			b.Replace(&unit, Contribution{})
			require.Empty(t, b.Counts(), "nothing is left")
			require.Equal(t, none, b.CountsOf("q"))
			b.wanted(t, 0)
			b.asked(t, 0)
		})
	}
}

// Units in a pool count as it does: pending, with a demand, or parked, without.
func TestPool(t *testing.T) {
	b, pool, first, second := newBooks(), Pool{}, Contribution{}, Contribution{}
	pending, parked := []Counts{{"q", "a", 2, 0, 0}}, []Counts{{"q", "a", 0, 0, 2}}
	b.SetOpen(&pool, inA, true)
	require.Empty(t, b.ChangedCounts(), "no unit is in it")
	b.Replace(&first, Contribution{Of: inA, Pool: &pool, Asks: cpu(2)})
	b.Replace(&second, Contribution{Of: inA, Pool: &pool, Asks: cpu(3)})
	require.Equal(t, pending, b.Counts())
	b.wanted(t, 5)

	b.SetOpen(&pool, inA, false)
	require.Equal(t, parked, b.Counts())
	b.wanted(t, 0)
	b.Replace(&second, Contribution{Of: inA, Pool: &pool, Asks: cpu(4)})
	require.Equal(t, parked, b.Counts())
	b.wanted(t, 0)

	b.SetOpen(&pool, inA, true)
	require.Equal(t, pending, b.Counts())
	b.wanted(t, 6)
	b.Replace(&first, Contribution{Of: inA, As: Admitted})
	require.Equal(t, []Counts{{"q", "a", 1, 1, 0}}, b.Counts())
	b.wanted(t, 4)
	b.Replace(&second, Contribution{})
	b.SetOpen(&pool, inA, false)
	require.Equal(t, []Counts{{"q", "a", 0, 1, 0}}, b.Counts())
	b.wanted(t, 0)
}

// A pair is told once after a change, with zeros where no unit is any more.
func TestChangedCounts(t *testing.T) {
	b, first, second := newBooks(), Contribution{}, Contribution{}
	b.Replace(&first, Contribution{Of: Pair{"q", "b"}, As: Parked})
	b.Replace(&second, Contribution{Of: inA, As: Pending})
	all := []Counts{{"q", "a", 1, 0, 0}, {"q", "b", 0, 0, 1}}
	require.Equal(t, all, b.ChangedCounts())
	require.Empty(t, b.ChangedCounts())
	require.Equal(t, all, b.Counts())
	b.Replace(&first, Contribution{Of: inA, As: Parked})
	require.Equal(t, []Counts{{"q", "a", 1, 0, 1}, {"q", "b", 0, 0, 0}}, b.ChangedCounts())
	require.Equal(t, Counts{Queue: "q", Pending: 1, Parked: 1}, b.CountsOf("q"))
}

// A quota is told once after its demand changed, and not if that is what was told last.
func TestDirtyDemand(t *testing.T) {
	b, unit, other := newBooks(), Contribution{}, Contribution{}
	b.Replace(&other, Contribution{Of: Pair{"q", "b"}, As: Pending, Asks: cpu(1)})
	b.Replace(&unit, Contribution{Of: inA, As: Pending, Asks: cpu(2)})
	require.Equal(t, []string{"a", "b"}, b.DirtyDemand())
	require.Empty(t, b.DirtyDemand())
	b.Replace(&unit, Contribution{Of: inA, As: Pending, Asks: cpu(3)})
	b.Replace(&unit, Contribution{Of: inA, As: Pending, Asks: cpu(2)})
	require.Empty(t, b.DirtyDemand(), "it is what it was")
	b.Replace(&unit, Contribution{})
	require.Equal(t, []string{"a"}, b.DirtyDemand())
	b.Replace(&unit, Contribution{Of: inA, As: Pending, Asks: cpu(2)})
	require.Equal(t, []string{"a"}, b.DirtyDemand(), "what was told last is that there is none")
}
