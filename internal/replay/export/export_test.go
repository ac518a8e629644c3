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

package export

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

const second = time.Second

func TestJobs(t *testing.T) {
	w := &trace.Workload{Processors: 4, Jobs: []trace.Job{
		{ID: "1", Run: 10 * second, Size: 2},
		{ID: "2", Submit: second, Run: 2500 * time.Millisecond, Limit: 3 * second, Size: 1},
		{ID: "3", Submit: second, Run: 4 * second, Limit: 4 * second, Size: 2},
		{ID: "4", Submit: 2 * second, Run: 4 * second, Size: 1},
	}}
	var b bytes.Buffer
	require.NoError(t, Jobs(&b, "trace", w, []replay.Hold{
		{Job: 0, Start: 0, End: 3 * second, Size: 2, Evicted: true},
		{Job: 1, Start: second, End: 3500 * time.Millisecond, Size: 1},
		{Job: 2, Start: 3 * second, End: 7 * second, Size: 2},
		{Job: 0, Start: 4 * second, End: 14 * second, Size: 2},
	}))
	require.Equal(t, `job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,`+
		`final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,`+
		`consumed_energy,metadata
1,trace,delay,0,2,-1,1,COMPLETED_SUCCESSFULLY,0,14,14,0,14,1.000000,2-3,-1,
2,trace,delay,1,1,3,1,COMPLETED_SUCCESSFULLY,1,2.5,3.5,0,2.5,1.000000,2,-1,
3,trace,delay,1,2,4,0,COMPLETED_WALLTIME_REACHED,3,4,7,2,6,1.500000,0-1,-1,
`, b.String())
}

// No processor has two holds at once, each hold has as many as it asks for, and all are of the machine.
func TestAllocation(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w, err := trace.Lublin(rapid.IntRange(1, effort.Steps(80)).Draw(t, "jobs"),
			rapid.Int64Range(1, 20).Draw(t, "processors"), rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		for i := range w.Jobs {
			w.Jobs[i].Submit /= 100
		}
		holds, err := replay.References()[3].Replay(w, func(int) error { return nil })
		require.NoError(t, err)
		texts := allocate(w.Processors, holds)
		busy := make([]time.Duration, w.Processors)
		for i, h := range holds {
			n := int64(0)
			for part := range strings.SplitSeq(texts[i], " ") {
				for _, p := range processors(t, part) {
					require.LessOrEqual(t, busy[p], h.Start)
					busy[p] = h.End
					n++
				}
			}
			require.Equal(t, h.Size, n)
		}
	})
}

func processors(t *rapid.T, part string) (all []int64) {
	low, high, several := strings.Cut(part, "-")
	if !several {
		high = low
	}
	for p := parse(t, low); p <= parse(t, high); p++ {
		all = append(all, p)
	}
	return all
}

func parse(t *rapid.T, number string) int64 {
	n, err := strconv.ParseInt(number, 10, 64)
	require.NoError(t, err)
	return n
}

func TestPlot(t *testing.T) {
	for _, n := range []int{1, 2, 400} {
		w, err := trace.Lublin(n, 16, 1)
		require.NoError(t, err)
		var schedules []Schedule
		for _, p := range replay.References() {
			holds, err := p.Replay(w, func(int) error { return nil })
			require.NoError(t, err)
			schedules = append(schedules, Schedule{Policy: p.Name + "<&", Holds: holds})
		}
		var b bytes.Buffer
		require.NoError(t, Plot(&b, w, schedules))
		lines := 0
		texts := ""
		for decoder := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			switch token := token.(type) {
			case xml.StartElement:
				if token.Name.Local == "polyline" {
					lines++
				}
			case xml.CharData:
				texts += string(token)
			}
		}
		require.Equal(t, 2*len(schedules), lines)
		require.Contains(t, texts, "easy-exact<&")
		require.NotContains(t, b.String(), "NaN")
		require.NotContains(t, b.String(), "Inf")
		require.NoError(t, Plot(&b, w, nil))
	}
}

func TestTicks(t *testing.T) {
	for most, want := range map[float64][]float64{
		100: {0, 20, 40, 60, 80, 100}, 1: {0, 0.2, 0.4, 0.6, 0.8, 1}, 47: {0, 10, 20, 30, 40}, 0: {0},
		7: {0, 1, 2, 3, 4, 5, 6, 7}, 2345: {0, 500, 1000, 1500, 2000},
	} {
		require.Equal(t, want, ticks(most), "%v", most)
	}
}
