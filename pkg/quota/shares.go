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

package quota

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// shares is what every quota of a tree gets of what its parent gets: the runtimes. The manager has everything that they
// follow from, and its calculation is repeated here, number for number (RuntimeQuotaCalculator and ScaleMinQuotaManager
// of v1.8.0; a property compares the two), for two reasons:
//
//   - One change may move the runtimes of all siblings, and somebody may wait in each. The manager tells the runtime of
//     one quota, and computes those of all its siblings for it each time: to know of n siblings what became of them
//     costs n times n. Here it costs one pass over the siblings on the levels that the change reaches.
//   - The manager scales the min of a quota when that quota is refreshed, and shares out with old ones until then: what
//     it says depends on who was asked before. Here it is as if all had been.
//
// Amounts are those of the core: thousandths of cpu, units of everything else.
type shares struct {
	root   *share
	byName map[string]*share
	// dirty lists, by depth, the quotas whose children have to be computed again.
	dirty [][]*share
	needy []int
	moved []*share
}

// share is one quota among its siblings.
type share struct {
	name   string
	info   *core.QuotaInfo
	parent *share
	place  int // among the parent's children
	depth  int
	// children share columns out, one for each resource that max names here; at the root, that any max names.
	children []*share
	columns  []column
	dirty    bool
	// names that max names, sorted; limit is the runtime for each of them.
	names []string
	limit resources.List
	moved bool
}

// column is one resource of what siblings share.
type column struct {
	resource string
	// total to share; it is not named if the parent gets none of it because its own parent knows no such resource: then
	// min is not scaled either.
	total int64
	named bool
	// mins is the sum of what siblings have as min.
	mins int64
	// fresh: never computed.
	dirty, fresh bool
	slots        []slot
}

// slot is one resource of one quota.
type slot struct {
	request, min, weight, guarantee int64
	// keeps: it does not lend what it does not use. scales: its min shrinks where the total is less than all mins.
	keeps, scales bool
	// promise is what it gets at least if it asks for that much: its min, but nothing where that is scaled down.
	promise       int64
	runtime, next int64
}

// newShares reads everything anew. Nothing is computed yet.
func newShares(mgr *core.GroupQuotaManager, quotas map[string]*shadowQuota, scale bool) *shares {
	s := &shares{byName: make(map[string]*share, len(quotas)), root: &share{name: extension.RootQuotaName}}
	for name := range quotas {
		s.byName[name] = &share{name: name, info: mgr.GetQuotaInfoByName(name)}
	}
	all := map[corev1.ResourceName]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		n := s.byName[name]
		n.parent = s.byName[extension.GetParentQuotaName(quotas[name].spec)]
		if n.parent == nil {
			n.parent = s.root
		}
		n.place = len(n.parent.children)
		n.parent.children = append(n.parent.children, n)
		for resource := range n.info.CalculateInfo.Max {
			n.names = append(n.names, string(resource))
			all[resource] = all[resource] || !builtIn(name)
		}
		slices.Sort(n.names)
	}
	for resource, shared := range all {
		if shared {
			s.root.names = append(s.root.names, string(resource))
		}
	}
	slices.Sort(s.root.names)
	s.enter(s.root, scale)
	return s
}

// enter makes the columns of a quota and of everything below it.
func (s *shares) enter(n *share, scale bool) {
	for len(s.dirty) <= n.depth {
		s.dirty = append(s.dirty, nil)
	}
	if len(n.children) == 0 {
		return
	}
	n.columns = make([]column, len(n.names))
	for i, name := range n.names {
		c := &n.columns[i]
		*c = column{resource: name, dirty: true, fresh: true, slots: make([]slot, len(n.children))}
		for place, child := range n.children {
			c.slots[place] = slotOf(child, corev1.ResourceName(name), scale)
			c.mins += c.slots[place].min
		}
	}
	s.mark(n)
	for _, child := range n.children {
		child.depth = n.depth + 1
		s.enter(child, scale)
	}
}

func slotOf(n *share, name corev1.ResourceName, scale bool) slot {
	info := &n.info.CalculateInfo
	sl := slot{
		min: valueOf(info.Min, name), weight: valueOf(info.SharedWeight, name),
		keeps: !n.info.AllowLentResource, scales: scale && !builtIn(n.name),
	}
	sl.request, sl.guarantee = askedOf(n, name)
	return sl
}

// askedOf is what a quota asks of its parent, which max bounds, and what its pods have already.
func askedOf(n *share, name corev1.ResourceName) (request, guarantee int64) {
	info := &n.info.CalculateInfo
	asked := info.Request[name]
	if most, ok := info.Max[name]; ok && asked.Cmp(most) > 0 {
		asked = most
	}
	return unitsOf(asked, name), valueOf(info.Guaranteed, name)
}

func valueOf(list corev1.ResourceList, name corev1.ResourceName) int64 {
	return unitsOf(list[name], name)
}

func unitsOf(q resource.Quantity, name corev1.ResourceName) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func (s *shares) mark(n *share) {
	if !n.dirty {
		n.dirty = true
		s.dirty[n.depth] = append(s.dirty[n.depth], n)
	}
}

// ask reads again what a quota and its ancestors ask for.
func (s *shares) ask(name string) {
	for n := s.byName[name]; n != nil && n != s.root; n = n.parent {
		for i := range n.parent.columns {
			c := &n.parent.columns[i]
			sl := &c.slots[n.place]
			request, guarantee := askedOf(n, corev1.ResourceName(c.resource))
			if request != sl.request || guarantee != sl.guarantee {
				sl.request, sl.guarantee = request, guarantee
				c.dirty = true
				s.mark(n.parent)
			}
		}
	}
}

