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

	pods map[string]Pod
	// assigned sums the pods by level, so that the level of the unit may come later or change.
	assigned map[string]*amounts

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
		e.pods, e.assigned = map[string]Pod{}, map[string]*amounts{}
	}
	e.pods[p.UID] = p
	sums, ok := e.assigned[p.Level]
	if !ok {
		sums = &amounts{}
		e.assigned[p.Level] = sums
	}
	sums.add(p.parts())
}

func (e *entry) drop(podUID string) {
	p, ok := e.pods[podUID]
	if !ok {
		return
	}
	delete(e.pods, podUID)
	e.assigned[p.Level].sub(p.parts())
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

// outstanding is max(0, held - assigned), by resource.
func (e *entry) outstanding() (all, nonPreemptible resources.List) {
	if !e.reserved {
		return resources.List{}, resources.List{}
	}
	assigned := e.assigned[e.level]
	if assigned == nil {
		assigned = &amounts{}
	}
	all = beyond(e.held, &assigned.all)
	if e.nonPreemptible {
		nonPreemptible = beyond(e.held, &assigned.nonPreemptible)
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
