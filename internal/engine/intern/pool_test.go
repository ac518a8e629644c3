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

package intern

import (
	"errors"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPool(t *testing.T) {
	pool := NewPool(func(seed maphash.Seed, v []int) uint64 { return maphash.Comparable(seed, len(v)) },
		slices.Equal[[]int])
	first, second := pool.Of([]int{1}), pool.Of([]int{1})
	require.Same(t, &first[0], &second[0])
	other := pool.Of([]int{2})
	require.Equal(t, []int{2}, other, "the same hash is not the same value")
	again := pool.Of([]int{1})
	require.Equal(t, []int{1}, again)
	require.Nil(t, pool.Of(nil))
}

func TestTexts(t *testing.T) {
	made := 0
	texts := NewTexts(func(text string) (*string, error) {
		if made++; text == "bad" {
			return nil, errors.New("bad")
		}
		return &text, nil
	})
	of := func(text string) *string {
		bytes := []byte(text)
		value, err := texts.Of(bytes)
		require.NoError(t, err)
		clear(bytes)
		return value
	}
	a := of("a")
	require.Same(t, a, of("a"))
	require.Equal(t, "a", *a)
	for i := range 10_000 { // more than are remembered
		text := strconv.Itoa(i)
		require.Equal(t, text, *of(text))
	}
	long := strings.Repeat("x", maxText+1)
	require.NotSame(t, of(long), of(long))
	before := made
	for range 2 {
		_, err := texts.Of([]byte("bad"))
		require.Error(t, err)
	}
	require.Equal(t, before+2, made)
}
