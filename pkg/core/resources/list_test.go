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

package resources

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

func TestFromQuantities(t *testing.T) {
	q := resource.MustParse
	cases := map[string]struct {
		in   map[string]resource.Quantity
		want map[string]int64
		err  string
	}{
		"nothing":         {},
		"cpu is in milli": {in: map[string]resource.Quantity{"cpu": q("1.5")}, want: map[string]int64{"cpu": 1500}},
		"cpu rounds up":   {in: map[string]resource.Quantity{"cpu": q("100u")}, want: map[string]int64{"cpu": 1}},
		"others are in units": {in: map[string]resource.Quantity{"memory": q("1Ki"), "nvidia.com/gpu": q("2")},
			want: map[string]int64{"memory": 1024, "nvidia.com/gpu": 2}},
		"others round up": {in: map[string]resource.Quantity{"memory": q("1500m")}, want: map[string]int64{"memory": 2}},
		"batch-cpu is in units": {in: map[string]resource.Quantity{"kubernetes.io/batch-cpu": q("1500")},
			want: map[string]int64{"kubernetes.io/batch-cpu": 1500}},
		"negative": {in: map[string]resource.Quantity{"z": q("-1"), "a": q("-2")},
			err: `resource "a": negative amount -2`},
		"absurd": {in: map[string]resource.Quantity{"memory": q("2Ei")},
			err: `resource "memory": absurd amount 2Ei`},
		"not an int64": {in: map[string]resource.Quantity{"memory": q("1e30")},
			err: `resource "memory": absurd amount 1e30`},
		"absurd in milli": {in: map[string]resource.Quantity{"cpu": q("2e15")}, err: `resource "cpu": absurd amount 2e15`},
		"just not absurd": {in: map[string]resource.Quantity{"memory": q("1Ei")}, want: map[string]int64{"memory": Greatest}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := FromQuantities(c.in)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.True(t, got.Same(FromMap(c.want)), "%s", got)
		})
	}
}

func TestString(t *testing.T) {
	l := FromMap(map[string]int64{"memory": 2 << 30, "cpu": 1500, "nvidia.com/gpu": 8})
	require.Equal(t, "cpu: 1500m, memory: 2Gi, nvidia.com/gpu: 8", l.String())
	require.Empty(t, List{}.String())
}

func TestKeyTellsNamesApart(t *testing.T) {
	a := FromMap(map[string]int64{`x"=1;"y`: 1})
	b := FromMap(map[string]int64{"x": 1, "y": 1})
	require.NotEqual(t, a.Key(), b.Key())
}

var amounts = rapid.OneOf(rapid.Int64Range(-5, 5),
	rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, Greatest}), rapid.Int64())

func draw(t *rapid.T, label string) (List, map[string]int64) {
	m := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), amounts, 0, 4).Draw(t, label)
	return FromMap(m), m
}

// clamp is the saturating arithmetic, done in unlimited precision.
func clamp(n *big.Int) int64 {
	switch {
	case n.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case n.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	}
	return n.Int64()
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		a, am := draw(t, "a")
		b, bm := draw(t, "b")
		for _, k := range []string{"a", "b", "c", "d"} {
			x, y := big.NewInt(am[k]), big.NewInt(bm[k])
			get := func(l List) int64 { v, _ := l.Get(k); return v }
			require.Equal(t, clamp(new(big.Int).Add(x, y)), get(a.Add(b)))
			require.Equal(t, clamp(new(big.Int).Sub(x, y)), get(a.Sub(b)))
			require.Equal(t, max(am[k], bm[k]), get(a.Max(b)))
			require.Equal(t, max(am[k], 0), get(a.Floor0()))
			masked, named := a.Mask(b).Get(k)
			_, inA := am[k]
			_, inB := bm[k]
			require.Equal(t, inA && inB, named)
			if named {
				require.Equal(t, am[k], masked)
			}
		}
		require.Equal(t, a.Equal(b), a.Key() == b.Key())
		require.True(t, a.Equal(a.Add(List{})))
		require.Equal(t, a.IsZero(), a.Equal(List{}))
		require.True(t, a.Same(FromMap(am)))
	})
}

