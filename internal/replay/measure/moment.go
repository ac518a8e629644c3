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
	"cmp"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// moment is the state of a schedule between two changes.
type moment struct {
	from, to time.Duration
	held     int64 // processors
	waiting  int   // jobs

	sizes []int64 // of all jobs, in order
	sums  []int64 // the waiting processors by size, as a Fenwick tree
}

type change struct {
	at   time.Duration
	kind int
	job  int
	held int64
}

// Changes of one moment happen in this order.
const (
	ends = iota
	evicted
	submitted
	starts
)

// walk visits the moments of a schedule in order. The visitor may not keep the moment.
func walk(w *trace.Workload, holds []replay.Hold, visit func(*moment)) {
	m := &moment{}
	changes := make([]change, 0, len(w.Jobs)+2*len(holds))
	for i := range w.Jobs {
		m.sizes = append(m.sizes, w.Jobs[i].Size)
		changes = append(changes, change{at: w.Jobs[i].Submit, kind: submitted, job: i})
	}
	for _, h := range holds {
		end := change{at: h.End, kind: ends, job: h.Job, held: -h.Size}
		if h.Evicted {
			end.kind = evicted
		}
		changes = append(changes, change{at: h.Start, kind: starts, job: h.Job, held: h.Size}, end)
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.kind, b.kind)) })
	slices.Sort(m.sizes)
	m.sizes = slices.Compact(m.sizes)
	m.sums = make([]int64, len(m.sizes)+1)

	waits := make([]bool, len(w.Jobs))
	for _, c := range changes {
		if m.to = c.at; m.to > m.from {
			visit(m)
			m.from = m.to
		}
		m.held += c.held
		// A job that is resized has holds without a wait between them.
		if now := c.kind != starts; c.kind != ends && waits[c.job] != now {
			waits[c.job] = now
			m.wait(w.Jobs[c.job].Size, now)
		}
	}
}

// wait counts a job that begins to wait, or no longer waits.
func (m *moment) wait(size int64, begins bool) {
	n := 1
	if !begins {
		n, size = -1, -size
	}
	m.waiting += n
	at, _ := slices.BinarySearch(m.sizes, max(size, -size))
	for at++; at < len(m.sums); at += at & -at {
		m.sums[at] += size
	}
}

// fitting is how many processors the waiting jobs ask for that are not larger than what is free.
func (m *moment) fitting(free int64) (sum int64) {
	at, found := slices.BinarySearch(m.sizes, free)
	if found {
		at++
	}
	for ; at > 0; at -= at & -at {
		sum += m.sums[at]
	}
	return sum
}

// Point is the mean of a part of a schedule.
type Point struct {
	Waiting float64 // jobs
	Use     float64 // held processors, as a part of all
}

// Series divides a time into equal parts and returns the means of each.
func Series(w *trace.Workload, holds []replay.Hold, from, to time.Duration, parts int) []Point {
	points := make([]Point, parts)
	if to <= from {
		return points
	}
	length := float64(to-from) / float64(parts)
	walk(w, holds, func(m *moment) {
		for i := max(int(float64(m.from-from)/length)-1, 0); i < parts; i++ {
			part := span{from + time.Duration(float64(i)*length), from + time.Duration(float64(i+1)*length)}
			if part.from >= m.to {
				break
			}
			share := part.shared(m.from, m.to) / (part.to - part.from).Seconds()
			points[i].Waiting += share * float64(m.waiting)
			points[i].Use += share * float64(m.held) / float64(w.Processors)
		}
	})
	return points
}
