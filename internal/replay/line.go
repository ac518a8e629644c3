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
	"math"
	"math/bits"
	"time"
)

// line has the waiting jobs of a workload in its order. It is a tree: node n has the children 2n and 2n+1, and each job
// of the workload has a leaf. A node has the least size and the least believed run time of the waiting jobs below.
type line struct {
	leaves   int
	size     []int64
	believed []time.Duration
}

// gap is what is free for a job: a number of processors for a window of time, of which some are spare for longer.
type gap struct {
	size, spare int64
	window      time.Duration
}

// anything waits in this gap.
var anything = gap{size: math.MaxInt64 - 1, window: math.MaxInt64}

func newLine(jobs int) *line {
	l := &line{leaves: 1 << bits.Len(uint(max(jobs, 1)-1))}
	l.size, l.believed = make([]int64, 2*l.leaves), make([]time.Duration, 2*l.leaves)
	for i := range l.size {
		l.size[i] = math.MaxInt64
		l.believed[i] = math.MaxInt64
	}
	return l
}

func (l *line) add(job int, size int64, believed time.Duration) { l.set(job, size, believed) }

func (l *line) remove(job int) { l.set(job, math.MaxInt64, math.MaxInt64) }

func (l *line) set(job int, size int64, believed time.Duration) {
	node := l.leaves + job
	l.size[node], l.believed[node] = size, believed
	for node /= 2; node > 0; node /= 2 {
		l.size[node] = min(l.size[2*node], l.size[2*node+1])
		l.believed[node] = min(l.believed[2*node], l.believed[2*node+1])
	}
}

// fits says whether the job of a leaf fits into a gap, and of other nodes whether it is worth to look below.
func (l *line) fits(node int, g gap) bool {
	return l.size[node] <= g.size && (l.believed[node] <= g.window || l.size[node] <= g.spare)
}

// first returns the first waiting job that fits into a gap, from a job on, or -1.
func (l *line) first(from int, g gap) int {
	if from >= l.leaves {
		return -1
	}
	return l.below(1, l.leaves, from, g)
}

// below looks below a node of so many leaves, from one of them on.
func (l *line) below(node, leaves, from int, g gap) int {
	if !l.fits(node, g) {
		return -1
	}
	if leaves == 1 {
		return node - l.leaves
	}
	leaves /= 2
	if from < leaves {
		if job := l.below(2*node, leaves, from, g); job >= 0 {
			return job
		}
		from = leaves
	}
	return l.below(2*node+1, leaves, from-leaves, g)
}
