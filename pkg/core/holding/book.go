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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Place of a unit: the queue, namespace and quota in which it counts.
type Place struct{ Queue, Namespace, Quota string }

// Reader is the ledger, for questions.
type Reader interface {
	Charges(unitKey, quota string) ledger.Charges
	Pods(unitKey string) (all, assigned int)
	Astray(unitKey, quota string) (elsewhere, suspended int64)
	Granted(unitKey, podUID string) bool
	Grants() []ledger.Grant
	Read(level string) ledger.Reading
}

// Book is not safe for concurrent use. Units are known by their keys.
type Book struct {
	Reader
	ledger *ledger.Ledger
	tree   *capacity.Tree
	// places are those of units that hold quota, remnants those of other units with pods on nodes.
	places   map[string]Place
	remnants map[string]remnant
	// counts are those of queues, and of namespaces in them. holders are the units that hold quota, queue by queue.
	counts  map[scope]count
	holders *ordered.Tree[holder]
	leavers leavers
}

// scope is a queue or, unless all is set, a namespace in it.
type scope struct {
	queue, namespace string
	all              bool
}

type holder struct{ queue, unit string }

func compareHolders(a, b holder) int {
	return cmp.Or(strings.Compare(a.queue, b.queue), strings.Compare(a.unit, b.unit))
}

// count of the units that hold quota, and of remnants among them.
type count struct{ all, remnants int }

// NewBook returns an empty book. The ledger is that of the tree, and nobody else writes it.
func NewBook(l *ledger.Ledger, tree *capacity.Tree) *Book {
	return &Book{
		Reader: l, ledger: l, tree: tree, places: map[string]Place{}, remnants: map[string]remnant{},
		counts: map[scope]count{}, holders: ordered.NewTree(compareHolders), leavers: newLeavers(),
	}
}

// Hold has a unit hold this much, at this place, in place of what it held before. x is what is known of its pods. It
// says whether that changes anything.
func (b *Book) Hold(
	key string, at Place, amount resources.List, nonPreemptible bool, x unit.Expected,
) (changed bool) {
	former, held := b.places[key]
	if held && former.Quota != at.Quota {
		b.letGo(key, former)
		b.tree.Changed(former.Quota)
		held = false
	}
	if p, kept := b.remnants[key]; kept {
		b.moveRemnant(key, p, at.Quota)
	}
	if !held || former != at {
		if held {
			b.countHolder(key, former, -1)
		}
		b.countHolder(key, at, 1)
		b.places[key], changed = at, true
	}
	reserved := b.ledger.Reserve(key, at.Quota, amount, nonPreemptible)
	if b.ledger.Expect(key, x) || reserved {
		b.tree.Changed(at.Quota)
		changed = true
	}
	return changed
}

// Release has a unit hold nothing, and says whether it held something. Pods of it on nodes keep its place.
func (b *Book) Release(now time.Time, key string) bool {
	at, held := b.places[key]
	if !held {
		return false
	}
	b.letGo(key, at)
	if _, assigned := b.ledger.Pods(key); assigned > 0 {
		b.beginRemnant(key, remnant{Place: at, queued: true, held: true, since: now})
	}
	b.tree.Changed(at.Quota) // after that: a deleted quota is remembered as long as something is held there
	return true
}

func (b *Book) letGo(key string, at Place) {
	b.ledger.Release(key)
	delete(b.places, key)
	b.countHolder(key, at, -1)
}

// Open has pods of a unit that holds quota start, as long as they ask together for at most this. Close has none.
func (b *Book) Open(key string, upTo resources.List) { b.ledger.Open(key, upTo) }

// Close keeps all pods of a unit from starting.
func (b *Book) Close(key string) { b.ledger.Close(key) }

// Holders are the units of a queue that hold quota, by their keys.
func (b *Book) Holders(queue string) (keys []string) {
	before := func(h holder) bool { return h.queue < queue }
	b.holders.WalkFrom(before, func(h holder) bool {
		if h.queue == queue {
			keys = append(keys, h.unit)
		}
		return h.queue == queue
	})
	return keys
}

// Count is the number of places that are taken in a queue: by units that hold quota, and by remnants.
func (b *Book) Count(queue string) int { return b.counts[scope{queue: queue, all: true}].all }

// CountOf is the part of Count of one namespace.
func (b *Book) CountOf(queue, namespace string) int {
	return b.counts[scope{queue: queue, namespace: namespace}].all
}

// Remnants is the part of Count that pods alone keep.
func (b *Book) Remnants(queue string) int { return b.counts[scope{queue: queue, all: true}].remnants }

func (b *Book) countHolder(key string, at Place, by int) {
	if h := (holder{at.Queue, key}); by > 0 {
		b.holders.Insert(h)
	} else {
		b.holders.Delete(h)
	}
	b.count(at, count{all: by})
}

// count adds places to a queue, or takes them away.
func (b *Book) count(at Place, by count) {
	for _, of := range []scope{{queue: at.Queue, all: true}, {queue: at.Queue, namespace: at.Namespace}} {
		n := b.counts[of]
		n.all, n.remnants = n.all+by.all, n.remnants+by.remnants
		if b.counts[of] = n; n == (count{}) {
			delete(b.counts, of)
		}
	}
}

// SetPod takes a pod of a unit that exists and is not over, also before the unit is known. left says that the unit had
// pods on nodes and has none any more.
func (b *Book) SetPod(now time.Time, key string, p Pod) (left bool) {
	b.leavers.see(now, key, p)
	return b.changePods(key, func() bool { return b.ledger.SetPod(key, p.inLedger(now), p.Assigned) })
}

// DeletePod forgets a pod that is gone or over. It says the same as SetPod.
func (b *Book) DeletePod(key, podUID string) (left bool) {
	b.leavers.forget(key, podUID)
	return b.changePods(key, func() bool { return b.ledger.DeletePod(key, podUID) })
}

func (b *Book) changePods(key string, f func() (outstanding bool)) (left bool) {
	_, before := b.ledger.Pods(key)
	if at, held := b.places[key]; f() && held {
		b.tree.Changed(at.Quota)
	}
	_, after := b.ledger.Pods(key)
	return before > 0 && after == 0
}

// Rebuild returns a ledger of the same pods and remnants, in which no unit holds quota.
func (b *Book) Rebuild() *ledger.Ledger {
	rebuilt := b.ledger.RebuildPods()
	for key, p := range b.remnants {
		rebuilt.Reserve(key, p.Quota, resources.List{}, false)
	}
	return rebuilt
}

// Compare lists where the ledger differs from one that was rebuilt.
func (b *Book) Compare(rebuilt *ledger.Ledger) []ledger.Difference { return b.ledger.Compare(rebuilt) }
