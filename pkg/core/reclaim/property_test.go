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

package reclaim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// world is a quota tree with units, and says by plain sums over all of them what the package has to say.
type world struct {
	names  []string // of quotas, the parent before its children
	parent map[string]string
	leaves []string
	// min and max of quotas; max of the root is what there is, and a max that is not named is none.
	min, max map[string]map[string]int64
	units    []*job
	policy   queue.Preemption // of all queues
	// protect are the protected units, until a time. bare is the amount of pods without a unit, by leaf.
	protect  map[string]holders.Protection
	until    time.Time
	bare     map[string]map[string]int64
	now      time.Time // of units that are judged
	obstacle Obstacle  // of the last search
	// inQueue: rights are those within a queue.
	inQueue bool
}

type job struct {
	name, leaf, queue string
	gang, gangs       string // gang group, and those of it that the job is of
	asks              map[string]int64
	holds, lost       bool // lost: it held quota when the search began
	leaves, unsure    bool // by itself, and that is not sure
	promised          bool // waits, and its victims are gone already
	expected          bool // is served together with the preemptor, or not at all
	cost              cost
	uncounted         int32      // its object names a priority that is greater by this, which counts for nothing
	judged            *unit.Unit // its cost is that of this unit
}

// cost of the preemption of a job.
type cost struct {
	Priority  int32
	Evictions int64
	ranFor    time.Duration
}

var kinds = []string{"cpu", "gpu"}

// drawWorld draws a nested tree in which each parent has at least the mins of its children, and the cluster all mins.
// Some mins do not name gpu, unless all is named.
func drawWorld(t *rapid.T, all bool) *world {
	w := &world{parent: map[string]string{}, min: map[string]map[string]int64{}, max: map[string]map[string]int64{}}
	var below func(parent string, depth int) map[string]int64
	below = func(parent string, depth int) map[string]int64 {
		sum := map[string]int64{}
		for i := range rapid.IntRange(1, 3).Draw(t, "children") {
			name := fmt.Sprintf("%s%c", parent, 'a'+i)
			w.names, w.parent[name] = append(w.names, name), parent
			least := map[string]int64{}
			if depth < 2 && rapid.Bool().Draw(t, "nested") {
				least = below(name, depth+1)
			} else {
				w.leaves = append(w.leaves, name)
			}
			w.max[name] = map[string]int64{}
			for _, kind := range kinds {
				least[kind] += rapid.SampledFrom([]int64{0, 1, 2, 4}).Draw(t, "min")
				sum[kind] += least[kind]
				if rapid.Bool().Draw(t, "bounded") {
					w.max[name][kind] = least[kind] + rapid.Int64Range(0, 4).Draw(t, "max")
				}
			}
			if !all && rapid.IntRange(0, 3).Draw(t, "unnamed") == 0 {
				delete(least, "gpu")
			}
			w.min[name] = least
		}
		return sum
	}
	w.policy.Reclaim = queue.VictimsAny
	if rapid.Bool().Draw(t, "in queues") {
		w.policy.WithinQueue = queue.VictimsOfLowerPriority
	}
	w.names = []string{"root"}
	promised := below("root", 0)
	w.max["root"] = map[string]int64{}
	for _, kind := range kinds {
		w.max["root"][kind] = promised[kind] + rapid.SampledFrom([]int64{0, 1}).Draw(t, "unpromised")
	}
	for i := range rapid.SampledFrom([]int{8, 16, 24}).Draw(t, "units") {
		j := &job{
			name: fmt.Sprint(i), leaf: rapid.SampledFrom(w.leaves).Draw(t, "leaf"), asks: map[string]int64{},
			queue: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "queue"),
			cost:  cost{Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority"))},
		}
		j.uncounted = rapid.SampledFrom([]int32{0, 0, 9}).Draw(t, "uncounted")
		j.gang = rapid.SampledFrom([]string{"", "", "g", "h"}).Draw(t, "gang group")
		j.gangs = rapid.SampledFrom([]string{"x", "y", "z", "x,y"}).Draw(t, "gangs")
		for _, kind := range kinds {
			j.asks[kind] = rapid.SampledFrom([]int64{0, 1, 2, 2, 3}).Draw(t, kind)
			if i == 0 { // an owner that wants much of its min
				j.asks[kind] = w.min[j.leaf][kind] / rapid.SampledFrom([]int64{1, 1, 2}).Draw(t, "part")
			}
		}
		w.units = append(w.units, j)
	}
	return w
}

