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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
)

// State is the whole of what the decisions depend on: the sum of its rooms. It is not safe for concurrent use: one
// goroutine owns it.
//
// Between two calls the following holds:
//   - every unit that waits is in line, in exactly one group, or parked (I2);
//   - the ledger has what units hold, and nothing else (I7);
//   - unless changed is set, the last pass saw all that there is now: no unit fits (I6).
type State struct {
	cfg    Config
	ledger *ledger.Ledger
	tree   *capacity.Tree
	owners *owner.Book[*unit]
	units  map[string]*unit // by key
	queues queues
	accounts

	// retries are the units for which something is over at a time: backoff, refusal. evictions are admitted units that
	// must not be.
	retries   *backlog.Due[*unit]
	evictions map[*unit]struct{}
	reports   reports

	ranking ranking
	pass    pass
	// changed: something that a pass looks at is not what it was in the last one.
	changed bool
	// structure is that of the tree when all groups were checked last. quotasChanged is when a quota changed last.
	structure     int64
	quotasChanged time.Time

	// panics of extensions that were recovered since the last Decide.
	panics int
	// looked is the unit that is being looked at. Between two calls it is nil, unless the last one panicked.
	looked *unit
}

// New returns an empty state.
func New(cfg Config) *State {
	order := cfg.Order
	if order == nil {
		order = FairOrder{}
	}
	l := ledger.New()
	return &State{
		cfg: cfg, ledger: l, tree: capacity.NewTree(l), owners: owner.NewBook[*unit](), units: map[string]*unit{},
		queues: newQueues(cfg.Policies), accounts: newAccounts(),
		retries:   backlog.NewDue(func(u *unit) backlog.Moment { return u.retryAt }),
		evictions: map[*unit]struct{}{}, reports: newReports(&cfg), ranking: newRanking(order),
	}
}

// Recheck says that what a Check depends on has changed: everything that waits is looked at again.
func (s *State) Recheck(time.Time) {
	for _, q := range s.queues.byName {
		for _, g := range q.line.Groups() {
			g.Notes.answer = answer{}
		}
	}
	s.changed = true
}

// SetQuota takes an observation of a quota.
func (s *State) SetQuota(now time.Time, in Quota) {
	if s.tree.Set(in) {
		s.changed, s.quotasChanged = true, now
	}
}

// DeleteQuota parks the units that wait for the quota. What is held there stays held, and keeps counting on
// the path that the quota had, until it is released or the quota comes back.
func (s *State) DeleteQuota(now time.Time, name string) {
	if s.tree.Delete(name) {
		s.changed, s.quotasChanged = true, now
	}
}

// SetPod takes a pod that exists of the unit with this key, also before the unit is known.
// Assigned pods materialise what the unit holds: outstanding = max(0, held - assigned), by resource.
func (s *State) SetPod(_ time.Time, unitKey string, p Pod) {
	s.podsChange(unitKey, func() bool { return s.ledger.SetPod(unitKey, p.inLedger(), p.Assigned) })
}

// DeletePod forgets a pod that is gone or has ended.
func (s *State) DeletePod(_ time.Time, unitKey, podUID string) {
	s.podsChange(unitKey, func() bool { return s.ledger.DeletePod(unitKey, podUID) })
}

func (s *State) podsChange(unitKey string, f func() (outstanding bool)) {
	u, ok := s.units[unitKey]
	if !ok {
		f()
		return
	}
	s.change(u, func() {
		if f() {
			s.tree.Changed(u.quota)
		}
	})
	s.changed = true
}

// SetConsumer says that a consumer is live, or not (live=false). Units whose managed consumer is not live
// are parked or evicted. An admitted unit whose consumer was never reported keeps its admission, so whoever
// finds the consumer of a unit missing has to say so.
func (s *State) SetConsumer(now time.Time, c Consumer, live bool) {
	for _, u := range s.owners.SetLive(c, live) {
		s.change(u, func() { s.place(now, u) })
	}
}

// look notes that a unit is looked at from here on and returns the one that was before, which the caller puts back when
// he is done. He must not do so in a defer: after a panic the note is to stay. A panic that is not recovered here leaves
// the state half changed. Whoever owns it builds another one from the objects, which say the same again, so that it
// panics again. What is needed to get out of that is who was being looked at.
func (s *State) look(u *unit) (before *unit) {
	before, s.looked = s.looked, u
	return before
}

// Suspect names, once, the unit that was being looked at when a call panicked; "" if none was.
func (s *State) Suspect() string {
	u := s.looked
	s.looked = nil
	if u == nil {
		return ""
	}
	return u.spec.Key
}
