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

package quotatree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
)

// Reasons of problems that only show in the cluster.
const (
	reasonQuotaExists   = "QuotaExists"
	reasonFormerTree    = "FormerTree"
	reasonParentMissing = "ParentMissing"
	reasonStillInUse    = "StillInUse"
	reasonRefused       = "Refused"
)

// step is one write: of Create, Patch and Delete exactly one is set. Node is the path of the node, for people; parent
// is the quota that must be there before.
type step struct {
	node, name, parent    string
	create, patch, remove *unstructured.Unstructured
	// before is what patch changes.
	before *unstructured.Unstructured
}

// plan is what to do about a tree.
type plan struct {
	// steps in the order in which Koordinator accepts them most often: parents before children where something is made,
	// children before parents where something is removed.
	steps    []step
	problems []Problem
	// wanted is what the tree asks for.
	wanted Expansion
	// placed names the nodes, by quota, that have their ElasticQuota once all steps are done.
	placed sets.Set[string]
	// again: there is more to do when something changes of which no event comes.
	again bool
}

// planner compares a tree with the existing quotas.
type planner struct {
	tree  *v1beta1.ElasticQuotaTree
	owner metav1.OwnerReference
	// quotas by name; in Koordinator names are unique in the cluster, and where they are not, ours comes first.
	quotas map[string]live
	// children of a quota, and the quota that a namespace belongs to, as they are now.
	children map[string]sets.Set[string]
	bound    map[string]string
	out      plan
}

func makePlan(tree *v1beta1.ElasticQuotaTree, quotas []*unstructured.Unstructured) plan {
	p := &planner{
		tree:     tree,
		owner:    *metav1.NewControllerRef(tree, v1beta1.ElasticQuotaTreeKind),
		quotas:   map[string]live{},
		children: map[string]sets.Set[string]{}, bound: map[string]string{},
	}
	p.out.placed = sets.New[string]()
	p.out.wanted = Expand(tree)
	p.out.problems = slices.Clone(p.out.wanted.Problems)
	p.observe(quotas)
	wanted := sets.New[string]()
	for i := range p.out.wanted.Quotas {
		wanted.Insert(p.out.wanted.Quotas[i].Name)
		p.place(&p.out.wanted.Quotas[i])
	}
	p.retire(wanted)
	return p.out
}

