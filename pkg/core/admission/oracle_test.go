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
	"math"
	"sort"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// oracle decides the dumb way: everything is sorted, everything is recomputed from the inputs before every
// single admission, and each unit is compared with every claim. It shares the records of units (stage, spec,
// what they hold) with the state under test and none of its indexes, groups, sums or cached amounts.
type oracle struct {
	s      *State
	now    time.Time
	queues map[string]Queue
	quotas map[string]Quota
	pods   map[string]map[string]Pod
	live   map[string]Consumer

	// held is what units hold; admitted, in this run too.
	held map[string]oracleHold
	// missing is, of every unit that was looked at last, what has to be freed where ("level resource" or
	// "level/min resource").
	missing map[string]map[string]int64
}

type oracleHold struct {
	queue, quota   string
	amount         resources.List
	nonPreemptible bool
	expected       Expected
}

type oracleClaim struct {
	u     Unit
	queue Queue
	gates map[string]bool
}

// run returns the keys of the units that greedy admission takes, in order.
func (o *oracle) run() []string {
	o.held = map[string]oracleHold{}
	var waiting []Unit
	for key, u := range o.s.units {
		if u.holding {
			o.held[key] = oracleHold{u.spec.Queue, u.spec.Quota, u.held, u.spec.NonPreemptible, u.spec.Expected}
		}
		if u.stage == stageWaiting && o.eligible(u) {
			waiting = append(waiting, u.spec)
		}
	}
	var out []string
	for {
		i := o.next(waiting)
		if i < 0 {
			return out
		}
		u := waiting[i]
		o.held[u.Key] = oracleHold{u.Queue, u.Quota, u.Request, u.NonPreemptible, u.Expected}
		out = append(out, u.Key)
		waiting = append(waiting[:i:i], waiting[i+1:]...)
	}
}

// next is the index of the first unit that fits beside the claims ahead of it, or -1.
func (o *oracle) next(waiting []Unit) int {
	byQueue := map[string][]int{}
	for i, u := range waiting {
		byQueue[u.Queue] = append(byQueue[u.Queue], i)
	}
	var claims []oracleClaim
	o.missing = map[string]map[string]int64{}
	for _, q := range o.queueOrder(waiting, byQueue) {
		if o.full(q) {
			continue
		}
		claimed := map[string]bool{}
		for _, i := range byQueue[q.Name] {
			u := waiting[i]
			short := o.short(u, claims)
			if len(short) == 0 {
				return i
			}
			if o.blocks(q, u) && !claimed[u.Quota] {
				claimed[u.Quota] = true
				claims = append(claims, oracleClaim{u, q, short})
			}
		}
	}
	return -1
}

// queueOrder sorts the units of each queue and then the queues.
func (o *oracle) queueOrder(waiting []Unit, byQueue map[string][]int) []Queue {
	type ranked struct {
		queue        Queue
		byMin, byMax float64
		head         Unit
	}
	var all []ranked
	for name, units := range byQueue {
		q := o.queues[name]
		sort.Slice(units, func(a, b int) bool { return o.before(q, waiting[units[a]], waiting[units[b]]) })
		head := waiting[units[0]]
		r := ranked{queue: q, head: head}
		spec := o.quotas[head.Quota]
		for _, k := range []string{"cpu", "gpu"} {
			used, _ := spec.Used.Get(k)
			used += o.outstanding(head.Quota, k, false)
			if used <= 0 {
				continue
			}
			if least, _ := spec.Min.Get(k); least > 0 {
				r.byMin = math.Max(r.byMin, float64(used)/float64(least))
			} else {
				r.byMin = math.Inf(1)
			}
			if most, ok := spec.Max.Get(k); ok && most > 0 {
				r.byMax = math.Max(r.byMax, float64(used)/float64(most))
			} else if ok {
				r.byMax = math.Inf(1)
			}
		}
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		switch {
		case a.queue.Priority != b.queue.Priority:
			return a.queue.Priority > b.queue.Priority
		case a.byMin != b.byMin:
			return a.byMin < b.byMin
		case a.byMax != b.byMax:
			return a.byMax < b.byMax
		case !a.head.Created.Equal(b.head.Created):
			return a.head.Created.Before(b.head.Created)
		}
		return a.queue.Name < b.queue.Name
	})
	out := make([]Queue, len(all))
	for i := range all {
		out[i] = all[i].queue
	}
	return out
}

func (o *oracle) before(q Queue, a, b Unit) bool {
	if q.Policy != "FIFO" && a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	if !a.Created.Equal(b.Created) {
		return a.Created.Before(b.Created)
	}
	return a.UID < b.UID
}

func (o *oracle) blocks(q Queue, u Unit) bool {
	return q.Policy == "FIFO" || q.Policy == "Block" || (q.Policy == "Intelligent" && u.Priority >= q.Threshold)
}

func (o *oracle) full(q Queue) bool {
	n := 0
	for _, h := range o.held {
		if h.queue == q.Name {
			n++
		}
	}
	return q.MaxAdmitted >= 0 && n >= int(q.MaxAdmitted)
}

