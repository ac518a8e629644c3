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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// entry is one unit: what it holds, where, and its assigned pods.
type entry struct {
	reserved       bool
	level          string
	held           resources.List
	nonPreemptible bool
	expected       Expected

	pods map[string]Pod
	// assigned sums the pods by level, so that the level of the unit may come later or change.
	assigned map[string]*assigned

	// all and nonPreemptiblePart are what this entry has put into the sums; counted says that it is among the units.
	all, nonPreemptiblePart resources.List
	counted                 bool
}

func (l *Ledger) entry(unit string) *entry {
	e, ok := l.entries[unit]
	if !ok {
		e = &entry{}
		l.entries[unit] = e
	}
	return e
}

// forget drops an entry that says nothing any more.
func (l *Ledger) forget(unit string, e *entry) {
	if !e.reserved && len(e.pods) == 0 {
		delete(l.entries, unit)
	}
}

func (e *entry) put(p Pod) {
	e.drop(p.UID)
	if e.pods == nil {
		e.pods, e.assigned = map[string]Pod{}, map[string]*assigned{}
	}
	e.pods[p.UID] = p
	sums, ok := e.assigned[p.Level]
	if !ok {
		sums = &assigned{}
		e.assigned[p.Level] = sums
	}
	sums.add(p.parts())
	sums.count(p, 1)
}

func (e *entry) drop(podUID string) {
	p, ok := e.pods[podUID]
	if !ok {
		return
	}
	delete(e.pods, podUID)
	e.assigned[p.Level].sub(p.parts())
	e.assigned[p.Level].count(p, -1)
}

func (p Pod) same(o Pod) bool {
	return p.UID == o.UID && p.Level == o.Level && p.NonPreemptible == o.NonPreemptible && p.Request.Same(o.Request)
}

func (p Pod) parts() (all, nonPreemptible resources.List) {
	if p.NonPreemptible {
		return p.Request, p.Request
	}
	return p.Request, resources.List{}
}

// assigned are the pods at one level.
type assigned struct {
	amounts
	pods, nonPreemptiblePods int64
}

func (a *assigned) count(p Pod, by int64) {
	a.pods += by
	if p.NonPreemptible {
		a.nonPreemptiblePods += by
	}
}

// outstanding is max(0, held - assigned), by resource, and no more than the pods still to come are expected to ask for.
func (e *entry) outstanding() (all, nonPreemptible resources.List) {
	if !e.reserved {
		return resources.List{}, resources.List{}
	}
	at := e.assigned[e.level]
	if at == nil {
		at = &assigned{}
	}
	all = e.expected.Bound(beyond(e.held, &at.all), at.pods)
	if e.nonPreemptible {
		nonPreemptible = e.expected.Bound(beyond(e.held, &at.nonPreemptible), at.nonPreemptiblePods)
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
