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

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
)

// Profile is what plans are made of.
type Profile struct {
	// Faults per plan, at most; Failovers only makes leaders go.
	Faults    int
	Jobs      int
	Failovers bool
	// Schedulers, when set, is the number of replicas.
	Schedulers int
	Deadline   time.Duration
	Lease      Lease
}

// DefaultProfile has everything.
func DefaultProfile() Profile {
	return Profile{Faults: 14, Jobs: 12, Deadline: engine.DefaultWriteTimeout, Lease: ShippedLease}
}

type generator struct {
	dice
	plan Plan
	jobs []string
	// crowd: most jobs come at about one time and ask for about the same, of one quota.
	wide      bool // memory and devices are limited as well
	crowd     bool
	crowdAt   time.Duration
	crowdedIn string
}

// Generate makes a plan from a seed.
func Generate(seed uint64, p Profile) Plan {
	g := &generator{dice: newDice(seed, "plan")}
	g.plan = Plan{
		Seed: seed, Schedulers: 1 + g.IntN(3), Controllers: 1 + g.IntN(2), Runtime: g.chance(60),
		Lag:      pick(g.dice, []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}),
		Decision: pick(newDice(seed, "decision"), []time.Duration{0, 0, 500 * time.Microsecond, 3 * time.Millisecond}),
		Deadline: p.Deadline, Lease: p.Lease, Length: time.Minute,
	}
	if p.Schedulers > 0 {
		g.plan.Schedulers = p.Schedulers
	}
	if p.Failovers {
		g.plan.Runtime, g.plan.Length = false, 100*time.Second
	}
	g.cluster()
	if g.crowd = g.chance(30); g.crowd {
		g.crowdAt, g.crowdedIn = g.when(), pick(g.dice, leaves)
	}
	for range 3 + g.IntN(max(p.Jobs-2, 1)) {
		g.job()
	}
	for range g.IntN(4) {
		g.add(g.when(), "pod", fmt.Sprintf("plain%d", g.IntN(100)), "quota", pick(g.dice, leaves),
			"cpu", g.cpu(), "run", g.run())
	}
	if p.Failovers {
		g.failovers(p.Faults)
	} else {
		for range g.IntN(p.Faults + 1) {
			pick(g.dice, mischief)(g)
		}
	}
	if !p.Failovers && g.chance(10) {
		g.add(g.when(), "runtime", "", "on", strconv.FormatBool(!g.plan.Runtime), "every", g.spell(8*time.Second))
	}
	if !p.Failovers {
		for _, part := range parts {
			if d := newDice(seed, part.name); part.percent == always || d.chance(part.percent) {
				part.add(g, d)
			}
		}
	}
	slices.SortStableFunc(g.plan.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return g.plan
}

// parts are added to so many percent of the plans, in this order. Each has dice of its own, so that a new part leaves
// all plans as they are in the rest.
var parts = []struct {
	name    string // of its dice
	percent int
	add     func(*generator, dice)
}{
	{"job sets", 40, (*generator).jobSets},
	{"times", 35, (*generator).times},
	{"gang groups", 50, (*generator).gangGroups},
	{"checks", 35, (*generator).checks},
	{"reclaim", 40, (*generator).reclaims},
	{"node checks", always, (*generator).nodeChecks},
	{"sizes", 40, (*generator).sizes},
	{"tenant", 50, (*generator).tenant},
	{"grace", 35, (*generator).graces},
	{"evasions", 40, (*generator).evasions},
	{"bounds of priority", 40, (*generator).priorityBounds},
}

const always = 100

// with has the generator use other dice, until what it returns is called.
func (g *generator) with(d dice) (end func()) {
	own := g.dice
	g.dice = d
	return func() { g.dice = own }
}

var leaves = []string{"a", "b", "c"}

func (g *generator) add(at time.Duration, verb, on string, pairs ...string) {
	s := Step{At: at.Truncate(time.Millisecond), Verb: verb, On: on}
	for i := 0; i+1 < len(pairs); i += 2 {
		if s.Args == nil {
			s.Args = map[string]string{}
		}
		s.Args[pairs[i]] = pairs[i+1]
	}
	g.plan.Steps = append(g.plan.Steps, s)
}

func (g *generator) when() time.Duration {
	return g.between(100*time.Millisecond, g.plan.Length*3/4)
}

