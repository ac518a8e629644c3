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

package holders

import (
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Index has all units that keep something from others. It is not safe for concurrent use. Its answers are as of the
// last Refresh.
type Index[T comparable] struct {
	tree  *capacity.Tree
	units map[string]*entry[T]
	// byUID are those of known units.
	byUID map[string]*entry[T]
	gangs map[string]*gangGroup[T]
	// promises are those of units, by their keys.
	promises map[string]promise
	// due are the units of which pods alone are left, by when these should be gone.
	due *ordered.Due[*entry[T]]

	leaves map[string]*Leaf[T]
	// many leaves are more than twice as many as the last prune left. Where quotas are still to arrive, all of them stay.
	many int
	// stale are the leaves whose vectors are not up to date, structure is that of the tree for which the others are.
	stale     map[*Leaf[T]]struct{}
	structure int64
	now       time.Time // of the last Refresh
	// inOrder are the leaves by name; nil if some came or went. open are those that are not broken.
	inOrder, open []*Leaf[T]
	held          Amounts
	// key is memory for the key of a class, spare a class that ended, to be used again.
	key   []byte
	spare *Class[T]
}

// entry is one unit.
type entry[T comparable] struct {
	of     [1]T
	hold   Hold
	amount resources.List
	// holder is that of the unit, alone the one that it is if it is by itself. at is the leaf of the holder.
	holder *Holder[T]
	alone  Holder[T]
	at     *Leaf[T]
	// leavesBy is the key of due; stays: that is over.
	leavesBy ordered.Moment
	stays    bool
}

type promise struct {
	quota  string
	amount resources.List
	jobs   int64
}

// New returns an empty index of units in the quotas of a tree.
func New[T comparable](tree *capacity.Tree) *Index[T] {
	return &Index[T]{
		tree: tree, units: map[string]*entry[T]{}, byUID: map[string]*entry[T]{}, gangs: map[string]*gangGroup[T]{},
		promises: map[string]promise{}, leaves: map[string]*Leaf[T]{}, stale: map[*Leaf[T]]struct{}{}, held: Amounts{},
		due: ordered.NewDue(func(e *entry[T]) ordered.Moment { return e.leavesBy }, compareKeys[T]),
	}
}

func compareKeys[T comparable](a, b *entry[T]) int { return strings.Compare(a.hold.Key, b.hold.Key) }

// Set has a unit keep this much from others. of is the unit itself, and nothing if it is not known.
func (x *Index[T]) Set(of T, h Hold, amount resources.List) {
	e := x.units[h.Key]
	if e != nil && e.of[0] == of && e.hold == h && e.amount.Equal(amount) {
		return
	}
	if e == nil {
		e = &entry[T]{}
		x.units[h.Key] = e
	} else {
		x.takeOut(e)
	}
	e.of[0], e.hold, e.amount = of, h, amount
	if h.UID != "" {
		x.byUID[h.UID] = e
	}
	switch {
	case h.Leaves:
		x.flow(e, 1)
		if h.Pods {
			x.due.Move(e, max(1, ordered.MomentOf(h.LeavesBy)), func(m ordered.Moment) { e.leavesBy = m })
		}
	case h.joins():
		x.join(e)
	default:
		x.form(e)
	}
}

// Drop forgets a unit.
func (x *Index[T]) Drop(key string) {
	if e := x.units[key]; e != nil {
		x.takeOut(e)
		delete(x.units, key)
	}
}

func (x *Index[T]) takeOut(e *entry[T]) {
	if x.byUID[e.hold.UID] == e {
		delete(x.byUID, e.hold.UID)
	}
	switch {
	case e.hold.Leaves:
		if !e.stays {
			x.flow(e, -1)
		}
		e.stays = false
		x.due.Move(e, 0, func(m ordered.Moment) { e.leavesBy = m })
	case e.hold.joins():
		x.part(e)
	default:
		x.dissolve(e)
	}
}

// Promise has a unit be promised an amount in a quota, with so many places of a limit of jobs. Forgive ends that.
func (x *Index[T]) Promise(key, quota string, amount resources.List, jobs int64) {
	next := promise{quota, amount, jobs}
	former, some := x.promises[key]
	if some && former.quota == quota && former.jobs == jobs && former.amount.Equal(amount) {
		return
	}
	x.Forgive(key)
	x.promises[key] = next
	x.changed(quota).promised.promise(&next, 1)
}

// Forgive has a unit be promised nothing.
func (x *Index[T]) Forgive(key string) {
	if former, some := x.promises[key]; some {
		delete(x.promises, key)
		x.changed(former.quota).promised.promise(&former, -1)
	}
}

func (s *sum) promise(p *promise, times int64) {
	s.add(p.amount, times)
	s.units += times * (p.jobs - 1)
}

// flow counts what leaves, or does not any more.
func (x *Index[T]) flow(e *entry[T], times int64) {
	l := x.changed(e.hold.Quota)
	if l.leaving.add(e.amount, times); e.hold.Unsure {
		l.unsure.add(e.amount, times)
	}
}

// join takes a unit into its gang group, and part takes it out.
func (x *Index[T]) join(e *entry[T]) {
	name := e.hold.GangGroup
	g := x.gangs[name]
	if g == nil {
		g = &gangGroup[T]{byGang: map[string]*ordered.Tree[*entry[T]]{}}
		x.gangs[name] = g
	}
	g.add(e)
	x.form(e)
	e.at.gangs[name]++
	x.regroup(g)
}

func (x *Index[T]) part(e *entry[T]) {
	name := e.hold.GangGroup
	g, l := x.gangs[name], x.leaves[e.hold.Quota]
	if slices.Contains(g.core, e) {
		x.disband(g)
	}
	x.dissolve(e)
	if l.gangs[name]--; l.gangs[name] == 0 {
		delete(l.gangs, name)
	}
	if g.remove(e); len(g.byGang) == 0 {
		delete(x.gangs, name)
	}
	x.regroup(g)
}

// regroup has the core of a gang group be the right one.
func (x *Index[T]) regroup(g *gangGroup[T]) {
	core := g.pick(func(e *entry[T]) bool { return x.leaves[e.hold.Quota].broken })
	if slices.Equal(core, g.core) {
		return
	}
	x.disband(g)
	if g.core = core; len(core) == 0 {
		return
	}
	for _, e := range core {
		x.dissolve(e)
		x.changed(e.hold.Quota).held.add(e.amount, 1)
	}
	h, c := join(core)
	at := x.leaves[core[0].hold.Quota]
	x.key = c.appendKey(x.key[:0], c.shares[0])
	known := at.classes[string(x.key)]
	if known == nil {
		known = c
		c.members = ordered.NewTree(compareAdmissions[T])
		at.begin(c, string(x.key))
	}
	at.put(h, known)
	g.holder = h
	for _, e := range core {
		e.holder, e.at = h, at
	}
}

// disband has each unit of the core of a gang group be a holder by itself.
func (x *Index[T]) disband(g *gangGroup[T]) {
	for _, e := range g.core {
		x.dissolve(e)
	}
	for _, e := range g.core {
		x.form(e)
	}
	g.core, g.holder = nil, nil
}

// form makes a holder of a unit by itself.
func (x *Index[T]) form(e *entry[T]) {
	e.holder, e.at = &e.alone, x.changed(e.hold.Quota)
	e.at.held.add(e.amount, 1)
	k, of := e.alone.single(e), share{queue: e.hold.Queue, quota: e.hold.Quota, amount: e.amount, units: 1}
	x.key = k.appendKey(x.key[:0], of)
	c := e.at.classes[string(x.key)]
	if c == nil {
		if c, x.spare = x.spare, nil; c == nil {
			c = &Class[T]{members: ordered.NewTree(compareAdmissions[T])}
		}
		c.kind, c.shares, c.terms, c.parts = k, append(c.shares[:0], of), nil, nil
		e.at.begin(c, string(x.key))
	}
	e.at.put(e.holder, c)
}

// dissolve ends what form or regroup has made.
func (x *Index[T]) dissolve(e *entry[T]) {
	x.changed(e.hold.Quota).held.add(e.amount, -1)
	if e.holder != nil && e.holder.Class != nil {
		if c := e.holder.Class; e.at.remove(e.holder) {
			x.spare = c
		}
	}
	e.holder, e.at = nil, nil
}

// changed is a leaf of which something has changed.
func (x *Index[T]) changed(name string) *Leaf[T] {
	l := x.leaves[name]
	if l == nil {
		if len(x.leaves) > max(2*x.tree.Len(), x.many) { // of quotas that went
			x.prune()
			x.many = 2 * len(x.leaves)
		}
		l = &Leaf[T]{
			name: name, tree: x.tree, route: x.tree.Route(name), classes: map[string]*Class[T]{}, gangs: map[string]int{},
		}
		l.broken = l.route.Broken != ""
		x.leaves[name], x.inOrder = l, nil
	}
	x.stale[l] = struct{}{}
	return l
}

// prune forgets the leaves in which nothing is held.
func (x *Index[T]) prune() {
	for _, l := range x.leaves {
		if l.isEmpty() {
			x.renew(l)
			delete(x.stale, l)
		}
	}
}

// Refresh brings the index in line with the tree and the time, which does not go back. It costs as much as has changed,
// and as many leaves as there are if the structure of the tree has.
func (x *Index[T]) Refresh(now time.Time) {
	x.now = now
	for e, some := x.due.First(); some && e.leavesBy <= ordered.MomentOf(now); e, some = x.due.First() {
		x.due.Move(e, 0, func(m ordered.Moment) { e.leavesBy = m })
		e.stays = true // nobody gives back what its pods use
		x.flow(e, -1)
	}
	if s := x.tree.Structure(); s != x.structure {
		x.structure = s
		x.restructure()
	}
	for l := range x.stale {
		x.renew(l)
	}
	clear(x.stale)
	if x.inOrder == nil {
		x.open = nil
		for _, l := range x.leaves {
			x.inOrder = append(x.inOrder, l)
		}
		slices.SortFunc(x.inOrder, func(a, b *Leaf[T]) int { return strings.Compare(a.name, b.name) })
		for _, l := range x.inOrder {
			if !l.broken {
				x.open = append(x.open, l)
			}
		}
	}
}

// restructure finds the leaves again in a tree whose structure has changed. Gang groups of which units are in a leaf
// that was broken, or is by now, are other holders.
func (x *Index[T]) restructure() {
	clear(x.held)
	moved := map[string]struct{}{}
	for _, l := range x.leaves {
		l.route, l.vectors = x.tree.Route(l.name), [4][]int64{}
		l.version++
		x.stale[l] = struct{}{}
		if broken := l.route.Broken != ""; l.broken != broken {
			l.broken, x.inOrder = broken, nil
			for gang := range l.gangs {
				moved[gang] = struct{}{}
			}
		}
	}
	for gang := range moved {
		x.regroup(x.gangs[gang])
	}
}

// renew brings the vectors of a leaf in line with its sums.
func (x *Index[T]) renew(l *Leaf[T]) {
	if l.vectors[0] != nil {
		x.held.Add(l.route, l.vectors[0], -1)
	}
	for i, s := range l.sums() {
		l.vectors[i] = nil
		if !s.isZero() {
			l.vectors[i] = s.need(x.tree)
		}
	}
	if l.vectors[0] != nil && !l.broken {
		x.held.Add(l.route, l.vectors[0], 1)
	} else {
		l.vectors[0] = nil
	}
	if l.isEmpty() {
		delete(x.leaves, l.name)
		x.inOrder = nil
	}
}

// Leaves are the quotas about which something is decided, and in which something is held.
func (x *Index[T]) Leaves() []*Leaf[T] { return x.open }

// Held is what holders hold at each level and below. Nobody may change it.
func (x *Index[T]) Held() Amounts { return x.held }

// GangGroup is the holder of the core of a gang group; nil if none of its units holds quota that it could lose.
func (x *Index[T]) GangGroup(name string) *Holder[T] {
	g := x.gangs[name]
	if g == nil || g.holder == nil {
		return nil
	}
	g.holder.refresh(x.tree)
	return g.holder
}

// Leaving visits what goes without anybody's doing, leaf by leaf; sure: as far as that is sure.
func (x *Index[T]) Leaving(sure bool, visit func(*capacity.Route, []int64)) {
	for _, l := range x.open {
		if of := l.vectors[1]; of != nil {
			if unsure := l.vectors[2]; sure && unsure != nil {
				of = slices.Clone(of)
				change(of, unsure)
			}
			visit(l.route, of)
		}
	}
}

func change(from, by []int64) {
	for i, n := range by {
		from[i] = resources.SaturatingSub(from[i], n)
	}
}

// Unsure says whether something leaves of which that is not sure.
func (x *Index[T]) Unsure() bool {
	return slices.ContainsFunc(x.open, func(l *Leaf[T]) bool { return l.vectors[2] != nil })
}

// Promised visits what units are promised, but for these units.
func (x *Index[T]) Promised(but []string, visit func(route *capacity.Route, amount []int64, times int64)) {
	for _, l := range x.inOrder {
		if l.vectors[3] != nil {
			visit(l.route, l.vectors[3], 1)
		}
	}
	for _, key := range but {
		if p, some := x.promises[key]; some {
			visit(x.tree.Route(p.quota), x.tree.Need(p.amount, p.jobs), -1)
		}
	}
}

// LeavesBy is when the first pods should be gone of which nothing else is left; zero if none are on their way.
func (x *Index[T]) LeavesBy() (by time.Time) {
	if e, some := x.due.First(); some {
		by = e.hold.LeavesBy
	}
	return by
}

// State of what a unit holds or held.
type State uint8

// The states.
const (
	Gone    State = iota
	Stays         // the unit holds quota
	Leaves        // the unit gives its quota back, or its pods end
	Remains       // the unit holds nothing, and its pods do not end
)

// ByUID is a known unit, and what is with its hold. Nothing is if nothing is decided about its quota.
func (x *Index[T]) ByUID(uid string) (of T, is State) {
	e := x.byUID[uid]
	switch {
	case e == nil:
		return of, Gone
	case e.stays:
		return e.of[0], Remains
	case x.leaves[e.hold.Quota].broken:
		return of, Gone
	case e.hold.Leaves:
		return e.of[0], Leaves
	}
	return e.of[0], Stays
}
