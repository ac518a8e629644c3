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
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unique"
)

// consumers knows which jobs are live and which units name them.
type consumers struct {
	byUID  map[string]*consumer
	byName map[consumerName]*namesake
}

// consumer is a job that is live or that units name, by its UID.
type consumer struct {
	// name that it is live under.
	name  consumerName
	live  bool
	units fewUnits
}

// namesake is what is known of a name: the UID that is live under it, if any, and the units of managed jobs of this name.
type namesake struct {
	current string
	units   fewUnits
}

// fewUnits are units that name the same job: most often one, for which this is all the memory that it takes.
type fewUnits struct {
	one  *unit
	more *[]*unit
}

func (f *fewUnits) add(u *unit) {
	switch {
	case f.one == nil:
		f.one = u
	case f.more == nil:
		f.more = &[]*unit{u}
	default:
		*f.more = append(*f.more, u)
	}
}

func (f *fewUnits) remove(u *unit) {
	if f.more != nil {
		if f.one == u {
			f.one, u = (*f.more)[0], (*f.more)[0]
		}
		*f.more = slices.DeleteFunc(*f.more, func(other *unit) bool { return other == u })
		if len(*f.more) == 0 {
			f.more = nil
		}
	} else if f.one == u {
		f.one = nil
	}
}

// all are the units, in no particular order.
func (f *fewUnits) all() iter.Seq[*unit] {
	return func(yield func(*unit) bool) {
		if f == nil || f.one == nil || !yield(f.one) || f.more == nil {
			return
		}
		for _, u := range *f.more {
			if !yield(u) {
				return
			}
		}
	}
}

// consumerName is a key that many have: what all jobs of a kind in a namespace have in common is kept once.
type consumerName struct {
	scope unique.Handle[consumerScope]
	name  string
}

type consumerScope struct{ kind, namespace string }

func newConsumers() consumers {
	return consumers{byUID: map[string]*consumer{}, byName: map[consumerName]*namesake{}}
}

func scopeOf(c Consumer, namespace string) consumerScope {
	if c.Namespace != "" {
		namespace = c.Namespace
	}
	return consumerScope{kind: c.Kind, namespace: namespace}
}

func nameOf(c Consumer, namespace string) consumerName {
	return consumerName{scope: unique.Make(scopeOf(c, namespace)), name: c.Name}
}

// is says whether it is the name of a consumer, whose namespace is this one if it does not say.
func (n consumerName) is(c Consumer, namespace string) bool {
	return n.name == c.Name && n.scope.Value() == scopeOf(c, namespace)
}

// of finds or makes the record of a UID, and named that of a name.
func (cs *consumers) of(uid string) *consumer {
	job, ok := cs.byUID[uid]
	if !ok {
		job = &consumer{}
		cs.byUID[uid] = job
	}
	return job
}

func (cs *consumers) named(n consumerName) *namesake {
	same, ok := cs.byName[n]
	if !ok {
		same = &namesake{}
		cs.byName[n] = same
	}
	return same
}

// prune forgets the record of a UID that is not live and that no unit names, and pruneName the same of a name.
func (cs *consumers) prune(uid string) {
	if job := cs.byUID[uid]; job != nil && !job.live && job.units.one == nil {
		delete(cs.byUID, uid)
	}
}

func (cs *consumers) pruneName(n consumerName) {
	if same := cs.byName[n]; same != nil && same.current == "" && same.units.one == nil {
		delete(cs.byName, n)
	}
}

func (cs *consumers) add(u *unit) {
	c := u.spec.consumer()
	if c.UID != "" {
		job := cs.of(c.UID)
		job.units.add(u)
		u.consumerGone = u.consumerGone && !job.live
	}
	if u.spec.ConsumerManaged {
		same := cs.named(nameOf(c, namespaceOf(u.spec.Key)))
		same.units.add(u)
	}
}

func (cs *consumers) remove(u *unit) {
	c := u.spec.consumer()
	if job, ok := cs.byUID[c.UID]; ok && c.UID != "" {
		job.units.remove(u)
		cs.prune(c.UID)
	}
	if u.spec.ConsumerManaged {
		n := nameOf(c, namespaceOf(u.spec.Key))
		if same, ok := cs.byName[n]; ok {
			same.units.remove(u)
			cs.pruneName(n)
		}
	}
}

// unitsOf are the units that name a UID.
func (cs *consumers) unitsOf(uid string) *fewUnits {
	if job, ok := cs.byUID[uid]; ok {
		return &job.units
	}
	return nil
}

