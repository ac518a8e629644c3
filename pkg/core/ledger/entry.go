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
	"iter"
	"maps"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// entry is one unit: what it holds, where, and its pods.
type entry struct {
	reserved       bool
	level          string
	held           resources.List
	nonPreemptible bool
	expected       unit.Expected

	// assigned pods are in Koordinator's used. idle ones are not, and count nowhere in the tree.
	assigned, idle podSet

	grants grants

	// all and nonPreemptiblePart are what this entry has put into the sums; counted says that it is among the units.
	all, nonPreemptiblePart resources.List
	counted                 bool
}

// podSet has some pods of one unit. The sums by level are of those that are not being deleted, so that the level of the
// unit can come later or change.
type podSet struct {
	pods map[string]Pod
	sums map[string]*podSum
	// staying are those that are not leaving, held the part of them that is held for another cause than quota.
	staying, held int64
	// leaving is what those ask for that are leaving, at all levels.
	leaving resources.Sum
}

func (s *podSet) put(p Pod) {
	s.drop(p.UID)
	if s.pods == nil {
		s.pods, s.sums = map[string]Pod{}, map[string]*podSum{}
	}
	sum, ok := s.sums[p.Level]
	if !ok {
		sum = &podSum{}
		s.sums[p.Level] = sum
	}
	if s.pods[p.UID] = p; p.Leaving {
		s.leaving.Add(p.Request)
		sum.leave(p, 1)
		return
	}
	sum.add(p.parts())
	sum.count(p, 1)
	s.stay(p, 1)
}

func (s *podSet) stay(p Pod, by int64) {
	if s.staying += by; p.Held {
		s.held += by
	}
}

func (s *podSet) drop(podUID string) {
	p, ok := s.pods[podUID]
	if !ok {
		return
	}
	sum := s.sums[p.Level]
	if delete(s.pods, podUID); p.Leaving {
		s.leaving.Sub(p.Request)
		sum.leave(p, -1)
	} else {
		s.stay(p, -1)
		sum.sub(p.parts())
		sum.count(p, -1)
	}
	if sum.pods == 0 && sum.leavers == 0 {
		delete(s.sums, p.Level)
	}
}

// at is the sum of the pods at one level.
func (s *podSet) at(level string) *podSum {
	if sum, ok := s.sums[level]; ok {
		return sum
	}
	return &noPods
}

// anywhere is how much of a resource the pods ask for at all levels together.
func (s *podSet) anywhere(resource string) (sum int64) {
	for _, at := range s.sums {
		sum = resources.SaturatingAdd(sum, at.all.Get(resource))
	}
	return sum
}

// podSum sums pods at one level.
type podSum struct {
	amounts
	// late is the part of those that have been leaving for long.
	late resources.Sum
	pods int64
	// leaving is what those ask for that are leaving, leavers how many they are. They are no part of the rest.
	leaving resources.Sum
	leavers int64
	// own and ownNonPreemptible are without those that are left of a former job.
	own, ownNonPreemptible int64
}

// noPods is never changed.
var noPods podSum

func (a *podSum) leave(p Pod, by int64) {
	if a.leavers += by; by > 0 {
		a.leaving.Add(p.Request)
	} else {
		a.leaving.Sub(p.Request)
	}
}

func (a *podSum) count(p Pod, by int64) {
	switch {
	case !p.Late:
	case by > 0:
		a.late.Add(p.Request)
	default:
		a.late.Sub(p.Request)
	}
	if a.pods += by; p.Former {
		return
	}
	if a.own += by; p.NonPreemptible {
		a.ownNonPreemptible += by
	}
}

func (p Pod) same(o Pod) bool {
	return p.UID == o.UID && p.Level == o.Level && p.NonPreemptible == o.NonPreemptible && p.Leaving == o.Leaving &&
		p.Late == o.Late && p.GoneBy.Equal(o.GoneBy) && p.Former == o.Former && p.Request.Same(o.Request)
}

func (p Pod) parts() (all, nonPreemptible resources.List) {
	if p.NonPreemptible {
		return p.Request, p.Request
	}
	return p.Request, resources.List{}
}

func (l *Ledger) entry(key string) *entry {
	e, ok := l.entries[key]
	if !ok {
		e = &entry{}
		l.entries[key] = e
	}
	return e
}

