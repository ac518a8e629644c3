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
	"cmp"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// stage is where a unit is in the eyes of the core (I2: in exactly one).
type stage uint8

const (
	stageWaiting   stage = iota // in a group, or parked
	stageAdmitting              // reserved; the write is in flight
	stageAdmitted
	stageEvicting // still reserved; the write is in flight
	stageDone     // terminal
)

// unit is what is known of one QueueUnit. There may be very many, and most of them wait: what few have is elsewhere.
type unit struct {
	spec record

	stage stage
	// observed: the object itself was seen to hold quota since the admission was confirmed.
	observed bool
	// holding: the ledger was told held, at and of say where.
	holding bool
	// consumerGone: its consumer was reported not to be live.
	consumerGone bool
	// where it is counted, in counted.
	where bucket

	// group is set while the unit waits and is not parked; parked, of the dealings, while it waits and is.
	group *group
	// headSince is when the unit became the head of its group. tell is the key in State.tellings, zero when not there.
	headSince, tell moment
	counted         *QueueCounts
	// demand is what is counted of it as that of its quota, nil for nothing.
	demand *demand
	// adds is what the unit adds to the requests of its quota; most that wait add nothing.
	adds *addition
	*tenure
	*dealings
}

// tenure is about what a unit holds or held.
type tenure struct {
	held resources.List
	at   *level
	of   *unitLine
	// attempt and remembered belong to the write in flight.
	attempt    int64
	remembered *Unit
}

// demand of a unit, and the quota that it counts for.
type demand struct {
	quota  string
	amount resources.List
}

// moment is a time on the wall, zero for none.
type moment int64

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.UnixNano())
}

func (m moment) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

// dealings are what was done about a unit beside placing it.
type dealings struct {
	parked        Reason
	parkedMessage string
	// refusals in a row; nothing is tried before refusedUntil, because of refusal.
	refusals       int
	refusedUntil   time.Time
	refusal        Reason
	refusalMessage string
	// told is the reason that was told last, at toldAt.
	told   Reason
	toldAt time.Time
	// retry is the key in State.retries; zero when not there.
	retry time.Time
}

// noDealings and noTenure are shared and never written.
var (
	noDealings = &dealings{}
	noTenure   = &tenure{}
)

// newUnit is one of which nothing is known.
func newUnit() *unit { return &unit{tenure: noTenure, dealings: noDealings} }

// tenant returns the tenure of the unit, to be changed.
func (u *unit) tenant() *tenure {
	if u.tenure == noTenure {
		u.tenure = &tenure{}
	}
	return u.tenure
}

// deal returns the dealings of the unit, to be changed.
func (u *unit) deal() *dealings {
	if u.dealings == noDealings {
		u.dealings = &dealings{}
	}
	return u.dealings
}

// forgetTold: nothing was told.
func (u *unit) forgetTold() {
	if u.told != "" {
		u.dealings.told, u.dealings.toldAt = "", time.Time{}
	}
}

func compareKeys(a, b *unit) int { return strings.Compare(a.spec.Key, b.spec.Key) }

func byTime(at func(*unit) time.Time) func(a, b *unit) int {
	return func(a, b *unit) int { return cmp.Or(at(a).Compare(at(b)), compareKeys(a, b)) }
}

func (u *unit) inFlight() bool { return u.stage == stageAdmitting || u.stage == stageEvicting }

// wants is what an admitted unit holds: what its object says, or all it asked for when that says nothing.
func (u *unit) wants() resources.List { return wants(u.spec.Held, u.spec.Request) }

func wants(held, request resources.List) resources.List {
	if held.Len() > 0 {
		return held
	}
	return request
}

// needs is how much of what a limit names the unit asks for.
func (u *unit) needs(resource string) int64 {
	if resource == resources.Jobs {
		return 1
	}
	amount, _ := u.spec.Request.Get(resource)
	return amount
}

// forgetRemembered lets go of what the object said while its write was in flight.
func (u *unit) forgetRemembered() {
	if u.remembered != nil {
		u.tenure.remembered = nil
	}
}