func (w *world) path(leaf string) (names []string) {
	for at := leaf; at != ""; at = w.parent[at] {
		names = append(names, at)
	}
	return names
}

func (w *world) inUse(level, kind string, gone []*job) int64 {
	return w.held(level, kind, gone) + w.bareAt(level, kind)
}

// bareAt is what pods use that belong to no unit.
func (w *world) bareAt(level, kind string) (sum int64) {
	for leaf, uses := range w.bare {
		if slices.Contains(w.path(leaf), level) {
			sum += uses[kind]
		}
	}
	return sum
}

// held is what units hold.
func (w *world) held(level, kind string, gone []*job) (sum int64) {
	for _, j := range w.units {
		if (j.holds || j.promised) && !slices.Contains(gone, j) && slices.Contains(w.path(j.leaf), level) {
			sum += j.asks[kind]
		}
	}
	return sum
}

// comesTo is what is in use once all are served together that are to be, but for the unit itself.
func (w *world) comesTo(level, kind string, j *job, gone []*job) int64 {
	sum := w.inUse(level, kind, gone)
	for _, o := range w.units {
		if o.expected && o != j && !o.promised && slices.Contains(w.path(o.leaf), level) {
			sum += o.asks[kind]
		}
	}
	return sum
}

// shortAt says of what there is too little for a unit at one of its levels.
func (w *world) shortAt(level string, j *job, gone []*job) (short []string) {
	for _, kind := range kinds {
		n, used := j.asks[kind], w.inUse(level, kind, gone)
		if most, bounded := w.max[level][kind]; bounded && n > 0 && used+n > most {
			short = append(short, kind)
		}
	}
	return short
}

func (w *world) shortOf(j *job, gone []*job) (short []string) {
	for _, level := range w.path(j.leaf) {
		short = append(short, w.shortAt(level, j, gone)...)
	}
	return short
}

func (w *world) fits(j *job, gone []*job) bool { return len(w.shortOf(j, gone)) == 0 }

// withinMin says that the quota of a unit is within its min with it. The same must hold above, for short resources,
// below the first shared level.
func (w *world) withinMin(j *job, shared func(level string) bool, gone []*job) bool {
	for _, x := range w.path(j.leaf) {
		if shared(x) {
			break
		}
		for _, kind := range kinds {
			least, named := w.min[x][kind]
			n, short := j.asks[kind], slices.Contains(w.shortOf(j, gone), kind)
			if n > 0 && (!named && short || named && (short || x == j.leaf) && w.comesTo(x, kind, j, gone)+n > least) {
				return false
			}
		}
	}
	return true
}

// together are the units that hold quota and are preempted with a unit. In a gang group that is the first admitted one
// of each gang.
func (w *world) together(v *job) (all []*job) {
	if !w.isFirst(v) {
		return []*job{v}
	}
	for _, o := range w.units {
		if o.gang == v.gang && w.isFirst(o) {
			all = append(all, o)
		}
	}
	return all
}

// isFirst says that a unit of a gang group was admitted as the first one of a gang.
func (w *world) isFirst(v *job) bool {
	members := slices.DeleteFunc(slices.Clone(w.units), func(o *job) bool {
		return o.gang == "" || o.gang != v.gang || !o.holds && !o.lost || o.leaves
	})
	slices.SortStableFunc(members, func(a, b *job) int { return cmp.Compare(b.cost.ranFor, a.cost.ranFor) })
	return slices.ContainsFunc(strings.Split(v.gangs, ","), func(gang string) bool {
		first := slices.IndexFunc(members, func(o *job) bool { return slices.Contains(strings.Split(o.gangs, ","), gang) })
		return first >= 0 && members[first] == v
	})
}

