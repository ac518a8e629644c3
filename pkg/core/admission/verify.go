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

package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/growth"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Audit compares a state with itself, and with objects.
type Audit struct {
	lines  *lines
	roster *roster
}

// Ledger recomputes the ledger from the units and pods given to the state and returns the differences (I7).
func (a Audit) Ledger() []ledger.Difference {
	rebuilt := a.roster.holdings.Rebuild()
	for key, u := range a.roster.units {
		if u.holding {
			rebuilt.Reserve(key, u.place().Quota, u.held, u.nonPreemptible())
			rebuilt.Expect(key, growth.Expected(u.spec, true))
		}
	}
	return a.roster.holdings.Compare(rebuilt)
}

// Mismatch is one difference: Have is the value in the state, and Want the expected one.
type Mismatch struct{ Object, Field, Have, Want string }

// Places checks every unit, every queue and the index of holders, see Place, Queue and Holders. Every unit is in
// exactly one place (I2). No unit holds quota in a place where it must not (I7). Every queue is in the order of its
// policy (I5).
func (a Audit) Places() []Mismatch {
	out := a.Holders()
	for key := range a.roster.units {
		out = append(out, a.Place(key)...)
	}
	for name := range a.lines.byName {
		out = append(out, a.Queue(name)...)
	}
	slices.SortFunc(out, func(a, b Mismatch) int {
		return cmp.Or(strings.Compare(a.Object, b.Object), strings.Compare(a.Field, b.Field))
	})
	return out
}

// Holders checks the index of holders against all units that keep something from others.
func (a Audit) Holders() (out []Mismatch) {
	if p := a.roster.preemptions; p.begun {
		for _, d := range p.index.Compare(p.scan()) {
			out = append(out, Mismatch{d.Leaf, "holders", d.Have, d.Want})
		}
	}
	return out
}

// Place checks the place of one unit.
func (a Audit) Place(key string) []Mismatch {
	u, ok := a.roster.units[key]
	if !ok {
		return nil
	}
	var out []Mismatch
	place, want := placeOf(u), placeNowhere
	if u.waits() {
		want = placeWaiting
	}
	if place == placeLine && u.isAdmitted() && !u.grows.Need.IsZero() {
		want = placeLine // waits for growth
	}
	if place != want && (want != placeWaiting || (place != placeLine && place != placeParked)) {
		out = append(out, Mismatch{key, "place", place, want})
	}
	if u.holding && !u.mayHold() {
		out = append(out, Mismatch{key, "holds", u.held.String(), "nothing"})
	}
	return out
}

// Queue walks the line of a queue: strictly in order, all of it units of this queue, and as many as its groups
// have. Together that is: exactly they.
func (a Audit) Queue(name string) []Mismatch {
	q, ok := a.lines.byName[name]
	if !ok {
		return nil
	}
	var out []Mismatch
	var before *record
	n, want := 0, 0
	for _, g := range q.line.Groups() {
		want += g.Len()
	}
	q.line.Walk(func(u *record) bool {
		n++
		if u.group == nil || u.group.Line() != q.line {
			out = append(out, Mismatch{u.spec.Key, "queue", name, "another, or none"})
		}
		if before != nil && !q.line.Before(before, u) {
			out = append(out, Mismatch{u.spec.Key, "order in " + name, "behind " + before.spec.Key, "ahead of it"})
		}
		before = u
		return true
	})
	if n != want {
		out = append(out, Mismatch{name, "units in line", fmt.Sprint(n), fmt.Sprint(want)})
	}
	return out
}

// Places of a unit, as Places names them.
const (
	placeLine    = "in line"
	placeParked  = "parked"
	placeBoth    = "in line and parked"
	placeNowhere = "in no line"
	placeWaiting = "in line or parked"
)

func placeOf(u *record) string {
	switch {
	case u.group != nil && u.parked != "":
		return placeBoth
	case u.group != nil:
		return placeLine
	case u.parked != "":
		return placeParked
	}
	return placeNowhere
}

// Unit compares a unit with its object, as UpsertUnit would be given it. Between two calls they agree, unless a
// write of the unit is in flight: then nothing can be said.
func (a Audit) Unit(in unit.Unit) []Mismatch {
	u, ok := a.roster.units[in.Key]
	if !ok {
		return []Mismatch{{in.Key, "unit", "unknown", "uid " + in.UID}}
	}
	if u.spec.UID != in.UID {
		return []Mismatch{{in.Key, "uid", u.spec.UID, in.UID}}
	}
	if u.inFlight() || u.isOlder(&in) {
		return nil
	}
	var out []Mismatch
	compare := func(field, have, want string) {
		if have != want {
			out = append(out, Mismatch{in.Key, field, have, want})
		}
	}
	compare("stage", u.stage.String(), transition.StageOf(&in).String())
	compare("attempts", fmt.Sprint(u.spec.Attempts), fmt.Sprint(in.Attempts))
	compare("request", u.spec.Request.String(), in.Request.String())
	if u.holding && transition.StageOf(&in) == transition.Admitted {
		compare("holds", u.held.String(), in.Wants().String())
	}
	return out
}
