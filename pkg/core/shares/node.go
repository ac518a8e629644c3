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

package shares

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// node is one quota in its place: its parents lead to a top.
type node struct {
	name   string
	spec   Spec
	parent *node
	place  int // among the parent's children
	depth  int
	// children share columns out, one for each number; nil where there are none.
	children []*node
	columns  []column
	own      []own
	// asked: what is asked of it, or below it, may have changed. dirty: a column is. moved: a runtime of it is.
	asked, dirty, moved bool
	limit               resources.List
}

// own is one resource of what a quota says of itself.
type own struct {
	request, assigned int64 // of its own pods and jobs
	least, most       int64 // min, and max where that names it
	named             bool
}

// fill takes what spec and ask say, by number.
func (n *node) fill(names []string, demand *Demand, siblings int) {
	n.own = make([]own, len(names))
	for i, name := range names {
		o := &n.own[i]
		o.least, _ = n.spec.Min.Get(name)
		o.most, o.named = n.spec.Max.Get(name)
	}
	n.ask(names, demand)
	if siblings == 0 {
		return
	}
	n.columns = make([]column, len(names))
	slots := make([]slot, len(names)*siblings)
	for i := range n.columns {
		c := &n.columns[i]
		c.dirty, c.shared = true, n.own[i].named || n.parent == nil
		c.slots, slots = slots[:siblings:siblings], slots[siblings:]
	}
}

// enter takes its place in the columns of its parent.
func (n *node) enter(names []string) {
	for i, name := range names {
		c := &n.parent.columns[i]
		sl := &c.slots[n.place]
		sl.min, sl.keeps = n.own[i].least, n.spec.KeepsMin
		sl.scales = n.spec.ScalesMin && n.spec.Part == Sharing
		sl.weight, _ = n.spec.Weight.Get(name)
		c.mins += sl.min
	}
}

// ask sets the demand of the quota itself, as Koordinator does: of resources that max names, up to max. It says whether
// that changed.
func (n *node) ask(names []string, d *Demand) (changed bool) {
	for i, name := range names {
		o := &n.own[i]
		var request, assigned int64
		if o.named {
			request, _ = d.Request.Get(name)
			request = min(max(request, 0), o.most)
			assigned, _ = d.Assigned.Get(name)
		}
		changed = changed || request != o.request || assigned != o.assigned
		o.request, o.assigned = request, assigned
	}
	return changed
}

// passOn computes the demand of the quota towards its parent, and the amount that its pods have already. It says
// whether one of them changed.
func (n *node) passOn() (changed bool) {
	for i := range n.own {
		o := &n.own[i]
		request, assigned := o.request, o.assigned
		if n.columns != nil {
			for k := range n.columns[i].slots {
				request = resources.SaturatingAdd(request, n.columns[i].slots[k].request)
				assigned = resources.SaturatingAdd(assigned, n.columns[i].slots[k].guarantee)
			}
		}
		if n.spec.KeepsMin {
			request = max(request, o.least)
		}
		if o.named {
			request = min(request, o.most)
		}
		guarantee := int64(0)
		if n.spec.GuaranteesUsed {
			guarantee = max(assigned, o.least)
		}
		c := &n.parent.columns[i]
		if sl := &c.slots[n.place]; sl.request != request || sl.guarantee != guarantee {
			sl.request, sl.guarantee = request, guarantee
			c.dirty, changed = true, true
		}
	}
	return changed
}

// give says what there is to share of a resource.
func (c *column) give(total int64, named bool) (changed bool) {
	if !c.shared || c.total == total && c.named == named {
		return false
	}
	c.total, c.named, c.dirty = total, named, true
	return true
}

// count subtracts the use of quotas apart from the total of the top.
func (n *node) count(names []string) (changed bool) {
	for i, name := range names {
		total, named := n.spec.Max.Get(name)
		for _, child := range n.children {
			if used := child.own[i].assigned; child.spec.Part == Apart && used > 0 {
				total, named = resources.SaturatingSub(total, used), true
			}
		}
		changed = n.columns != nil && n.columns[i].give(total, named) || changed
	}
	return changed
}

// refreshLimit says whether the limit is another one than before.
func (n *node) refreshLimit(numbers map[string]int) bool {
	items := make([]resources.Item, 0, n.spec.Max.Len())
	for _, it := range n.spec.Max.Items() {
		// A resource that a parent does not name is not shared out, and ElasticQuota does not limit it.
		if c := &n.parent.columns[numbers[it.Name]]; c.shared {
			it.Amount = max(c.slots[n.place].runtime, 0)
		}
		items = append(items, it)
	}
	old := n.limit
	n.limit = resources.FromSorted(items)
	return !old.Same(n.limit)
}

// promised is the limit, or what the quota would get at least if it asked for more, where that is more.
func (n *node) promised(numbers map[string]int) resources.List {
	var items []resources.Item
	for k, it := range n.limit.Items() {
		c := &n.parent.columns[numbers[it.Name]]
		if promise := c.slots[n.place].promise; c.shared && promise > it.Amount {
			if items == nil {
				items = slices.Clone(n.limit.Items())
			}
			items[k].Amount = promise
		}
	}
	if items == nil {
		return n.limit
	}
	return resources.FromSorted(items)
}