// right says whether a unit may preempt another one, with its gang group, when these are gone.
func (w *world) right(j, v *job, gone []*job) bool {
	lowest := v.cost.Priority
	for _, o := range w.together(v) {
		lowest = min(lowest, o.cost.Priority)
	}
	for _, o := range w.together(v) {
		part := *o
		if part.cost.Priority = lowest; v.holds && !slices.Contains(gone, v) && w.rightTo(j, &part, gone) {
			return true
		}
	}
	return false
}

// rightTo says so of what is held in one quota.
func (w *world) rightTo(j, v *job, gone []*job) bool {
	short := w.shortOf(j, gone)
	mine, its := w.path(j.leaf), w.path(v.leaf)
	shared := func(level string) bool { return slices.Contains(mine, level) && slices.Contains(its, level) }
	if w.inQueue {
		short = append(short, w.raised(j, gone)...)
	}
	reclaims := w.policy.Reclaim == queue.VictimsAny ||
		w.policy.Reclaim == queue.VictimsOfLowerPriority && v.cost.Priority < j.cost.Priority
	helps := slices.ContainsFunc(short, func(kind string) bool { return v.asks[kind] > 0 })
	if w.inQueue {
		return helps && j.queue == v.queue && j.leaf == v.leaf && v.cost.Priority < j.cost.Priority
	}
	if !reclaims || j.leaf == v.leaf || !w.withinMin(j, shared, gone) {
		return false
	}
	over := func(y string) bool {
		return slices.ContainsFunc(short, func(kind string) bool {
			return v.asks[kind] > 0 && w.comesTo(y, kind, j, gone)-w.bareAt(y, kind) > w.min[y][kind]
		})
	}
	for _, y := range its {
		if shared(y) {
			return helps
		}
		if !over(y) {
			return false
		}
	}
	return false
}

// entitled says whether a unit has the right to each of these in turn, and fits then. Those of a gang group follow one
// another.
func (w *world) entitled(j *job, set []*job) bool {
	for i := 0; i < len(set); {
		with := w.together(set[i])
		apart := func(o *job) bool { return !slices.Contains(set[i:min(i+len(with), len(set))], o) }
		if slices.ContainsFunc(with, apart) || !w.right(j, set[i], set[:i]) {
			return false
		}
		i += len(with)
	}
	return w.fits(j, set) && (!w.inQueue || len(w.raised(j, set)) == 0)
}

// raised is of what a unit needs more than these give back, so that a level has more than its min.
func (w *world) raised(j *job, gone []*job) (raised []string) {
	for _, kind := range kinds {
		n := j.asks[kind]
		for _, v := range gone {
			if v.leaf == j.leaf {
				n -= v.asks[kind]
			}
		}
		for _, x := range w.path(j.leaf) {
			if n > 0 && x != "root" && w.inUse(x, kind, gone)+j.asks[kind] > w.min[x][kind] {
				raised = append(raised, kind)
			}
		}
	}
	return raised
}

// search asks the package about one.
func (w *world) search(j *job) []*job {
	if sets := w.searchTogether(j); sets != nil {
		return sets[0]
	}
	return nil
}

func (w *world) searchTogether(jobs ...*job) (sets [][]*job) {
	in, requests := w.situation(jobs...)
	sets, w.obstacle = Together(in, requests)
	return sets
}

