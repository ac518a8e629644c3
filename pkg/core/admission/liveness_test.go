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

package admission

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// endless is a cluster in which each quota has more jobs than it can run, without end. Every job runs for a few
// minutes. It knows amounts that people are promised, and none of the rules of the core.
type endless struct {
	*story
	parents        map[string]string
	levels, leaves []string // the parent before its children
	min, max       map[string]amounts
	streams        []*stream
	ends           map[string]time.Time
	longest        int // minutes that a job runs
	started        map[string]time.Time
	claimAfter     int
	blocks         map[string]bool // queues by their policies
	made           int
	chance         *rand.Rand // of what the streams ask for
}

type amounts map[string]int64

const pendingOfAStream = 3

// stream keeps so many jobs pending in a queue, for a quota.
type stream struct {
	queue, quota string
	largest      amounts
	pending      []string
}

var ofEndless = []string{"cpu", "gpu"}

func drawAmounts(t *rapid.T, label string, most func(kind string) int64) amounts {
	out := amounts{}
	for _, kind := range ofEndless {
		out[kind] = rapid.Int64Range(0, max(most(kind), 0)).Draw(t, label+" "+kind)
	}
	return out
}

func drawEndless(of *testing.T, t *rapid.T) *endless {
	e := &endless{
		story: newStory(of), parents: map[string]string{}, min: map[string]amounts{}, max: map[string]amounts{},
		ends: map[string]time.Time{}, started: map[string]time.Time{},
		longest: rapid.IntRange(1, 4).Draw(t, "longest"), claimAfter: 3,
		blocks: map[string]bool{},
	}
	e.chance = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	e.story.cfg.Rules.Timeouts = queue.Timeouts{}
	e.story.cfg.ClaimAfter = time.Duration(e.claimAfter) * time.Minute
	e.story.s = New(e.story.cfg)
	e.out = &strings.Builder{}
	total := amounts{"cpu": rapid.Int64Range(10, 40).Draw(t, "cpu"), "gpu": rapid.Int64Range(4, 12).Draw(t, "gpu")}
	e.max["root"] = total
	e.s.SetQuota(e.now, Quota{Name: "root", Limit: list(total), Max: list(total), Terms: capacity.Terms{Part: shares.Top}})
	e.drawBelow(t, "root", total, 0)
	e.drawStreams(t)
	return e
}

// drawBelow draws quotas below one, which promise at most so much together.
func (e *endless) drawBelow(t *rapid.T, parent string, promised amounts, depth int) {
	left := amounts{"cpu": promised["cpu"], "gpu": promised["gpu"]}
	for i := range rapid.IntRange(2, 3).Draw(t, "children") {
		name := fmt.Sprintf("%s%c", strings.TrimPrefix(parent, "root"), 'a'+i)
		least := drawAmounts(t, "min", func(kind string) int64 { return left[kind] / 2 })
		most := amounts{}
		for _, kind := range ofEndless {
			left[kind] -= least[kind]
			most[kind] = e.max["root"][kind]
			if rapid.IntRange(0, 2).Draw(t, "bounded") == 0 {
				most[kind] = max(1, least[kind]+rapid.Int64Range(0, most[kind]-least[kind]).Draw(t, "max"))
			}
		}
		weight := amounts{}
		for _, kind := range ofEndless {
			weight[kind] = rapid.Int64Range(1, 4).Draw(t, "weight")
		}
		e.levels, e.parents[name], e.min[name], e.max[name] = append(e.levels, name), parent, least, most
		e.s.SetQuota(e.now, Quota{
			Name: name, Parent: parent, Min: list(least), Max: list(most), Shared: true,
			Terms: capacity.Terms{Part: shares.Sharing, Weight: list(weight)},
		})
		if depth == 0 && rapid.Bool().Draw(t, "nested") {
			e.drawBelow(t, name, least, 1)
		} else {
			e.leaves = append(e.leaves, name)
		}
	}
}

func list(a amounts) resources.List { return resources.FromMap(a) }