// UpsertUnit takes the unit as the API has it. While a write of the unit is in flight the object is
// remembered and replayed by Settle. A unit whose Phase holds quota is (re-)reserved with Held, fits or not.
func (s *State) UpsertUnit(now time.Time, in Unit) {
	u, ok := s.units[in.Key]
	if ok && u.spec.UID != in.UID {
		// Another object under the same name: nothing of the old one can be true of it.
		s.DeleteUnit(now, in.Key)
		ok = false
	}
	switch {
	case !ok:
		u = newUnit()
		s.units[in.Key] = u
		s.apply(now, u, in)
	case u.inFlight():
		u.tenant().remembered = &in
	default:
		s.replay(now, u, &in)
	}
}

// apply makes the object the truth about a unit with no write in flight.
func (s *State) apply(now time.Time, u *unit, in Unit) {
	if u.stage == stageAdmitted && !u.observed && in.Phase.Waits() && in.Attempts < u.attempt {
		// Older than the admission that was confirmed: only a repetition can say this.
		in.Phase, in.Attempts, in.Held = u.spec.Phase, u.attempt, u.spec.Held
	} else if u.stage == stageAdmitted {
		u.observed = true
	}
	former, known := u.spec, u.spec.Key != ""
	s.leave(now, u)
	if known {
		s.consumers.remove(u)
		s.queues[former.Queue].refs--
	}
	if former.consumerUID != in.Consumer.UID {
		u.consumerGone = false
	}
	s.state(u, s.recordOf(&in))
	s.consumers.add(u)
	s.queue(in.Queue).refs++
	u.enter(stageOf(&in))
	s.place(now, u)
	s.rejudge(now, in.Consumer.UID)
	if !known {
		return
	}
	if former.consumerUID != in.Consumer.UID {
		s.rejudge(now, former.consumerUID)
	}
	if former.Queue != in.Queue {
		s.pruneQueue(former.Queue)
	}
}

// stageOf is the stage that an object says, when no write of it is in flight.
func stageOf(in *Unit) stage {
	switch {
	case in.Phase.Terminal():
		return stageDone
	case in.Phase.Waits():
		return stageWaiting
	case in.Phase.Holds() || in.Held.Len() > 0:
		// A phase of another version that holds something is taken to hold it.
		return stageAdmitted
	default:
		return stageWaiting
	}
}

func (u *unit) enter(to stage) {
	if to == stageAdmitted {
		if u.stage != stageAdmitted {
			u.observed = true
		}
		u.tenant().attempt = u.spec.Attempts
	}
	u.stage = to
}

// DeleteUnit forgets the unit and releases what it holds (I7). A write in flight is settled by it.
func (s *State) DeleteUnit(now time.Time, key string) {
	u, ok := s.units[key]
	if !ok {
		return
	}
	u.forgetRemembered()
	u.stage = stageDone
	s.place(now, u)
	s.consumers.remove(u)
	delete(s.units, key)
	s.commons.leave(u.spec.common)
	s.queues[u.spec.Queue].refs--
	s.pruneQueue(u.spec.Queue)
	s.rejudge(now, u.spec.consumerUID)
}

// place puts a unit where its stage and the checks say, and keeps the books.
func (s *State) place(now time.Time, u *unit) {
	before := s.look(u)
	switch u.stage {
	case stageWaiting:
		s.placeWaiting(now, u)
	case stageAdmitted:
		s.placeAdmitted(now, u)
	case stageDone:
		s.leave(now, u)
		s.tellAt(u, time.Time{})
		s.release(u)
	case stageAdmitting, stageEvicting:
		// Not touched before its write is settled.
	}
	s.account(u)
	s.looked = before
}

func (s *State) placeWaiting(now time.Time, u *unit) {
	s.release(u)
	reason, message := s.checkUnit(now, u)
	if reason == "" {
		if u.group != nil {
			return
		}
		s.leave(now, u)
		s.join(now, u)
		return
	}
	if u.parked != reason {
		s.leave(now, u)
		u.deal().parked = reason
		s.armParked(now, u)
	}
	u.deal().parkedMessage = message
	s.retryAt(u, s.parkedUntil(u))
}

// parkedUntil is when a parked unit is to be looked at though nothing happens; zero for never.
func (s *State) parkedUntil(u *unit) time.Time {
	switch u.parked {
	case ReasonBackoff:
		return u.spec.RequeueAt
	case u.refusal:
		return u.refusedUntil
	default:
		return time.Time{}
	}
}

