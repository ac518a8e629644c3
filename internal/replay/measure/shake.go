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

package measure

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// Shakes is how many times a workload is shaken to see which differences mean something.
const Shakes = 20

// Shaken returns the workload with each submission moved by up to a second and each run time by up to 1 %. Equal seeds
// give equal workloads.
func Shaken(w *trace.Workload, seed uint64) *trace.Workload {
	random := rand.New(rand.NewPCG(seed, 1))
	part := func(most float64) time.Duration { return time.Duration((2*random.Float64() - 1) * most) }
	out := &trace.Workload{Processors: w.Processors, Jobs: slices.Clone(w.Jobs)}
	for i := range out.Jobs {
		j := &out.Jobs[i]
		j.Submit = max(j.Submit+part(float64(time.Second)), 0)
		j.Run = max(j.Run+part(float64(j.Run)/100), 1)
		if j.Limit > 0 {
			j.Run = min(j.Run, j.Limit)
		}
	}
	out.Sort()
	return out
}

// Range is a figure of several runs. A difference that is less than the range of either is none.
type Range struct{ Mean, Low, High float64 }

// RangeOf some figures.
func RangeOf(figures []float64) Range {
	r := Range{Low: slices.Min(figures), High: slices.Max(figures)}
	for _, x := range figures {
		r.Mean += x / float64(len(figures))
	}
	return r
}
