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

package kueue

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/quotaplan"
)

// plan collects the levels of all trees.
type plan struct {
	in     *input
	out    *finding.List
	levels []*quotaplan.Level
	// resources of all ClusterQueues. A ClusterQueue must not use a resource that it does not have itself.
	resources []corev1.ResourceName
	// leaves of each ClusterQueue, by name of the ClusterQueue.
	leaves map[string][]leaf
}

// leaf is the quota that jobs of a ClusterQueue use for one flavor.
type leaf struct {
	flavor string
	level  *quotaplan.Level
}

// roots are the members without a cohort above them. A cohort that no object describes has no quota of its own.
func roots(in *input, out *finding.List) []*member {
	parents := map[string]string{}
	cohorts := map[string]*member{}
	enter := func(name string) {
		if cohorts[name] == nil {
			cohorts[name] = &member{source: "Cohort/" + name, name: name, quotas: map[string]quotas{}}
			parents[name] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(in.cohorts)) {
		c := in.cohorts[name]
		enter(name)
		cohorts[name].groups = c.Spec.ResourceGroups
		if c.Spec.FairSharing != nil {
			cohorts[name].weight = c.Spec.FairSharing.Weight
		}
		if above := first(c.Spec.ParentName, c.Spec.Parent); above != "" {
			enter(above)
			parents[name] = above
		}
	}
	for _, q := range in.queues {
		if above := cohortOf(q); above != "" {
			enter(above)
		}
	}
	order, lost := quotaplan.Order(parents)
	for _, name := range lost {
		out.Add(finding.Error, finding.ParentCycle, "Cohort/"+name, "spec.parentName",
			"The cohort and its ClusterQueues are left out: it is above itself, or more than %d cohorts are above it.",
			quotaplan.MaxDepth-1)
		delete(cohorts, name)
	}
	var top []*member
	for _, name := range order {
		if above := cohorts[parents[name]]; above != nil {
			above.children = append(above.children, cohorts[name])
		} else {
			top = append(top, cohorts[name])
		}
	}
	for _, q := range in.queues {
		m := memberOf(q, out)
		above := cohortOf(q)
		switch {
		case above == "":
			top = append(top, m)
		case cohorts[above] != nil:
			cohorts[above].children = append(cohorts[above].children, m)
		}
	}
	return top
}

func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// maxTrees is the greatest number of flavors below a root.
const maxTrees = 256

// grow makes a tree of quotas of each flavor below a root.
func (p *plan) grow(root *member) {
	if len(root.shared) > 0 {
		p.growShared(root)
		return
	}
	homes := map[string]string{}
	trees := root.homes(homes, p.out)
	root.settle(homes, p.out)
	slices.Sort(trees)
	trees = slices.Compact(trees)
	if len(trees) > maxTrees {
		p.out.Add(finding.Error, finding.TooLarge, root.source, "",
			"Flavors beyond the first %d are left out, of %d.", maxTrees, len(trees))
		trees = trees[:maxTrees]
	}
	for _, tree := range trees {
		p.level(root, nil, tree, len(trees) == 1, nil)
	}
}

// growShared makes a quota of a ClusterQueue without a cohort, and below it one of each flavor. Shared
// amounts are the min of all flavors together, and each flavor may use all of them.
func (p *plan) growShared(m *member) {
	shared := corev1.ResourceList{}
	for name, q := range m.shared {
		shared[name] = q.nominal
	}
	sum := p.none()
	add(sum, shared)
	for _, tree := range m.trees {
		add(sum, m.nominal(tree))
	}
	above := &quotaplan.Level{
		Source: m.source, Name: m.name, Alternative: m.name + "-all", Group: true, Min: sum, Max: sum.DeepCopy(),
	}
	p.levels = append(p.levels, above)
	for _, tree := range m.trees {
		most := p.none()
		add(most, m.nominal(tree))
		add(most, shared)
		l := &quotaplan.Level{
			Source: m.source, Name: m.name + "-" + tree, Alternative: m.name + "-" + tree + "-quota", Parent: above,
			Min: m.nominal(tree), Max: most, Queue: p.queue(m.queue, tree),
		}
		p.levels = append(p.levels, l)
		p.leaves[m.name] = append(p.leaves[m.name], leaf{tree, l})
	}
}

func (p *plan) none() corev1.ResourceList {
	list := make(corev1.ResourceList, len(p.resources))
	for _, name := range p.resources {
		list[name] = resource.Quantity{}
	}
	return list
}

// level makes the level of a member in one tree, and of all below it. Room is the most that it may use; nil for a root,
// which has what is below it. Alone says that the cohort has one flavor.
func (p *plan) level(m *member, above *quotaplan.Level, tree string, alone bool, room corev1.ResourceList) {
	if !m.has(tree) {
		return
	}
	nominal := m.nominal(tree)
	if room == nil {
		room = nominal
	}
	most := p.most(m, tree, above != nil, room)
	l := &quotaplan.Level{
		Source: m.source, Name: m.name, Alternative: m.name + "-" + tree, Parent: above, Min: nominal, Max: most,
	}
	if m.queue != nil {
		alone = len(m.trees) == 1
		l.Queue = p.queue(m.queue, tree)
		p.leaves[m.name] = append(p.leaves[m.name], leaf{tree, l})
	} else {
		l.Group = true
		if slices.ContainsFunc(p.in.queues, func(q *clusterQueue) bool { return q.Name == m.name }) {
			l.Name = "cohort-" + m.name // jobs name the quota of the ClusterQueue
		}
	}
	if !alone {
		l.Name, l.Alternative = m.name+"-"+tree, m.name+"-"+tree+"-quota"
	}
	if above != nil && m.keepsBack(tree) {
		l.KeepBack = true
		p.sayLending(m, tree)
	}
	p.levels = append(p.levels, l)
	weighted := slices.ContainsFunc(m.children, func(c *member) bool { return c.weight != nil })
	kept := corev1.ResourceList{}
	for _, child := range m.children {
		add(kept, child.kept(tree))
	}
	for _, child := range m.children {
		before := len(p.levels)
		p.level(child, l, tree, alone, roomOf(child, tree, most, kept))
		if weighted && len(p.levels) > before {
			p.levels[before].Weight = p.weight(child)
		}
	}
}

// most that a member may use of each resource. Only below a cohort there is something to borrow.
func (p *plan) most(m *member, tree string, borrows bool, room corev1.ResourceList) corev1.ResourceList {
	nominal, most := m.nominal(tree), corev1.ResourceList{}
	for _, name := range p.resources {
		amount := room[name]
		if q := m.quotas[tree][name]; borrows && q.borrow != nil {
			limit := nominal[name].DeepCopy()
			limit.Add(*q.borrow)
			if limit.Cmp(amount) < 0 {
				amount = limit
			}
		}
		most[name] = amount.DeepCopy()
	}
	return most
}

// roomOf a child is the max of the level above without what the other children keep back, of all that they keep.
func roomOf(child *member, tree string, most, kept corev1.ResourceList) corev1.ResourceList {
	room, own := most.DeepCopy(), child.kept(tree)
	for name, amount := range kept {
		others, has := amount.DeepCopy(), room[name]
		others.Sub(own[name])
		has.Sub(others)
		if has.Sign() < 0 {
			has.Set(0)
		}
		room[name] = has
	}
	return room
}

func (p *plan) sayLending(m *member, tree string) {
	for _, name := range slices.Sorted(maps.Keys(m.quotas[tree])) {
		if q := m.quotas[tree][name]; q.lends != nil && !q.lends.IsZero() && q.lends.Cmp(q.nominal) < 0 {
			p.out.Add(finding.Warning, finding.LendingAllOrNothing, m.source, "spec.resourceGroups."+q.flavor+"."+string(name),
				"lendingLimit %s of %s: Koordinator lends all of min or nothing, so nothing is lent.",
				q.lends.String(), q.nominal.String())
		}
	}
}

// maxWeight bounds a weight in thousandths: Koordinator multiplies and adds weights as 64-bit integers.
const maxWeight = 1_000_000_000

// weight of a member against its siblings, in thousandths. Kueue's default is 1.
func (p *plan) weight(m *member) *int64 {
	if m.weight == nil {
		return ptr.To[int64](1000)
	}
	amount, err := document.Amount(m.weight)
	if err != nil {
		p.out.Add(finding.Error, finding.InvalidAmount, m.source, "spec.fairSharing.weight", "It counts as 1: %v", err)
		return ptr.To[int64](1000)
	}
	if amount.IsZero() {
		p.out.Add(finding.Warning, finding.ShareByWeight, m.source, "spec.fairSharing.weight",
			"Koordinator has no weight of 0, so it is 0.001.")
	}
	return ptr.To(max(1, min(amount.MilliValue(), maxWeight)))
}
