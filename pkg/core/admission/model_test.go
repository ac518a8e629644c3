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
	"maps"
	"reflect"
	"sort"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// model is the life of units written down a second time, in the simplest way: plain maps of the events, without
// anything derived. The oracle decides on it. It shares no rule with the state under test, only the types of input and
// output and the arithmetic of resources.
type model struct {
	now    time.Time
	queues map[string]queue.Spec
	quotas map[string]Quota
	// former are quotas that went, as long as something is held there or below.
	former map[string]Quota
	pods   map[string]map[string]Pod
	// live jobs by UID, and those that were said to be gone.
	live map[string]unit.Consumer
	gone map[string]bool
	// units by key.
	units map[string]*modelUnit
	// places of units that hold quota, and those that pods keep whose unit does not.
	places map[string]modelPlace
	// shut are the doors of filters, by the kind of the units that do not pass; nil without filters.
	shut map[string]bool
}

// modelPlace is where a unit held quota last, or would.
type modelPlace struct {
	queue, quota string
	unknown      bool // nobody knows the queue
	held         bool
}

type modelUnit struct {
	unit.Unit
	at         string // waiting, admitting, admitted, evicting, resizing, dequeuing, over
	holds      bool
	held, next resources.List
	nextPods   int64
	// growsSince is when it began to ask for more than it holds.
	growsSince time.Time
	// onMin: it is non-preemptible, as it was when it got what it holds.
	onMin bool
	// left is when its last pod left its node.
	left time.Time
	// eviction is the one in flight.
	eviction modelEviction
	// claimsSince is when it was found first to claim, or to be short.
	claimsSince time.Time
	// overlong: that is long ago. claimEnded: it no longer claims.
	overlong, claimEnded bool
	attempt              int64
	// gets is what the admission in flight is for, of so many pods, and asks are the checks that it asks.
	gets       resources.List
	getsPods   int64
	asks       []string
	observed   bool
	remembered *unit.Unit
	refusals   int
	refusedTo  time.Time
}

// modelEviction is why a unit loses its quota, and the state of its object after that.
type modelEviction struct {
	reason unit.Reason
	// backsOff: it is tried again after this wait or, if that is zero, after longer each time.
	backsOff bool
	wait     time.Duration
	// deactivates, unless empty, is why it is not tried again.
	deactivates unit.Reason
	// until is when it is tried again, for which time in a row, and executed for how long it has run.
	until    time.Time
	requeues int64
	executed time.Duration
}

func newModel() *model {
	return &model{
		now: epoch, queues: map[string]queue.Spec{}, quotas: map[string]Quota{}, former: map[string]Quota{},
		pods: map[string]map[string]Pod{}, live: map[string]unit.Consumer{}, gone: map[string]bool{},
		units: map[string]*modelUnit{}, places: map[string]modelPlace{},
	}
}

// copy is another model of the same: what is decided on it changes nothing here.
func (m *model) copy() *model {
	c := *m
	c.units, c.former, c.gone, c.places = map[string]*modelUnit{}, maps.Clone(m.former), maps.Clone(m.gone),
		maps.Clone(m.places)
	for key, u := range m.units {
		same := *u
		c.units[key] = &same
	}
	return &c
}