// placeAdmitted makes the ledger hold what the unit holds, and asks for its eviction where it must not
// be admitted.
func (s *State) placeAdmitted(now time.Time, u *unit) {
	s.leave(now, u)
	s.tellAt(u, time.Time{})
	u.forgetTold()
	if u.spec.Poisoned {
		s.hold(u, u.wants())
		return
	}
	reason, message, gone := s.checkAdmitted(u)
	if gone {
		// Nothing runs any more that could use it.
		s.release(u)
	} else {
		s.hold(u, u.wants())
	}
	if reason == "" {
		return
	}
	if now.Before(u.refusedUntil) {
		s.retryAt(u, u.refusedUntil)
		return
	}
	u.deal().parkedMessage = message
	s.evictions.Insert(u)
}

// leave takes a unit out of every collection that depends on its place.
func (s *State) leave(now time.Time, u *unit) {
	if u.group != nil {
		s.part(now, u)
	}
	if u.parked != "" || u.parkedMessage != "" {
		u.dealings.parked, u.dealings.parkedMessage = "", ""
	}
	s.retryAt(u, time.Time{})
	s.evictions.Delete(u)
}

// hold makes the ledger say that the unit holds this much where its object says.
func (s *State) hold(u *unit, held resources.List) {
	if u.holding && (u.at.name != u.spec.Quota || u.of.name != u.spec.Queue) {
		s.release(u)
	}
	at, of := s.level(u.spec.Quota), s.queue(u.spec.Queue)
	if !u.holding {
		u.holding, u.tenant().at, u.tenant().of = true, at, of
		of.holding++
		s.updateFull(of)
	}
	u.tenant().held = held
	changed := s.ledger.Reserve(u.spec.Key, at.name, held, u.spec.NonPreemptible)
	if s.ledger.Expect(u.spec.Key, u.spec.Expected) || changed {
		s.refreshPath(at)
	}
}

// release makes the ledger forget what the unit holds.
func (s *State) release(u *unit) {
	if !u.holding {
		return
	}
	at, of := u.at, u.of
	u.holding, u.tenure.held, u.tenure.at, u.tenure.of = false, resources.List{}, nil, nil
	if s.ledger.Release(u.spec.Key) {
		s.refreshPath(at)
	}
	of.holding--
	s.updateFull(of)
	s.pruneLevel(at)
}

func (s *State) retryAt(u *unit, at time.Time) {
	if u.retry.Equal(at) {
		return
	}
	if !u.retry.IsZero() {
		s.retries.Delete(u)
	}
	u.deal().retry = at
	if !at.IsZero() {
		s.retries.Insert(u)
	}
}

func sameUnit(a, b Unit) bool {
	sameTimes := a.Created.Equal(b.Created) && a.RequeueAt.Equal(b.RequeueAt)
	sameLists := a.Request.Same(b.Request) && a.Held.Same(b.Held) && a.Expected.Same(b.Expected)
	a.Created, a.RequeueAt, a.Request, a.Held = b.Created, b.RequeueAt, b.Request, b.Held
	return sameTimes && sameLists && plain(a) == plain(b)
}

// plainUnit is the comparable part of Unit.
type plainUnit struct {
	key, uid, queue, quota                                                       string
	priority                                                                     int32
	pods, attempts                                                               int64
	nonPreemptible, active, consumerManaged, ownedByConsumer, adopting, poisoned bool
	misnamed                                                                     bool
	consumer                                                                     Consumer
	phase                                                                        Phase
	invalid                                                                      Reason
	message                                                                      string
}

func plain(u Unit) plainUnit {
	return plainUnit{
		key: u.Key, uid: u.UID, queue: u.Queue, quota: u.Quota, priority: u.Priority,
		pods: u.Pods, attempts: u.Attempts, nonPreemptible: u.NonPreemptible, active: u.Active,
		consumerManaged: u.ConsumerManaged, ownedByConsumer: u.OwnedByConsumer, adopting: u.Adopting, poisoned: u.Poisoned,
		misnamed: u.Misnamed,
		consumer: u.Consumer, phase: u.Phase, invalid: u.Invalid, message: u.InvalidMessage,
	}
}