// setTotal gives the root what there is.
func (s *shares) setTotal(total corev1.ResourceList) {
	for i := range s.root.columns {
		c := &s.root.columns[i]
		_, named := total[corev1.ResourceName(c.resource)]
		s.give(s.root, c, valueOf(total, corev1.ResourceName(c.resource)), named)
	}
}

func (s *shares) give(n *share, c *column, total int64, named bool) {
	if c.total != total || c.named != named {
		c.total, c.named, c.dirty = total, named, true
		s.mark(n)
	}
}

// settle computes what has to be, parents before children, and returns the quotas whose limit is another one now.
func (s *shares) settle() []*share {
	s.moved = s.moved[:0]
	for depth := range s.dirty {
		for _, n := range s.dirty[depth] {
			n.dirty = false
			s.compute(n)
		}
		clear(s.dirty[depth])
		s.dirty[depth] = s.dirty[depth][:0]
	}
	return slices.DeleteFunc(s.moved, func(n *share) bool {
		n.moved = false
		return !n.refreshLimit()
	})
}

func (s *shares) compute(n *share) {
	for i := range n.columns {
		c := &n.columns[i]
		if !c.dirty {
			continue
		}
		c.dirty = false
		s.needy = c.distribute(s.needy)
		for place := range c.slots {
			sl, child := &c.slots[place], n.children[place]
			if below := child.column(c.resource); below != nil {
				s.give(child, below, sl.next, true)
			}
			if sl.runtime != sl.next || c.fresh {
				sl.runtime = sl.next
				s.note(child)
			}
		}
		c.fresh = false
	}
}

func (s *shares) note(n *share) {
	if !n.moved {
		n.moved = true
		s.moved = append(s.moved, n)
	}
}

// column is what the children of a quota share of a resource, nil if it has none or max does not name it.
func (n *share) column(resource string) *column {
	for i := range n.columns {
		if n.columns[i].resource == resource {
			return &n.columns[i]
		}
	}
	return nil
}

// refreshLimit says whether the limit is another one than before.
func (n *share) refreshLimit() bool {
	items := make([]resources.Item, len(n.names))
	at := 0
	for i, name := range n.names {
		items[i].Name = name
		for at < len(n.parent.columns) && n.parent.columns[at].resource < name {
			at++
		}
		if at < len(n.parent.columns) && n.parent.columns[at].resource == name {
			items[i].Amount = max(n.parent.columns[at].slots[n.place].runtime, 0)
		} else {
			// What a parent does not name is not shared out, and ElasticQuota does not limit it at all.
			items[i].Amount = max(valueOf(n.info.CalculateInfo.Max, corev1.ResourceName(name)), 0)
		}
	}
	old := n.limit
	n.limit = resources.FromSorted(items)
	return !old.Same(n.limit)
}

// promised is the limit, or what the quota would get at least if it asked for more, where that is more.
func (n *share) promised() resources.List {
	var items []resources.Item
	for i := range n.parent.columns {
		c := &n.parent.columns[i]
		promise := c.slots[n.place].promise
		if amount, named := n.limit.Get(c.resource); !named || promise <= amount {
			continue
		}
		if items == nil {
			items = slices.Clone(n.limit.Items())
		}
		for k := range items {
			if items[k].Name == c.resource {
				items[k].Amount = promise
			}
		}
	}
	if items == nil {
		return n.limit
	}
	return resources.FromSorted(items)
}

// distribute sets what every sibling gets next: min first, or what it asks for if that is less and it lends the rest;
// then what is left by weight to those that ask for more, again and again while somebody gets more than it asks for.
// needy is scratch space.
func (c *column) distribute(needy []int) []int {
	short := c.named && c.total < c.mins
	left, weights := c.total, int64(0)
	needy = needy[:0]
	for i := range c.slots {
		sl := &c.slots[i]
		least := sl.min
		if short && sl.scales {
			least = scaledMin(c.total, sl.min, c.mins)
		}
		least = max(least, sl.guarantee)
		sl.promise = least
		if short && sl.scales {
			sl.promise = 0 // it moves with whatever moves the total
		}
		switch {
		case sl.request > least:
			needy = append(needy, i)
			weights += sl.weight
			sl.next = least
		case sl.keeps:
			sl.next = least
		default:
			sl.next = sl.request
		}
		left -= sl.next
	}
	rest := needy
	for left > 0 && len(rest) > 0 && weights > 0 {
		rest, left, weights = c.pass(rest, left, weights)
	}
	return needy[:0]
}

func scaledMin(total, min, mins int64) int64 {
	if total <= 0 || mins <= 0 {
		return 0
	}
	return int64(float64(total) * float64(min) / float64(mins))
}

// pass gives the needy ones their part. Those that still need more come back, with what the others did not need.
func (c *column) pass(needy []int, total, weights int64) (rest []int, left, weightsLeft int64) {
	rest = needy[:0]
	for _, i := range needy {
		sl := &c.slots[i]
		sl.next += int64(float64(sl.weight)*float64(total)/float64(weights) + 0.5)
		if sl.next < sl.request {
			rest = append(rest, i)
			weightsLeft += sl.weight
		} else {
			left += sl.next - sl.request
			sl.next = sl.request
		}
	}
	return rest, left, weightsLeft
}