func (w *world) situation(jobs ...*job) (in *Situation[*job], requests []Request) {
	l := ledger.New()
	tree := capacity.NewTree(l)
	for _, name := range w.names {
		tree.Set(capacity.Quota{
			Name: name, Parent: w.parent[name], Min: resources.FromMap(w.min[name]), Limit: resources.FromMap(w.max[name]),
		})
	}
	for _, other := range w.units {
		if other.holds {
			l.Reserve(other.name, other.leaf, resources.FromMap(other.asks), false)
			tree.Changed(other.leaf)
		}
	}
	for leaf, uses := range w.bare {
		l.Reserve("no unit in "+leaf, leaf, resources.FromMap(uses), false)
		tree.Changed(leaf)
	}
	tree.Refresh()
	index, keys := holders.New[*job](tree), map[*job]string{}
	for i, other := range w.units {
		keys[other] = fmt.Sprintf("%03d", i)
		if asks := resources.FromMap(other.asks); other.leaves || other.holds {
			index.Set(other, w.hold(keys[other], other), asks)
		} else if other.promised {
			index.Promise(keys[other], other.leaf, asks, 1)
		}
	}
	index.Refresh(w.now)
	for _, j := range jobs {
		route := tree.Route(j.leaf)
		ask := &decide.Ask{Need: tree.Need(resources.FromMap(j.asks), 1), Limits: route.Limits(false), Route: route}
		requests = append(requests, Request{
			Key: keys[j], Ask: ask, Queue: j.queue, Priority: j.cost.Priority, Named: j.cost.Priority + j.uncounted,
			Policy: w.policy,
		})
	}
	return &Situation[*job]{Tree: tree, Index: index, Now: w.now}, requests
}

// hold is what the index is told of a job.
func (w *world) hold(key string, j *job) holders.Hold {
	h := holders.Hold{
		Key: key, UID: j.name, Quota: j.leaf, Leaves: j.leaves, Unsure: j.unsure, Evictions: j.cost.Evictions,
		GangGroup: j.gang, Gangs: j.gangs,
	}
	if j.judged != nil {
		h.Judge(j.judged, &queue.Preemption{}, false, false)
		h.Queue, h.Protection = j.queue, holders.Unprotected
		return h
	}
	h.Queue, h.Priority, h.Admitted = j.queue, j.cost.Priority, w.now.Add(-j.cost.ranFor)
	if h.Protection = w.protect[j.name]; h.Protection == holders.ByRunTime {
		h.Protection, h.Until = holders.Unprotected, w.until
	}
	return h
}

// Each set that is found is one that plain sums allow, and none of it can stay.
func TestSetsAreSufficientAndMinimal(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t, false)
		w.drawBarePods(t)
		for _, u := range w.units[1:] {
			if w.fits(u, nil) {
				state := rapid.SampledFrom([]string{"waits", "promised", "holds", "holds", "holds"}).Draw(t, "state")
				u.holds, u.promised = state == "holds", state == "promised"
			}
		}
		for _, j := range w.units {
			if j.holds || j.promised || w.fits(j, nil) {
				continue
			}
			set := w.search(j)
			if set == nil {
				for _, v := range w.units {
					require.False(t, w.entitled(j, w.together(v)), "%s alone is enough for %s", v.name, j.name)
					w.inQueue = w.policy.WithinQueue != queue.VictimsNone
					require.False(t, w.inQueue && w.entitled(j, w.together(v)), "%s alone is enough for %s", v.name, j.name)
					w.inQueue = false
				}
				continue
			}
			w.inQueue = !w.entitled(j, set)
			require.True(t, w.entitled(j, set), "%s may preempt its victims", j.name)
			w.requireBorrowed(t, set)
			for i := 0; i < len(set); {
				n := len(w.together(set[i]))
				require.False(t, w.entitled(j, slices.Delete(slices.Clone(set), i, i+n)), "%s could leave %s", j.name, set[i].name)
				i += n
			}
			w.inQueue = false
		}
	})
}

func (w *world) drawBarePods(t *rapid.T) {
	w.bare = map[string]map[string]int64{}
	for _, leaf := range w.leaves {
		if rapid.IntRange(0, 2).Draw(t, "pods of no unit") == 0 {
			pods := &job{leaf: leaf, asks: map[string]int64{}}
			for _, kind := range kinds {
				pods.asks[kind] = rapid.Int64Range(0, 4).Draw(t, kind)
			}
			if w.fits(pods, nil) {
				w.bare[leaf] = pods.asks
			}
		}
	}
}

