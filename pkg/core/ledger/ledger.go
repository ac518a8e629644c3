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

package ledger

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Pod is one pod that is not over.
type Pod struct {
	UID string
	// Level is the quota that the pod is charged to. A pod of another level than its unit's does not
	// materialise what the unit holds, because its use shows elsewhere.
	Level          string
	Request        resources.List
	NonPreemptible bool
	// Leaving: the pod is being deleted. It is charged until it is gone, and materialises nothing: what its unit holds is
	// for its successor. Late: it has been leaving for so long that it counts as one that stays.
	Leaving, Late bool
	// GoneBy is when the grace period of a pod is over that is being deleted.
	GoneBy time.Time
	// Held: it is not let go, for another cause than quota.
	Held bool
	// Former: it is a pod of the job that had the name of the unit before. It uses what the unit holds, and is none of the
	// pods that the unit waits for.
	Former bool
}

// Ledger is the arithmetic. It is not safe for concurrent use.
type Ledger struct {
	levels  map[string]*level
	entries map[string]*entry
	// walked is the path that was walked last; its memory is used again.
	walked []*level
	// charges counts how often the charge of an assigned pod has changed.
	charges int64
	// granted has the pods whose grant may have changed since it was asked for, with their units.
	granted map[podKey]struct{}
}

// level sums what is outstanding of the units that hold it there or below, and the assigned pods of units.
type level struct {
	parent string
	// up is the level of that name, nil for none: a level with children is never pruned.
	up *level
	// direct is of the units that hold, and the pods that are charged, exactly here; total includes the levels below.
	direct, total sums
	// holders counts the units that hold exactly here, pods the assigned pods that are charged exactly here.
	holders, pods int
	// charged is what charges was when that of a pod here or below changed last.
	charged int64
	// children are the levels whose parent this is.
	children map[*level]struct{}
}

// sums are outstanding amounts of units, and the use of their assigned pods.
type sums struct{ outstanding, assigned amounts }

func (s *sums) add(o *sums) {
	s.outstanding.addAmounts(&o.outstanding)
	s.assigned.addAmounts(&o.assigned)
}

func (s *sums) sub(o *sums) {
	s.outstanding.subAmounts(&o.outstanding)
	s.assigned.subAmounts(&o.assigned)
}

func (s *sums) isZero() bool { return s.outstanding.isZero() && s.assigned.isZero() }

// amounts are a sum and the non-preemptible part of it, and the number of units that hold it.
type amounts struct {
	all, nonPreemptible resources.Sum
	units               int64
}

func (a *amounts) add(all, nonPreemptible resources.List) {
	a.all.Add(all)
	a.nonPreemptible.Add(nonPreemptible)
}

func (a *amounts) sub(all, nonPreemptible resources.List) {
	a.all.Sub(all)
	a.nonPreemptible.Sub(nonPreemptible)
}

func (a *amounts) addAmounts(o *amounts) {
	a.all.AddSum(&o.all)
	a.nonPreemptible.AddSum(&o.nonPreemptible)
	a.units += o.units
}

func (a *amounts) subAmounts(o *amounts) {
	a.all.SubSum(&o.all)
	a.nonPreemptible.SubSum(&o.nonPreemptible)
	a.units -= o.units
}

func (a *amounts) isZero() bool { return a.units == 0 && a.all.IsZero() && a.nonPreemptible.IsZero() }

// New returns an empty ledger.
func New() *Ledger {
	return &Ledger{levels: map[string]*level{}, entries: map[string]*entry{}, granted: map[podKey]struct{}{}}
}

// Reserve makes the unit hold this much at the level, in place of what it held before. It says whether what
// is outstanding anywhere, or the number of units that hold, has changed.
func (l *Ledger) Reserve(key, at string, held resources.List, nonPreemptible bool) bool {
	e := l.entry(key)
	if e.reserved && e.level != at {
		l.Release(key)
		e = l.entry(key)
	}
	if !e.reserved {
		e.reserved, e.level = true, at
		l.level(at).holders++
	}
	e.held, e.nonPreemptible = held, nonPreemptible
	return l.settle(e)
}

// Expect says what is known of the pods of a unit that holds something; Release forgets it. A unit that holds nothing
// is left alone.
func (l *Ledger) Expect(key string, x unit.Expected) bool {
	e, ok := l.entries[key]
	if !ok || !e.reserved {
		return false
	}
	e.expected = x
	return l.settle(e)
}

