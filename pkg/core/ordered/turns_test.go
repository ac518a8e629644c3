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

package ordered

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

type dueUnit struct {
	owner, key string
	at         Moment
}

func dueAt(u *dueUnit) Moment { return u.at }

func byKey(a, b *dueUnit) int { return strings.Compare(a.key, b.key) }

// dueOf are the units of an owner that have a time, the first one first.
func dueOf(units []*dueUnit, owner string) []*dueUnit {
	list := slices.DeleteFunc(slices.Clone(units), func(u *dueUnit) bool { return u.owner != owner || u.at == 0 })
	slices.SortFunc(list, func(a, b *dueUnit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), byKey(a, b))
	})
	return list
}

// A due owner waits for at most one unit of each other owner. Its first unit comes first, and owners without units are
// forgotten.
func TestTurns(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		turns := NewTurns(dueAt, byKey, func(u *dueUnit) string { return u.owner })
		var units []*dueUnit
		for _, key := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
			units = append(units, &dueUnit{owner: key[:1], key: key})
		}
		passedOver := map[string]int{}
		now := Moment(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				u := rapid.SampledFrom(units).Draw(t, "unit")
				turns.Move(u, Moment(rapid.Int64Range(0, 12).Draw(t, "to")), func(m Moment) { u.at = m })
			case 2:
				now += Moment(rapid.Int64Range(0, 3).Draw(t, "passes"))
			case 3:
				u, ok := turns.Next(now)
				if !ok {
					break
				}
				require.LessOrEqual(t, u.at, now)
				require.Same(t, dueOf(units, u.owner)[0], u)
				for _, owner := range []string{"a", "b", "c"} {
					passedOver[owner]++
				}
				passedOver[u.owner] = 0
				if rapid.Bool().Draw(t, "done") {
					turns.Move(u, 0, func(m Moment) { u.at = m })
				}
			}
			for _, owner := range []string{"a", "b", "c"} {
				if list := dueOf(units, owner); len(list) == 0 || list[0].at > now {
					passedOver[owner] = 0
				}
				require.LessOrEqual(t, passedOver[owner], 2, owner)
			}
			requireWhenDue(t, turns, units, now)
		}
		for _, u := range units {
			turns.Move(u, 0, func(m Moment) { u.at = m })
		}
		require.Zero(t, turns.Len()+turns.ready.Len()+turns.later.Len())
	})
}

func requireWhenDue(t *rapid.T, turns *Turns[*dueUnit], units []*dueUnit, now Moment) {
	owners, first := map[string]bool{}, Moment(0)
	for _, u := range units {
		if u.at != 0 {
			owners[u.owner] = true
			if first == 0 || u.at < first {
				first = u.at
			}
		}
	}
	require.Equal(t, len(owners), turns.Len())
	at := turns.At(now)
	require.Equal(t, first <= now, at <= now)
	if at > now {
		require.Equal(t, first, at)
	}
}
