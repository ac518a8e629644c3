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
	"slices"
	"strings"
	"time"
)

// consumers knows which jobs are live and which units name them.
type consumers struct {
	live map[string]Consumer // by UID
	// current is the UID that is live under a name.
	current map[consumerName]string
	byUID   map[string][]*unit
	byName  map[consumerName][]*unit
}

type consumerName struct{ kind, namespace, name string }

func nameOf(c Consumer, namespace string) consumerName {
	if c.Namespace != "" {
		namespace = c.Namespace
	}
	return consumerName{kind: c.Kind, namespace: namespace, name: c.Name}
}

func (cs *consumers) add(u *unit) {
	c := u.spec.consumer()
	if c.UID != "" {
		cs.byUID[c.UID] = append(cs.byUID[c.UID], u)
	}
	if u.spec.ConsumerManaged {
		n := nameOf(c, namespaceOf(u.spec.Key))
		cs.byName[n] = append(cs.byName[n], u)
	}
	if _, live := cs.live[c.UID]; live {
		u.consumerGone = false
	}
}

func (cs *consumers) remove(u *unit) {
	c := u.spec.consumer()
	if c.UID != "" {
		cs.byUID[c.UID] = without(cs.byUID[c.UID], u)
		if len(cs.byUID[c.UID]) == 0 {
			delete(cs.byUID, c.UID)
		}
	}
	if u.spec.ConsumerManaged {
		n := nameOf(c, namespaceOf(u.spec.Key))
		cs.byName[n] = without(cs.byName[n], u)
		if len(cs.byName[n]) == 0 {
			delete(cs.byName, n)
		}
	}
}

func without(units []*unit, u *unit) []*unit {
	for i, other := range units {
		if other == u {
			units[i] = units[len(units)-1]
			units[len(units)-1] = nil
			return units[:len(units)-1]
		}
	}
	return units
}

// check says why the consumer of a managed kind is not the live object that the unit names.
func (cs *consumers) check(u *unit) (Reason, string) {
	c := u.spec.consumer()
	own := nameOf(c, namespaceOf(u.spec.Key))
	if c.UID == "" {
		return ReasonConsumerNotFound, fmt.Sprintf("consumerRef names %s without its uid", describe(c))
	}
	if live, ok := cs.live[c.UID]; ok {
		if actual := nameOf(live, ""); actual != own {
			return ReasonConsumerUIDMismatch, fmt.Sprintf("consumerRef names %s, but uid %s is of %s", describe(c), c.UID, describe(live))
		}
		return "", ""
	}
	if other, ok := cs.current[own]; ok {
		return ReasonConsumerUIDMismatch, fmt.Sprintf("%s has uid %s, not %s", describe(c), other, c.UID)
	}
	return ReasonConsumerNotFound, fmt.Sprintf("%s with uid %s was not found", describe(c), c.UID)
}

func describe(c Consumer) string { return fmt.Sprintf("%s %q", c.Kind, c.Name) }

// winner is the unit that stands for a consumer, among those that name it: one that is admitted already, then
// one that its consumer owns, then the older one, then by UID. nil when no unit may.
func (cs *consumers) winner(uid string) *unit {
	var best *unit
	for _, u := range cs.byUID[uid] {
		if !competes(u) {
			continue
		}
		if best == nil || prefer(u, best) {
			best = u
		}
	}
	return best
}

// competes keeps units that can never be admitted from standing in the way of one that can.
func competes(u *unit) bool {
	if u.stage == stageDone {
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
	if units := s.consumers.byUID[uid]; len(units) > 1 || (len(units) == 1 && units[0].parked == ReasonDuplicateUnit) {
		s.placeAll(now, units)
	}
}

// placeAll places units again, in the order of their keys.
func (s *State) placeAll(now time.Time, units []*unit) {
	for _, u := range slices.SortedFunc(slices.Values(units), compareKeys) {
		s.place(now, u)
	}
}

// Live says whether the consumer with this UID was last reported to be live.
func (s *State) Live(uid string) bool {
	_, live := s.consumers.live[uid]
	return live
}

// SetConsumer says that a consumer is live, or not (live=false). Units whose managed consumer is not live
// are parked or evicted. An admitted unit whose consumer was never reported keeps its admission, so whoever
// finds the consumer of a unit missing has to say so.
func (s *State) SetConsumer(now time.Time, c Consumer, live bool) {
	n := nameOf(c, "")
	var former string
	if live {
		former = s.consumers.current[n]
		if former != c.UID {
			// A name has one object: the former one is gone, whether or not anybody saw it go.
			delete(s.consumers.live, former)
		}
		s.consumers.live[c.UID] = c
		s.consumers.current[n] = c.UID
	} else {
		delete(s.consumers.live, c.UID)
		if s.consumers.current[n] == c.UID {
			delete(s.consumers.current, n)
		}
	}
	for _, u := range s.consumers.byUID[c.UID] {
		u.consumerGone = !live
	}
	if live && former == c.UID {
		return
	}
	s.placeAll(now, s.consumers.byName[n])
	for _, u := range append([]*unit(nil), s.consumers.byUID[c.UID]...) {
		if nameOf(u.spec.consumer(), namespaceOf(u.spec.Key)) != n {
			s.place(now, u)
		}
	}
}