// requireBorrowed: another quota preempts no unit whose own units, and those of its gang group, have at most their
// guarantees.
func (w *world) requireBorrowed(t *rapid.T, set []*job) {
	for _, v := range set {
		borrowed := w.inQueue
		for _, o := range w.together(v) {
			for _, kind := range kinds {
				borrowed = borrowed || w.held(o.leaf, kind, nil) > w.min[o.leaf][kind]
			}
		}
		require.True(t, borrowed, "%s is within what units of %s are promised", v.name, v.leaf)
	}
}

// Requests that are served together preempt one after the other. Each sees the requests before it as served. None of
// the victims can stay.
func TestSetsOfSeveralAreSufficientAndMinimal(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t, false)
		w.policy.WithinQueue = queue.VictimsNone
		for _, u := range w.units[2:] {
			u.holds = w.fits(u, nil) && rapid.IntRange(0, 3).Draw(t, "holds") > 0
		}
		jobs := w.units[:2]
		jobs[0].expected, jobs[1].expected = true, true
		within := true
		for _, j := range jobs {
			for _, kind := range kinds {
				least, named := w.min[j.leaf][kind]
				within = within && (j.asks[kind] == 0 || !named || w.comesTo(j.leaf, kind, j, nil)+j.asks[kind] <= least)
			}
		}
		// inTurn says whether each has the right to its set, and fits then.
		inTurn := func(sets [][]*job) bool {
			defer func() { jobs[0].promised = false }()
			if len(slices.Concat(sets...)) > 0 && !within {
				return false
			}
			for _, v := range sets[0] {
				defer func() { v.holds, v.lost = true, false }()
			}
			may := w.fits(jobs[0], nil) && len(sets[0]) == 0 || w.entitled(jobs[0], sets[0])
			for _, v := range sets[0] {
				v.holds, v.lost = false, true
			}
			jobs[0].promised = true
			return may && (w.fits(jobs[1], nil) && len(sets[1]) == 0 || w.entitled(jobs[1], sets[1]))
		}
		sets := w.searchTogether(jobs...)
		if sets == nil {
			if first := w.search(jobs[0]); first != nil && within {
				require.False(t, inTurn([][]*job{first, nil}), "the victims of the first are enough for both")
			}
			return
		}
		require.True(t, inTurn(sets), "they may preempt their victims")
		all := slices.Concat(sets...)
		for _, v := range all {
			rest := slices.DeleteFunc(slices.Clone(all), func(o *job) bool { return slices.Contains(w.together(v), o) })
			require.False(t, inSomeOrder(rest, func(rest []*job) bool {
				for n := range len(rest) + 1 {
					if inTurn([][]*job{rest[:n], rest[n:]}) {
						return true
					}
				}
				return false
			}), "%s could stay", v.name)
		}
	})
}

// The unit of b gives too little for both requests, and the second may preempt nobody. The unit of c gives enough.
func TestTheFirstOfSeveralTakesWhatIsEnoughForAll(t *testing.T) {
	gpus := func(n int64) map[string]int64 { return map[string]int64{"gpu": n} }
	w := &world{
		names: []string{"root", "a", "b", "c"}, leaves: []string{"a", "b", "c"},
		parent: map[string]string{"a": "root", "b": "root", "c": "root"},
		min:    map[string]map[string]int64{"a": gpus(1), "b": {}, "c": gpus(1)},
		max:    map[string]map[string]int64{"root": gpus(4), "a": {}, "b": {}, "c": {}},
		policy: queue.Preemption{Reclaim: queue.VictimsAny},
		units: []*job{
			{name: "0", leaf: "a", queue: "p", asks: gpus(1), expected: true},
			{name: "1", leaf: "b", queue: "p", asks: gpus(1), expected: true},
			{name: "2", leaf: "b", queue: "p", asks: gpus(1), holds: true},
			{name: "3", leaf: "c", queue: "p", asks: gpus(3), holds: true},
		},
	}
	require.Equal(t, [][]*job{{w.units[3]}, nil}, w.searchTogether(w.units[0], w.units[1]))
}

