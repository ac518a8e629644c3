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
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// tree of quotas with one job after another, read from rows. A row is "quota min max", with the parent before a slash,
// or "job quota cpu gpu priority". The first job waits and the others hold; one with a dash leaves.
func tree(t *testing.T, quotas, jobs string) *world {
	t.Helper()
	w := &world{parent: map[string]string{}, min: map[string]map[string]int64{}, max: map[string]map[string]int64{}}
	w.policy.Reclaim = queue.VictimsAny
	for _, row := range strings.Split(strings.TrimSpace(quotas), "\n") {
		var path string
		var least, most int64
		_, err := fmt.Sscan(row, &path, &least, &most)
		require.NoError(t, err, row)
		name := path[strings.LastIndex(path, "/")+1:]
		if len(w.names) > 0 {
			w.parent[name] = strings.TrimSuffix(strings.TrimSuffix(path, name), "/")
		}
		w.names = append(w.names, name)
		w.min[name] = map[string]int64{"cpu": least, "gpu": least}
		w.max[name] = map[string]int64{"cpu": most, "gpu": most}
	}
	for i, row := range strings.Split(strings.TrimSpace(jobs), "\n") {
		j := &job{holds: i > 0, asks: map[string]int64{}}
		var cpu, gpu int64
		var lost int64
		_, err := fmt.Sscan(row, &j.name, &j.leaf, &cpu, &gpu, &j.cost.Priority, &j.cost.Evictions, &lost)
		require.NoError(t, err, row)
		j.cost.ranFor = time.Duration(lost) * time.Second
		j.name, j.leaves = strings.CutPrefix(j.name, "-")
		j.asks["cpu"], j.asks["gpu"] = cpu, gpu
		w.units = append(w.units, j)
	}
	return w
}

func TestFind(t *testing.T) {
	flat := "root 0 8\nroot/a 4 8\nroot/b 2 8\nroot/c 2 8"
	nested := "root 0 8\nroot/x 4 8\nx/a 2 8\nx/b 2 8\nroot/y 4 8\ny/c 4 8"
	for name, tc := range map[string]struct{ quotas, jobs, victims string }{
		"from the quota that is farthest above its min": {flat,
			"j a 2 0 0 0 0\nv b 2 0 0 0 0\nw b 1 0 0 0 0\ns c 5 0 9 9 9", "s"},
		"the lower priority of one quota": {flat,
			"j a 2 0 0 0 0\nv b 2 0 5 0 0\nw b 2 0 4 0 0\nu b 4 0 6 0 0", "w"},
		"evicted less often": {flat,
			"j a 2 0 0 0 0\nv b 2 0 5 1 0\nw b 2 0 5 0 9\nu b 4 0 6 0 0", "w"},
		"the least lost work": {flat,
			"j a 2 0 0 0 0\nv b 2 0 5 0 9\nw b 2 0 5 0 8\nu b 4 0 6 0 0", "w"},
		"one alone before two": {flat,
			"j a 4 0 0 0 0\nv b 2 0 0 0 0\nw b 2 0 0 0 0\nu b 4 0 1 0 0", "u"},
		"two where none is enough": {flat,
			"j a 4 0 0 0 0\nv b 3 0 0 0 0\nw b 3 0 1 0 0\nu c 2 0 1 0 0", "v w"},
		"nobody who is within its min": {flat,
			"j a 4 0 0 0 0\nv a 4 0 0 0 0\nw b 2 0 0 0 0\nu c 2 0 0 0 0", ""},
		"no more than its own min": {flat,
			"j a 5 0 0 0 0\nv b 8 0 0 0 0", ""},
		"nobody of its own quota": {flat,
			"j a 4 0 0 0 0\nv a 8 0 0 0 0", ""},
		"only what holds some of what is short": {flat,
			"j a 2 0 0 0 0\nv b 0 4 0 0 0\nw b 8 0 9 0 0", "w"},
		"a sibling, though the parent is above its min": {nested,
			"j a 2 0 0 0 0\nv b 8 0 0 0 0", "v"},
		"not a cousin whose branch is within its min": {nested,
			"j a 2 0 0 0 0\nv a 2 0 0 0 0\nw b 2 0 0 0 0\nu c 4 0 0 0 0", ""},
		"nobody, if what leaves is enough": {flat,
			"j a 2 0 0 0 0\n-v b 2 0 0 0 0\nw b 6 0 0 0 0", ""},
		"no more than what leaves lacks": {flat,
			"j a 4 0 0 0 0\n-v b 2 0 0 0 0\nw b 2 0 1 0 0\nu b 4 0 2 0 0", "w"},
		"nobody, while what leaves uses its own min": {flat,
			"j a 4 0 0 0 0\n-v a 1 0 0 0 0\nw b 7 0 0 0 0", ""},
		"a cousin whose branch is above it": {nested,
			"j c 4 0 0 0 0\nv a 4 0 0 0 0\nw b 2 0 0 0 0\nu b 2 0 9 0 0", "v"},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, tc.quotas, tc.jobs)
			var names []string
			for _, v := range w.search(w.units[0]) {
				names = append(names, v.name)
			}
			require.Equal(t, tc.victims, strings.Join(names, " "))
		})
	}
}

