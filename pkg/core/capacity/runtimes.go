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

package capacity

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
)

// runtimes pass observations and the demand of units to the shares.
type runtimes struct {
	shares *shares.Tree
	// wants is, by quota, what units will request beyond their pods, those that wait included.
	wants map[string]*resources.Sum
	// touched are quotas whose demand may have changed. news are those whose limit has changed since the last report.
	touched, news map[string]struct{}
	moved         bool // a limit has changed since that was told
}

func newRuntimes() runtimes {
	return runtimes{
		shares: shares.NewTree(), wants: map[string]*resources.Sum{},
		touched: map[string]struct{}{}, news: map[string]struct{}{},
	}
}

// set takes an observation; one without a part is one of a quota that is gone.
func (r *runtimes) set(q *Quota) {
	r.news[q.Name] = struct{}{}
	if q.Terms.Part == shares.None {
		r.shares.Delete(q.Name)
		return
	}
	r.shares.Set(q.Name, shares.Spec{
		Part: q.Terms.Part, Parent: q.Parent, Min: q.Min, Max: q.most(), Weight: q.Terms.Weight,
		KeepsMin: q.KeepsMin, ScalesMin: q.Terms.ScalesMin, GuaranteesUsed: q.Terms.GuaranteesUsed,
	})
	if q.Terms.Part != shares.Top {
		r.touched[q.Name] = struct{}{}
	}
}

// heldChanged: what is held of a quota apart is as good as used.
func (r *runtimes) heldChanged(q *Quota) {
	if q.Terms.Part == shares.Apart {
		r.touched[q.Name] = struct{}{}
	}
}

// settle computes the runtimes and returns the levels whose runtime has changed.
func (r *runtimes) settle(t *Tree) (moved []string) {
	for name := range r.touched {
		if l, ok := t.levels[name]; ok && l.exists {
			r.shares.SetDemand(name, r.askOf(t, l))
		}
	}
	clear(r.touched)
	for _, name := range r.shares.Settle() {
		if l, ok := t.levels[name]; ok && l.spec.computed() {
			r.news[name] = struct{}{}
			r.moved = true
			moved = append(moved, name)
		}
	}
	return moved
}

// askOf adds the demand of units to the requests of pods. Units that wait in a quota apart are left out, because its
// limit does not depend on them. Koordinator subtracts all requests there from the shares of all others, even requests
// of pods without a node. So pending jobs there would starve real quotas.
func (r *runtimes) askOf(t *Tree, l *Level) shares.Demand {
	if l.spec.Terms.Part == shares.Apart {
		held := l.spec.Used.Add(t.ledger.Read(l.name).Outstanding().List())
		// Of the pods that have no node, some may be those for which it is held.
		return shares.Demand{Request: l.spec.Requested.Max(held), Assigned: held}
	}
	return shares.Demand{Request: l.spec.Requested.Add(t.Wanted(l.name)), Assigned: l.spec.Terms.OwnUsed}
}

// limitOf is the runtime and the number of jobs. Where the way to the top is broken there is nothing.
func (r *runtimes) limitOf(q *Quota) resources.List {
	limit, known := r.shares.Limit(q.Name)
	if !known {
		limit = q.Max.Sub(q.Max)
	}
	return limit.Add(q.Limit)
}
