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
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
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
	checked        map[string]bool // queues that have a check
	made           int
	chance         *rand.Rand // of what the streams ask for
}

type amounts map[string]int64

const pendingOfAStream = 3

// stream keeps so many jobs pending in a queue, for a quota.
type stream struct {
	queue, quota string
	largest      amounts
	firm         bool // its jobs are non-preemptible
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
		blocks: map[string]bool{}, checked: map[string]bool{},
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
	// A queue is served at the place of its first job. If all quotas share a queue, a job has the same jobs behind it as
	// in a queue of its own. A queue of some quotas can be ahead of a job with jobs of any of them.
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
					Policy: rapid.SampledFrom(policyNames).Draw(t, "policy"),
				}
				if reclaim {
					q.Preemption.Reclaim = queue.VictimsAny
				}
				e.drawBounds(t, &q)
				e.blocks[name] = q.Policy == "FIFO" || q.Policy == "Block"
				e.s.UpsertQueue(e.now, q)
			}
			e.streams = append(e.streams, &stream{
				queue: name, quota: leaf,
				largest: drawAmounts(t, "largest", func(kind string) int64 { return min(e.max[leaf][kind], 4) }),
				firm:    rapid.IntRange(0, 3).Draw(t, "non-preemptible") == 0 && e.promised(leaf, "cpu") > 0,
			})
		}
	}
}

// drawBounds draws further conditions of a queue. These are a bound that leaves room for a gang group of two, and a
// check that answers after a minute.
func (e *endless) drawBounds(t *rapid.T, q *queue.Spec) {
	if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
		q.MaxAdmitted = rapid.Int32Range(2, 6).Draw(t, "admitted")
	}
	if rapid.IntRange(0, 3).Draw(t, "bounded namespaces") == 0 {
		q.PerNamespace = &queue.NamespaceBounds{
			MaxPending: rapid.Int32Range(2, 6).Draw(t, "pending of a namespace"), MaxAdmitted: -1,
		}
		if rapid.Bool().Draw(t, "and admitted") {
			q.PerNamespace.MaxAdmitted = rapid.Int32Range(2, 6).Draw(t, "admitted of a namespace")
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "checked") == 0 {
		q.AdmissionChecks, e.checked[q.Name] = []queue.AdmissionCheck{{Name: "check"}}, true
	}
}

// add makes a job wait.
func (e *endless) add(name, queue, quota string, request amounts, change func(*unit.Unit)) {
	e.made++
	u := unit.Unit{
		Key: unitNamed(name), UID: fmt.Sprintf("uid-%05d", e.made), Queue: queue, Quota: quota, Created: e.now,
		Request: list(request), Pods: 1, Active: true, Phase: unit.PhaseEnqueued,
	}
	// One without a job cannot be suspended, and nobody preempts it.
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
	for _, name := range keysOf(e.units) {
		if e.units[name].Phase == unit.PhaseReserved {
			e.answer(arguments{words: []string{name}, order: []string{"check"}, named: map[string]string{"check": "Ready"}})
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
			if s.firm {
				for _, kind := range ofEndless {
					request[kind] = min(request[kind], e.promised(s.quota, kind))
				}
			}
			e.add(name, s.queue, s.quota, request, func(u *unit.Unit) { u.NonPreemptible = s.firm })
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
				delete(e.ends, name) // the unit was a victim
			}
		}
		if !strings.Contains(e.out.String(), "nothing to do") {
			quiet = 0
		} else if quiet++; quiet > 1 {
			return
		}
	}
	require.Fail(t, "decisions do not end", e.out.String())
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

// promised is the least min on the path of a quota.
func (e *endless) promised(level, kind string) int64 {
	if e.parents[level] == "root" {
		return e.min[level][kind]
	}
	return min(e.min[level][kind], e.promised(e.parents[level], kind))
}