func (p *planner) observe(quotas []*unstructured.Unstructured) {
	sorted := slices.Clone(quotas)
	slices.SortFunc(sorted, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	for _, object := range sorted {
		l := live{object}
		if have, taken := p.quotas[l.name()]; taken && have.ownedBy(p.tree) >= l.ownedBy(p.tree) {
			continue
		}
		p.quotas[l.name()] = l
	}
	for _, l := range p.quotas {
		if p.children[l.parent()] == nil {
			p.children[l.parent()] = sets.New[string]()
		}
		p.children[l.parent()].Insert(l.name())
	}
	for _, name := range slices.Sorted(maps.Keys(p.quotas)) {
		for _, namespace := range p.quotas[name].namespaces() {
			if _, taken := p.bound[namespace]; !taken {
				p.bound[namespace] = name
			}
		}
	}
}

func (p *planner) problem(parked bool, node, reason, format string, args ...any) {
	p.out.problems = append(p.out.problems,
		Problem{Node: node, Reason: reason, Message: fmt.Sprintf(format, args...), Parked: parked})
}

// place makes or changes the ElasticQuota of a node.
func (p *planner) place(q *Quota) {
	if q.Parent != rootQuota && !p.out.placed.Has(q.Parent) {
		p.problem(true, q.Node, reasonParentMissing, "the node above has no ElasticQuota")
		return
	}
	have, exists := p.quotas[q.Name]
	if exists {
		switch owner := have.ownedBy(p.tree); {
		case owner == foreign:
			p.problem(true, q.Node, reasonQuotaExists,
				"ElasticQuota %s exists and was not made of this tree; it is left alone", have.where())
			return
		case owner == former || have.ending():
			p.problem(true, q.Node, reasonFormerTree,
				"ElasticQuota %s is being deleted; it is created again when it is gone", have.where())
			return
		}
	}
	p.out.placed.Insert(q.Name)
	want := p.now(q)
	s := step{node: q.Node, name: q.Name, parent: q.Parent}
	if !exists {
		s.create = newQuota(want, p.tree.Namespace, p.owner)
	} else if next := have.desired(want, p.owner); !apiequality.Semantic.DeepEqual(next.Object, have.object.Object) {
		s.patch, s.before = next, have.object
	} else {
		return
	}
	p.out.steps = append(p.out.steps, s)
}

// now is the form that a quota can have now, on the way to its final form. Koordinator refuses a quota while another
// one has one of its namespaces. It must be a parent while quotas lie below it. An event comes when the obstacle is
// gone.
func (p *planner) now(q *Quota) *Quota {
	out := *q
	out.Namespaces = nil
	for _, namespace := range q.Namespaces {
		holder, taken := p.bound[namespace]
		if !taken || holder == q.Name {
			out.Namespaces = append(out.Namespaces, namespace)
			continue
		}
		if l := p.quotas[holder]; l.ownedBy(p.tree) != own {
			p.problem(false, q.Node, reasonNamespaceTaken, "namespace %q belongs to ElasticQuota %s", namespace, l.where())
		}
	}
	if p.children[q.Name].Len() > 0 && out.Labels[labelIsParent] != "true" {
		out.Labels = maps.Clone(out.Labels)
		out.Labels[labelIsParent] = "true"
	}
	return &out
}

// retire removes quotas that the tree no longer asks for, the deepest first. Their namespaces are free at once. A quota
// is deleted when nothing uses it and nothing lies below it.
func (p *planner) retire(wanted sets.Set[string]) {
	var leaving []live
	for name, l := range p.quotas {
		if l.ownedBy(p.tree) == own && !wanted.Has(name) && !p.out.wanted.Keep.Has(name) && !l.ending() {
			leaving = append(leaving, l)
		}
	}
	slices.SortFunc(leaving, func(a, b live) int {
		return cmp.Or(cmp.Compare(p.depth(b), p.depth(a)), cmp.Compare(a.name(), b.name()))
	})
	gone := sets.New[string]()
	for _, l := range leaving {
		node := l.object.GetAnnotations()[annotationNode]
		s := step{node: node, name: l.name()}
		below := p.children[l.name()].Difference(gone)
		staying := below.Difference(wanted)
		switch used := l.inUse(); {
		case below.Len() > 0 && staying.Len() == 0:
			// The quotas below are moving to their new place.
		case below.Len() > 0:
			p.problem(false, node, reasonStillInUse, "ElasticQuota %s is to go, but quotas lie below it: %s",
				l.where(), strings.Join(sets.List(staying), ", "))
		case used != "":
			p.problem(false, node, reasonStillInUse, "ElasticQuota %s is to go when its pods have ended: used %s",
				l.where(), used)
		default:
			s.remove = l.object
			gone.Insert(l.name())
			p.out.steps = append(p.out.steps, s)
			continue
		}
		p.out.again = true
		if len(l.namespaces()) > 0 {
			s.patch, s.before = withoutNamespaces(l.object), l.object
			p.out.steps = append(p.out.steps, s)
		}
	}
}

func withoutNamespaces(object *unstructured.Unstructured) *unstructured.Unstructured {
	next := object.DeepCopy()
	annotations := next.GetAnnotations()
	delete(annotations, annotationNamespaces)
	next.SetAnnotations(annotations)
	return next
}

// depth of a quota as it is now; a circle ends it.
func (p *planner) depth(l live) int {
	n := 0
	for ok := true; ok && n <= len(p.quotas); n++ {
		l, ok = p.quotas[l.parent()]
	}
	return n
}
