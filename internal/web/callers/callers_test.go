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

package callers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"
)

// known opens each token as a caller of that name, and counts.
func known() (k *Known, clock *testclock.FakeClock, opened map[string]int) {
	clock, opened = testclock.NewFakeClock(time.Unix(1000, 0)), map[string]int{}
	return New(clock, func(_ context.Context, token string) (*Caller, error) {
		opened[token]++
		if token == "bad" {
			return nil, errors.New("unknown")
		}
		return &Caller{Name: token}, nil
	}), clock, opened
}

func TestKnown(t *testing.T) {
	k, clock, opened := known()
	ask := func(token string) *Caller {
		c, err := k.Of(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, token, c.Name)
		return c
	}
	red := ask("red")
	require.Same(t, red, ask("red"))
	require.NotSame(t, red, ask("blue"))
	require.Equal(t, map[string]int{"red": 1, "blue": 1}, opened)

	for range 2 {
		_, err := k.Of(t.Context(), "bad")
		require.EqualError(t, err, "unknown")
	}
	require.Equal(t, 2, opened["bad"], "a refusal is not kept")
	require.Len(t, k.kept.Keys(), 2)

	clock.Step(idle - 1)
	require.Same(t, red, ask("red"))
	clock.Step(2)
	require.Same(t, red, ask("red"))
	require.Len(t, k.kept.Keys(), 1, "blue asked for nothing since")
	clock.Step(idle + 1)
	require.NotSame(t, red, ask("red"))
}

func TestTheLeastRecentlyUsedGoes(t *testing.T) {
	k, clock, opened := known()
	for i := range most + 1 {
		clock.Step(time.Second / 4)
		_, err := k.Of(t.Context(), fmt.Sprint(i))
		require.NoError(t, err)
		_, err = k.Of(t.Context(), "0")
		require.NoError(t, err)
		require.LessOrEqual(t, len(k.kept.Keys()), most)
	}
	require.Len(t, k.kept.Keys(), most)
	for token, times := range map[string]int{"0": 1, "1": 2, "3": 1} {
		_, err := k.Of(t.Context(), token)
		require.NoError(t, err)
		require.Equal(t, times, opened[token], token)
	}
}

func TestBound(t *testing.T) {
	b := Bound{Each: 2, All: 3}
	first, ok := b.Enter("red")
	require.True(t, ok)
	_, ok = b.Enter("red")
	require.True(t, ok)
	_, ok = b.Enter("red")
	require.False(t, ok, "the limit of one")
	_, ok = b.Enter("blue")
	require.True(t, ok)
	_, ok = b.Enter("green")
	require.False(t, ok, "the limit of all")
	first()
	first()
	_, ok = b.Enter("red")
	require.True(t, ok)
	_, ok = b.Enter("green")
	require.False(t, ok, "one was given back once")
}