func TestPart(t *testing.T) {
	list := FromMap(map[string]int64{"big": math.MaxInt64, "cpu": 10, "less": -4})
	for _, tt := range []struct {
		parts, of int64
		want      map[string]int64
	}{
		{1, 3, map[string]int64{"big": math.MaxInt64/3 + 1, "cpu": 4, "less": 0}},
		{2, 3, map[string]int64{"big": math.MaxInt64/3*2 + 1, "cpu": 7, "less": 0}},
		{3, 3, map[string]int64{"big": math.MaxInt64, "cpu": 10, "less": 0}},
		{4, 3, map[string]int64{"big": math.MaxInt64, "cpu": 10, "less": 0}},
		{math.MaxInt64 - 1, math.MaxInt64, map[string]int64{"big": math.MaxInt64 - 1, "cpu": 10, "less": 0}},
		{0, 3, nil}, {-1, 3, nil}, {1, 0, nil},
	} {
		require.Equal(t, FromMap(tt.want).String(), list.Part(tt.parts, tt.of).String(), "%d of %d", tt.parts, tt.of)
	}
}

func TestQuantitiesAreTheInverse(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.SampledFrom([]string{"cpu", "memory", "nvidia.com/gpu"}),
			rapid.Int64Range(0, Greatest), 0, 3).Draw(t, "list")
		got, err := FromQuantities(FromMap(m).Quantities())
		require.NoError(t, err)
		require.True(t, got.Same(FromMap(m)))
	})
}

// A sum is exact however large it was in between: what was added can be taken away.
func TestSumIsExact(t *testing.T) {
	t.Parallel()
	effort.Check(t, func(t *rapid.T) {
		var sum, other Sum
		want := map[string]*big.Int{"a": new(big.Int), "b": new(big.Int), "c": new(big.Int), "d": new(big.Int)}
		for range rapid.IntRange(0, effort.Steps(30)).Draw(t, "operations") {
			l, m := draw(t, "list")
			add := rapid.Bool().Draw(t, "add")
			if add {
				sum.Add(l)
			} else {
				sum.Sub(l)
			}
			other.Add(l)
			for k, v := range m {
				if add {
					want[k].Add(want[k], big.NewInt(v))
				} else {
					want[k].Sub(want[k], big.NewInt(v))
				}
			}
		}
		zero, kinds := true, 0
		for k, n := range want {
			if n.Sign() != 0 {
				kinds++
			}
			require.Equal(t, clamp(n), sum.Get(k))
			listed, named := sum.List().Get(k)
			require.Equal(t, clamp(n), listed)
			require.Equal(t, n.Sign() != 0, named)
			zero = zero && n.Sign() == 0
		}
		require.Equal(t, zero, sum.IsZero())
		require.Equal(t, kinds, sum.Len(), "names of which nothing is left are forgotten")
		before := sum.List()
		sum.AddSum(&other)
		sum.SubSum(&other)
		require.True(t, before.Same(sum.List()))
	})
}

func TestPartOf(t *testing.T) {
	const most = math.MaxInt64
	for _, tt := range []struct{ amount, parts, of, want int64 }{
		{10, 1, 3, 3}, {10, 2, 3, 6}, {10, 3, 3, 10}, {10, 0, 3, 0}, {10, 4, 3, 10}, {10, -1, 3, 0}, {-10, 1, 3, 0},
		{10, 1, 0, 0}, {10, 1, -3, 0}, {most, most, most, most}, {most, most - 1, most, most - 1}, {most, 1, most, 1},
		{1 << 62, 1 << 40, 1 << 41, 1 << 61},
	} {
		require.Equal(t, tt.want, PartOf(tt.amount, tt.parts, tt.of), "%d * %d / %d", tt.amount, tt.parts, tt.of)
	}
}