// forget drops an entry that says nothing any more.
func (l *Ledger) forget(key string, e *entry) {
	if !e.reserved && len(e.assigned.pods) == 0 && len(e.idle.pods) == 0 {
		delete(l.entries, key)
	}
}

// SetPod takes a pod of the unit that exists and is not over, or its new state, also before the unit is reserved. It
// says whether what is outstanding anywhere has changed.
func (l *Ledger) SetPod(key string, p Pod, assigned bool) bool {
	e := l.entry(key)
	var changed bool
	if assigned {
		e.idle.drop(p.UID)
		changed = l.assign(e, p.UID, &p)
	} else {
		e.idle.put(p)
		changed = l.assign(e, p.UID, nil)
	}
	l.regrant(key, e, p.UID)
	return changed
}

// DeletePod forgets a pod that is gone or over. It says the same.
func (l *Ledger) DeletePod(key, podUID string) bool {
	e, ok := l.entries[key]
	if !ok {
		return false
	}
	e.idle.drop(podUID)
	changed := l.assign(e, podUID, nil)
	l.regrant(key, e, podUID)
	l.forget(key, e)
	return changed
}

// Charges are what the pods of one unit that are charged to one level ask for together, those that are leaving aside.
type Charges struct {
	// All of them, and how many they are: those that are assigned, and those that are not. Late is the part of Assigned
	// that has been leaving for long.
	All, Assigned, Late, Idle resources.List
	Pods                      int64
}

// Charges of a unit at a level.
func (l *Ledger) Charges(key, at string) Charges {
	e, ok := l.entries[key]
	if !ok {
		return Charges{}
	}
	assigned, idle := e.assigned.at(at), e.idle.at(at)
	c := Charges{Assigned: assigned.all.List(), Late: assigned.late.List(), Pods: assigned.pods + idle.pods}
	if c.All = c.Assigned; idle.pods > 0 {
		c.Idle = idle.all.List()
		c.All = c.All.Add(c.Idle)
	}
	return c
}

// Uses is the amount that a unit keeps from others at a level. It is held quota without pods, and the requests of its
// pods on nodes there, deleted ones included.
func (l *Ledger) Uses(key, at string) resources.List {
	e, ok := l.entries[key]
	if !ok {
		return resources.List{}
	}
	here := e.assigned.at(at)
	var uses resources.List
	if e.reserved && e.level == at {
		uses, _ = e.outstanding()
	}
	for _, pods := range []*resources.Sum{&here.all, &here.leaving} {
		if !pods.IsZero() {
			uses = uses.Add(pods.List())
		}
	}
	return uses
}

// Astray counts the pods of a unit that wait and are charged to another level, and those that are held for another
// cause. A unit that holds quota at the level does not let them go, whatever it holds.
func (l *Ledger) Astray(key, at string) (elsewhere, held int64) {
	e, ok := l.entries[key]
	if !ok {
		return 0, 0
	}
	return e.idle.staying - e.idle.at(at).pods, e.idle.held
}

// Pods counts those of a unit, at any level, and of them those that are assigned.
func (l *Ledger) Pods(key string) (all, assigned int) {
	e, ok := l.entries[key]
	if !ok {
		return 0, 0
	}
	return len(e.assigned.pods) + len(e.idle.pods), len(e.assigned.pods)
}

// Assigned are the assigned pods of a unit, in no order.
func (l *Ledger) Assigned(key string) iter.Seq[Pod] {
	if e, ok := l.entries[key]; ok {
		return maps.Values(e.assigned.pods)
	}
	return func(func(Pod) bool) {}
}

// outstanding is max(0, held - assigned), by resource, and at most what the pods still to come are expected to ask for.
func (e *entry) outstanding() (all, nonPreemptible resources.List) {
	if !e.reserved {
		return resources.List{}, resources.List{}
	}
	at := e.assigned.at(e.level)
	all = e.expected.Bound(beyond(e.held, &at.all), at.own)
	if e.nonPreemptible {
		nonPreemptible = e.expected.Bound(beyond(e.held, &at.nonPreemptible), at.ownNonPreemptible)
	}
	return all, nonPreemptible
}

func beyond(held resources.List, assigned *resources.Sum) resources.List {
	if assigned.IsZero() {
		return held.Floor0()
	}
	// Only what is held can be outstanding: a resource that only the pods name comes out as zero.
	return held.Sub(assigned.List()).Floor0()
}
