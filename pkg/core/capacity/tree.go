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
	"fmt"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Tree has all levels. It is not safe for concurrent use.
type Tree struct {
	ledger *ledger.Ledger
	// levels by name: those that exist, and those that are remembered.
	levels map[string]*Level
	// children are the levels that name this one as their parent, whether or not it exists.
	children map[string]map[*Level]struct{}
	// remembered are the levels that do not exist any more.
	remembered map[*Level]struct{}
	// structure changes whenever a path may have, or a max or min, or the numbers of resources.
	structure int64
	numbers   resources.Numbering
	// stale are the levels whose vectors are not up to date.
	stale []*Level
	// shared counts the levels that exist and are Shared.
	shared int
	slots  slots
	// asks is, by quota, what units add to the requests of its pods.
	asks     map[string]*resources.Sum
	runtimes runtimes
}

// Level is one quota: its last observation, and what follows from it.
type Level struct {
	tree *Tree
	name string
	// exists: the quota is there now. The observation of one that went is not looked at.
	exists bool
	spec   Quota
	stale  bool
	// runtime is the limit, if that is computed, as of the last refresh.
	runtime resources.List

	limit, min Limit
	// ofMin and ofLimit are the shares of Shares.
	ofMin, ofLimit float64
	// versionBelow changes when a level right below may have.
	versionBelow int64
	// asked is what the quota asks of its parent if nobody waits, unless it is unknown.
	asked        []int64
	askedUnknown bool

	route *Route
}

// Route leads from a leaf to the top.
type Route struct {
	// Levels, the leaf first.
	Levels []*Level
	// Broken says in words why no unit of the leaf can be decided about; empty when nothing is missing.
	Broken string
	// Shared: the limit of a level on it is a share, beyond which a unit may borrow.
	Shared bool
	// limits are those that all units have to keep, strict those of non-preemptible ones, the leaf's first.
	limits, strict []*Limit
	structure      int64
}

// Limits lists the limits of a unit, the leaf's first.
//
// ElasticQuota compares non-preemptible pods with the min of their own quota only. Min is a promise of capacity, and a
// parent promises its children at most its own min. Suppose that only the leaf were compared. Children whose min add up
// to more would be promised the same capacity twice, and nobody could take it back.
func (r *Route) Limits(nonPreemptible bool) []*Limit {
	if nonPreemptible {
		return r.strict
	}
	return r.limits
}

// NewTree returns an empty tree that reads what is outstanding from the ledger and tells it the parents.
func NewTree(l *ledger.Ledger) *Tree {
	return &Tree{
		ledger: l, levels: map[string]*Level{}, children: map[string]map[*Level]struct{}{},
		remembered: map[*Level]struct{}{}, asks: map[string]*resources.Sum{}, numbers: resources.NewNumbering(),
		runtimes: newRuntimes(),
	}
}

// Name of the quota.
func (l *Level) Name() string { return l.name }

// Spec is the last observation.
func (l *Level) Spec() *Quota { return &l.spec }

// Limit is what bounds the level.
func (l *Level) Limit() *Limit { return &l.limit }

// Structure changes whenever a route may have, or a max or min, or the numbers of resources.
func (t *Tree) Structure() int64 { return t.structure }

// Len is the number of levels that exist or are remembered.
func (t *Tree) Len() int { return len(t.levels) }

// Reader has what others may know of a tree.
type Reader interface {
	LimitOf(name string) (limit, promised resources.List)
	Moved() []string
	Levels(visit func(l *Level, asked *resources.Sum))
}

// Levels visits those that exist, in no order. asked is what units ask for there in addition to pods; nil for nothing.
func (t *Tree) Levels(visit func(l *Level, asked *resources.Sum)) {
	for name, l := range t.levels {
		if l.exists {
			visit(l, t.asks[name])
		}
	}
}

// AnyShared says whether there is a level beyond whose limit a unit may borrow.
func (t *Tree) AnyShared() bool { return t.shared > 0 }

// Set takes an observation and says whether it is news. A level that moves takes what is outstanding along.
func (t *Tree) Set(q Quota) bool {
	l, known := t.levels[q.Name]
	if !known {
		l = &Level{tree: t, name: q.Name, askedUnknown: true}
		l.limit, l.min = Limit{level: l, slot: t.slots.take()}, Limit{level: l, slot: t.slots.take(), isMin: true}
		t.levels[q.Name] = l
	} else if l.exists && l.spec.same(&q) {
		return false
	}
	if !l.exists || l.spec.structural(&q) {
		t.structure++
	}
	counted := l.exists // a remembered quota does not count
	t.exists(l, true)
	t.setParent(l, q.Parent)
	former := l.spec
	l.spec = q
	t.count(&q, 1)
	if counted {
		t.count(&former, -1)
	}
	t.forgetAsked(l)
	t.runtimes.set(&l.spec)
	t.Changed(l.name)
	t.prune()
	return true
}

// Delete says that a quota is gone, and whether that is news.
func (t *Tree) Delete(name string) bool {
	l, ok := t.levels[name]
	if !ok || !l.exists {
		return false
	}
	t.structure++
	t.count(&l.spec, -1)
	t.exists(l, false)
	l.spec = Quota{Name: name, Parent: l.spec.Parent, Max: l.spec.Max, Min: l.spec.Min}
	t.runtimes.set(&l.spec)
	t.forgetAsked(l)
	for _, name := range t.ledger.Path(l.name) {
		if at, known := t.levels[name]; known && at.spec.Parent == l.name {
			t.setParent(l, "") // its parents lead back to it, and it would keep itself alive
		}
	}
	t.prune()
	return true
}

