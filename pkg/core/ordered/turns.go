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

package ordered

import (
	"container/list"
	"strings"
)

// Turns holds units with due times, by turns of their owners. However many units of one owner are due, a unit of
// another owner waits for at most one of them. Within an owner the order is that of Due. An owner without units is
// forgotten.
type Turns[U comparable] struct {
	at      func(U) Moment
	compare func(a, b U) int
	ownerOf func(U) string
	owners  map[string]*turn[U]
	// ready are owners in the order of their turns, each of which had a unit that was due; later are the others.
	ready *list.List
	later *Due[*turn[U]]
}

// turn is that of one owner, which is in one of ready and later.
type turn[U comparable] struct {
	owner string
	units *Due[U]
	ready *list.Element
	later Moment
	// setLater sets later; it is made once.
	setLater func(Moment)
}

// NewTurns returns an empty list. at and compare are those of Due; the owner of a unit does not change.
func NewTurns[U comparable](at func(U) Moment, compare func(a, b U) int, ownerOf func(U) string) *Turns[U] {
	return &Turns[U]{
		at: at, compare: compare, ownerOf: ownerOf, owners: map[string]*turn[U]{}, ready: list.New(),
		later: NewDue(func(o *turn[U]) Moment { return o.later },
			func(a, b *turn[U]) int { return strings.Compare(a.owner, b.owner) }),
	}
}

// Move gives a unit another time; set stores it. Zero takes the unit out.
func (t *Turns[U]) Move(u U, to Moment, set func(Moment)) {
	name := t.ownerOf(u)
	o := t.owners[name]
	if o == nil {
		if to == 0 {
			return
		}
		o = &turn[U]{owner: name, units: NewDue(t.at, t.compare)}
		o.setLater = func(m Moment) { o.later = m }
		t.owners[name] = o
	}
	o.units.Move(u, to, set)
	first, some := o.units.First()
	switch {
	case !some && o.ready != nil:
		t.ready.Remove(o.ready)
	case !some:
		t.postpone(o, 0)
	case o.ready == nil:
		t.postpone(o, t.at(first))
	}
	if !some {
		delete(t.owners, name)
	}
}

func (t *Turns[U]) postpone(o *turn[U], to Moment) {
	t.later.Move(o, to, o.setLater)
}

// Next is a unit that is due, of the owner whose turn it is; false if none is. Whether it is done then or not, the turn
// is over.
func (t *Turns[U]) Next(now Moment) (u U, ok bool) {
	o := t.front(now)
	if o == nil {
		return u, false
	}
	t.ready.MoveToBack(o.ready)
	return o.units.First()
}

// front is the owner whose turn it is, nil if no unit is due.
func (t *Turns[U]) front(now Moment) *turn[U] {
	for o, ok := t.later.First(); ok && o.later <= now; o, ok = t.later.First() {
		t.postpone(o, 0)
		o.ready = t.ready.PushBack(o)
	}
	for e := t.ready.Front(); e != nil; e = t.ready.Front() {
		o := e.Value.(*turn[U])
		first, _ := o.units.First()
		if t.at(first) <= now {
			return o
		}
		t.ready.Remove(e)
		o.ready = nil
		t.postpone(o, t.at(first))
	}
	return nil
}

// At is when a unit is due, which may be over; zero for never.
func (t *Turns[U]) At(now Moment) Moment {
	if o := t.front(now); o != nil {
		first, _ := o.units.First()
		return t.at(first)
	}
	if o, ok := t.later.First(); ok {
		return o.later
	}
	return 0
}

// Len is the number of owners with units.
func (t *Turns[U]) Len() int { return len(t.owners) }
