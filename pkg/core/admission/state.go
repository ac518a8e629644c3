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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// State is the whole of what the decisions depend on. It is not safe for concurrent use: one goroutine owns it.
//
// Between two calls the following holds:
//   - every unit that waits and is not parked is in exactly one group, and in the waiting tree of its queue;
//   - a group that is neither empty nor parked is dirty (Decide will look at it) or blocked, and a blocked
//     group is registered where the change that can make it fit will wake it, or has: then the gate is woken (I6);
//   - every claim in the book belongs to the first unit of its line that does not fit, or its group is dirty; in a line
//     without a claim the group of the first unit is dirty, unless a check or the bound of its queue stops it;
//   - free amounts of all known levels are what limits, used and ledger say.
type State struct {
	cfg      Config
	policies map[string]queue.Factory
	order    QueueOrder
	// compareQueues is the order of ranked queues.
	compareQueues func(a, b *unitLine) int

	units  map[string]*unit     // by key
	pods   map[string]*podBag   // by key of the unit, which need not be known
	queues map[string]*unitLine // by name; also of queues that do not exist but are named by a unit
	groups map[groupKey]*group
	// sequence numbers groups, for trees of groups.
	sequence uint64

	levels map[string]*level // by name; also of quotas that do not exist but are named by a unit
	// below are the levels that name this one as their parent.
	below map[string]map[*level]struct{}
	// tree changes whenever a path may have.
	tree   int64
	ledger *ledger.Ledger

	consumers consumers

	// ranked holds the queues with an eligible unit, first served first; dirty those of them with a dirty group.
	ranked, dirty *queue.Tree[*unitLine]
	// woken are the gates where groups may find enough now; lendable those where they may find enough to borrow.
	woken, lendable []*waitList
	// eased are the levels where claims changed that keep groups from borrowing.
	eased []*level
	// touched queues may have another rank.
	touched []*unitLine
	// retouched is the memory of the list before, to be used again.
	retouched []*unitLine
	// claims counts the claims in the book.
	claims int
	// reviews are the gates where the claims, or what is free for them, changed.
	reviews []*gate
	// moved are the queues whose place in the order changed since the claims were reviewed.
	moved []*unitLine
	// elsewhere is memory of State.wakeWatched, left of State.lastLent, to be used again.
	elsewhere []*claim
	left      []resources.Item
	commons   commons
	// lined is memory of State.Line.
	lined Unit
	// asked is memory of State.asks, to be used again.
	asked []resources.Item

	evictions *queue.Tree[*unit] // admitted units that Decide is to evict
	retries   *queue.Tree[*unit] // units for which something is over at a time: backoff, refusal
	tellings  *queue.Tree[*unit] // units whose reason is to be told at a time

	// panics of extensions that were recovered since the last Decide.
	panics int
	// looked is the unit that is being looked at. Between two calls it is nil, unless the last one panicked.
	looked *unit

	counts        map[pair]*QueueCounts
	countsChanged map[pair]struct{}
	countsOf      map[string]*QueueCounts // by queue
	demand        map[string]*resources.Sum
	demandChanged map[string]bool
	// additions is, by quota, what units add to what its pods request: what admitted ones ask for beyond their pods, less
	// the pods of those that wait.
	additions map[string]*resources.Sum
	// borrowers counts the groups that wait to borrow.
	borrowers int
}

// pair of a queue and a quota.
type pair struct{ queue, quota string }

// New returns an empty state.
func New(cfg Config) *State {
	policies := queue.Builtin()
	for name, factory := range cfg.Policies {
		policies[name] = factory
	}
	order := cfg.Order
	if order == nil {
		order = FairOrder{}
	}
	s := &State{
		cfg: cfg, policies: policies, order: order,
		units:  map[string]*unit{},
		pods:   map[string]*podBag{},
		queues: map[string]*unitLine{},
		groups: map[groupKey]*group{},
		levels: map[string]*level{},
		below:  map[string]map[*level]struct{}{},
		ledger: ledger.New(), commons: newCommons(),
		consumers:     newConsumers(),
		counts:        map[pair]*QueueCounts{},
		countsChanged: map[pair]struct{}{},
		countsOf:      map[string]*QueueCounts{},
		demand:        map[string]*resources.Sum{},
		demandChanged: map[string]bool{},
		additions:     map[string]*resources.Sum{},
	}
	s.compareQueues = func(a, b *unitLine) int { return order.Compare(a.rank, b.rank) }
	if _, fair := order.(FairOrder); fair {
		s.compareQueues = func(a, b *unitLine) int { return compareFairly(&a.rank, &b.rank) } // copies nothing
	}
	s.ranked = queue.NewTree(s.compareQueues)
	s.dirty = queue.NewTree(s.compareQueues)
	s.evictions = queue.NewTree(compareKeys)
	s.retries = queue.NewTree(byTime(func(u *unit) time.Time { return u.retry }))
	s.tellings = queue.NewTree(byTime(func(u *unit) time.Time { return u.tell.time() }))
	return s
}

// Recheck says that what a Check depends on has changed: everything that waits is looked at again.
func (s *State) Recheck(time.Time) {
	for _, g := range s.groups {
		s.markDirty(g)
	}
}