func (e *endless) drawStreams(t *rapid.T) {
	// A queue is served at the place of its first job. So in one that all quotas share, a job has those behind it that
	// it has in a queue of its own; a queue of some of the quotas may be ahead of a job with jobs of any of them.
	shared := rapid.IntRange(0, 4).Draw(t, "one queue") == 0
	reclaim := rapid.Bool().Draw(t, "reclaim")
	for _, leaf := range e.leaves {
		for i := range rapid.IntRange(1, 2).Draw(t, "queues of a quota") {
			name := fmt.Sprintf("q%s%d", leaf, i)
			if shared {
				name = "shared"
			}
			if !slices.ContainsFunc(e.streams, func(s *stream) bool { return s.queue == name }) {
				q := queue.Spec{
					Name: name, MaxPending: -1, MaxAdmitted: -1, Threshold: 50,
					Policy: rapid.SampledFrom([]string{"Priority", "FIFO", "Block", "Intelligent"}).Draw(t, "policy"),
				}
				if reclaim {
					q.Preemption.Reclaim = queue.VictimsAny
				}
				e.blocks[name] = q.Policy == "FIFO" || q.Policy == "Block"
				e.s.UpsertQueue(e.now, q)
			}
			e.streams = append(e.streams, &stream{
				queue: name, quota: leaf,
				largest: drawAmounts(t, "largest", func(kind string) int64 { return min(e.max[leaf][kind], 4) }),
			})
		}
	}
}

// add makes a job wait.
func (e *endless) add(name, queue, quota string, request amounts, change func(*unit.Unit)) {
	e.made++
	u := unit.Unit{
		Key: unitNamed(name), UID: fmt.Sprintf("uid-%05d", e.made), Queue: queue, Quota: quota, Created: e.now,
		Request: list(request), Pods: 1, Active: true, Phase: unit.PhaseEnqueued,
	}
	// One without a job cannot be suspended, and nobody takes what it holds.
	u.Consumer = unit.Consumer{Kind: "Job.v1.batch", Namespace: u.Namespace(), Name: name, UID: "job-" + u.UID}
	u.ConsumerManaged = true
	e.s.SetConsumer(e.now, u.Consumer, true)
	if change != nil {
		change(&u)
	}
	e.units[name] = u
	e.s.UpsertUnit(e.now, u)
}

// minute ends the jobs whose time is over, has new ones wait, and decides.
func (e *endless) minute(t *rapid.T) {
	for _, name := range keysOf(e.ends) {
		if !e.ends[name].After(e.now) {
			delete(e.ends, name)
			delete(e.units, name)
			e.s.DeleteUnit(e.now, unitNamed(name))
		}
	}
	for _, s := range e.streams {
		s.pending = slices.DeleteFunc(s.pending, func(name string) bool {
			u, there := e.units[name]
			return !there || !u.Phase.Waits()
		})
		for len(s.pending) < pendingOfAStream {
			name := fmt.Sprintf("%s-%s-%d", s.queue, s.quota, e.made)
			request := amounts{
				"cpu": 1 + e.chance.Int64N(max(s.largest["cpu"], 1)), "gpu": e.chance.Int64N(s.largest["gpu"] + 1),
			}
			e.add(name, s.queue, s.quota, request, nil)
			s.pending = append(s.pending, name)
		}
	}
	e.settleDown(t)
	e.now = e.now.Add(time.Minute)
}

// settleDown decides until nothing more happens, and notes who started.
func (e *endless) settleDown(t *rapid.T) {
	quiet := 0
	for range 100 {
		e.out.Reset()
		e.decide(arguments{words: []string{"confirm"}})
		for _, name := range keysOf(e.units) {
			u := e.units[name]
			_, runs := e.ends[name]
			switch {
			case u.Phase.Releases() && !runs:
				if _, again := e.started[name]; !again {
					e.started[name] = e.now
				}
				e.ends[name] = e.now.Add(time.Duration(1+e.chance.IntN(e.longest)) * time.Minute)
			case !u.Phase.Releases() && runs:
				delete(e.ends, name) // it was taken
			}
		}
		if !strings.Contains(e.out.String(), "nothing to do") {
			quiet = 0
		} else if quiet++; quiet > 1 {
			return
		}
	}
	require.Fail(t, "decisions do not end")
}

