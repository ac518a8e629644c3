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
	"cmp"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// grants say which pods of one unit may be scheduled: together at most the amount that the unit may use in its quota. A
// pod with a grant counts until it is gone or being deleted. Assigned pods without a grant count too, whatever quota
// they are charged to, because their owner may change that label while a pod runs.
//
// One generation of successors passes before pods that are being deleted. Their request beyond the amount of the unit
// counts as well. Other pods wait in the order of their UIDs until there is room.
type grants struct {
	open bool
	upTo resources.List
	// given are the pods that are not assigned and may go, taken is what they ask for; waiting are those that may not.
	given   map[string]Pod
	taken   resources.Sum
	waiting *ordered.Tree[string]
}

type podKey struct{ unit, pod string }

// Grant says whether a pod may go.
type Grant struct {
	Unit, Pod string
	MayGo     bool
}

// Open lets pods of a unit go, up to an amount, at the level where the unit holds quota.
func (l *Ledger) Open(unit string, upTo resources.List) {
	e, ok := l.entries[unit]
	if !ok || !e.reserved || (e.grants.open && e.grants.upTo.Same(upTo)) {
		return
	}
	grew := e.grants.open && upTo.Covers(e.grants.upTo)
	e.grants.open, e.grants.upTo = true, upTo
	if grew {
		l.offer(unit, e)
		return
	}
	l.grantAnew(unit, e)
}

// Close lets no pod of the unit go that is not assigned.
func (l *Ledger) Close(unit string) {
	if e, ok := l.entries[unit]; ok && e.grants.open {
		e.grants.open, e.grants.upTo = false, resources.List{}
		l.grantAnew(unit, e)
	}
}

// Granted says whether a pod may go: it was let go, or is assigned already.
func (l *Ledger) Granted(unit, pod string) bool {
	e, ok := l.entries[unit]
	if !ok || !e.grants.open {
		return false
	}
	if _, given := e.grants.given[pod]; given {
		return true
	}
	p, assigned := e.assigned.pods[pod]
	return assigned && p.Level == e.level
}

// Grants returns, once, what is true of the pods for which it may have changed since the last call, by unit and pod.
func (l *Ledger) Grants() []Grant {
	if len(l.granted) == 0 {
		return nil
	}
	out := make([]Grant, 0, len(l.granted))
	for key := range l.granted {
		out = append(out, Grant{Unit: key.unit, Pod: key.pod, MayGo: l.Granted(key.unit, key.pod)})
	}
	clear(l.granted)
	slices.SortFunc(out, func(a, b Grant) int {
		return cmp.Or(strings.Compare(a.Unit, b.Unit), strings.Compare(a.Pod, b.Pod))
	})
	return out
}

// regrant looks again at one pod of a unit, and then at those that wait.
func (l *Ledger) regrant(unit string, e *entry, pod string) {
	g := &e.grants
	if !g.open {
		return
	}
	l.granted[podKey{unit, pod}] = struct{}{}
	p, idle := e.idle.pods[pod]
	goes := idle && !p.Leaving && p.Level == e.level
	if former, given := g.given[pod]; given && (!goes || !former.same(p)) {
		delete(g.given, pod)
		g.taken.Sub(former.Request)
	}
	if g.waiting != nil {
		g.waiting.Delete(pod)
	}
	if _, given := g.given[pod]; goes && !given {
		g.wait(pod)
	}
	if e.overdrawn() {
		l.grantAnew(unit, e) // a pod was bound that nobody let go, as one from before a start
		return
	}
	l.offer(unit, e)
}

// overdrawn says whether pods that were let go and are not assigned yet ask for more than those that are leave them.
func (e *entry) overdrawn() bool {
	if len(e.grants.given) == 0 {
		return false
	}
	for _, it := range e.grants.upTo.Items() {
		taken := e.grants.taken.Get(it.Name)
		if taken > 0 && resources.SaturatingAdd(e.onNodes(it.Name, it.Amount), taken) > it.Amount {
			return true
		}
	}
	return false
}

// wait adds a pod to those that may not go. Most units have none when they are admitted.
func (g *grants) wait(pod string) {
	if g.waiting == nil {
		g.given, g.waiting = map[string]Pod{}, ordered.NewTree(strings.Compare)
	}
	g.waiting.Insert(pod)
}

// offer lets those that wait go one after the other, while there is room for the next.
func (l *Ledger) offer(unit string, e *entry) {
	g := &e.grants
	for g.waiting != nil {
		uid, ok := g.waiting.Min()
		if !ok || !e.roomFor(e.idle.pods[uid].Request) {
			return
		}
		p := e.idle.pods[uid]
		g.waiting.Delete(uid)
		g.given[uid] = p
		g.taken.Add(p.Request)
		l.granted[podKey{unit, uid}] = struct{}{}
	}
}

// onNodes is how much of a resource pods on nodes take of the most that the unit may use.
func (e *entry) onNodes(resource string, most int64) int64 {
	again := resources.SaturatingSub(e.assigned.leaving.Get(resource), most)
	return resources.SaturatingAdd(e.assigned.anywhere(resource), max(again, 0))
}

// roomFor says whether so much fits in addition to the pods that may go.
func (e *entry) roomFor(request resources.List) bool {
	for _, it := range request.Items() {
		if it.Amount <= 0 {
			continue
		}
		most, _ := e.grants.upTo.Get(it.Name)
		taken := resources.SaturatingAdd(e.onNodes(it.Name, most), e.grants.taken.Get(it.Name))
		if it.Amount > resources.SaturatingSub(most, taken) {
			return false
		}
	}
	return true
}

// grantAnew takes all grants back and grants again. The cost grows with the number of pods of the unit.
func (l *Ledger) grantAnew(unit string, e *entry) {
	g := &e.grants
	for uid := range e.assigned.pods {
		l.granted[podKey{unit, uid}] = struct{}{}
	}
	for uid := range g.given {
		l.granted[podKey{unit, uid}] = struct{}{}
	}
	g.given, g.taken, g.waiting = nil, resources.Sum{}, nil
	if !g.open {
		return
	}
	for uid, p := range e.idle.pods {
		if !p.Leaving && p.Level == e.level {
			g.wait(uid)
		}
	}
	l.offer(unit, e)
}