// Release makes the unit hold nothing. Its pods stay known.
func (l *Ledger) Release(key string) bool {
	e, ok := l.entries[key]
	if !ok || !e.reserved {
		return false
	}
	l.Close(key)
	e.held, e.reserved = resources.List{}, false
	changed := l.settle(e)
	l.levels[e.level].holders--
	l.prune(e.level)
	e.level, e.nonPreemptible, e.expected = "", false, unit.Expected{}
	l.forget(key, e)
	return changed
}

// assign replaces an assigned pod of the unit; nil for one that is no longer assigned.
func (l *Ledger) assign(e *entry, podUID string, p *Pod) bool {
	former, known := e.assigned.pods[podUID]
	if p == nil && !known || p != nil && known && former.same(*p) {
		return false
	}
	if known {
		e.assigned.drop(podUID)
		l.charge(former, -1)
	}
	if p != nil {
		e.assigned.put(*p)
		l.charge(*p, 1)
	}
	return l.settle(e)
}

// charge counts an assigned pod on its level and above, or takes it out there.
func (l *Ledger) charge(p Pod, by int) {
	change := (*amounts).add
	if by < 0 {
		change = (*amounts).sub
	}
	all, nonPreemptible := p.parts()
	lv := l.level(p.Level)
	lv.pods += by
	change(&lv.direct.assigned, all, nonPreemptible)
	l.charges++
	for _, lv := range l.path(lv) {
		change(&lv.total.assigned, all, nonPreemptible)
		lv.charged = l.charges
	}
	l.prune(p.Level)
}

// Reading is what the ledger says of one level. It is valid until the ledger changes. Sums must not be changed.
type Reading struct{ of *level }

var nothing level

// Read looks a level up; of a level that the ledger does not know all is zero.
func (l *Ledger) Read(at string) Reading {
	if lv, ok := l.levels[at]; ok {
		return Reading{lv}
	}
	return Reading{&nothing}
}

// Holds says whether a unit holds something exactly at this level.
func (r Reading) Holds() bool { return r.of.holders > 0 }

// Units is the number of units that hold something at or below the level, whatever their pods do.
func (r Reading) Units() int64 { return r.of.total.outstanding.units }

// Outstanding is what units hold at or below the level beyond their assigned pods.
func (r Reading) Outstanding() *resources.Sum { return &r.of.total.outstanding.all }

// OutstandingNonPreemptible is the part of Outstanding that may draw on min only.
func (r Reading) OutstandingNonPreemptible() *resources.Sum {
	return &r.of.total.outstanding.nonPreemptible
}

// Assigned is what assigned pods of units use at or below the level, whether or not their unit holds anything.
func (r Reading) Assigned() *resources.Sum { return &r.of.total.assigned.all }

// AssignedHere is the part of Assigned that is charged exactly here.
func (r Reading) AssignedHere() *resources.Sum { return &r.of.direct.assigned.all }

// Charged is another number after each change of what assigned pods use at or below the level; zero for none.
func (r Reading) Charged() int64 { return r.of.charged }

// AssignedNonPreemptible is the part of Assigned that is non-preemptible.
func (r Reading) AssignedNonPreemptible() *resources.Sum { return &r.of.total.assigned.nonPreemptible }

// replace takes what the entry has put into a sum out and puts this in.
func (e *entry) replace(a *amounts, all, nonPreemptible resources.List, units int64) {
	a.sub(e.all, e.nonPreemptiblePart)
	a.add(all, nonPreemptible)
	a.units += units
}

// settle brings the sums in line with what the entry says now.
func (l *Ledger) settle(e *entry) bool {
	all, nonPreemptible := e.outstanding()
	if all.Equal(e.all) && nonPreemptible.Equal(e.nonPreemptiblePart) && e.counted == e.reserved {
		return false
	}
	var units int64
	switch {
	case e.reserved && !e.counted:
		units = 1
	case e.counted && !e.reserved:
		units = -1
	}
	lv := l.levels[e.level]
	e.replace(&lv.direct.outstanding, all, nonPreemptible, units)
	for _, lv := range l.path(lv) {
		e.replace(&lv.total.outstanding, all, nonPreemptible, units)
	}
	e.all, e.nonPreemptiblePart, e.counted = all, nonPreemptible, e.reserved
	return true
}
