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

// Package pictures makes the pictures of the documentation. The core of the scheduler decides in a small cluster on
// virtual time, and its values are drawn.
package pictures

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/hack/generate/draw"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	resource = "cpu"
	milli    = 1000
	// startsAfter and leavesAfter are how long pods of a job take to come to nodes, and to end after an eviction.
	startsAfter = 5 * time.Second
	leavesAfter = 30 * time.Second
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func cores(n float64) resources.List {
	return resources.FromMap(map[string]int64{resource: int64(n * milli)})
}

// cluster is the core with pods that follow it: they come to nodes, and leave them, some time after it has decided.
type cluster struct {
	now    time.Time
	policy string
	state  *admission.State
	quotas []*admission.Quota
	jobs   map[string]*job
	// order of the jobs, and what will happen.
	order  []*job
	events []event
}

// job of one pod for each core.
type job struct {
	unit.Unit
	runs    time.Duration
	pods    int64
	leaving bool
	borrows bool
	spans   []draw.Span
	marks   []draw.Event
}

type event struct {
	at time.Time
	do func()
}

func newCluster(policy string) *cluster {
	return &cluster{now: noon, policy: policy, state: admission.New(admission.Config{}), jobs: map[string]*job{}}
}

// quota with its min and max, below another one, and its queue. The top has the capacity of the cluster as its max.
func (c *cluster) quota(name, parent string, least, most float64) {
	q := &admission.Quota{Name: name, Parent: parent, Max: cores(most)}
	if parent == "" {
		q.Limit, q.Terms = q.Max, capacity.Terms{Part: shares.Top}
	} else {
		q.Min, q.Shared, q.Terms = cores(least), true, capacity.Terms{Part: shares.Sharing, Weight: q.Max}
	}
	c.quotas = append(c.quotas, q)
	c.state.SetQuota(c.now, *q)
	if parent != "" {
		spec := queue.Spec{Name: name, Policy: c.policy, MaxPending: -1, MaxAdmitted: -1}
		spec.Preemption = queue.Preemption{Reclaim: queue.VictimsAny, MinRunTime: time.Minute}
		c.state.UpsertQueue(c.now, spec)
	}
}

// submit a job at a time after noon.
func (c *cluster) submit(after time.Duration, name, quota string, size int64, runs time.Duration) {
	c.create(after, name, quota, size, runs, false)
}

// observe a job, whose pods run whatever is decided about it.
func (c *cluster) observe(after time.Duration, name, quota string, size int64, runs time.Duration) {
	c.create(after, name, quota, size, runs, true)
}

func (c *cluster) create(after time.Duration, name, quota string, size int64, runs time.Duration, observed bool) {
	c.later(noon.Add(after), func() {
		key := "ns/" + name
		j := &job{runs: runs, Unit: unit.Unit{
			Key: key, UID: name, Queue: quota, Quota: quota, Created: c.now, Active: true, Phase: unit.PhaseEnqueued,
			Request: cores(float64(size)), Pods: size, Observed: observed, ConsumerManaged: true, OwnedByConsumer: true,
			Consumer: unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: name, UID: name},
		}}
		c.jobs[key], c.order = j, append(c.order, j)
		c.state.SetConsumer(c.now, j.Consumer, true)
		c.state.UpsertUnit(c.now, j.Unit)
		if observed {
			c.later(c.now.Add(startsAfter), func() { c.use(j, j.Pods) })
			c.later(c.now.Add(startsAfter+runs), func() { c.end(j) })
		}
	})
}

func (c *cluster) later(at time.Time, do func()) {
	c.events = append(c.events, event{at, do})
	slices.SortStableFunc(c.events, func(a, b event) int { return a.at.Compare(b.at) })
}

// until plays all events up to a time after noon.
func (c *cluster) until(after time.Duration) {
	for end := noon.Add(after); ; {
		wake := c.decide()
		next := end
		if len(c.events) > 0 && c.events[0].at.Before(next) {
			next = c.events[0].at
		}
		if !wake.IsZero() && wake.Before(next) {
			next = wake
		}
		c.pass(next)
		if !next.Before(end) {
			return
		}
		for len(c.events) > 0 && !c.events[0].at.After(c.now) {
			do := c.events[0].do
			c.events = c.events[1:]
			do()
		}
	}
}

// decide until nothing more is decided now.
func (c *cluster) decide() (wake time.Time) {
	for {
		plan := c.state.Decide(c.now)
		for i := range plan.Foresee {
			c.state.Foreseen(c.now, &plan.Foresee[i], true, "")
		}
		for _, w := range plan.Writes {
			c.confirm(w)
		}
		again := !plan.WakeAt.IsZero() && !plan.WakeAt.After(c.now)
		if !again && len(plan.Writes)+len(plan.Foresee) == 0 {
			return plan.WakeAt
		}
	}
}