// kindsOfHeads are those that have to start. Each changes the unit that asks for most of what it may.
var kindsOfHeads = map[string]func(t *rapid.T, u *unit.Unit, most amounts){
	"whole":           func(*rapid.T, *unit.Unit, amounts) {},
	"gang group":      func(_ *rapid.T, u *unit.Unit, _ amounts) { u.GangGroup, u.Gangs = "head,other", name(u.Key) },
	"non-preemptible": func(_ *rapid.T, u *unit.Unit, _ amounts) { u.NonPreemptible = true },
	"fewer pods": func(t *rapid.T, u *unit.Unit, most amounts) {
		least := rapid.Int64Range(1, 3).Draw(t, "least")
		count := least + rapid.Int64Range(1, 5).Draw(t, "more")
		all := amounts{}
		for _, kind := range ofEndless {
			all[kind] = count * (most[kind] / least)
		}
		if all["cpu"] > 0 {
			u.Sizes = unit.NewSizes([]unit.PodSetSize{{Count: count, Least: least, Request: list(all)}})
			u.Become(u.Sizes.At(0))
		}
	},
	// Nobody waits for what it holds before it grows: those ahead of it might wait for its end.
	"grows": func(_ *rapid.T, u *unit.Unit, _ amounts) { u.Request = list(amounts{"other": 1}) },
}

// drawMost draws the request of a head of a kind: at most the amount that its quota can have for each of so many.
func (e *endless) drawMost(t *rapid.T, quota, kind string, heads int64) amounts {
	most := func(of string) int64 {
		amount := e.rightful(quota, of)
		if kind == "non-preemptible" {
			amount = min(amount, e.promised(quota, of))
		}
		return amount / heads
	}
	request := drawAmounts(t, "head", most)
	if rapid.Bool().Draw(t, "as large as may be") {
		for _, of := range ofEndless {
			request[of] = max(most(of), 0)
		}
	}
	if request["cpu"] <= 0 {
		t.Skip("nothing is left to that quota")
	}
	return request
}

// A job starts if its quota can run it while all others use their min, however many small jobs others have. At the
// front of its queue it waits for claimAfter at most, and then for the jobs that waited before it. The same holds for
// growth.
func TestEveryHeadStarts(of *testing.T) {
	of.Parallel()
	effort.Check(of, func(t *rapid.T) {
		e := drawEndless(of, t)
		at := e.streams[rapid.IntRange(0, len(e.streams)-1).Draw(t, "stream")]
		for range rapid.IntRange(0, 5).Draw(t, "before") {
			e.minute(t)
		}
		kind, heads := rapid.SampledFrom(keysOf(kindsOfHeads)).Draw(t, "kind"), []string{"head"}
		if kind == "gang group" {
			heads = append(heads, "other")
		}
		request := e.drawMost(t, at.quota, kind, int64(len(heads)))
		for _, name := range heads {
			e.add(name, at.queue, at.quota, request, func(u *unit.Unit) {
				u.Created, u.Priority = epoch.Add(-time.Hour), 100
				kindsOfHeads[kind](t, u, request)
			})
		}
		e.within(t, "it starves", func() bool { return !slices.ContainsFunc(heads, e.waits) })
		// A request that checks answered does not grow. By age, growth has its place from its first request on.
		if kind == "grows" && e.units["head"].Phase.Releases() && !e.checked[at.queue] && !e.blocks[at.queue] {
			request["other"] = 1
			e.grow("head", request)
			e.within(t, "it does not grow", func() bool { return e.units["head"].Held.Covers(list(request)) })
		}
	})
}