// Pods that no unit owns are what their quota borrowed first. No unit dies for them that is within what its units are
// promised. They are what keeps the owner of a min from it.
func TestBarePodsMakeNoVictims(t *testing.T) {
	for name, tc := range map[string]struct {
		quotas, jobs, victims string
		pods                  int64
	}{
		"a unit within its min": {"root 0 8\nroot/a 4 8\nroot/b 4 8", "j a 4 0 0 0 0\nv b 4 0 0 0 0", "", 4},
		"a unit whose parent is within its min": {
			"root 0 8\nroot/a 4 8\nroot/x 4 8\nx/b 0 8\nx/c 0 8", "j a 4 0 0 0 0\nv c 4 0 0 0 0", "", 4,
		},
		"a unit within its min beside one that leaves": {
			"root 0 8\nroot/a 5 8\nroot/b 3 8", "j a 5 0 0 0 0\n-v b 4 0 0 0 0\nw b 3 0 0 0 0", "", 1,
		},
		"no more than units have borrowed": {
			"root 0 8\nroot/a 4 8\nroot/b 2 8", "j a 2 0 0 0 0\nv b 2 0 9 0 0\nw b 2 0 0 0 0", "w", 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, tc.quotas, tc.jobs)
			w.bare = map[string]map[string]int64{"b": {"cpu": tc.pods}}
			var names []string
			for _, v := range w.search(w.units[0]) {
				names = append(names, v.name)
			}
			require.Equal(t, tc.victims, strings.Join(names, " "))
			if tc.victims == "" {
				require.Equal(t, Obstacle{Level: "root", Resource: "cpu", Pods: tc.pods}, w.obstacle)
			}
		})
	}
}

func reclaims(ask *decide.Ask) Request {
	return Request{Ask: ask, Policy: queue.Preemption{Reclaim: queue.VictimsAny}}
}

// The policy of its queue says whom a unit may preempt.
func TestPolicies(t *testing.T) {
	none, lower, any := queue.VictimsNone, queue.VictimsOfLowerPriority, queue.VictimsAny
	flat := "root 0 8\nroot/a 4 8\nroot/b 2 8"
	for name, tc := range map[string]struct {
		reclaim, within queue.Victims
		jobs, victims   string
	}{
		"nobody": {none, none, "j a 2 0 5 0 0\nv b 4 0 1 0 0\nw a 4 0 1 0 0", ""},
		"borrowers of lower priority alone": {lower, none,
			"j a 2 0 5 0 0\nv b 4 0 5 0 0\nw b 3 0 4 0 0\nu b 1 0 1 0 0", "w"},
		"its own queue beyond its min": {none, lower, "j a 2 0 5 0 0\nv a 4 0 5 0 0\nw a 4 0 4 0 0", "w"},
		"no equal of its own queue":    {any, lower, "j a 2 0 5 0 0\nv a 4 0 5 0 0\nw a 4 0 5 0 0", ""},
		"not its queue in another quota": {none, lower,
			"j a 2 0 5 0 0\nv a 4 0 5 0 0\nw b 4 0 4 0 0", ""},
		"as many as give back what it gets beyond its min": {none, lower,
			"j a 3 0 5 0 0\nv a 2 0 4 0 0\nw a 2 0 4 0 0\nu b 3 0 0 0 0", "v w"},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, flat, tc.jobs)
			w.policy = queue.Preemption{Reclaim: tc.reclaim, WithinQueue: tc.within}
			var names []string
			for _, v := range w.search(w.units[0]) {
				names = append(names, v.name)
			}
			require.Equal(t, tc.victims, strings.Join(names, " "))
		})
	}
}