func (g *generator) cpu() string { return strconv.Itoa(500 * (1 + g.IntN(4))) }
func (g *generator) run() string {
	return g.between(time.Second, 12*time.Second).Truncate(time.Millisecond).String()
}
func (g *generator) spell(most time.Duration) string {
	return g.between(50*time.Millisecond, most).Truncate(time.Millisecond).String()
}
func (g *generator) scheduler() string { return fmt.Sprintf("scheduler-%d", g.IntN(g.plan.Schedulers)) }
func (g *generator) controller() string {
	return fmt.Sprintf("controller-%d", g.IntN(g.plan.Controllers))
}

func (g *generator) anyone() string {
	if g.chance(60) {
		return g.scheduler()
	}
	return g.controller()
}

// cluster: org above a and b, and c without a parent. Each quota has room for each job.
func (g *generator) cluster() {
	for i := range 3 {
		g.add(0, "node", fmt.Sprintf("n%d", i), "cpu", "6000")
	}
	g.wide = g.chance(40)
	org := []string{"min", "8000", "max", "14000", "leaf", "false"}
	if g.wide {
		org = append(org, "min-memory", "16384", "max-memory", "24576", "min-gpu", "8", "max-gpu", "12")
	}
	if g.chance(15) {
		org = append(org, "max-jobs", strconv.Itoa(2+g.IntN(3)))
	}
	g.add(0, "quota", "org", org...)
	policies := []string{"Priority", "FIFO", "Block", "Intelligent"}
	for _, leaf := range leaves {
		pairs := []string{"min", "4000", "max", strconv.Itoa(8000 + 1000*g.IntN(5)), "policy", pick(g.dice, policies)}
		pairs = append(pairs, g.more()...)
		if g.chance(15) {
			pairs = append(pairs, "max-jobs", strconv.Itoa(1+g.IntN(3)))
		}
		if leaf != "c" {
			pairs = append(pairs, "parent", "org")
		}
		g.add(0, "quota", leaf, pairs...)
	}
}

// more returns resources that a leaf limits in addition. A quota always names the same ones. Suppose that the max of a
// quota stops naming a resource. Koordinator then subtracts none of it when a pod ends, and counts it forever after the
// name returns. docs/design/decisions.md has the plan.
func (g *generator) more() []string {
	if !g.wide {
		return nil
	}
	return []string{"min-memory", "8192", "max-memory", strconv.Itoa(8192 + 2048*g.IntN(4)), "min-gpu", "4", "max-gpu",
		strconv.Itoa(4 + g.IntN(4))}
}

func (g *generator) jobArgs() []string {
	n := 1 + g.IntN(4)
	sizes := []string{"500", "1000", "1500", "2000"}
	quota := pick(g.dice, leaves)
	if g.crowd && g.chance(80) {
		quota, sizes, n = g.crowdedIn, sizes[1:2], 2+g.IntN(2)
	}
	firm := g.chance(20) // non-preemptible: at most the min of its quota
	if firm {
		sizes = sizes[:min(len(sizes), 2)]
	}
	pairs := []string{
		"quota", quota, "cpu", pick(g.dice, sizes), "pods", strconv.Itoa(n),
		"priority", strconv.Itoa(g.IntN(3)), "run", g.run(), "suspend", strconv.FormatBool(g.chance(70)),
	}
	if firm {
		pairs = append(pairs, "preemptible", "false")
	}
	if g.wide && g.chance(60) {
		pairs = append(pairs, "memory", strconv.Itoa(512*(1+g.IntN(4))), "gpu", strconv.Itoa(g.IntN(2)))
	}
	if g.chance(20) {
		pairs = append(pairs, "completions", strconv.Itoa(n+g.IntN(3)))
	}
	if g.chance(15) {
		pairs = append(pairs, "fails", "yes")
	}
	return pairs
}

func (g *generator) job() {
	name := fmt.Sprintf("j%d", len(g.jobs))
	g.jobs = append(g.jobs, name)
	at := g.when()
	if g.crowd && g.chance(80) {
		at = g.crowdAt + g.between(0, 3*time.Second)
	}
	g.add(at, "job", name, g.jobArgs()...)
}