// VersionBelow changes with the limits or guarantees of the levels right below, or with the use of units' pods there.
func (l *Level) VersionBelow() [2]int64 {
	return [2]int64{l.versionBelow, l.tree.ledger.Read(l.name).Charged()}
}

func (t *Tree) changedBelow(l *Level) {
	if parent, ok := t.levels[l.spec.Parent]; ok {
		parent.versionBelow++
	}
}

func (t *Tree) exists(l *Level, exists bool) {
	l.exists = exists
	t.changedBelow(l)
	if exists {
		delete(t.remembered, l)
	} else {
		t.remembered[l] = struct{}{}
	}
}

// count notes, or forgets, what an observation names. The next observation is noted before the former one is forgotten,
// so that a resource of both keeps its number.
func (t *Tree) count(q *Quota, by int) {
	if q.Shared {
		t.shared += by
	}
	ofLimit, ofMin := t.numbers.Count(q.limited(), by), t.numbers.Count(q.Min, by)
	if !ofLimit && !ofMin {
		return
	}
	t.structure++
	for _, l := range t.levels {
		t.markStale(l)
		l.askedUnknown = true
		l.versionBelow++
	}
}

func (t *Tree) setParent(l *Level, parent string) {
	former := l.spec.Parent
	if former == parent {
		return
	}
	t.structure++
	t.forgetAsked(l) // of those above it until now
	t.changedBelow(l)
	before := t.ledger.Path(l.name)
	if delete(t.children[former], l); len(t.children[former]) == 0 {
		delete(t.children, former)
	}
	if parent != "" {
		if t.children[parent] == nil {
			t.children[parent] = map[*Level]struct{}{}
		}
		t.children[parent][l] = struct{}{}
	}
	l.spec.Parent = parent
	t.ledger.SetParent(l.name, parent)
	t.markNamed(before)
	t.markNamed(t.ledger.Path(l.name))
	t.forgetAsked(l)
}

// prune forgets the levels that do not exist and that nothing refers to.
func (t *Tree) prune() {
	for again := true; again; {
		again = false
		for l := range t.remembered {
			if len(t.children[l.name]) > 0 || t.ledger.Read(l.name).Holds() {
				continue
			}
			t.forgetAsked(l)
			t.setParent(l, "")
			delete(t.remembered, l)
			delete(t.levels, l.name)
			t.slots.release(l)
			t.structure++
			again = true
		}
	}
}

// Changed says that what the ledger says of a level has changed, and with it that of all above it.
func (t *Tree) Changed(name string) {
	t.markNamed(t.ledger.Path(name))
	if len(t.remembered) > 0 {
		t.prune()
	}
}

func (t *Tree) markNamed(names []string) {
	for _, name := range names {
		if l, ok := t.levels[name]; ok {
			t.markStale(l)
		}
	}
}

func (t *Tree) markStale(l *Level) {
	t.runtimes.heldChanged(&l.spec)
	t.changedBelow(l)
	if !l.stale {
		l.stale = true
		t.stale = append(t.stale, l)
	}
}

// Route leads from this quota to the top.
func (t *Tree) Route(leaf string) *Route {
	l, ok := t.levels[leaf]
	if !ok {
		return &Route{Broken: missing(leaf, leaf), structure: t.structure}
	}
	if l.route == nil || l.route.structure != t.structure {
		l.route = t.newRoute(l)
	}
	return l.route
}

func (t *Tree) newRoute(leaf *Level) *Route {
	r := &Route{structure: t.structure}
	for l := leaf; ; {
		if !l.exists && r.Broken == "" {
			r.Broken = missing(leaf.name, l.name)
		}
		r.Levels = append(r.Levels, l)
		r.Shared = r.Shared || l.spec.Shared
		r.limits = append(r.limits, &l.limit)
		r.strict = append(r.strict, &l.limit, &l.min)
		parent := l.spec.Parent
		if parent == "" {
			return r
		}
		next, ok := t.levels[parent]
		if !ok {
			r.Broken = missing(leaf.name, parent)
			return r
		}
		if slices.Contains(r.Levels, next) {
			r.Broken = fmt.Sprintf("quota %q: its parents form a circle at %q", leaf.name, parent)
			return r
		}
		l = next
	}
}

func missing(leaf, name string) string {
	if leaf == name {
		return fmt.Sprintf("quota %q does not exist", name)
	}
	return fmt.Sprintf("quota %q: its parent %q does not exist", leaf, name)
}

// Need is the vector of a request: nothing of resources that no limit names, and as many jobs as places says.
func (t *Tree) Need(request resources.List, places int64) []int64 {
	need := make([]int64, t.numbers.Len())
	for i, name := range t.numbers.Names() {
		need[i], _ = request.Get(name)
		if name == resources.Jobs {
			need[i] = places
		}
	}
	return need
}

// Number of a resource; false where no limit ever named it.
func (t *Tree) Number(resource string) (int, bool) {
	return t.numbers.Of(resource)
}

// Resource with this number.
func (t *Tree) Resource(number int) string { return t.numbers.Names()[number] }