// rightful is how much a quota can get of a resource at the least while all others use what their min promises.
func (e *endless) rightful(level, kind string) int64 {
	if level == "root" {
		return e.max[level][kind]
	}
	amount := e.rightful(e.parents[level], kind)
	for _, other := range e.levels {
		if other != level && e.parents[other] == e.parents[level] {
			amount -= e.min[other][kind]
		}
	}
	return min(amount, e.max[level][kind])
}

// A job starts that its quota can run while all others use their min, however many jobs others have and however small
// those are: once it is the first of its queue, it waits for claimAfter at most, and then for the jobs that waited
// before it.
func TestEveryHeadStarts(of *testing.T) {
	of.Parallel()
	rapid.Check(of, func(t *rapid.T) {
		e := drawEndless(of, t)
		at := e.streams[rapid.IntRange(0, len(e.streams)-1).Draw(t, "stream")]
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			e.minute(t)
		}
		heads := []string{"head"}
		if rapid.IntRange(0, 3).Draw(t, "gang group") == 0 {
			heads = append(heads, "other")
		}
		request := drawAmounts(t, "head", func(kind string) int64 { return e.rightful(at.quota, kind) / int64(len(heads)) })
		if rapid.Bool().Draw(t, "as large as may be") {
			for _, kind := range ofEndless {
				request[kind] = e.rightful(at.quota, kind) / int64(len(heads))
			}
		}
		if request["cpu"] <= 0 {
			t.Skip("nothing is left to that quota")
		}
		for i, name := range heads {
			e.add(name, at.queue, at.quota, request, func(u *unit.Unit) {
				u.Created, u.Priority = epoch.Add(-time.Hour), 100
				if len(heads) > 1 {
					u.GangGroup, u.Gangs = "x,y", []string{"x", "y"}[i]
				}
			})
		}
		bound := e.longest*(pendingOfAStream*len(e.streams)+1) + e.claimAfter
		for range bound {
			if e.minute(t); len(e.started) > 0 && !slices.ContainsFunc(heads, e.waits) {
				return
			}
		}
		why := e.s.roster.units[unitNamed("head")]
		found, message := newWhy(e.s).waiting(why)
		require.Failf(t, "it starves", "%s of %s in %s waits for %d minutes: %s: %s", list(request), at.quota, at.queue,
			bound,
			found.Reason, message)
	})
}

func (e *endless) waits(name string) bool {
	_, started := e.started[name]
	return !started
}

// In a queue that blocks no job starts before one ahead of it that waits for the same quota. That quota can have what
// it asks for while all others use their min. Of one resource: of others the first may leave some.
func TestNobodyOvertakesInAQueueThatBlocks(of *testing.T) {
	of.Parallel()
	rapid.Check(of, func(t *rapid.T) {
		e := drawEndless(of, t)
		for _, s := range e.streams {
			s.largest["gpu"], s.largest["cpu"] = 0, min(3*s.largest["cpu"], e.max[s.quota]["cpu"])
		}
		for range rapid.IntRange(1, 20).Draw(t, "minutes") {
			firsts, before := e.firsts(), maps.Clone(e.ends)
			e.minute(t)
			for _, name := range keysOf(e.ends) {
				u := e.units[name]
				first, some := firsts[u.Queue+" "+u.Quota]
				if _, ran := before[name]; !ran && some && e.waits(first) {
					require.False(t, ahead("FIFO", e.units[first], u), "%s of %s starts, and %s of %s waits ahead of it in %s",
						name, u.Request.String(), first, e.units[first].Request.String(), u.Queue)
				}
			}
		}
	})
}

// firsts are, by queue and quota, the jobs that never ran and are before all others in queues that block, unless their
// quota may never have so much.
func (e *endless) firsts() map[string]string {
	firsts := map[string]string{}
	for _, name := range keysOf(e.units) {
		u := e.units[name]
		cpu, _ := u.Request.Get("cpu")
		if !e.blocks[u.Queue] || !e.waits(name) || cpu > e.rightful(u.Quota, "cpu") {
			continue
		}
		at := u.Queue + " " + u.Quota
		if first, some := firsts[at]; !some || ahead("FIFO", u, e.units[first]) {
			firsts[at] = name
		}
	}
	return firsts
}