// A job that finds nobody of a lower priority is told if its own priority does not count in full.
func TestAnObstacleIsABoundedPriority(t *testing.T) {
	lower, any := queue.VictimsOfLowerPriority, queue.VictimsAny
	for name, tc := range map[string]struct {
		policy queue.Preemption
		named  int32
		jobs   string
		want   Obstacle
	}{
		"in its queue": {
			queue.Preemption{WithinQueue: lower}, 9, "j a 4 0 1 0 0\nv a 8 0 1 0 0", Obstacle{Bounded: true},
		},
		"in another quota": {
			queue.Preemption{Reclaim: lower}, 9, "j a 4 0 1 0 0\nv b 8 0 5 0 0", Obstacle{Bounded: true},
		},
		"in its queue, where it may reclaim as well": {
			queue.Preemption{Reclaim: any, WithinQueue: lower}, 9, "j a 4 0 1 0 0\nv a 8 0 1 0 0", Obstacle{Bounded: true},
		},
		"it counts in full":        {queue.Preemption{WithinQueue: lower}, 1, "j a 4 0 1 0 0\nv a 8 0 1 0 0", Obstacle{}},
		"it is too low altogether": {queue.Preemption{WithinQueue: lower}, 9, "j a 4 0 1 0 0\nv a 8 0 9 0 0", Obstacle{}},
		"in no queue of its own":   {queue.Preemption{WithinQueue: lower}, 9, "j a 4 0 1 0 0\nv b 8 0 1 0 0", Obstacle{}},
		"nobody compares":          {queue.Preemption{Reclaim: any}, 9, "j a 4 0 1 0 0\nv a 8 0 1 0 0", Obstacle{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, "root 0 8\nroot/a 4 8\nroot/b 2 8", tc.jobs)
			w.policy, w.units[0].uncounted = tc.policy, tc.named-w.units[0].cost.Priority
			require.Empty(t, w.search(w.units[0]))
			w.obstacle.Level, w.obstacle.Resource = "", ""
			require.Equal(t, tc.want, w.obstacle)
		})
	}
}

// A unit has at most as many victims as its object has room for.
func TestMostHolds(t *testing.T) {
	for most, victims := range map[int]int{MostHolds: MostHolds, MostHolds + 1: 0} {
		jobs := strings.Builder{}
		fmt.Fprintf(&jobs, "j a %d 0 0 0 0", most)
		for i := range most {
			fmt.Fprintf(&jobs, "\nv%d b 1 0 0 0 0", i)
		}
		w := tree(t, fmt.Sprintf("root 0 %[1]d\nroot/a %[1]d %[1]d\nroot/b 0 %[1]d", most), jobs.String())
		require.Len(t, w.search(w.units[0]), victims)
	}
}

// A set that is too small if uncertain pods stay is not preempted.
func TestASetThatMayBeTooSmallIsNotPreempted(t *testing.T) {
	for name, tc := range map[string]struct {
		left, other int // use of pods of a deleted job, and held quota of another job, of 8
		unsure      bool
		victims     string // by a job that asks for 6
	}{
		"they go":             {left: 5, other: 3, victims: "other"},
		"they may stay":       {left: 5, other: 3, unsure: true},
		"enough without them": {left: 2, other: 6, unsure: true, victims: "other"},
		"enough if they go":   {left: 6, other: 2, unsure: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, "root 0 8\nroot/a 6 8\nroot/b 0 8",
				fmt.Sprintf("j a 6 0 5 0 0\n-left b %d 0 0 0 0\nother b %d 0 0 0 0", tc.left, tc.other))
			w.units[1].unsure = tc.unsure
			var names []string
			sets := w.searchTogether(w.units[0])
			for _, v := range slices.Concat(sets...) {
				names = append(names, v.name)
			}
			require.Equal(t, tc.victims, strings.Join(names, " "))
			require.Equal(t, tc.left == 5 && tc.unsure, w.obstacle.Unsure)
			require.Equal(t, w.obstacle.Unsure, sets == nil)
		})
	}
}