func (m *model) keys() []string {
	keys := make([]string, 0, len(m.units))
	for key := range m.units {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

// waitsAnew is for a unit that comes out of its line.
func (u *modelUnit) waitsAnew() { u.claimsSince, u.overlong, u.claimEnded = time.Time{}, false, false }

func (u *modelUnit) inFlight() bool {
	return u.at == "admitting" || u.at == "evicting" || u.at == "resizing" || u.at == "dequeuing"
}

func saysItIs(u unit.Unit) string {
	switch {
	case rulebook.Over(u.Phase):
		return "over"
	case rulebook.Waits(u.Phase):
		return "waiting"
	case rulebook.Holds(u.Phase) || u.Held.Len() > 0:
		return "admitted"
	}
	return "waiting"
}

// namespaceOf a key, which is namespace/name.
func namespaceOf(key string) string { return strings.Split(key, "/")[0] }

// gangsIn a list of them; nil for none.
func gangsIn(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

func (m *model) upsert(in unit.Unit) {
	u, ok := m.units[in.Key]
	if ok && u.UID != in.UID {
		delete(m.units, in.Key)
		ok = false
	}
	switch {
	case !ok:
		u = &modelUnit{}
		m.units[in.Key] = u
		m.take(u, in)
	case u.inFlight():
		u.remembered = &in
	default:
		m.see(u, in)
	}
	m.settleDown()
}

// see is a state of the object that may have been known before.
func (m *model) see(u *modelUnit, in unit.Unit) {
	if u.at == "admitted" && rulebook.Holds(in.Phase) {
		u.observed = true
	}
	if u.at == "admitted" && saysItIs(in) == "admitted" && in.Quota != u.Quota {
		in.Quota, in.MovesTo = u.Quota, in.Quota
	}
	if !reflect.DeepEqual(u.Unit, in) {
		m.take(u, in)
	}
}

func (m *model) take(u *modelUnit, in unit.Unit) {
	if u.at == "admitted" && !u.observed && rulebook.Waits(in.Phase) && in.Attempts < u.attempt {
		// The object is older than the confirmed admission, whose fields stay.
		in.Phase, in.Attempts, in.Held = u.Phase, u.attempt, u.Held
		in.Admitted, in.Checks = u.Admitted, u.Checks
		in.HeldPods, in.Recorded = u.HeldPods, u.Recorded
		in.Quota, in.MovesTo = u.Quota, u.MovesTo
		if in.Sizes != nil {
			in.Request, in.Pods = u.Request, u.Pods
		}
	} else if u.at == "admitted" {
		u.observed = true
	}
	before := u.at
	u.Unit, u.at = in, saysItIs(in)
	if u.at == "admitted" {
		if before != "admitted" {
			u.observed = true
		}
		u.attempt = in.Attempts
	}
}

func (m *model) remove(key string) {
	delete(m.units, key)
	m.settleDown()
}

func (m *model) setConsumer(c unit.Consumer, live bool) {
	if live {
		m.live[c.UID] = c
		delete(m.gone, c.UID)
	} else {
		delete(m.live, c.UID)
		m.gone[c.UID] = true
	}
	m.settleDown()
}

func (m *model) settle(key string, attempt int64, o transition.Outcome) {
	u, ok := m.units[key]
	if !ok || !u.inFlight() || u.attempt != attempt || o == transition.Unknown {
		return
	}
	remembered := u.remembered
	u.remembered = nil
	older := false
	if remembered != nil && u.saysWhatWasWritten(remembered) {
		o = transition.Confirmed // whatever the write seemed to come to
	} else if remembered != nil && o == transition.Confirmed {
		older = saysItIs(*remembered) == "admitted" && remembered.Attempts <= u.attempt
	}
	switch u.at {
	case "admitting":
		switch o {
		case transition.Confirmed:
			u.at, u.observed, u.refusals = "admitted", false, 0
			u.Request, u.Pods = u.gets, u.getsPods
			u.Phase, u.Attempts, u.Held, u.HeldPods, u.Recorded = unit.PhaseDequeued, u.attempt, u.held, u.Pods, true
			u.Admitted, u.left, u.Checks = m.now, time.Time{}, nil
			if len(u.asks) > 0 {
				u.Phase, u.Checks = unit.PhaseReserved, &unit.CheckAnswers{}
			}
			for _, name := range u.asks {
				u.Checks.Answers = append(u.Checks.Answers, unit.CheckAnswer{Name: name, State: unit.CheckPending})
			}
		case transition.Refused:
			u.at = "waiting"
			m.refuse(u)
		default:
			u.at = "waiting"
		}
	case "resizing":
		u.at = "admitted"
		switch o {
		case transition.Confirmed:
			u.Held, u.HeldPods, u.Recorded = u.next, u.nextPods, true
			u.growsSince = time.Time{}
			if older {
				remembered.Held, remembered.HeldPods, remembered.Recorded = u.next, u.nextPods, true
			}
		case transition.Refused:
			m.refuse(u)
		default:
			u.observed = true
		}
	case "dequeuing":
		u.at = "admitted"
		switch o {
		case transition.Confirmed:
			u.Phase, u.Admitted, u.left = unit.PhaseDequeued, m.now, time.Time{}
			if older {
				remembered.Phase, remembered.Admitted = unit.PhaseDequeued, m.now
			}
		case transition.Refused:
			m.refuse(u)
		default:
			u.observed = true
		}
	default:
		switch o {
		case transition.Confirmed:
			u.at = "waiting"
			u.goBack(&u.Unit)
			if older {
				u.goBack(remembered)
			}
		case transition.Refused:
			u.at = "admitted"
			m.refuse(u)
		default:
			u.at, u.observed = "admitted", true
		}
	}
	if remembered != nil {
		m.see(u, *remembered)
	}
	m.settleDown()
}

// saysWhatWasWritten says that an object that was seen during a write shows it.
func (u *modelUnit) saysWhatWasWritten(in *unit.Unit) bool {
	if in.Attempts != u.attempt {
		return false
	}
	switch u.at {
	case "admitting":
		return rulebook.Holds(in.Phase)
	case "resizing":
		return rulebook.Holds(in.Phase) && in.Recorded && in.Held.Equal(u.next)
	case "dequeuing":
		return rulebook.Holds(in.Phase) && in.Phase != unit.PhaseReserved && in.Phase != unit.PhaseSchedReady
	default:
		return rulebook.Waits(in.Phase) && in.Held.IsZero()
	}
}

// goBack is what an object says when its unit has lost its admission.
func (u *modelUnit) goBack(in *unit.Unit) {
	in.Phase, in.Held, in.HeldPods, in.Recorded = unit.PhaseEnqueued, resources.List{}, 0, false
	if in.MovesTo != "" {
		in.Quota, in.MovesTo = in.MovesTo, ""
	}
	in.Executed, in.Ready, in.NotReadySince, in.RanSince = u.eviction.executed, false, time.Time{}, time.Time{}
	in.Deactivate, in.Checks = nil, nil
	if sizes := sizesOf(*in); sizes != nil {
		in.Request, in.Pods = sizes[0].request, sizes[0].pods
	}
	switch {
	case u.eviction.deactivates != "":
		in.RequeueAt, in.Requeues, in.Deactivate = time.Time{}, 0, &unit.Deactivation{Reason: u.eviction.deactivates}
	case u.eviction.backsOff:
		in.Phase, in.RequeueAt, in.Requeues = unit.PhaseTimeoutBackoff, u.eviction.until, u.eviction.requeues
	}
}

// setPods changes the pods of a unit and notes when the last of them has left its node.
func (m *model) setPods(key string, change func(map[string]Pod)) {
	before := m.assigned(key)
	if m.pods[key] == nil {
		m.pods[key] = map[string]Pod{}
	}
	change(m.pods[key])
	u := m.units[key]
	if u != nil {
		if u.holds && before && !m.assigned(key) {
			u.left = m.now
		}
		m.noteGrowth(u)
	}
	m.keepPlaces()
	m.forget()
}

// goes says whether an admitted unit has to lose what it holds, whether or not that can be written now.
func (m *model) goes(u *modelUnit) (e modelEviction, goes bool) {
	if u.at != "admitted" || u.Quarantined {
		return e, false
	}
	e.reason = m.unwanted(u)
	if e.reason == "" {
		e, _ = m.overChecks(u)
	}
	if late, over := m.overdue(u); e.reason == "" && over {
		e = modelEviction{reason: late, backsOff: late != unit.ReasonMaximumExecutionTime}
		if !e.backsOff {
			e.deactivates = late
		}
	}
	e.requeues = u.Requeues + 1
	if most := m.queues[u.Queue].MostEvictions; e.backsOff && most > 0 && e.requeues >= most {
		e.backsOff, e.deactivates = false, unit.ReasonRequeueLimitReached
	}
	return e, e.reason != ""
}

// hasRun is the total run time of a unit that is evicted, if a time bounds it. A unit that waits for checks does not
// run. A deactivated unit begins at zero when it is reactivated.
func (m *model) hasRun(u *modelUnit, e modelEviction) time.Duration {
	switch {
	case m.mayRun(u) == 0, m.keepsPods(u), !u.holds, u.Admitted.IsZero(), e.deactivates != "":
		return 0
	case !rulebook.Releases(u.Phase), m.counts(u).IsZero():
		return u.Executed
	}
	return u.Executed + max(m.now.Sub(m.counts(u)), 0)
}

// counts is the time from which a run counts. A time of the unit itself counts from the readiness of its pods, if
// somebody reports that and the queue has no bound.
func (m *model) counts(u *modelUnit) time.Time {
	own := u.MaximumExecution > 0 && m.queues[u.Queue].Execution.Most == 0 && u.ConsumerManaged
	switch {
	case !own:
		return u.Admitted
	case u.RanSince.IsZero() || u.RanSince.After(u.Admitted):
		return u.RanSince
	}
	return u.Admitted
}

// overdue is the first of the times that are over.
func (m *model) overdue(u *modelUnit) (first unit.Reason, over bool) {
	at := m.now
	for _, end := range m.ends(u) {
		if !over && !at.Before(end.at) || over && end.at.Before(at) {
			first, at, over = end.reason, end.at, true
		}
	}
	return first, over
}

// astray: the unit names another quota than it holds. Or it was admitted long ago, and pods of it are charged to
// another quota or held.
func (m *model) astray(u *modelUnit) (reason unit.Reason) {
	if u.at != "admitted" || u.Quarantined || !u.holds || u.Admitted.IsZero() ||
		!rulebook.Releases(u.Phase) {
		return ""
	}
	if u.MovesTo != "" {
		if m.now.Before(u.Admitted) {
			return ""
		}
		return unit.ReasonQuotaChanged
	}
	if m.now.Before(u.Admitted.Add(time.Minute)) {
		return ""
	}
	for _, p := range m.pods[u.Key] {
		switch {
		case p.Assigned || p.Leaving:
		case p.Quota != u.Quota:
			return unit.ReasonPodsChargedElsewhere
		case p.Held:
			reason = unit.ReasonPodsHeldBySuspension
		}
	}
	return reason
}

type modelEnd struct {
	reason unit.Reason
	at     time.Time
}

// ends are all times at which a unit loses what it holds.
func (m *model) ends(u *modelUnit) (ends []modelEnd) {
	if u.at != "admitted" || u.Quarantined || !u.holds || u.Admitted.IsZero() {
		return nil
	}
	add := func(reason unit.Reason, since time.Time, after time.Duration) {
		if after > 0 {
			ends = append(ends, modelEnd{reason, since.Add(after)})
		}
	}
	if u.Phase == unit.PhaseReserved {
		return m.checkEnds(u)
	}
	q, pods := m.queues[u.Queue], len(m.pods[u.Key])
	patience := modelTimeouts
	if q.Timeouts != nil {
		patience = *q.Timeouts
	}
	bound := false
	for _, p := range m.pods[u.Key] {
		bound = bound || p.Assigned
	}
	last := u.Admitted
	if u.left.After(last) {
		last = u.left
	}
	starts := u.Phase == unit.PhaseDequeued || u.Phase == unit.PhaseSchedSucceed
	switch {
	case u.held.IsZero():
	case !u.ConsumerManaged && !bound:
		if u.Heartbeat.After(last) && !u.Heartbeat.After(m.now.Add(q.HeartbeatTimeout)) {
			last = u.Heartbeat
		}
		add(unit.ReasonNoHeartbeat, last, q.HeartbeatTimeout)
	case u.ConsumerManaged:
		if starts && pods == 0 {
			add(unit.ReasonIdleReservation, last, patience.Idle)
		} else if starts && !bound {
			add(unit.ReasonUnschedulable, last, patience.Unbound)
		}
		switch runs := starts || u.Phase == unit.PhaseRunning; {
		case !runs || u.Ready || u.Unsuspendable:
		case u.NotReadySince.IsZero():
			add(unit.ReasonPodsReadyTimeout, u.Admitted, patience.PodsReady)
		default:
			add(unit.ReasonRecoveryTimeout, u.NotReadySince, patience.Recovery)
		}
	}
	if !(starts || u.Phase == unit.PhaseRunning) || m.keepsPods(u) {
		return ends
	}
	if most := m.mayRun(u); most > 0 && !m.counts(u).IsZero() {
		add(unit.ReasonMaximumExecutionTime, m.counts(u).Add(-u.Executed), most)
	}
	return ends
}

// mayRun is the bound of the run time; zero for none.
func (m *model) mayRun(u *modelUnit) time.Duration {
	q, most := m.queues[u.Queue].Execution, u.MaximumExecution
	if most == 0 {
		most = q.Default
	}
	if q.Most > 0 && most == 0 {
		most = q.Most
	}
	if q.Most > 0 {
		most = min(most, q.Most)
	}
	return most
}

// The timeouts of the properties.
const idleTimeout, unboundTimeout = 25 * time.Second, 40 * time.Second

var modelTimeouts = queue.Timeouts{Idle: idleTimeout, Unbound: unboundTimeout}

func (m *model) refuse(u *modelUnit) {
	u.refusedTo = m.now.Add(10 * time.Second << min(u.refusals, 5))
	u.refusals++
}

// settleDown computes who holds what, and which levels are remembered.
func (m *model) settleDown() {
	for uid := range m.gone {
		named := false
		for _, u := range m.units {
			named = named || (u.Consumer.UID == uid && namespaceOf(u.Key) == u.Consumer.Namespace)
		}
		if !named {
			delete(m.gone, uid)
		}
	}
	for _, u := range m.units {
		if !u.holds {
			u.onMin = u.NonPreemptible
		}
		switch u.at {
		case "waiting", "over":
			u.holds, u.held = false, resources.List{}
		case "admitted":
			u.holds = u.Quarantined || !m.without(u)
			u.held = u.says()
			if !u.holds {
				u.held = resources.List{}
			}
		case "resizing":
			u.held = u.says().Max(u.next)
		}
		if !u.holds {
			u.onMin = u.NonPreemptible
		}
		m.noteGrowth(u)
	}
	m.keepPlaces()
	m.forget()
}

// noteGrowth notes when a unit began to ask for more than it holds, and that it does not any more.
func (m *model) noteGrowth(u *modelUnit) {
	if !u.holds {
		u.growsSince = time.Time{}
	}
	if !m.mayResize(u) {
		return
	}
	if _, other := m.sizeWithoutAsking(u); other {
		return
	}
	_, _, grows := m.lacks(u)
	if !grows {
		u.growsSince = time.Time{}
	} else if u.growsSince.IsZero() {
		u.growsSince = m.now
	}
}

// keepPlaces has units with pods on nodes keep the place that they have, or had.
func (m *model) keepPlaces() {
	for key, u := range m.units {
		place := m.places[key]
		if u.holds || m.assigned(key) && !place.held {
			m.places[key] = modelPlace{queue: u.Queue, quota: u.Quota, held: u.holds}
		}
	}
	for key, pods := range m.pods {
		if _, kept := m.places[key]; !kept && m.assigned(key) {
			first := ""
			for _, p := range pods {
				if p.Assigned && (first == "" || p.Quota < first) {
					first = p.Quota
				}
			}
			m.places[key] = modelPlace{quota: first, unknown: true}
		}
	}
	for key := range m.places {
		if u := m.units[key]; (u == nil || !u.holds) && !m.assigned(key) {
			delete(m.places, key)
		}
	}
}

func (m *model) assigned(key string) (some bool) {
	for _, p := range m.pods[key] {
		some = some || p.Assigned
	}
	return some
}

// remnants are the places of units that hold nothing.
func (m *model) remnants() map[string]modelPlace {
	out := map[string]modelPlace{}
	for key, place := range m.places {
		if u := m.units[key]; u == nil || !u.holds {
			out[key] = place
		}
	}
	return out
}

// says is what the object of an admitted unit says that it holds.
func (u *modelUnit) says() resources.List {
	if u.Held.Len() == 0 && !u.Adopted && !u.Recorded {
		return u.Request
	}
	return u.Held
}

// forget the levels of quotas that went that nothing needs.
func (m *model) forget() {
	for again := true; again; {
		again = false
		for name := range m.former {
			needed := false
			for _, q := range m.quotas {
				needed = needed || q.Parent == name
			}
			for _, q := range m.former {
				needed = needed || q.Parent == name
			}
			for _, place := range m.places {
				needed = needed || place.quota == name
			}
			if !needed {
				delete(m.former, name)
				again = true
			}
		}
	}
}

func (m *model) setQuota(q Quota) {
	delete(m.former, q.Name)
	m.quotas[q.Name] = q
	m.forget()
}

func (m *model) deleteQuota(name string) {
	q, ok := m.quotas[name]
	if !ok {
		return
	}
	delete(m.quotas, name)
	m.former[name] = Quota{Name: name, Parent: q.Parent, Max: q.Max, Min: q.Min}
	for _, at := range m.path(name) {
		if m.level(at).Parent == name {
			m.former[name] = Quota{Name: name, Max: q.Max, Min: q.Min}
		}
	}
	m.forget()
}

func (m *model) level(name string) Quota {
	if q, ok := m.quotas[name]; ok {
		return q
	}
	return m.former[name]
}

// path follows the parents, also those of quotas that went.
func (m *model) path(quota string) []string {
	var path []string
	seen := map[string]bool{}
	for at := quota; at != "" && !seen[at]; at = m.level(at).Parent {
		seen[at] = true
		path = append(path, at)
	}
	return path
}

// without says that the job of a managed unit is known not to be there.
func (m *model) without(u *modelUnit) bool {
	if !u.ConsumerManaged || u.Consumer == (unit.Consumer{}) || u.Consumer.UID == "" || m.otherNamespace(u) {
		return false
	}
	if c, ok := m.live[u.Consumer.UID]; ok {
		return c.Name != u.Consumer.Name
	}
	return m.gone[u.Consumer.UID]
}

func (m *model) otherNamespace(u *modelUnit) bool {
	return u.Consumer.Namespace != "" && u.Consumer.Namespace != namespaceOf(u.Key)
}

// unfit units can never be admitted as they are.
func (m *model) unfit(u *modelUnit) bool {
	return u.Pods == 0 && u.Request.IsZero() || m.disbelieved(u)
}

// disbelieved units keep their held quota, whatever they ask for. A unit that asks for nothing gives it back.
func (m *model) disbelieved(u *modelUnit) bool {
	if u.Invalid != "" || u.Pods < 0 || m.otherNamespace(u) {
		return true
	}
	for _, it := range u.Request.Items() {
		if it.Amount < 0 || it.Amount > resources.Greatest {
			return true
		}
	}
	return false
}

// inLine units wait in their queue; its object or their quota may stop them.
func (m *model) inLine(u *modelUnit) bool {
	if u.at != "waiting" || m.unfit(u) || !u.Active || u.Deactivate != nil || u.Adopting || u.TemplatesWritten ||
		m.now.Before(u.RequeueAt) || m.now.Before(u.refusedTo) {
		return false
	}
	if !rulebook.Waits(u.Phase) && !rulebook.Holds(u.Phase) && !rulebook.Over(u.Phase) {
		return false
	}
	if u.ConsumerManaged && u.Consumer != (unit.Consumer{}) {
		if c, ok := m.live[u.Consumer.UID]; !ok || c.Name != u.Consumer.Name {
			return false
		}
	}
	return !m.duplicate(u)
}

// inside are the units in line within the bounds of their queue, after some are gone: first by namespace, then in all.
func (m *model) inside(u *modelUnit, gone map[string]bool) bool {
	q, ok := m.queues[u.Queue]
	if !m.insideNamespace(u, gone) {
		return false
	}
	if !ok || q.MaxPending < 0 {
		return true
	}
	ahead := int32(0)
	for _, other := range m.units {
		if other.Queue == u.Queue && m.inLine(other) && !gone[other.Key] && servedBefore(q.Policy, other.Unit, u.Unit) &&
			m.insideNamespace(other, gone) {
			ahead++
		}
	}
	return ahead < q.MaxPending
}

func (m *model) insideNamespace(u *modelUnit, gone map[string]bool) bool {
	q, ok := m.queues[u.Queue]
	if !ok || q.PerNamespace == nil || q.PerNamespace.MaxPending < 0 {
		return true
	}
	ahead := int32(0)
	for _, other := range m.units {
		if other.Queue == u.Queue && namespaceOf(other.Key) == namespaceOf(u.Key) && m.inLine(other) && !gone[other.Key] &&
			servedBefore(q.Policy, other.Unit, u.Unit) {
			ahead++
		}
	}
	return ahead < q.PerNamespace.MaxPending
}

// ahead says that the successor of a pod may go ahead of it: it is being deleted, and not for too long yet.
func (m *model) ahead(p Pod) bool {
	return p.Leaving && (!p.Assigned || m.now.Before(p.LeavingSince.Add(2*time.Minute)))
}

// sized units are admitted, and what they hold may change now.
func (m *model) sized(u *modelUnit) bool {
	return m.mayResize(u) && !m.now.Before(u.refusedTo)
}

func (m *model) mayResize(u *modelUnit) bool {
	_, goes := m.goes(u)
	return u.at == "admitted" && u.holds && !u.Quarantined && !m.disbelieved(u) && rulebook.Holds(u.Phase) && !goes
}

// podsOf sums the pods of a unit at its quota that are not leaving.
func (m *model) podsOf(u *modelUnit, count func(Pod) bool) map[string]int64 {
	sum := map[string]int64{}
	for _, p := range m.pods[u.Key] {
		if p.Quota == u.Quota && !m.ahead(p) && count(p) {
			for _, it := range p.Request.Items() {
				sum[it.Name] += it.Amount
			}
		}
	}
	return sum
}

// asksForMore picks the pods that a unit needs quota for: all of them, or none if it was admitted in part with fewer.
func (m *model) asksForMore(u *modelUnit) func(Pod) bool {
	n := int64(0)
	for _, p := range m.pods[u.Key] {
		if p.Quota == u.Quota && !m.ahead(p) {
			n++
		}
	}
	return func(Pod) bool { return u.Sizes == nil || n <= u.Pods }
}

// sizeInPods is how many pods a unit asks for, or has at its quota.
func (m *model) sizeInPods(u *modelUnit) int64 {
	n := int64(0)
	for _, p := range m.pods[u.Key] {
		if p.Quota == u.Quota && !m.ahead(p) {
			n++
		}
	}
	if u.Sizes != nil {
		return u.Pods
	}
	return max(u.Pods, n)
}

// toResize is what an admitted unit is to hold instead, if it need not ask for that.
func (m *model) toResize(u *modelUnit) (next map[string]int64, some bool) {
	if !m.sized(u) {
		return nil, false
	}
	return m.sizeWithoutAsking(u)
}

func (m *model) sizeWithoutAsking(u *modelUnit) (next map[string]int64, some bool) {
	all := m.podsOf(u, m.asksForMore(u))
	used := m.podsOf(u, func(p Pod) bool { return p.Assigned && !p.Leaving })
	anything := func(of map[string]int64) bool { return of["cpu"] != 0 || of["gpu"] != 0 }
	held := amountsOf(u.held)
	said := u.Held.Len() > 0 || u.Recorded
	if !said && u.Adopted && anything(used) {
		return used, true
	}
	if !said && !u.Adopted && anything(held) {
		return held, true
	}
	less, more := map[string]int64{}, map[string]int64{}
	smaller, greater, bound := false, false, true
	for _, k := range []string{"cpu", "gpu"} {
		request, _ := u.Request.Get(k)
		asked := max(request, all[k])
		less[k], more[k] = min(held[k], asked), max(held[k], asked)
		smaller = smaller || asked < held[k]
		greater = greater || asked > held[k]
		bound = bound && asked <= max(held[k], used[k])
	}
	switch {
	case u.Pods < u.HeldPods && smaller, m.sizeInPods(u) < u.HeldPods && !greater:
		return less, true
	case greater && bound:
		return more, true
	}
	return nil, false
}

// growth is the amount that an admitted unit waits for in its line, and the amount that it would hold then.
func (m *model) growth(u *modelUnit) (need, total resources.List, some bool) {
	if _, other := m.toResize(u); other || !m.sized(u) {
		return need, total, false
	}
	return m.lacks(u)
}

func (m *model) lacks(u *modelUnit) (need, total resources.List, some bool) {
	all := m.podsOf(u, m.asksForMore(u))
	used := m.podsOf(u, func(p Pod) bool { return p.Assigned })
	needs, totals := map[string]int64{}, map[string]int64{}
	for _, k := range []string{"cpu", "gpu"} {
		request, _ := u.Request.Get(k)
		held, _ := u.held.Get(k)
		totals[k] = max(held, request, all[k])
		if needs[k] = max(0, totals[k]-max(held, used[k])); needs[k] > 0 {
			some = true
		}
	}
	return resources.FromMap(needs), resources.FromMap(totals), some
}

func amountsOf(list resources.List) map[string]int64 {
	amounts := map[string]int64{}
	for _, it := range list.Items() {
		amounts[it.Name] = it.Amount
	}
	return amounts
}

// eligible units may be admitted, or get more, as soon as they fit.
func (m *model) eligible(u *modelUnit) bool {
	_, total, grows := m.growth(u)
	if !grows {
		total = leastOf(u.Unit)
	}
	if !grows && !m.inLine(u) {
		return false
	}
	q, ok := m.queues[u.Queue]
	if !ok || q.Held || q.Fault != nil || q.Policy == "Nonsense" || grows && m.unchecked(u) {
		return false
	}
	if q.Quotas != nil {
		found := false
		for _, name := range q.Quotas {
			found = found || name == u.Quota
		}
		if !found {
			return false
		}
	}
	path := m.path(u.Quota)
	if m.quotas[u.Quota].Closed {
		return false
	}
	for _, level := range path {
		if _, ok := m.quotas[level]; !ok {
			return false
		}
	}
	return m.mayEver(u.asIt(), total) && m.quotas[path[len(path)-1]].Parent == ""
}

// asIt is what a unit asks as.
func (u *modelUnit) asIt() unit.Unit {
	asks := u.Unit
	asks.NonPreemptible = u.onMin
	if u.holds {
		asks.Created = u.growsSince
	}
	return asks
}

// mayEver says that so much is within what the quotas of a unit may have at all.
func (m *model) mayEver(u unit.Unit, total resources.List) bool {
	for _, level := range m.path(u.Quota) {
		spec := m.quotas[level]
		for _, most := range spec.Max.Items() {
			if need, _ := total.Get(most.Name); need > most.Amount {
				return false
			}
		}
		for _, least := range spec.Min.Items() {
			if need, _ := total.Get(least.Name); u.NonPreemptible && need > least.Amount {
				return false
			}
		}
	}
	return true
}

// modelSize is one of the sizes of a unit.
type modelSize struct {
	request resources.List
	pods    int64
}

// sizesOf lists all sizes of a unit that has several, from the whole down. In a gang group it has the whole only.
func sizesOf(u unit.Unit) []modelSize {
	switch {
	case u.Sizes == nil:
		return nil
	case u.GangGroup != "":
		return sizesOfSets(u.Sizes.Sets())[:1]
	}
	return sizesOfSets(u.Sizes.Sets())
}

// sizesOfSets has a size for each number of pods less, which the pod sets share.
func sizesOfSets(sets []unit.PodSetSize) (sizes []modelSize) {
	spare := int64(0)
	for _, set := range sets {
		spare += set.Count - min(max(set.Least, 1), set.Count)
	}
	for less := int64(0); less <= spare; less++ {
		size := modelSize{}
		for _, set := range sets {
			of := set.Count - min(max(set.Least, 1), set.Count)
			n := set.Count
			if spare > 0 {
				n -= of * less / spare
			}
			amounts := map[string]int64{}
			for _, it := range set.Request.Items() {
				amounts[it.Name] = it.Amount
				if n < set.Count {
					amounts[it.Name] = (it.Amount*n + set.Count - 1) / set.Count
				}
			}
			size.request, size.pods = size.request.Add(resources.FromMap(amounts)), size.pods+n
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// leastOf is what a unit needs at the least to be admitted.
func leastOf(u unit.Unit) resources.List {
	sizes := sizesOf(u)
	if sizes == nil {
		return u.Request
	}
	return sizes[len(sizes)-1].request
}

// unwanted is why a unit must not be admitted, whatever its checks say and however long it has been.
func (m *model) unwanted(u *modelUnit) unit.Reason {
	_, live := m.live[u.Consumer.UID]
	switch {
	case m.otherNamespace(u):
		return unit.ReasonConsumerOtherNamespace
	case m.without(u) && live:
		return unit.ReasonConsumerUIDMismatch
	case m.without(u):
		return unit.ReasonConsumerNotFound
	case !u.Active:
		return unit.ReasonInactive
	case m.duplicate(u):
		return unit.ReasonDuplicateUnit
	case m.drained(u):
		return unit.ReasonQueueDrained
	case u.MovesTo != "" && !m.assigned(u.Key):
		return unit.ReasonQuotaChanged
	case m.unanswered(u):
		return unit.ReasonChecksChanged
	}
	return ""
}

// drained: its queue takes back what it has admitted, and its pods can be taken away.
func (m *model) drained(u *modelUnit) bool {
	return !m.keepsPods(u) && m.queues[u.Queue].Drains
}

// keepsPods: pods of the unit are on nodes, and nobody can take them away.
func (m *model) keepsPods(u *modelUnit) bool {
	return m.assigned(u.Key) && (u.Consumer == (unit.Consumer{}) || u.Unsuspendable)
}

// duplicate says that another unit stands for the job of this one.
func (m *model) duplicate(u *modelUnit) bool {
	if u.Misnamed {
		return true
	}
	if u.Consumer.UID == "" {
		return false
	}
	for _, other := range m.units {
		if other == u || other.at == "over" || other.Misnamed || (other.at == "waiting" && m.unfit(other)) ||
			!sameJob(other, u) {
			continue
		}
		if m.before(other, u) {
			return true
		}
	}
	return false
}

func sameJob(a, b *modelUnit) bool {
	x, y := a.Consumer, b.Consumer
	return namespaceOf(a.Key) == namespaceOf(b.Key) && x.UID == y.UID && x.Kind == y.Kind &&
		a.ConsumerManaged == b.ConsumerManaged &&
		(!a.ConsumerManaged || x.Name == y.Name)
}

// before says that one unit wins over another: first who came farthest.
func (m *model) before(a, b *modelUnit) bool {
	rank := func(u *modelUnit) int {
		switch {
		case u.at == "admitting":
			return 2
		case u.at == "waiting" && !m.unfit(u):
			return 1
		case u.at == "waiting" || u.at == "over":
			return 0
		}
		return 3
	}
	switch x, y := rank(a), rank(b); {
	case x != y:
		return x > y
	case a.OwnedByConsumer != b.OwnedByConsumer:
		return a.OwnedByConsumer
	case !a.Created.Equal(b.Created):
		return a.Created.Before(b.Created)
	case a.UID != b.UID:
		return a.UID < b.UID
	}
	return a.Key < b.Key
}