// short lists the gates ("level" or "level/min") where the unit does not fit beside the claims.
func (o *oracle) short(u Unit, claims []oracleClaim) map[string]bool {
	short, missing := map[string]bool{}, map[string]int64{}
	o.missing[u.Key] = missing
	compare := func(gate, level string, leaf, nonPreemptible bool, limits, used resources.List) {
		for _, limit := range limits.Items() {
			inUse, _ := used.Get(limit.Name)
			free := limit.Amount - inUse - o.outstanding(level, limit.Name, nonPreemptible)
			need := oracleNeed(u, limit.Name)
			claimed := o.claimed(gate, limit.Name, claims)
			if need > 0 && need > free-claimed {
				short[gate], missing[gate+" "+limit.Name] = true, need+claimed-free
			}
			if leaf && need == 0 && free < 0 {
				short[gate], missing[gate+" "+limit.Name] = true, -free
			}
		}
	}
	for i, level := range o.path(u.Quota) {
		spec := o.quotas[level]
		compare(level, level, i == 0, false, spec.Limit, spec.Used)
		if u.NonPreemptible {
			compare(level+"/min", level, i == 0, true, spec.Min, spec.NonPreemptibleUsed)
		}
	}
	return short
}

func oracleNeed(u Unit, resource string) int64 {
	if resource == resources.Jobs {
		return 1
	}
	amount, _ := u.Request.Get(resource)
	return amount
}

func (o *oracle) claimed(gate, resource string, claims []oracleClaim) (sum int64) {
	for _, c := range claims {
		if c.gates[gate] {
			sum += oracleNeed(c.u, resource)
		}
	}
	return sum
}

// outstanding sums, over all holders at or below the level, what they hold beyond their assigned pods.
func (o *oracle) outstanding(level, resource string, nonPreemptible bool) (sum int64) {
	for key, h := range o.held {
		if nonPreemptible && !h.nonPreemptible {
			continue
		}
		below := false
		for _, at := range o.path(h.quota) {
			below = below || at == level
		}
		if !below {
			continue
		}
		if resource == resources.Jobs {
			sum++
			continue
		}
		amount, _ := h.amount.Get(resource)
		missing := h.expected.Pods
		for _, p := range o.pods[key] {
			if p.Assigned && p.Quota == h.quota && (!nonPreemptible || p.NonPreemptible) {
				r, _ := p.Request.Get(resource)
				amount -= r
				missing--
			}
		}
		sum += mostOutstanding(h.expected, amount, resource, missing)
	}
	return sum
}

// mostOutstanding bounds an amount by what the missing pods can ask for.
func mostOutstanding(x Expected, amount int64, resource string, missing int64) int64 {
	each, named := x.Each.Get(resource)
	switch {
	case x.Pods <= 0:
	case missing <= 0:
		amount = 0
	case named:
		amount = min(amount, each*missing)
	}
	return max(amount, 0)
}

// path follows the parents that the state remembers, also of quotas that are gone.
func (o *oracle) path(quota string) []string {
	var path []string
	seen := map[string]bool{}
	for at := quota; at != "" && !seen[at]; {
		seen[at] = true
		path = append(path, at)
		if q, ok := o.quotas[at]; ok {
			at = q.Parent
		} else if l, ok := o.s.levels[at]; ok {
			at = l.spec.Parent
		} else {
			break
		}
	}
	return path
}

func (o *oracle) eligible(u *unit) bool {
	spec := u.spec
	if spec.Invalid != "" || (spec.Pods == 0 && spec.Request.IsZero()) || spec.Pods < 0 || !spec.Active || spec.Adopting {
		return false
	}
	for _, it := range spec.Request.Items() {
		if it.Amount < 0 || it.Amount > resources.Greatest {
			return false
		}
	}
	if spec.Consumer.Namespace != "" && spec.Consumer.Namespace != "ns" {
		return false
	}
	if c, ok := o.live[spec.Consumer.UID]; spec.ConsumerManaged && (!ok || c.Name != spec.Consumer.Name) {
		return false
	}
	if o.duplicate(u) || o.now.Before(spec.RequeueAt) || o.now.Before(u.refusedUntil) {
		return false
	}
	return o.accepted(spec)
}

// accepted are the checks that concern queue and quota.
func (o *oracle) accepted(u Unit) bool {
	q, ok := o.queues[u.Queue]
	if !ok || q.Held || q.Policy == "Nonsense" {
		return false
	}
	if q.Quotas != nil {
		found := false
		for _, name := range q.Quotas {
			found = found || name == u.Quota
		}
		if !found {
			return false
		}
	}
	path := o.path(u.Quota)
	for _, level := range path {
		spec, ok := o.quotas[level]
		if !ok {
			return false
		}
		for _, most := range spec.Max.Items() {
			if need, _ := u.Request.Get(most.Name); need > most.Amount {
				return false
			}
		}
		for _, least := range spec.Min.Items() {
			if need, _ := u.Request.Get(least.Name); u.NonPreemptible && need > least.Amount {
				return false
			}
		}
	}
	return o.quotas[path[len(path)-1]].Parent == ""
}

func (o *oracle) duplicate(u *unit) bool {
	if u.spec.Consumer.UID == "" {
		return false
	}
	for _, other := range o.s.units {
		if other == u || other.spec.Consumer.UID != u.spec.Consumer.UID || other.stage == stageDone {
			continue
		}
		if other.stage != stageWaiting {
			return true
		}
		if spec := other.spec; spec.Invalid != "" || spec.Pods < 0 || (spec.Pods == 0 && spec.Request.IsZero()) ||
			(spec.Consumer.Namespace != "" && spec.Consumer.Namespace != "ns") {
			continue
		}
		a, b := other.spec, u.spec
		switch {
		case a.OwnedByConsumer != b.OwnedByConsumer:
			if a.OwnedByConsumer {
				return true
			}
		case !a.Created.Equal(b.Created):
			if a.Created.Before(b.Created) {
				return true
			}
		case a.UID < b.UID:
			return true
		}
	}
	return false
}