// mischief can happen in addition to the start and end of jobs.
var mischief = []func(g *generator){
	func(g *generator) { g.add(g.when(), "delete-job", pick(g.dice, g.jobs)) },
	func(g *generator) {
		g.add(g.when(), "recreate", pick(g.dice, g.jobs), append(g.jobArgs(), "gap", g.spell(3*time.Second))...)
	},
	func(g *generator) {
		at, job := g.when(), pick(g.dice, g.jobs)
		g.add(at, "suspend", job)
		if g.chance(50) {
			g.add(at+g.between(0, 5*time.Second), "resume", job)
		}
	},
	func(g *generator) { g.add(g.when(), "resume", pick(g.dice, g.jobs)) },
	func(g *generator) {
		at, job := g.when(), pick(g.dice, g.jobs)
		g.add(at, "hold", job)
		g.add(at+g.between(0, 10*time.Second), "unhold", job)
	},
	func(g *generator) { g.add(g.when(), "resize", pick(g.dice, g.jobs), "pods", strconv.Itoa(1+g.IntN(4))) },
	func(g *generator) { g.add(g.when(), "relabel", pick(g.dice, g.jobs), "quota", pick(g.dice, leaves)) },
	func(g *generator) {
		g.add(g.when(), "prioritise", pick(g.dice, g.jobs), "priority", strconv.Itoa(g.IntN(5)))
	},
	func(g *generator) { g.add(g.when(), "delete-pod", pick(g.dice, g.jobs)) },
	func(g *generator) {
		leaf := pick(g.dice, leaves)
		g.add(g.when(), "quota", leaf, append(g.more(), "min", strconv.Itoa(1000*g.IntN(5)),
			"max", strconv.Itoa(1000*(2+g.IntN(10))), "parent", pick(g.dice, []string{"", "org"}))...)
	},
	func(g *generator) {
		at, leaf := g.when(), pick(g.dice, leaves)
		g.add(at, "delete-quota", leaf)
		g.add(at+g.between(0, 10*time.Second), "quota", leaf,
			append(g.more(), "min", "2000", "max", "8000", "parent", pick(g.dice, []string{"", "org"}))...)
	},
	func(g *generator) {
		at, name := g.when(), fmt.Sprintf("n%d", g.IntN(3))
		g.add(at, "lose-node", name)
		g.add(at+g.between(0, 10*time.Second), "node", name, "cpu", "6000")
	},
	func(g *generator) {
		g.add(g.when(), "node", fmt.Sprintf("n%d", g.IntN(4)), "cpu", strconv.Itoa(1000*(2+g.IntN(6))))
	},
	func(g *generator) {
		at, name := g.when(), pick(g.dice, leaves)
		g.add(at, "queue", name, "stop", pick(g.dice, []string{"Hold", "HoldAndDrain"}))
		g.add(at+g.between(0, 10*time.Second), "queue", name, "policy", pick(g.dice, []string{"Priority", "FIFO", "Block"}))
	},
	func(g *generator) { g.add(g.when(), "delete-queue", pick(g.dice, leaves)) },
	func(g *generator) {
		g.add(g.when(), "edit-unit", pick(g.dice, g.jobs),
			"phase", pick(g.dice, []string{"Enqueued", "Dequeued", "Running", "Succeed", "Weird"}))
	},
	func(g *generator) {
		g.add(g.when(), "edit-unit", pick(g.dice, g.jobs), "drop", pick(g.dice, []string{"admissions", "conditions", "all"}))
	},
	func(g *generator) {
		at, job := g.when(), pick(g.dice, g.jobs)
		g.add(at, "edit-unit", job, "active", "false")
		g.add(at+g.between(0, 5*time.Second), "edit-unit", job, "active", "true")
	},
	func(g *generator) { g.add(g.when(), "delete-unit", pick(g.dice, g.jobs)) },
	badUnit, badUnit,
	func(g *generator) {
		g.add(g.when(), "bad-job", fmt.Sprintf("bad%d", g.IntN(1000)), append(g.jobArgs(), "flaw", pick(g.dice, badJobs))...)
	},
	func(g *generator) {
		g.add(g.when(), "bomb", fmt.Sprintf("bomb%d", g.IntN(1000)),
			append(g.jobArgs(), "in", pick(g.dice, []string{"check", "policy"}))...)
	},
	func(g *generator) {
		g.add(g.when(), "unit", fmt.Sprintf("outside%d", g.IntN(1000)), "quota", pick(g.dice, leaves),
			"cpu", g.cpu(), "run", g.run())
	},
	func(g *generator) {
		at, name := g.when(), pick(g.dice, leaves)
		odd := pick(g.dice, [][]string{{"policy", "Lottery"}, {"stop", "Perhaps"}, {"checks", "yes"}})
		g.add(at, "queue", name, odd...)
		if odd[0] != "checks" {
			g.add(at+g.between(0, 10*time.Second), "queue", name, "policy", "Priority")
		}
	},
	func(g *generator) {
		g.add(g.when(), "edit-unit", pick(g.dice, g.jobs), "check", pick(g.dice, []string{"Pending", "Retry", "Never"}))
	},
	crash, crash,
	func(g *generator) { g.add(g.when(), "pause", g.anyone(), "for", g.spell(20*time.Second)) },
	cut, cut,
	func(g *generator) { g.add(g.when(), "slow", g.scheduler(), "for", g.spell(20*time.Second)) },
	func(g *generator) { g.add(g.when(), "slow-lease", g.scheduler(), "for", g.spell(20*time.Second)) },
	errs, errs, errs,
	func(g *generator) {
		g.add(g.when(), "stall", g.anyone(), "kind", g.kind(), "for", g.spell(20*time.Second))
	},
	func(g *generator) {
		at := g.when()
		g.add(at, "disconnect", g.anyone(), "kind", g.kind(), "for", g.spell(10*time.Second))
		if g.chance(70) {
			g.add(at+g.between(0, 3*time.Second), "compact", "api")
		}
	},
	func(g *generator) {
		g.add(g.when(), "skew", g.anyone(),
			"by", (g.between(0, 20*time.Second) - 10*time.Second).Truncate(time.Millisecond).String())
	},
	func(g *generator) { g.add(g.when(), "storm", "api", "for", g.spell(3*time.Second)) },
	func(g *generator) { g.add(g.when(), "down", "api", "for", g.spell(5*time.Second)) },
}

