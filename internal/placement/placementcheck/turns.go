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

package placementcheck

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// A namespace that begins to wait is ahead of others by mostAhead of search time at most, however little it used. Its
// use is forgotten when it has searched for nothing for forgetAfter.
const mostAhead, forgetAfter = time.Minute, time.Hour

// turns is the queue of a Checker. The namespace that used the least search time is next. So long searches delay other
// questions of their own namespaces, and those of others by one search at most, once each has had its first.
type turns struct {
	clock clock.PassiveClock

	shared sync.Mutex // guards what follows
	// of has the namespaces that wait or have searched lately, next those that wait.
	of   map[string]*account
	next *ordered.Tree[*account]
	// level is how much that namespace had used whose turn was last.
	level   time.Duration
	entered int
	items   int
	swept   time.Time
}

// account of a namespace. Of two that used the same, the one that entered first is next.
type account struct {
	items   []item
	used    time.Duration
	last    time.Time
	entered int
}

func newTurns(now clock.PassiveClock) *turns {
	return &turns{clock: now, of: map[string]*account{}, next: ordered.NewTree(func(a, b *account) int {
		return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.entered, b.entered))
	})}
}

// Push has an item wait.
func (t *turns) Push(i item) {
	t.shared.Lock()
	defer t.shared.Unlock()
	t.items++
	own := t.of[i.namespace]
	if own == nil {
		own = &account{}
		t.of[i.namespace] = own
	}
	if own.items = append(own.items, i); len(own.items) == 1 {
		own.used = max(own.used, t.level-mostAhead)
		t.enter(own)
	}
}

// Pop takes the first item of the namespace whose turn is next. There is one.
func (t *turns) Pop() item {
	t.shared.Lock()
	defer t.shared.Unlock()
	t.items--
	own, _ := t.next.Min()
	t.next.Delete(own)
	t.level = max(t.level, own.used)
	first := own.items[0]
	if own.items = own.items[1:]; len(own.items) > 0 {
		t.enter(own)
	}
	return first
}

func (t *turns) enter(own *account) {
	t.entered++
	own.entered = t.entered
	t.next.Insert(own)
}

// used says that an item of a namespace, taken at a time, is done now.
func (t *turns) used(namespace string, taken time.Time) {
	t.shared.Lock()
	defer t.shared.Unlock()
	own, now := t.of[namespace], t.clock.Now()
	if len(own.items) > 0 {
		t.next.Delete(own)
		defer t.enter(own)
	}
	own.used += now.Sub(taken)
	own.last = now
	if now.Sub(t.swept) < forgetAfter {
		return
	}
	t.swept = now
	maps.DeleteFunc(t.of, func(_ string, a *account) bool {
		return len(a.items) == 0 && now.Sub(a.last) >= forgetAfter
	})
}

// Touch changes nothing: an item that is pushed again keeps its place.
func (t *turns) Touch(item) {}

// Len is the number of items.
func (t *turns) Len() int {
	t.shared.Lock()
	defer t.shared.Unlock()
	return t.items
}
