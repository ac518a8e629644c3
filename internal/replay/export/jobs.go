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

// Package export writes schedules for other programs: the table of jobs that tools of Batsim read, and a plot.
package export

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// Jobs writes a schedule as Batsim writes its jobs.csv: a row for each job that was started. A job with several holds
// runs from the first start to the last end there, on the processors of the last hold.
func Jobs(out io.Writer, workload string, w *trace.Workload, holds []replay.Hold) error {
	table := csv.NewWriter(out)
	rows := [][]string{{
		"job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources", "requested_time",
		"success", "final_state", "starting_time", "execution_time", "finish_time", "waiting_time", "turnaround_time",
		"stretch", "allocated_resources", "consumed_energy", "metadata",
	}}
	started, last := make([]*replay.Hold, len(w.Jobs)), make([]int, len(w.Jobs))
	for i := range holds {
		h := &holds[i]
		if started[h.Job] == nil {
			started[h.Job] = h
		}
		last[h.Job] = i
	}
	processors := allocate(w.Processors, holds)
	for i := range w.Jobs {
		if started[i] == nil {
			continue
		}
		j, start, end := &w.Jobs[i], started[i].Start, holds[last[i]].End
		limit, success, state := "-1", "1", "COMPLETED_SUCCESSFULLY"
		if j.Limit > 0 {
			limit = decimal(j.Limit)
			if j.Run == j.Limit {
				success, state = "0", "COMPLETED_WALLTIME_REACHED"
			}
		}
		stretch := (end - j.Submit).Seconds() / (end - start).Seconds()
		rows = append(rows, []string{
			j.ID, workload, "delay", decimal(j.Submit), strconv.FormatInt(j.Size, 10), limit, success, state, decimal(start),
			decimal(end - start), decimal(end), decimal(start - j.Submit), decimal(end - j.Submit),
			strconv.FormatFloat(stretch, 'f', 6, 64), processors[last[i]], "-1", "",
		})
	}
	return table.WriteAll(rows)
}

func decimal(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) }

// interval is processors from the first to the last.
type interval struct{ from, to int64 }

// allocate gives each hold processors by number, the lowest that are free, as text.
func allocate(processors int64, holds []replay.Hold) []string {
	type change struct {
		at     time.Duration
		starts bool
		hold   int
	}
	changes := make([]change, 0, 2*len(holds))
	for i, h := range holds {
		changes = append(changes, change{h.Start, true, i}, change{h.End, false, i})
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		switch {
		case a.at != b.at || a.starts == b.starts:
			return cmp.Compare(a.at, b.at)
		case a.starts:
			return 1
		}
		return -1
	})
	free := []interval{{0, processors - 1}}
	held, texts := make([][]interval, len(holds)), make([]string, len(holds))
	for _, c := range changes {
		if !c.starts {
			free = release(free, held[c.hold])
			held[c.hold] = nil
			continue
		}
		held[c.hold], free = lowest(free, holds[c.hold].Size)
		texts[c.hold] = text(held[c.hold])
	}
	return texts
}

// lowest takes processors from the front of the free ones.
func lowest(free []interval, size int64) (taken, rest []interval) {
	for len(free) > 0 && size > 0 {
		n := min(size, free[0].to-free[0].from+1)
		taken = append(taken, interval{free[0].from, free[0].from + n - 1})
		size -= n
		if free[0].from += n; free[0].from > free[0].to {
			free = free[1:]
		}
	}
	return taken, free
}

// release merges sorted intervals into the sorted free ones.
func release(free, held []interval) []interval {
	all := make([]interval, 0, len(free)+len(held))
	for len(free)+len(held) > 0 {
		from := &free
		if len(free) == 0 || len(held) > 0 && held[0].from < free[0].from {
			from = &held
		}
		next := (*from)[0]
		*from = (*from)[1:]
		if n := len(all); n > 0 && all[n-1].to+1 == next.from {
			all[n-1].to = next.to
		} else {
			all = append(all, next)
		}
	}
	return all
}

func text(processors []interval) string {
	parts := make([]string, len(processors))
	for i, p := range processors {
		parts[i] = fmt.Sprintf("%d-%d", p.from, p.to)
		if p.from == p.to {
			parts[i] = strconv.FormatInt(p.from, 10)
		}
	}
	return strings.Join(parts, " ")
}
