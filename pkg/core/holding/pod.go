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

package holding

import (
	"cmp"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Pod is one existing, non-terminal pod of a unit.
type Pod struct {
	// UID of the pod; Quota that Koordinator charges it to.
	UID, Quota     string
	Request        resources.List
	NonPreemptible bool
	// Assigned: counted in Koordinator's used. Held: its job is marked as suspended, so that it may not start.
	Assigned, Held bool
	// Former: it is of a former job with the name of its unit.
	Former bool
	// Leaving: it is being deleted, since a time. It is charged until it is gone. For replacementGrace it is not one of
	// those that its unit may have.
	Leaving      bool
	LeavingSince time.Time
	// GoneBy is when its grace period is over.
	GoneBy time.Time
}

// Same says that nothing about a pod is news.
func (p *Pod) Same(o *Pod) bool {
	return p.UID == o.UID && p.Quota == o.Quota && p.Assigned == o.Assigned && p.Leaving == o.Leaving &&
		p.LeavingSince.Equal(o.LeavingSince) && p.GoneBy.Equal(o.GoneBy) && p.Held == o.Held && p.Former == o.Former &&
		p.NonPreemptible == o.NonPreemptible && p.Request.Equal(o.Request)
}

func (p Pod) inLedger(now time.Time) ledger.Pod {
	late := p.late(now)
	return ledger.Pod{
		UID: p.UID, Level: p.Quota, Request: p.Request, NonPreemptible: p.NonPreemptible,
		Leaving: p.Leaving && !late, Late: late, GoneBy: p.GoneBy, Held: p.Held, Former: p.Former,
	}
}

// replacementGrace is how long the successor of a deleted pod may start before the pod is gone.
//
// A deleted pod stays on its node for as long as its owner likes, by a long grace period or a finalizer. For this time
// its successor may start already, so that a job need not wait. After that the pod counts as held quota again, and its
// successor is growth. The ledger lets one generation of successors start early: see grants.
const replacementGrace = 2 * time.Minute

// leaver is a pod on a node whose successor may go ahead of it, until a time.
type leaver struct {
	key   leaverKey
	pod   Pod
	until ordered.Moment
}

type leaverKey struct{ unit, pod string }

func compareLeavers(a, b *leaver) int {
	return cmp.Or(strings.Compare(a.key.unit, b.key.unit), strings.Compare(a.key.pod, b.key.pod))
}

// leavers are found by name, and by when their time is over.
type leavers struct {
	byKey map[leaverKey]*leaver
	due   *ordered.Due[*leaver]
}

func newLeavers() leavers {
	return leavers{
		byKey: map[leaverKey]*leaver{},
		due:   ordered.NewDue(func(l *leaver) ordered.Moment { return l.until }, compareLeavers),
	}
}

// see takes a pod as it is now.
func (ls *leavers) see(now time.Time, unit string, p Pod) {
	ls.forget(unit, p.UID)
	if p.Assigned && p.Leaving && !p.late(now) {
		l := &leaver{key: leaverKey{unit, p.UID}, pod: p}
		ls.byKey[l.key] = l
		ls.due.Move(l, ordered.MomentOf(p.LeavingSince.Add(replacementGrace)), func(m ordered.Moment) { l.until = m })
	}
}

func (ls *leavers) forget(unit, pod string) {
	if l, ok := ls.byKey[leaverKey{unit, pod}]; ok {
		delete(ls.byKey, l.key)
		ls.due.Move(l, 0, func(m ordered.Moment) { l.until = m })
	}
}

// late says that the pod has been leaving for so long that it counts as any other.
func (p *Pod) late(now time.Time) bool {
	return p.Leaving && p.Assigned && !now.Before(p.LeavingSince.Add(replacementGrace))
}

// Late takes one of the pods whose time is over; SetPod has to count it again.
func (b *Book) Late(now time.Time) (unitKey string, p Pod, some bool) {
	l, ok := b.leavers.due.First()
	if !ok || l.until > ordered.MomentOf(now) {
		return "", Pod{}, false
	}
	return l.key.unit, l.pod, true
}

// NextLate is when the time of a pod is over next; zero if none waits for that.
func (b *Book) NextLate() (at time.Time) {
	if l, ok := b.leavers.due.First(); ok {
		at = l.until.Time()
	}
	return at
}