// A job that asks for more than its quota can have while all others use their min starts if they do not. Until then it
// is told so, once it is the first of its queue: it is not left to hope.
func TestAHeadBeyondItsShareIsTold(of *testing.T) {
	of.Parallel()
	effort.Check(of, func(t *rapid.T) {
		e := drawEndless(of, t)
		at := e.streams[rapid.IntRange(0, len(e.streams)-1).Draw(t, "stream")]
		kind := rapid.SampledFrom(ofEndless).Draw(t, "beyond in")
		least, most := e.rightful(at.quota, kind), e.max[at.quota][kind]
		for level := at.quota; level != ""; level = e.parents[level] {
			most = min(most, e.max[level][kind])
		}
		if least >= most {
			t.Skip("that quota can have all that it may")
		}
		request := amounts{kind: rapid.Int64Range(max(least, 0)+1, most).Draw(t, "request")}
		e.add("head", at.queue, at.quota, request, func(u *unit.Unit) {
			u.Created, u.Priority = epoch.Add(-time.Hour), 100
		})
		told := map[unit.Reason]string{}
		for range e.claimAfter + e.longest + 1 {
			if e.minute(t); !e.waits("head") || !e.units["head"].Phase.Waits() {
				return
			}
			found, message := newWhy(e.s).waiting(e.s.roster.units[unitNamed("head")])
			told[found.Reason] = message
		}
		if told[unit.ReasonQueueFull] == "" { // in a full queue nobody looks at quota
			require.Contains(t, told, unit.ReasonExceedsGuaranteedShare)
		}
	})
}

// grow has a job that runs ask for more, and run until the end of the test.
func (e *endless) grow(name string, request amounts) {
	u := e.units[name]
	u.Request, u.Pods = list(request), 2
	e.units[name], e.ends[name] = u, e.now.Add(1000*time.Hour)
	e.s.UpsertUnit(e.now, u)
}

// within so many minutes that the jobs that waited before it can run one after the other, something is so of the head.
func (e *endless) within(t *rapid.T, otherwise string, so func() bool) {
	longest := e.longest
	if len(e.checked) > 0 {
		longest++ // until the check has answered
	}
	bound := longest*(pendingOfAStream*len(e.streams)+1) + e.claimAfter
	for range bound {
		if e.minute(t); so() {
			return
		}
	}
	u := e.units["head"]
	found, message := newWhy(e.s).waiting(e.s.roster.units[unitNamed("head")])
	require.Failf(t, otherwise, "%s of %s in %s waits for %d minutes: %s: %s", u.Request.String(), u.Quota, u.Queue, bound,
		found.Reason, message)
}

func (e *endless) waits(name string) bool {
	_, started := e.started[name]
	return !started
}

// In a queue that blocks no job starts before one ahead of it that waits for the same quota. That quota can have what
// it asks for while all others use their min. Of one resource, and of preemptible jobs: of others the first may leave
// some.
func TestNobodyOvertakesInAQueueThatBlocks(of *testing.T) {
	of.Parallel()
	effort.Check(of, func(t *rapid.T) {
		e := drawEndless(of, t)
		for _, s := range e.streams {
			s.firm, s.largest["gpu"], s.largest["cpu"] = false, 0, min(3*s.largest["cpu"], e.max[s.quota]["cpu"])
		}
		for range rapid.IntRange(1, 20).Draw(t, "minutes") {
			firsts, before := e.firsts(), maps.Clone(e.ends)
			e.minute(t)
			for _, name := range keysOf(e.ends) {
				u := e.units[name]
				first, some := firsts[u.Queue+" "+u.Quota]
				if _, ran := before[name]; !ran && some && e.waits(first) {
					require.False(t, servedBefore("FIFO", e.units[first], u), "%s of %s starts, and %s of %s waits ahead of it in %s",
						name, u.Request.String(), first, e.units[first].Request.String(), u.Queue)
				}
			}
		}
	})
}

// firsts are, by queue and quota, the jobs that never ran and are first in blocking queues. Jobs whose quota may never
// have so much are left out.
func (e *endless) firsts() map[string]string {
	firsts := map[string]string{}
	for _, name := range keysOf(e.units) {
		u := e.units[name]
		cpu, _ := u.Request.Get("cpu")
		if !e.blocks[u.Queue] || !e.waits(name) || cpu > e.rightful(u.Quota, "cpu") {
			continue
		}
		at := u.Queue + " " + u.Quota
		if first, some := firsts[at]; !some || servedBefore("FIFO", u, e.units[first]) {
			firsts[at] = name
		}
	}
	return firsts
}