func (c *cluster) confirm(w transition.Write) {
	j := c.jobs[w.Of().Key]
	w.Apply(c.now, &j.Unit)
	c.state.Settle(c.now, j.Key, w.Attempt(), transition.Confirmed)
	attempt := j.Attempts
	switch w := w.(type) {
	case *transition.Admit:
		j.borrows = w.Borrows
		if j.Observed {
			j.marks = append(j.marks, draw.Event{At: c.now, Text: "would be admitted"})
			return
		}
		c.later(c.now.Add(startsAfter), func() { c.use(j, j.Pods) })
		c.later(c.now.Add(startsAfter+j.runs), func() {
			if j.Attempts == attempt && j.Phase.Holds() {
				c.end(j)
			}
		})
	case *transition.Evict:
		j.leaving = true
		j.marks = append(j.marks, draw.Event{At: c.now, Text: "evicted: " + string(w.Reason)})
		c.later(c.now.Add(leavesAfter), func() { j.leaving = false; c.use(j, 0) })
	}
}

// end of a job and of its pods.
func (c *cluster) end(j *job) {
	c.use(j, 0)
	c.state.SetConsumer(c.now, j.Consumer, false)
	c.state.DeleteUnit(c.now, j.Key)
	delete(c.jobs, j.Key)
	j.Phase = unit.PhaseSucceed
	j.marks = append(j.marks, draw.Event{At: c.now, Text: "succeeded"})
}

// use of quotas by so many pods of a job from now on.
func (c *cluster) use(j *job, pods int64) {
	change := cores(float64(pods - j.pods))
	for i := range max(pods, j.pods) {
		uid := fmt.Sprintf("%s-%d", j.UID, i)
		if pods > j.pods {
			c.state.SetPod(c.now, j.Key, admission.Pod{UID: uid, Quota: j.Quota, Request: cores(1), Assigned: true})
		} else {
			c.state.DeletePod(c.now, j.Key, uid)
		}
	}
	j.pods = pods
	for name := j.Quota; name != ""; {
		q := c.quotaOf(name)
		q.Used = q.Used.Add(change)
		if name == j.Quota {
			q.Requested, q.Terms.OwnUsed = q.Requested.Add(change), q.Terms.OwnUsed.Add(change)
		}
		c.state.SetQuota(c.now, *q)
		name = q.Parent
	}
}

func (c *cluster) quotaOf(name string) *admission.Quota {
	return c.quotas[slices.IndexFunc(c.quotas, func(q *admission.Quota) bool { return q.Name == name })]
}

// pass the time: each job spends it with one cause. An observed job may wait and run.
func (c *cluster) pass(to time.Time) {
	for _, j := range c.order {
		if c.jobs[j.Key] == nil || !to.After(c.now) {
			continue
		}
		if j.pods > 0 {
			j.spend(c.now, to, draw.Runs, "")
		}
		e, _ := c.state.Explain(j.Key)
		switch {
		case j.pods > 0 && (!j.Observed || j.Phase.Holds()):
		case j.Phase.Holds():
			j.spend(c.now, to, draw.Placement, "")
		case e.Position > 1:
			j.spend(c.now, to, draw.Ahead, string(e.Reason))
		default:
			j.spend(c.now, to, draw.Quota, string(e.Reason))
		}
	}
	c.now = to
}

func (j *job) spend(from, to time.Time, cause draw.Cause, text string) {
	for i := range j.spans {
		if j.spans[i].Cause == cause && j.spans[i].To.Equal(from) {
			j.spans[i].To = to
			return
		}
	}
	j.spans = append(j.spans, draw.Span{From: from, To: to, Cause: cause, Text: text})
}

// tree is what the quotas are now.
func (c *cluster) tree(title string) *draw.Tree {
	t := &draw.Tree{Title: title, Unit: resource}
	for _, q := range c.quotas {
		limit, _ := c.state.Limits().LimitOf(q.Name)
		reserved := c.state.Holdings().Read(q.Name).Outstanding().List()
		l := draw.Level{
			Name: q.Name, Min: amount(q.Min), Share: amount(limit), Max: amount(q.Max), Used: amount(q.Used),
			Reserved: amount(reserved),
		}
		if q.Parent == "" {
			l.Min, l.Share = math.NaN(), math.NaN() // the cluster
		}
		for name := q.Parent; name != ""; name = c.quotaOf(name).Parent {
			l.Depth++
		}
		for _, j := range c.jobs {
			if j.Quota != q.Name && q.Parent != "" {
				continue
			}
			if j.leaving {
				l.Leaving += amount(j.Request)
			}
			if !j.Phase.Holds() {
				l.Pending++
			}
			if j.Preempts != "" { // nobody behind it gets what comes free
				l.Claimed += amount(j.Request)
			}
		}
		t.Levels = append(t.Levels, l)
	}
	return t
}

func amount(l resources.List) float64 {
	n, _ := l.Get(resource)
	return float64(n) / milli
}