// check says why the consumer of a managed kind is not the live object that the unit names.
func (cs *consumers) check(u *unit) (Reason, string) {
	c, namespace := u.spec.consumer(), namespaceOf(u.spec.Key)
	if c.UID == "" {
		return ReasonConsumerNotFound, fmt.Sprintf("consumerRef names %s without its uid", c.describe())
	}
	if job, ok := cs.byUID[c.UID]; ok && job.live {
		if !job.name.is(c, namespace) {
			actual := Consumer{Kind: job.name.scope.Value().kind, Name: job.name.name}.describe()
			return ReasonConsumerUIDMismatch, fmt.Sprintf("consumerRef names %s, but uid %s is of %s", c.describe(), c.UID, actual)
		}
		return "", ""
	}
	if same, ok := cs.byName[nameOf(c, namespace)]; ok && same.current != "" {
		return ReasonConsumerUIDMismatch, fmt.Sprintf("%s has uid %s, not %s", c.describe(), same.current, c.UID)
	}
	return ReasonConsumerNotFound, fmt.Sprintf("%s with uid %s was not found", c.describe(), c.UID)
}

func (c Consumer) describe() string { return fmt.Sprintf("%s %q", c.Kind, c.Name) }

// winner is the unit that stands for the consumer of a unit, among those that name it: one that is admitted already, then
// one that its consumer owns, then the older one, then by UID. nil when no unit may.
func (cs *consumers) winner(of *unit) *unit {
	var best *unit
	for u := range cs.unitsOf(of.spec.consumerUID).all() {
		if !competes(u) || !sameConsumer(u, of) {
			continue
		}
		if best == nil || prefer(u, best) {
			best = u
		}
	}
	return best
}

// sameConsumer says whether two units of the same UID mean the same consumer: what a unit says is not believed of
// another kind or namespace. Names count where the kind is managed, as they are checked there.
func sameConsumer(a, b *unit) bool {
	if a == b {
		return true
	}
	x, y := a.spec.consumer(), b.spec.consumer()
	return scopeOf(x, namespaceOf(a.spec.Key)) == scopeOf(y, namespaceOf(b.spec.Key)) &&
		(x.Name == y.Name || !a.spec.ConsumerManaged)
}

// competes keeps units that can never be admitted, or that stand for nobody, from standing in the way of one that can.
func competes(u *unit) bool {
	if u.stage == stageDone || u.spec.Misnamed {
		return false
	}
	for _, check := range []unitCheck{checkDecoded, checkPods, checkRequest, checkConsumerNamespace} {
		if reason, _ := check(nil, time.Time{}, u); reason != "" && u.stage == stageWaiting {
			return false
		}
	}
	return true
}

func prefer(a, b *unit) bool {
	if a.seniority() != b.seniority() {
		return a.seniority() > b.seniority()
	}
	if a.spec.OwnedByConsumer != b.spec.OwnedByConsumer {
		return a.spec.OwnedByConsumer
	}
	return cmp.Or(a.spec.Created.Compare(b.spec.Created), strings.Compare(a.spec.UID, b.spec.UID), compareKeys(a, b)) < 0
}

func (u *unit) seniority() int {
	switch u.stage {
	case stageAdmitted, stageEvicting:
		return 2
	case stageAdmitting:
		return 1
	default:
		return 0
	}
}

// rejudge places the units of a consumer again after one of them changed.
func (s *State) rejudge(now time.Time, uid string) {
	units := s.consumers.unitsOf(uid)
	if units != nil && (units.more != nil || (units.one != nil && units.one.parked == ReasonDuplicateUnit)) {
		s.placeAll(now, units)
	}
}

// placeAll places units again, in the order of their keys.
func (s *State) placeAll(now time.Time, units *fewUnits) {
	for _, u := range slices.SortedFunc(units.all(), compareKeys) {
		s.place(now, u)
	}
}

// Live says whether the consumer with this UID was last reported to be live.
func (s *State) Live(uid string) bool {
	job, ok := s.consumers.byUID[uid]
	return ok && job.live
}

// SetConsumer says that a consumer is live, or not (live=false). Units whose managed consumer is not live
// are parked or evicted. An admitted unit whose consumer was never reported keeps its admission, so whoever
// finds the consumer of a unit missing has to say so.
func (s *State) SetConsumer(now time.Time, c Consumer, live bool) {
	cs, n := &s.consumers, nameOf(c, "")
	job, same := cs.of(c.UID), cs.named(n)
	former := same.current
	job.live = live
	if live {
		job.name, same.current = n, c.UID
		if other, ok := cs.byUID[former]; ok && former != c.UID {
			// A name has one object: the former one is gone, whether or not anybody saw it go.
			other.live = false
			cs.prune(former)
		}
	} else if former == c.UID {
		same.current = ""
	}
	naming := slices.Collect(job.units.all())
	for _, u := range naming {
		u.consumerGone = !live
	}
	cs.prune(c.UID)
	cs.pruneName(n)
	if live && former == c.UID {
		return
	}
	s.placeAll(now, &same.units)
	for _, u := range naming {
		if !n.is(u.spec.consumer(), namespaceOf(u.spec.Key)) {
			s.place(now, u)
		}
	}
}
