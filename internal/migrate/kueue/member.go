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

	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/document"
	"github.com/koord-jobqueue/koord-jobqueue/internal/migrate/finding"
)

// quota of one resource in one flavor. Borrow and lend are nil without a limit.
type quota struct {
	flavor        string
	nominal       resource.Quantity
	borrow, lends *resource.Quantity
}

type quotas map[corev1.ResourceName]quota

// member is a ClusterQueue, or a cohort with members below it.
type member struct {
	source, name string
	// queue is nil for a cohort.
	queue *clusterQueue
	// trees are the flavors that its jobs choose from, and quotas what it has in each of these trees.
	trees  []string
	quotas map[string]quotas
	// shared is what jobs of all trees use together: the first flavor of each further group of resources.
	shared quotas
	// groups of a cohort, until the trees of its members are known.
	groups   []resourceGroup
	weight   any
	children []*member
}

// memberOf a ClusterQueue. The flavors of its first group are trees. They share the first flavor of each further group.
func memberOf(q *clusterQueue, out *finding.List) *member {
	m := &member{source: "ClusterQueue/" + q.Name, name: q.Name, queue: q, quotas: map[string]quotas{}, shared: quotas{}}
	if q.Spec.FairSharing != nil {
		m.weight = q.Spec.FairSharing.Weight
	}
	for i, group := range q.Spec.ResourceGroups {
		for j, flavor := range group.Flavors {
			const field = "spec.resourceGroups"
			read := readQuotas(m.source, flavor, out)
			switch {
			case i == 0:
				if m.quotas[flavor.Name] != nil {
					out.Add(finding.Error, finding.DuplicateObject, m.source, field, "Flavor %s is there more than once.", flavor.Name)
					continue
				}
				m.trees = append(m.trees, flavor.Name)
				m.quotas[flavor.Name] = read
			case j == 0:
				maps.Copy(m.shared, read)
			default:
				out.Add(finding.Warning, finding.FlavorLeftOut, m.source, field,
					"Flavor %s (%s) is left out: only the first group of resources has a quota for each flavor.",
					flavor.Name, read.text())
			}
		}
	}
	if len(m.trees) == 0 {
		out.Add(finding.Error, finding.NotExpressed, m.source, "spec.resourceGroups", "Without a flavor there is no quota.")
		return m
	}
	if lone := cohortOf(q) == ""; len(m.trees) == 1 || !lone {
		m.unshare(out)
	}
	return m
}

func cohortOf(q *clusterQueue) string { return first(q.Spec.CohortName, q.Spec.Cohort) }

// unshare counts what is shared in the first tree. A quota of a cohort cannot be in two trees, so jobs of the other
// trees have none of it.
func (m *member) unshare(out *finding.List) {
	if len(m.trees) > 1 && len(m.shared) > 0 {
		out.Add(finding.Warning, finding.FlavorLeftOut, m.source, "spec.resourceGroups",
			"%s is in the quota of flavor %s only. Jobs in the quotas of %v cannot use it.",
			m.shared.text(), m.trees[0], m.trees[1:])
	}
	maps.Copy(m.quotas[m.trees[0]], m.shared)
	m.shared = nil
}

func (q quotas) text() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if text != "" {
			text += ", "
		}
		nominal := q[name].nominal
		text += string(name) + " " + nominal.String()
	}
	return text
}

// readQuotas of one flavor. An unreadable amount counts as 0, so that no amount exceeds the promised one.
func readQuotas(source string, flavor flavorQuotas, out *finding.List) quotas {
	read := quotas{}
	for _, r := range flavor.Resources {
		field := "spec.resourceGroups." + flavor.Name + "." + r.Name
		if r.Name == string(corev1.ResourcePods) {
			out.Add(finding.Warning, finding.ResourceNotCounted, source, field,
				"ElasticQuota does not count pods, so %v pods are no limit. koord-queue/max-jobs bounds the number of jobs.",
				r.NominalQuota)
			continue
		}
		if _, err := (document.Amounts{r.Name: int64(0)}).Parse(); err != nil {
			out.Add(finding.Error, finding.InvalidAmount, source, field, "The resource is left out: %v", err)
			continue
		}
		q := quota{flavor: flavor.Name}
		parse := func(name string, value any) *resource.Quantity {
			if value == nil {
				return nil
			}
			amount, err := document.Amount(value)
			if err != nil {
				out.Add(finding.Error, finding.InvalidAmount, source, field+"."+name, "It counts as 0: %v", err)
			}
			return &amount
		}
		if nominal := parse("nominalQuota", r.NominalQuota); nominal != nil {
			q.nominal = *nominal
		}
		q.borrow = parse("borrowingLimit", r.BorrowingLimit)
		q.lends = parse("lendingLimit", r.LendingLimit)
		read[corev1.ResourceName(r.Name)] = q
	}
	return read
}

