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

package forecast

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Ended is a run that is over.
type Ended struct {
	User, Queue string
	// Size is the key of what was requested.
	Size string
	// Limit is for how long it was allowed to run; zero for no limit. Ran is for how long it held quota.
	Limit, Ran time.Duration
}

// Runs are past runs, which say how long other runs may take.
type Runs struct {
	ended []Ended
	pools map[likeness][]float64
	// checks has the seconds that admission checks of each queue took, in ascending order.
	checks map[string][]float64
}

// Bounds of what is drawn from.
const (
	mostAlike   = 30
	mostOfQueue = 300
	// fewest runs of a user say something.
	fewest = 3
)

// NewRuns has the newest run first.
func NewRuns(newestFirst []Ended) *Runs {
	return &Runs{ended: newestFirst, pools: map[likeness][]float64{}, checks: map[string][]float64{}}
}

// Checked says how long the admission checks of units of a queue took.
func (r *Runs) Checked(queue string, took ...time.Duration) {
	for _, d := range took {
		r.checks[queue] = append(r.checks[queue], d.Seconds())
	}
	slices.Sort(r.checks[queue])
}

// likeness of runs; a part that it does not name may differ. Users choose limits that are far from their run times, and
// farther for long limits. So the limit counts before all runs of a user do.
type likeness struct {
	user, queue, size string
	limit             time.Duration
	limited           bool
}

// of are the runs that are most alike, in ascending order: as parts of their limits, or in seconds without one.
func (r *Runs) of(like Ended) []float64 {
	limited := like.Limit > 0
	for _, l := range []likeness{
		{like.User, like.Queue, like.Size, like.Limit, limited},
		{user: like.User, queue: like.Queue, limit: like.Limit, limited: limited},
		{user: like.User, limited: limited},
	} {
		if pool := r.pool(l, mostAlike); len(pool) >= fewest {
			return pool
		}
	}
	return r.pool(likeness{queue: like.Queue, limited: limited}, mostOfQueue)
}

func (r *Runs) pool(l likeness, most int) []float64 {
	pool, known := r.pools[l]
	if known {
		return pool
	}
	for i := range r.ended {
		e := &r.ended[i]
		other := (e.Limit > 0) != l.limited || l.user != "" && e.User != l.user || l.queue != "" && e.Queue != l.queue ||
			l.size != "" && e.Size != l.size || l.limit > 0 && e.Limit != l.limit
		if other {
			continue
		}
		value := e.Ran.Seconds()
		if l.limited {
			value /= e.Limit.Seconds()
		}
		if pool = append(pool, value); len(pool) == most {
			break
		}
	}
	slices.Sort(pool)
	r.pools[l] = pool
	return pool
}

// take is a run of at least what has passed: the one at a part of all that are longer. If none is, what has passed
// passes once more.
func take(pool []float64, limit, passed time.Duration, part float64) time.Duration {
	scale := 1.0
	if limit > 0 {
		scale = limit.Seconds()
	}
	first, _ := slices.BinarySearch(pool, math.Nextafter(passed.Seconds()/scale, math.MaxFloat64))
	d := 2 * passed
	if longer := pool[first:]; len(longer) > 0 {
		at := min(int(part*float64(len(longer))), len(longer)-1)
		d = time.Duration(longer[at] * scale * float64(time.Second))
	}
	if limit > 0 {
		d = min(d, limit)
	}
	return d
}

// part of one is the same for a unit in each draw of a number, whatever else is asked.
func part(draw int, key string) float64 {
	if draw == middle {
		return 0.5
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(draw))).Float64() //nolint:gosec // no secret is drawn
}
