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

package unit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// TestSizesOfHostileUnits: counts and amounts that overflow when they are multiplied or added.
func TestSizesOfHostileUnits(t *testing.T) {
	huge := resources.FromMap(map[string]int64{"cpu": math.MaxInt64, "gpu": math.MaxInt32})
	sets := make([]PodSetSize, 64)
	for i := range sets {
		sets[i] = PodSetSize{Count: math.MaxInt32, Least: math.MinInt64, Request: huge}
	}
	sets[1] = PodSetSize{Count: math.MaxInt64, Least: 1, Request: huge}
	sets[2] = PodSetSize{Count: -1, Least: 5}
	sets[3] = PodSetSize{Count: 0, Least: 1, Request: huge}
	s := NewSizes(sets)
	whole, pods := s.At(0)
	require.EqualValues(t, math.MaxInt64, pods)
	cpu, _ := whole.Get("cpu")
	require.EqualValues(t, math.MaxInt64, cpu)
	for _, step := range []int64{0, 1, s.steps / 3, s.steps - 1, s.steps} {
		for i, n := range s.Counts(step) {
			require.LessOrEqual(t, n, sets[i].Count)
			require.GreaterOrEqual(t, n, sets[i].Fewest())
		}
	}
	require.EqualValues(t, 1, s.Counts(s.steps)[0])
	require.Nil(t, NewSizes([]PodSetSize{{Count: 3, Least: 3}, {Count: 1}}), "none has pods to spare")
	require.Nil(t, (*Sizes)(nil).Fixed())
}