// settle puts the quotas of cohorts into the trees in which their flavors are counted.
func (m *member) settle(homes map[string]string, out *finding.List) {
	for _, group := range m.groups {
		for _, flavor := range group.Flavors {
			read := readQuotas(m.source, flavor, out)
			tree, ok := homes[flavor.Name]
			if !ok {
				out.Add(finding.Warning, finding.FlavorLeftOut, m.source, "spec.resourceGroups",
					"Flavor %s (%s) is left out: no ClusterQueue of the cohort has it.", flavor.Name, read.text())
				continue
			}
			if m.quotas[tree] == nil {
				m.quotas[tree] = quotas{}
			}
			maps.Copy(m.quotas[tree], read)
		}
	}
	for _, child := range m.children {
		child.settle(homes, out)
	}
}

// homes says in which tree each flavor of the members is counted, and returns the trees in their order.
func (m *member) homes(into map[string]string, out *finding.List) (trees []string) {
	for _, tree := range m.trees {
		trees = append(trees, tree)
		for _, name := range slices.Sorted(maps.Keys(m.quotas[tree])) {
			flavor := m.quotas[tree][name].flavor
			switch has, ok := into[flavor]; {
			case !ok:
				into[flavor] = tree
			case has != tree:
				out.Add(finding.Warning, finding.QuotaPerFlavor, m.source, "spec.resourceGroups",
					"Flavor %s is counted with flavor %s here, and with %s elsewhere. Nothing is borrowed between them.",
					flavor, tree, has)
			}
		}
	}
	for _, child := range m.children {
		trees = append(trees, child.homes(into, out)...)
	}
	return trees
}

// has says whether the member, or one below it, has jobs in a tree.
func (m *member) has(tree string) bool {
	return slices.Contains(m.trees, tree) || slices.ContainsFunc(m.children, func(c *member) bool { return c.has(tree) })
}

// nominal sums the quotas of the member and all below it in a tree.
func (m *member) nominal(tree string) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for name, q := range m.quotas[tree] {
		sum[name] = q.nominal.DeepCopy()
	}
	for _, child := range m.children {
		add(sum, child.nominal(tree))
	}
	return sum
}

func add(sum, more corev1.ResourceList) {
	for name, amount := range more {
		has := sum[name]
		has.Add(amount)
		sum[name] = has
	}
}

// keepsBack says whether the member lends less than all that it does not use.
func (m *member) keepsBack(tree string) bool {
	nominal := m.nominal(tree)
	for name, q := range m.quotas[tree] {
		has := nominal[name]
		if q.lends != nil && q.lends.Cmp(has) < 0 {
			return true
		}
	}
	return false
}

// kept is what the member lends to nobody. Koordinator lends all of min or nothing.
func (m *member) kept(tree string) corev1.ResourceList {
	if !m.keepsBack(tree) {
		return nil
	}
	return m.nominal(tree)
}

func resourcesOf(members []*member) []corev1.ResourceName {
	names := map[corev1.ResourceName]bool{}
	var walk func([]*member)
	walk = func(members []*member) {
		for _, m := range members {
			for _, q := range m.quotas {
				for name := range q {
					names[name] = true
				}
			}
			for name := range m.shared {
				names[name] = true
			}
			for _, group := range m.groups {
				for _, flavor := range group.Flavors {
					for name := range readQuotas(m.source, flavor, &finding.List{}) {
						names[name] = true
					}
				}
			}
			walk(m.children)
		}
	}
	walk(members)
	return slices.Sorted(maps.Keys(names))
}
