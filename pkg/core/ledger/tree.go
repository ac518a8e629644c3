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
	"slices"
	"sort"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

func (l *Ledger) level(name string) *level {
	lv, ok := l.levels[name]
	if !ok {
		lv = &level{}
		l.levels[name] = lv
	}
	return lv
}

// prune drops levels that say nothing any more: no parent, nothing held, no pod, nothing below.
func (l *Ledger) prune(name string) {
	if lv, ok := l.levels[name]; ok && lv.parent == "" && lv.holders == 0 && lv.pods == 0 && len(lv.children) == 0 {
		delete(l.levels, name)
	}
}

// Path lists the level and its ancestors, from the bottom. A parent that is already in the path ends it, so
// contradictory declarations do no harm in any order.
func (l *Ledger) Path(at string) []string {
	path := make([]string, 0, 4)
	for at != "" && !contains(path, at) {
		path = append(path, at)
		lv, ok := l.levels[at]
		if !ok {
			break
		}
		at = lv.parent
	}
	return path
}

// path is Path as levels. It is valid until the next call.
func (l *Ledger) path(lv *level) []*level {
	l.walked = l.walked[:0]
	for ; lv != nil && !slices.Contains(l.walked, lv); lv = lv.up {
		l.walked = append(l.walked, lv)
	}
	return l.walked
}

// SetParent declares the level above; "" for none. Outstanding and assigned amounts below the level move along.
func (l *Ledger) SetParent(name, parent string) {
	lv := l.level(name)
	if lv.parent == parent {
		l.prune(name)
		return
	}
	moved := lv.occupied()
	for _, from := range moved {
		for _, lv := range l.path(from) {
			lv.total.sub(&from.direct)
		}
	}
	old := lv.parent
	if lv.up != nil {
		delete(lv.up.children, lv)
	}
	lv.parent, lv.up = parent, nil
	if parent != "" {
		lv.up = l.level(parent)
		if lv.up.children == nil {
			lv.up.children = map[*level]struct{}{}
		}
		lv.up.children[lv] = struct{}{}
	}
	for _, from := range moved {
		for _, lv := range l.path(from) {
			lv.total.add(&from.direct)
		}
	}
	l.prune(old)
	l.prune(name)
}

// occupied are the levels, this one and those below it, where something is held or pods are charged.
func (lv *level) occupied() (levels []*level) {
	seen := map[*level]struct{}{} // parents may form a circle
	var visit func(*level)
	visit = func(at *level) {
		if _, again := seen[at]; again {
			return
		}
		seen[at] = struct{}{}
		if !at.direct.isZero() {
			levels = append(levels, at)
		}
		for below := range at.children {
			visit(below)
		}
	}
	visit(lv)
	return levels
}

// Difference is one place where two ledgers disagree.
type Difference struct {
	Level, Resource string
	Ledger, Rebuilt int64
}

// Compare lists, sorted, where what is outstanding or assigned differs between this ledger and a rebuilt one.
func (l *Ledger) Compare(rebuilt *Ledger) []Difference {
	names := map[string]bool{}
	for name := range l.levels {
		names[name] = true
	}
	for name := range rebuilt.levels {
		names[name] = true
	}
	var out []Difference
	for _, name := range sorted(names) {
		a, b := l.Read(name), rebuilt.Read(name)
		out = append(out, differences(name, "", a.Outstanding(), b.Outstanding())...)
		out = append(out, differences(name, " (non-preemptible)",
			a.OutstandingNonPreemptible(), b.OutstandingNonPreemptible())...)
		if a.Units() != b.Units() {
			out = append(out, Difference{Level: name, Resource: resources.Jobs, Ledger: a.Units(), Rebuilt: b.Units()})
		}
		out = append(out, differences(name, " (assigned)", a.Assigned(), b.Assigned())...)
	}
	return out
}

func differences(level, suffix string, have, want *resources.Sum) []Difference {
	var out []Difference
	for _, it := range have.List().Sub(want.List()).Items() {
		if it.Amount != 0 {
			out = append(out, Difference{
				Level: level, Resource: it.Name + suffix, Ledger: have.Get(it.Name), Rebuilt: want.Get(it.Name),
			})
		}
	}
	return out
}

// RebuildPods makes a new ledger of the parents and the pods, in which no unit holds anything.
func (l *Ledger) RebuildPods() *Ledger {
	out := New()
	for name, lv := range l.levels {
		out.SetParent(name, lv.parent)
	}
	for unit, e := range l.entries {
		for _, p := range e.assigned.pods {
			out.SetPod(unit, p, true)
		}
		for _, p := range e.idle.pods {
			out.SetPod(unit, p, false)
		}
	}
	return out
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func sorted(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for name := range set {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}