// inSomeOrder says that something is so of some order of a few units.
func inSomeOrder(units []*job, is func([]*job) bool) bool {
	if len(units) > 5 {
		return is(units)
	}
	var some func(first, rest []*job) bool
	some = func(first, rest []*job) bool {
		if len(rest) == 0 {
			return is(first)
		}
		for i, u := range rest {
			if some(append(slices.Clone(first), u), slices.Delete(slices.Clone(rest), i, i+1)) {
				return true
			}
		}
		return false
	}
	return some(nil, units)
}

// The owner of a min gets it, whatever others hold, and preemption ends. If no unit ends, no unit waits whose request
// is within the min of its quota and, for short resources, of the levels above.
func TestNoPromisedMinIsUnserved(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t, true)
		units := rapid.Permutation(w.units).Draw(t, "order")
		for again, rounds := true, 0; again; rounds++ {
			require.Less(t, rounds, 1000, "preemption does not end")
			again = false
			for _, j := range units {
				if j.holds {
					continue
				}
				set := []*job(nil)
				if !w.fits(j, nil) {
					if j.gang != "" { // such a job preempts nobody
						continue
					}
					if set = w.search(j); set == nil {
						continue
					}
				}
				for _, v := range set {
					v.holds = false
				}
				j.holds, again = true, true
			}
		}
		for _, j := range units {
			promised := !j.holds && j.gang == ""
			for _, level := range w.path(j.leaf) {
				for _, kind := range kinds {
					counts := level == j.leaf || level != "root" && slices.Contains(w.shortOf(j, nil), kind)
					promised = promised && (!counts || w.inUse(level, kind, nil)+j.asks[kind] <= w.min[level][kind])
				}
			}
			require.False(t, promised, "%s of %s waits, though it is within each min", j.name, j.leaf)
		}
	})
}

// A search in the index finds the same victims as a search in a list of all holders.
func TestAnIndexFindsWhatAScanFinds(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		w := drawWorld(t, false)
		w.now, w.protect = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), map[string]holders.Protection{}
		w.until = w.now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "until")) * time.Second)
		of := []queue.Victims{queue.VictimsAny, queue.VictimsOfLowerPriority}
		w.policy.Reclaim = rapid.SampledFrom(of).Draw(t, "reclaim")
		for _, u := range w.units[1:] {
			u.cost.Evictions = rapid.Int64Range(0, 1).Draw(t, "evictions")
			u.cost.ranFor = time.Duration(rapid.IntRange(0, 3).Draw(t, "ran for")) * time.Second
			for _, kind := range kinds { // holders of a class without the resource come in the order of admission
				u.asks[kind] = max(1, u.asks[kind])
			}
			if w.fits(u, nil) {
				u.holds = rapid.IntRange(0, 4).Draw(t, "holds") > 0
				u.leaves = u.holds && rapid.IntRange(0, 9).Draw(t, "leaves") == 0
				w.protect[u.name] = rapid.SampledFrom([]holders.Protection{
					holders.Unprotected, holders.Unprotected, holders.ByRunTime, holders.InFlight,
				}).Draw(t, "protection")
			}
		}
		for _, j := range w.units {
			if j.holds {
				continue
			}
			in, requests := w.situation(j)
			var all []*holders.Holder[*job]
			for _, l := range in.Index.Leaves() {
				for _, h := range l.Heads(in.Now, 0) {
					for ; h != nil; h = h.Next() {
						all = append(all, h)
					}
				}
			}
			found, _ := New(in, requests[0]).find(pool[*job]{})
			scanned, _ := New(in, requests[0]).find(listed(all))
			require.Equal(t, scanned, found)
		}
	})
}