// A small unit that is protected, or within the min of another quota, does not keep what its gang group has
// borrowed.
func TestAGangGroupIsPreemptedWithoutItsProtectedUnit(t *testing.T) {
	for name, tc := range map[string]struct {
		leaf       string
		protection holders.Protection
		victims    string
	}{
		"non-preemptible":        {"b", holders.NonPreemptible, "v"},
		"not to be suspended":    {"b", holders.NotSuspendable, "v"},
		"kept by its queue":      {"b", holders.ByItsQueue, "v"},
		"kept by its owner":      {"b", holders.ByItself, "v"},
		"just admitted":          {"b", holders.ByRunTime, "s v"},
		"adopted":                {"b", holders.Adopted, "s v"},
		"within its min":         {"c", holders.Unprotected, "s v"},
		"of a high priority":     {"b", holders.Unprotected, "s v"},
		"protected in its quota": {"c", holders.NonPreemptible, "v"},
		"of the same gang":       {"b", holders.Unprotected, "v"}, // which v came to later
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, "root 0 8\nroot/a 4 8\nroot/b 0 8\nroot/c 2 8",
				"j a 4 0 5 0 0\ns "+tc.leaf+" 1 0 9 9 9\nv b 7 0 0 0 0")
			w.units[1].gang, w.units[2].gang = "g", "g"
			w.units[1].gangs, w.units[2].gangs = "x", "y"
			if name == "of the same gang" {
				w.units[2].gangs = "x"
			}
			w.policy.Reclaim = queue.VictimsOfLowerPriority
			w.protect, w.until = map[string]holders.Protection{"s": tc.protection}, w.now.Add(time.Minute)
			var names []string
			for _, v := range w.search(w.units[0]) {
				names = append(names, v.name)
			}
			require.Equal(t, tc.victims, strings.Join(names, " "))
		})
	}
}

// Lost work counts in the short resource. So a unit with few large pods is not preempted before one with many small
// ones, but a unit with much of another resource is.
func TestLostWorkIsThatOfWhatIsShort(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		one, two unit.Unit
		minutes  [2]int // since their admission
		victims  string
	}{
		"few large pods": {
			unit.Unit{Pods: 1, Request: listOf("gpu", 4)}, unit.Unit{Pods: 2, Request: listOf("gpu", 2)},
			[2]int{1, 1}, "two",
		},
		"for longer": {
			unit.Unit{Pods: 1, Request: listOf("gpu", 2)}, unit.Unit{Pods: 2, Request: listOf("gpu", 2)},
			[2]int{3, 2}, "two",
		},
		"much of something else": {
			unit.Unit{Pods: 8, Request: listOf("gpu", 2, "cpu", 8)}, unit.Unit{Pods: 1, Request: listOf("gpu", 3)},
			[2]int{1, 1}, "one",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := tree(t, "root 0 8\nroot/a 4 8\nroot/b 0 8", "j a 0 2 0 0 0\none b 0 0 0 0 0\ntwo b 0 0 0 0 0\nrest b 0 0 9 0 0")
			left := int64(8)
			for i, in := range []unit.Unit{tc.one, tc.two} {
				for _, it := range in.Request.Items() {
					w.units[i+1].asks[it.Name] = it.Amount
				}
				left -= w.units[i+1].asks["gpu"]
				in.Phase, in.Admitted = unit.PhaseDequeued, now.Add(-time.Duration(tc.minutes[i])*time.Minute)
				w.units[i+1].judged = &in
			}
			w.units[3].asks["gpu"] = left
			w.now = now
			names := []string{}
			for _, v := range w.search(w.units[0]) {
				names = append(names, v.name)
			}
			require.Equal(t, []string{tc.victims}, names)
		})
	}
}

