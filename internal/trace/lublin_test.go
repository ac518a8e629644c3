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

package trace

import (
	"math"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The values are those of the model as its authors published it, from a long sample.
func TestLublinFollowsTheModel(t *testing.T) {
	w, err := Lublin(200_000, 128, 1)
	require.NoError(t, err)
	n := float64(len(w.Jobs))
	var serial, powers, size, gap, far, near, at float64
	runs := make([]float64, 0, len(w.Jobs))
	last := time.Duration(0)
	for _, j := range w.Jobs {
		size += float64(j.Size)
		gap += (j.Submit - last).Seconds()
		require.GreaterOrEqual(t, j.Submit, last)
		last = j.Submit
		switch {
		case j.Size == 1:
			serial++
		case bits.OnesCount64(uint64(j.Size)) == 1:
			powers++
		}
		require.True(t, j.Size >= 1 && j.Size <= 128 && j.Run >= time.Second && j.Limit >= j.Run, "%+v", j)
		switch part := j.Run.Seconds() / j.Limit.Seconds(); {
		case part < 0.1:
			far++
		case part > 0.9:
			near++
		}
		if j.Run == j.Limit {
			at++
		}
		runs = append(runs, j.Run.Seconds())
	}
	slices.Sort(runs)
	for _, c := range []struct {
		what           string
		want, got, off float64
	}{
		{"serial", 0.243, serial / n, 0.003},
		{"power of two", 0.626, powers / n, 0.004},
		{"mean size", 12.2, size / n, 0.2},
		{"median run", 106, runs[len(runs)/2], 5},
		{"run p90", 14_650, runs[len(runs)*9/10], 300},
		{"run p99", 34_100, runs[len(runs)*99/100], 700},
		{"mean gap", 906, gap / n, 15},
		{"far below the limit", 0.27, far / n, 0.01},
		{"close to the limit", 0.23, near / n, 0.02},
		{"at the limit", 0.06, at / n, 0.01},
	} {
		t.Logf("%s: %.3f, of the model %.3f", c.what, c.got, c.want)
		require.InDelta(t, c.want, c.got, c.off, c.what)
	}
}

func TestLublinIsGivenBySeedAndFitsTheMachine(t *testing.T) {
	for _, processors := range []int64{1, 2, 3, 5, 100, 1 << 20, MaxProcessors} {
		one, err := Lublin(500, processors, 7)
		require.NoError(t, err)
		same, err := Lublin(500, processors, 7)
		require.NoError(t, err)
		other, err := Lublin(500, processors, 8)
		require.NoError(t, err)
		require.Equal(t, one, same)
		require.NotEqual(t, one, other)
		for _, j := range one.Jobs {
			require.True(t, j.Size >= 1 && j.Size <= processors, "%+v", j)
		}
	}
	for jobs, processors := range map[int]int64{0: 1, MaxJobs + 1: 1, 1: 0, 2: MaxProcessors + 1} {
		_, err := Lublin(jobs, processors, 1)
		require.ErrorContains(t, err, "must be between 1 and")
	}
}

func TestDayWeights(t *testing.T) {
	weights := dayWeights()
	total := 0.0
	for _, weight := range weights {
		total += weight
	}
	require.InDelta(t, buckets, total, 1e-9)
	busiest := slices.Index(weights[:], slices.Max(weights[:]))
	require.InDelta(t, 27, busiest, 1, "early afternoon")
	require.Equal(t, slices.Min(weights[:]), math.Min(weights[firstBucket], weights[firstBucket-1]))
}
