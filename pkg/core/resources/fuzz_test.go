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
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzQuantities: an amount that is taken is what its text says, rounded up, and comes back the same; any other is
// refused. Length and exponent are bounded before an amount is read: internal/jobs does that for objects.
func FuzzQuantities(f *testing.F) {
	f.Fuzz(func(t *testing.T, name, text string) {
		if len(text) > 24 || exponent(text) > 40 {
			t.Skip()
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			t.Skip()
		}
		list, err := FromQuantities(map[string]resource.Quantity{name: q})
		exact, _ := new(big.Rat).SetString(q.AsDec().String())
		if name == cpu {
			exact.Mul(exact, big.NewRat(1000, 1))
		}
		if err != nil {
			least := new(big.Rat).SetInt64(Greatest)
			require.True(t, exact.Sign() < 0 || exact.Cmp(least) > 0, "%s is refused: %v", text, err)
			return
		}
		got, named := list.Get(name)
		require.True(t, named)
		require.Equal(t, ceil(exact).String(), big.NewInt(got).String(), text)
		again, err := FromQuantities(list.Quantities())
		require.NoError(t, err)
		require.True(t, list.Same(again))
		read, err := resource.ParseQuantity(Format(name, got))
		require.NoError(t, err)
		require.Equal(t, got, amount(name, read), "what people read is exact")
	})
}

func ceil(r *big.Rat) *big.Int {
	n, rest := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		n.Add(n, big.NewInt(1))
	}
	return n
}

// exponent of a number like 12e-34, without its sign.
func exponent(text string) int {
	n, seen := 0, false
	for _, c := range text {
		switch {
		case c == 'e' || c == 'E':
			seen = true
		case seen && c >= '0' && c <= '9':
			n = min(10*n+int(c-'0'), 1000)
		}
	}
	return n
}

// FuzzArithmetic: adding, subtracting and summing saturate and never wrap, in any order.
func FuzzArithmetic(f *testing.F) {
	f.Fuzz(func(t *testing.T, a, b, c int64) {
		x, y, z := big.NewInt(a), big.NewInt(b), big.NewInt(c)
		require.Equal(t, clamp(new(big.Int).Add(x, y)), SaturatingAdd(a, b))
		require.Equal(t, clamp(new(big.Int).Sub(x, y)), SaturatingSub(a, b))
		list := func(n int64) List { return FromMap(map[string]int64{"a": n}) }
		sum := new(big.Int).Add(new(big.Int).Add(x, y), z)
		for _, order := range [][]int64{{a, b, c}, {c, a, b}, {b, c, a}, {c, b, a}} {
			var s Sum
			for _, n := range order {
				s.Add(list(n))
			}
			require.Equal(t, clamp(sum), s.Get("a"), "the order does not matter")
			s.Sub(list(b))
			s.Sub(list(c))
			require.Equal(t, a, s.Get("a"), "what was added can be taken away, however large it was in between")
			s.Sub(list(a))
			require.True(t, s.IsZero())
		}
		floor, _ := list(a).Sub(list(b)).Floor0().Get("a")
		require.GreaterOrEqual(t, floor, int64(0))
	})
}
