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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Ask adds to what units ask for of a quota in addition to its pods; with negative amounts it takes away. Units that
// hold quota ask for what they hold beyond their pods; those that wait take away their own pods, which the gate keeps.
func (t *Tree) Ask(quota string, change func(*resources.Sum)) {
	sum, ok := t.asks[quota]
	if !ok {
		sum = &resources.Sum{}
		t.asks[quota] = sum
	}
	change(sum)
	if sum.IsZero() {
		delete(t.asks, quota)
	}
	if l, ok := t.levels[quota]; ok {
		t.forgetAsked(l)
	}
}

// Want changes what units will request of a quota beyond its pods. Runtimes are computed as if those were pods.
func (t *Tree) Want(quota string, change func(*resources.Sum)) {
	sum, ok := t.runtimes.wants[quota]
	if !ok {
		sum = &resources.Sum{}
		t.runtimes.wants[quota] = sum
	}
	if change(sum); sum.IsZero() {
		delete(t.runtimes.wants, quota)
	}
	if l, ok := t.levels[quota]; ok && l.spec.computed() {
		t.runtimes.touched[quota] = struct{}{}
	}
}

// Wanted is what units will request of a quota beyond its pods.
func (t *Tree) Wanted(quota string) resources.List {
	if sum, ok := t.runtimes.wants[quota]; ok {
		return sum.List()
	}
	return resources.List{}
}

// forgetAsked marks the demand of a level, and of all levels above it, as outdated.
func (t *Tree) forgetAsked(l *Level) {
	l.askedUnknown = true
	for l = t.levels[l.spec.Parent]; l != nil && !l.askedUnknown; l = t.levels[l.spec.Parent] {
		l.askedUnknown = true
	}
}

// Asked is the demand of a level towards its parent without pending units. It is the demand of pods and admitted units,
// here and below, up to max, and at least the kept part of its min.
func (l *Level) Asked() []int64 {
	if l.askedUnknown {
		l.askedUnknown = false // first, for parents may form a circle
		l.asked = l.tree.computeAsked(l)
	}
	return l.asked
}

func (t *Tree) computeAsked(l *Level) []int64 {
	sum := make([]int64, t.numbers.Len())
	own := t.asks[l.name]
	for i, name := range t.numbers.Names() {
		sum[i], _ = l.spec.Requested.Get(name)
		if own != nil {
			sum[i] = resources.SaturatingAdd(sum[i], own.Get(name))
		}
		sum[i] = max(sum[i], 0)
	}
	for _, child := range t.childrenOf(l) {
		for i, amount := range child.Asked() {
			sum[i] = resources.SaturatingAdd(sum[i], amount)
		}
	}
	for i, name := range t.numbers.Names() {
		if least, named := l.spec.Min.Get(name); named && l.spec.KeepsMin {
			sum[i] = max(sum[i], least)
		}
		if most, named := l.spec.Max.Get(name); named && l.spec.Parent != "" {
			sum[i] = min(sum[i], most)
		}
	}
	return sum
}

// childrenOf lists the levels below one, unless they are above it as well.
func (t *Tree) childrenOf(l *Level) []*Level {
	children := make([]*Level, 0, len(t.children[l.name]))
	for child := range t.children[l.name] {
		if !slices.Contains(t.ledger.Path(l.name), child.name) {
			children = append(children, child)
		}
	}
	return children
}

// Below lists the existing levels right below one, in no order.
func (t *Tree) Below(l *Level) []*Level {
	return slices.DeleteFunc(t.childrenOf(l), func(child *Level) bool { return !child.exists })
}

// Within says whether a unit would fit if nothing were in use here.
func (l *Level) Within(need []int64) bool {
	for i, n := range need {
		if n > l.limit.bound[i] {
			return false
		}
	}
	return true
}