// listOf is a list of names and amounts.
func listOf(pairs ...any) resources.List {
	list := map[string]int64{}
	for i := 0; i < len(pairs); i += 2 {
		list[pairs[i].(string)] = int64(pairs[i+1].(int))
	}
	return resources.FromMap(list)
}

// The obstacle has the amounts that protected units hold, and when the first protection ends.
func TestObstacles(t *testing.T) {
	w := tree(t, "root 0 8\nroot/a 4 8\nroot/b 2 8", "j a 4 0 0 0 0\nv b 2 0 0 0 0\nw b 2 0 0 0 0\nu b 3 0 0 0 0")
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	w.protect = map[string]holders.Protection{"w": holders.ByRunTime, "u": holders.Adopted}
	w.now, w.until = now.Add(-time.Minute), now
	w.bare = map[string]map[string]int64{"b": {"cpu": 1}}
	require.Empty(t, w.search(w.units[0]))
	want := Obstacle{Level: "root", Resource: "cpu", Pods: 1, Until: now}
	want.Protected[holders.ByRunTime], want.Protected[holders.Adopted] = 2, 3
	require.Equal(t, want, w.obstacle)
}

// Where there is less than all mins together, each is owed its part. The limit of a quota is its share then.
func TestMinThatShrinks(t *testing.T) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	for scales, want := range map[bool]int{true: 1, false: 0} {
		l := ledger.New()
		tree := capacity.NewTree(l)
		tree.Set(capacity.Quota{Name: "root", Limit: cpu(8), Max: cpu(8), Terms: capacity.Terms{Part: shares.Top}})
		for _, name := range []string{"a", "b"} {
			tree.Set(capacity.Quota{
				Name: name, Parent: "root", Min: cpu(8), Max: cpu(8), Shared: true,
				Terms: capacity.Terms{Part: shares.Sharing, Weight: cpu(8), ScalesMin: scales},
			})
			tree.Want(name, func(sum *resources.Sum) { sum.Add(cpu(8)) })
		}
		l.Reserve("v", "b", cpu(8), false)
		tree.Changed("b")
		route := tree.Route("a")
		ask := &decide.Ask{Need: tree.Need(cpu(4), 1), Limits: route.Limits(false), Route: route}
		index := holders.New[string](tree)
		index.Set("v", holders.Hold{Key: "v", Quota: "b"}, cpu(8))
		index.Refresh(time.Time{})
		set, _ := New(&Situation[string]{Tree: tree, Index: index}, reclaims(ask)).find(pool[string]{})
		require.Len(t, set, want)
	}
}

// Where limits are shares, the quota that is farthest above its share loses first, not the one above its min.
func TestFarthestAboveItsShare(t *testing.T) {
	cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
	l := ledger.New()
	tree := capacity.NewTree(l)
	tree.Set(capacity.Quota{Name: "root", Limit: cpu(12), Max: cpu(12), Terms: capacity.Terms{Part: shares.Top}})
	for name, weight := range map[string]int64{"a": 1, "b": 5, "c": 1} { // b gets 7 of 12, and c 3
		tree.Set(capacity.Quota{
			Name: name, Parent: "root", Min: cpu(2), Max: cpu(12), Shared: true,
			Terms: capacity.Terms{Part: shares.Sharing, Weight: cpu(weight)},
		})
	}
	for name, wants := range map[string]int64{"a": 2, "b": 12, "c": 12} {
		tree.Want(name, func(sum *resources.Sum) { sum.Add(cpu(wants)) })
	}
	index := holders.New[string](tree)
	for priority, name := range []string{"b", "c"} {
		l.Reserve("of-"+name, name, cpu(6), false)
		tree.Changed(name)
		index.Set(name, holders.Hold{Key: "of-" + name, Quota: name, Priority: int32(priority)}, cpu(6))
	}
	tree.Refresh()
	index.Refresh(time.Time{})
	route := tree.Route("a")
	ask := &decide.Ask{Need: tree.Need(cpu(2), 1), Limits: route.Limits(false), Route: route}
	set, _ := New(&Situation[string]{Tree: tree, Index: index}, reclaims(ask)).find(pool[string]{})
	require.Len(t, set, 1)
	require.Equal(t, []string{"c"}, set[0].Of)
}