func (g *generator) kind() string {
	return string(pick(g.dice, []kind{units, units, pods, jobKind, quotas, nodes, queues, ""}))
}

func badUnit(g *generator) {
	g.add(g.when(), "unit", fmt.Sprintf("odd%d", g.IntN(1000)), "quota", pick(g.dice, leaves), "cpu", g.cpu(),
		"run", g.run(), "flaw", pick(g.dice, slices.Sorted(maps.Keys(flaws))))
}

func crash(g *generator) { g.add(g.when(), "crash", g.anyone(), "for", g.spell(20*time.Second)) }
func cut(g *generator)   { g.add(g.when(), "cut", g.anyone(), "for", g.spell(25*time.Second)) }

func errs(g *generator) {
	all := []fault{faultLost, faultAmbiguous, faultConflict, faultBusy, faultBroken, faultCrashBefore, faultCrashAfter}
	g.add(g.when(), "errors", g.anyone(), "fault", string(pick(g.dice, all)), "count", strconv.Itoa(1+g.IntN(4)))
}

// failovers ends the leader in all possible ways, with slow requests in flight, while jobs of all priorities arrive.
// The old and the new leader see different jobs, and would choose differently.
func (g *generator) failovers(n int) {
	for at := g.between(time.Second, 4*time.Second); n > 0; n-- {
		g.add(at, "slow", "leader", "for", "25s")
		switch g.IntN(4) {
		case 0:
			g.add(at+g.between(0, 12*time.Second), "crash", "leader", "for", g.spell(20*time.Second))
		case 1:
			g.add(at+g.between(0, 4*time.Second), "cut", "leader", "for", "25s")
		case 2:
			g.add(at, "no-renew", "leader", "for", "25s")
		default:
			g.add(at, "slow-lease", "leader", "for", "25s")
			g.add(at+g.between(time.Second, 4*time.Second), "no-renew", "leader", "for", "25s")
		}
		for range 10 {
			name := fmt.Sprintf("j%d", len(g.jobs))
			g.jobs = append(g.jobs, name)
			g.add(at+g.between(2*time.Second, 22*time.Second), "job", name, "quota", pick(g.dice, leaves), "cpu", "2000",
				"pods", strconv.Itoa(2+g.IntN(3)), "priority", strconv.Itoa(g.IntN(5)), "run", g.spell(4*time.Second))
		}
		at += g.between(24*time.Second, 30*time.Second)
	}
}

// FailoverProfile is about leaders that go while their writes are on their way.
func FailoverProfile() Profile {
	return Profile{
		Faults: 3, Jobs: 4, Failovers: true, Schedulers: 2, Deadline: engine.DefaultWriteTimeout, Lease: ShippedLease,
	}
}
