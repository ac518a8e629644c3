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

package replay

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// machine is the state of a replay at one moment.
type machine struct {
	jobs     []trace.Job
	believed func(*trace.Job) time.Duration

	now     time.Duration
	free    int64
	arrived int   // so many jobs of the workload
	waiting *line // of those that arrived
	running ends  // the next end is first
	expect  []end // of running jobs, in the order of believed ends
	holds   []Hold
	late    bool // the horizon is passed
}

// end is that of a running job.
type end struct {
	at, believed time.Duration
	job          int
}

func byBelief(a, b end) int {
	return cmp.Or(cmp.Compare(a.believed, b.believed), cmp.Compare(a.job, b.job))
}

// ends is a heap.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// advance goes to the next moment at which jobs end or arrive. There is none if it returns false.
func (m *machine) advance() bool {
	next := time.Duration(math.MaxInt64)
	if m.arrived < len(m.jobs) {
		next = m.jobs[m.arrived].Submit
	}
	if len(m.running) > 0 {
		next = min(next, m.running[0].at)
	}
	if next == math.MaxInt64 || m.late {
		return false
	}
	m.now = next
	for len(m.running) > 0 && m.running[0].at == next {
		over := m.running[0]
		heap.Pop(&m.running)
		m.free += m.jobs[over.job].Size
		if i, ok := slices.BinarySearchFunc(m.expect, over, byBelief); ok {
			m.expect = slices.Delete(m.expect, i, i+1)
		}
	}
	for ; m.arrived < len(m.jobs) && m.jobs[m.arrived].Submit == next; m.arrived++ {
		j := &m.jobs[m.arrived]
		m.waiting.add(m.arrived, j.Size, m.believed(j))
	}
	return true
}

// start starts a waiting job that fits.
func (m *machine) start(job int) {
	j := &m.jobs[job]
	e := end{at: m.now + j.Run, believed: m.now + m.believed(j), job: job}
	m.late = m.late || e.believed > horizon
	m.waiting.remove(job)
	m.free -= j.Size
	heap.Push(&m.running, e)
	i, _ := slices.BinarySearchFunc(m.expect, e, byBelief)
	m.expect = slices.Insert(m.expect, i, e)
	m.holds = append(m.holds, Hold{Job: job, Start: m.now, End: e.at, Size: j.Size})
}

// inOrder is first come, first served: no job starts before one that arrived earlier.
func (m *machine) inOrder() {
	m.startHeads()
}

// startHeads starts jobs in the order of arrival up to the first that does not fit. It returns that job, or -1.
func (m *machine) startHeads() int {
	for {
		head := m.waiting.first(0, anything)
		if head < 0 || m.jobs[head].Size > m.free {
			return head
		}
		m.start(head)
	}
}

// whateverFits starts each job that fits, in the order of arrival. Large jobs may starve.
func (m *machine) whateverFits() {
	for job := -1; m.free > 0; {
		if job = m.waiting.first(job+1, gap{size: m.free, window: math.MaxInt64}); job < 0 {
			return
		}
		m.start(job)
	}
}

// backfill is EASY: the first job that does not fit has a reservation at the time at which it will fit. Later jobs
// start if they fit and do not delay it: they end before that time, or use processors that the first leaves free.
func (m *machine) backfill() {
	head := m.startHeads()
	if head < 0 {
		return
	}
	at, spare := m.reservation(m.jobs[head].Size)
	for job := head; m.free > 0; {
		if job = m.waiting.first(job+1, gap{size: m.free, window: at - m.now, spare: spare}); job < 0 {
			return
		}
		if m.believed(&m.jobs[job]) > at-m.now {
			spare -= m.jobs[job].Size
		}
		m.start(job)
	}
}

// reservation is when a job of a size will fit as far as believed, and how many more processors are free then.
func (m *machine) reservation(size int64) (at time.Duration, spare int64) {
	free := m.free
	for i, e := range m.expect {
		if free >= size && e.believed > m.expect[i-1].believed {
			return m.expect[i-1].believed, free - size
		}
		free += m.jobs[e.job].Size
	}
	return m.expect[len(m.expect)-1].believed, free - size
}
