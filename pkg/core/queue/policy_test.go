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

package queue

import (
	"math"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func TestPolicies(t *testing.T) {
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	item := func(key, uid string, priority int32, second int) Item {
		return Item{Key: key, UID: uid, Priority: priority, Created: epoch.Add(time.Duration(second) * time.Second)}
	}
	// Of b, a and e, which came in the same second, b is first by its UID, and a before e by its key.
	items := []Item{item("d", "4", 1, 1), item("c", "3", 5, 9), item("e", "2", 5, 2),
		item("b", "1", 5, 2), item("a", "2", 5, 2)}
	cases := map[string]struct {
		order        string
		blocks4, at5 bool
	}{
		"Priority":    {order: "baecd"},
		"FIFO":        {order: "dbaec", blocks4: true, at5: true},
		"Block":       {order: "baecd", blocks4: true, at5: true},
		"Intelligent": {order: "baecd", blocks4: false, at5: true},
	}
	require.Len(t, Builtin(), len(cases))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := Builtin()[name](5)
			sorted := append([]Item(nil), items...)
			sort.Slice(sorted, func(i, j int) bool { return p.Compare(sorted[i], sorted[j]) < 0 })
			order := ""
			for _, it := range sorted {
				order += it.Key
			}
			require.Equal(t, c.order, order)
			require.Equal(t, c.blocks4, p.Blocks(4))
			require.Equal(t, c.at5, p.Blocks(5))
		})
	}
}

// Every policy is a strict order: equal only to itself, antisymmetric, transitive.
func TestPoliciesAreOrders(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) Item {
		return Item{
			Priority: rapid.OneOf(rapid.Int32Range(0, 2), rapid.SampledFrom([]int32{math.MinInt32, math.MaxInt32})).
				Draw(t, "priority"),
			Created: time.Unix(rapid.Int64Range(0, 2).Draw(t, "created"), 0),
			UID:     rapid.SampledFrom([]string{"", "u", "v"}).Draw(t, "uid"),
			Key:     rapid.SampledFrom([]string{"k", "l"}).Draw(t, "key"),
		}
	})
	effort.Check(t, func(t *rapid.T) {
		a, b, c := draw.Draw(t, "a"), draw.Draw(t, "b"), draw.Draw(t, "c")
		for name, factory := range Builtin() {
			p := factory(1)
			require.Equal(t, -p.Compare(b, a), p.Compare(a, b), name)
			require.Zero(t, p.Compare(a, a), name)
			if p.Compare(a, b) < 0 && p.Compare(b, c) < 0 {
				require.Negative(t, p.Compare(a, c), name)
			}
		}
	})
}
