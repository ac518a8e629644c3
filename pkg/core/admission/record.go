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
	"hash/maphash"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// record is what a Unit says, in less memory: what very many units have in common is kept once, and what few have is
// elsewhere.
type record struct {
	Key, UID                  string
	Created                   time.Time
	consumerName, consumerUID string
	Priority                  int32
	*common
	*special
}

// common is what units that are submitted together have in common. It is not changed, but for the number of its users.
type common struct {
	Queue, Quota                     string
	Request                          resources.List
	Pods                             int64
	Expected                         Expected
	consumerKind, consumerNamespace  string
	NonPreemptible, Active           bool
	ConsumerManaged, OwnedByConsumer bool
	Misnamed, Adopting               bool
	// requestKey is that of groups. waits is the demand of a unit that waits and has no pods.
	requestKey string
	waits      demand
	// hash is where it is kept, users how many units have it.
	hash  uint64
	users int
}

// special is what units have to which something happened.
type special struct {
	Phase          Phase
	Attempts       int64
	Held           resources.List
	RequeueAt      time.Time
	Invalid        Reason
	InvalidMessage string
	Poisoned       bool
}

// The first states of units are shared and never written.
var (
	withoutPhase = &special{}
	enqueued     = &special{Phase: PhaseEnqueued}
)

// commons keeps what units have in common as long as one of them has it, by a hash.
type commons struct {
	seed maphash.Seed
	kept map[uint64]*common
}

func newCommons() commons { return commons{seed: maphash.MakeSeed(), kept: map[uint64]*common{}} }

// of is the shared memory of what the unit has in common with others.
func (cs *commons) of(in *Unit) *common {
	sum := cs.hash(in)
	have := cs.kept[sum]
	if have != nil && have.same(in) {
		return have
	}
	c := &common{
		Queue: in.Queue, Quota: in.Quota, Request: in.Request, Pods: in.Pods, Expected: in.Expected,
		consumerKind: in.Consumer.Kind, consumerNamespace: in.Consumer.Namespace,
		NonPreemptible: in.NonPreemptible, Active: in.Active, ConsumerManaged: in.ConsumerManaged,
		OwnedByConsumer: in.OwnedByConsumer, Misnamed: in.Misnamed, Adopting: in.Adopting,
		requestKey: in.Request.Key(),
		waits:      demand{quota: in.Quota, amount: in.Expected.Bound(in.Request.Floor0(), 0)},
	}
	if have == nil {
		c.hash = sum
		cs.kept[sum] = c
	}
	return c
}

// hash is of what tells most units apart that have not all in common.
func (cs *commons) hash(in *Unit) uint64 {
	var h maphash.Hash
	h.SetSeed(cs.seed)
	for _, text := range [...]string{in.Quota, in.Queue, in.Consumer.Namespace} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	maphash.WriteComparable(&h, in.Pods)
	maphash.WriteComparable(&h, in.NonPreemptible)
	for _, it := range in.Request.Items() {
		maphash.WriteComparable(&h, it.Amount)
	}
	return h.Sum64()
}

// state has the unit say what the record says, in place of what it said before.
func (s *State) state(u *unit, r record) {
	former := u.spec.common
	u.spec = r
	r.users++
	s.commons.leave(former)
}

// leave says that a unit has nothing in common any more.
func (cs *commons) leave(c *common) {
	if c == nil {
		return
	}
	if c.users--; c.users == 0 && cs.kept[c.hash] == c {
		delete(cs.kept, c.hash)
	}
}

func (c *common) same(in *Unit) bool {
	return c.Queue == in.Queue && c.Quota == in.Quota && c.Pods == in.Pods &&
		c.consumerKind == in.Consumer.Kind && c.consumerNamespace == in.Consumer.Namespace &&
		c.NonPreemptible == in.NonPreemptible && c.Active == in.Active && c.ConsumerManaged == in.ConsumerManaged &&
		c.OwnedByConsumer == in.OwnedByConsumer && c.Misnamed == in.Misnamed && c.Adopting == in.Adopting &&
		c.Request.Same(in.Request) && c.Expected.Same(in.Expected)
}

// recordOf keeps what a unit says.
func (s *State) recordOf(in *Unit) record {
	return record{
		Key: in.Key, UID: in.UID, Created: in.Created, Priority: in.Priority,
		consumerName: in.Consumer.Name, consumerUID: in.Consumer.UID,
		common: s.commons.of(in), special: specialOf(in),
	}
}

func specialOf(in *Unit) *special {
	if in.Attempts == 0 && in.Held.Len() == 0 && in.RequeueAt.IsZero() && in.Invalid == "" && in.InvalidMessage == "" && !in.Poisoned {
		if in.Phase == PhaseNone {
			return withoutPhase
		}
		if in.Phase == PhaseEnqueued {
			return enqueued
		}
	}
	return &special{
		Phase: in.Phase, Attempts: in.Attempts, Held: in.Held, RequeueAt: in.RequeueAt,
		Invalid: in.Invalid, InvalidMessage: in.InvalidMessage, Poisoned: in.Poisoned,
	}
}

// unit is what the record was made of.
func (r *record) unit() Unit {
	return Unit{
		Key: r.Key, UID: r.UID, Queue: r.Queue, Quota: r.Quota, Priority: r.Priority, Created: r.Created,
		Request: r.Request, Pods: r.Pods, Expected: r.Expected, NonPreemptible: r.NonPreemptible, Active: r.Active,
		Consumer: r.consumer(), ConsumerManaged: r.ConsumerManaged, OwnedByConsumer: r.OwnedByConsumer,
		Misnamed: r.Misnamed, Adopting: r.Adopting,
		Phase: r.Phase, Attempts: r.Attempts, Held: r.Held, RequeueAt: r.RequeueAt,
		Invalid: r.Invalid, InvalidMessage: r.InvalidMessage, Poisoned: r.Poisoned,
	}
}

func (r *record) consumer() Consumer {
	return Consumer{Kind: r.consumerKind, Namespace: r.consumerNamespace, Name: r.consumerName, UID: r.consumerUID}
}
