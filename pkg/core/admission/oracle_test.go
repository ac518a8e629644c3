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
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// oracle decides in the simplest way: it sorts everything, recomputes everything from the input before every single
// admission, and compares each unit with every claim. It knows only the model.
type oracle struct {
	*model

	claimTimeout, claimAfter time.Duration
	// ended: a claim has, or one waits for long, since the last look at all that wait.
	ended bool
	// lines are what waited in each queue then, in order. first is the first that could rightfully get what it asks for.
	lines map[string][]oracleAsk
	first map[string]string
	// order of queues, and units of each by their indices, in the last look. Borrowers are found in this order, also
	// after a look that found somebody to wait for long.
	order   []queue.Spec
	byQueue map[string][]int
	// held is what units hold; admitted, in this run too.
	held map[string]oracleHold
	// left are the places that pods keep.
	left map[string]modelPlace
	// gone are those that this run has admitted.
	gone map[string]bool
	// missing is, of every unit that was looked at last, what has to be freed where ("level resource" or
	// "level/min resource").
	missing map[string]map[string]int64
}

type oracleHold struct {
	queue, quota   string
	amount         resources.List
	nonPreemptible bool
	expected       unit.Expected
}

// oracleAsk is the request of a unit. Request is only the missing part if the unit grows.
type oracleAsk struct {
	unit.Unit
	grows bool
	total resources.List
	pods  int64
}

// asIs is the unit with what it asks for in one of its sizes.
func (a oracleAsk) asIs(size modelSize) oracleAsk {
	a.Request, a.total, a.pods = size.request, size.request, size.pods
	return a
}

// oracleClaim has what is claimed by gate and resource.
type oracleClaim struct {
	u       oracleAsk
	queue   queue.Spec
	amounts map[string]int64
	// beyond: the unit goes beyond its share. Some pass its claim.
	beyond bool
}

// claim is the request of a unit at each gate where it is short. It is at most the amount that gates of that kind below
// can give. A unit that goes beyond its share claims on its whole path.
func (o *oracle) claim(
	u oracleAsk, q queue.Spec, short map[string]bool, r oracleReach, along map[string]bool,
) oracleClaim {
	c := oracleClaim{u, q, map[string]int64{}, r.beyond()}
	for _, k := range []string{"cpu", "gpu", resources.Jobs} {
		for _, ofMin := range []bool{false, true} {
			room := oracleNeed(u, k)
			for _, level := range o.path(u.Quota) {
				spec := o.quotas[level]
				gate := level
				if ofMin {
					gate = level + "/min"
				}
				if short[gate] || r.beyond() && (!ofMin || u.NonPreemptible) {
					c.amounts[gate+" "+k] = room
				}
				most, limited := spec.Min.Get(k)
				switch {
				case ofMin:
					inUse, _ := spec.NonPreemptibleUsed.Get(k)
					most -= inUse + o.outstanding(level, k, true)
				case r.saturated[level]:
					most, limited = 0, true
				case r.beyond():
					most, limited = o.wide(level, k, along), true
				default:
					if most, limited = spec.Limit.Get(k); limited {
						most -= o.inUseAt(level, k)
					}
				}
				if limited {
					room = min(room, max(0, most))
				}
			}
		}
	}
	return c
}

// count takes in what units hold.
func (o *oracle) count() {
	o.held = map[string]oracleHold{}
	for key, u := range o.units {
		if u.holds {
			o.held[key] = oracleHold{u.Queue, u.Quota, u.held, u.onMin, u.bound()}
		}
	}
	o.left = o.remnants()
}

// leftIn counts the places that pods keep in a queue, for units of one namespace or of all. Units that were admitted
// again in this run do not count.
func (o *oracle) leftIn(queue, namespace string) (n int) {
	for key, place := range o.left {
		if _, again := o.held[key]; !again && !place.unknown && place.queue == queue &&
			(namespace == "" || namespaceOf(key) == namespace) {
			n++
		}
	}
	return n
}

// oracleDecision has the keys of units in order. evict, letGo and resize happen without asking. admit and grow are
// those that greedy admission takes, waiting or holding quota already.
type oracleDecision struct{ evict, letGo, resize, admit, grow []string }

// decide has the model go on from there.
func (o *oracle) decide() (d oracleDecision) {
	o.settleDown() // time alone may have changed what units ask for, and a write in flight hides that
	for _, key := range o.keys() {
		u := o.units[key]
		if e, goes := o.goes(u); goes && !o.now.Before(u.refusedTo) {
			e.executed = o.hasRun(u, e)
			d.evict = append(d.evict, key)
			u.eviction = e
		}
	}
	slices.SortStableFunc(d.evict, func(a, b string) int { return o.units[b].Admitted.Compare(o.units[a].Admitted) })
	for _, key := range d.evict {
		u := o.units[key]
		u.at, u.attempt = "evicting", u.Attempts
		u.waitsAnew()
	}
	for _, key := range o.keys() {
		if o.toLetGo(o.units[key]) {
			d.letGo = append(d.letGo, key)
		}
	}
	for _, key := range d.letGo {
		u := o.units[key]
		u.at, u.attempt = "dequeuing", u.Attempts
		u.waitsAnew()
	}
	for _, key := range o.keys() {
		u := o.units[key]
		if next, some := o.toResize(u); some {
			d.resize = append(d.resize, key)
			u.at, u.attempt, u.next = "resizing", u.Attempts, resources.FromMap(next)
			u.waitsAnew()
			u.nextPods = o.sizeInPods(u)
		}
	}
	o.settleDown()
	for _, a := range o.greedy() {
		u := o.units[a.Key]
		u.waitsAnew()
		if a.grows {
			d.grow = append(d.grow, a.Key)
			u.at, u.attempt, u.next, u.nextPods = "resizing", u.Attempts, a.total, o.sizeInPods(u)
			continue
		}
		d.admit = append(d.admit, a.Key)
		u.at, u.attempt, u.holds, u.held = "admitting", u.Attempts+1, true, a.total
		u.gets, u.getsPods, u.asks = a.total, a.pods, checkNames(o.checksOf(u))
	}
	o.settleDown()
	return d
}

// greedy returns what greedy admission takes, in order.
func (o *oracle) greedy() []oracleAsk {
	o.count()
	var waiting []oracleAsk
	for _, key := range o.keys() {
		if u := o.units[key]; o.eligible(u) {
			a := oracleAsk{Unit: u.asIt(), total: u.Request, pods: u.Pods}
			if sizes := sizesOf(u.Unit); sizes != nil && u.at == "waiting" {
				a = a.asIs(sizes[len(sizes)-1]) // that is what it waits for
			}
			if need, total, grows := o.growth(u); grows {
				a.Request, a.total, a.grows = need, total, true
			}
			waiting = append(waiting, a)
		}
	}
	var out []oracleAsk
	gone := map[string]bool{}
	o.gone = gone
	for {
		var inside []oracleAsk
		for _, a := range waiting {
			if !gone[a.Key] && (a.grows || o.inside(o.units[a.Key], gone)) {
				inside = append(inside, a)
			}
		}
		next, fits := o.next(inside)
		if next == nil {
			next, fits = o.lend(inside)
		}
		if next == nil {
			if !o.noteFirst() {
				return out
			}
			continue
		}
		for _, u := range next {
			u = o.greatest(u, fits)
			o.held[u.Key] = oracleHold{u.Queue, u.Quota, u.total, u.NonPreemptible, u.bound()}
			out = append(out, u)
			gone[u.Key] = true
		}
	}
}

// noteFirst finds who is first in each queue, and says whether the order of queues may be another one.
func (o *oracle) noteFirst() (moved bool) {
	moved, o.ended = o.ended, false
	for name, units := range o.lines {
		before := o.overdue(name, units)
		delete(o.first, name)
		if i := slices.IndexFunc(units, func(u oracleAsk) bool { return !o.tooLarge(u) }); i >= 0 {
			o.first[name] = units[i].Key
		}
		moved = moved || !o.overdue(name, units).Equal(before)
	}
	return moved
}

// note begins the time of one that waits at the front.
func (o *oracle) note(ask oracleAsk) {
	u := o.units[ask.Key]
	if o.claimAfter == 0 && (o.claimTimeout == 0 || !o.blocks(o.queues[u.Queue], ask)) {
		return
	}
	if u.claimsSince.IsZero() {
		u.claimsSince = o.now
	}
	if o.claimAfter > 0 && !u.overlong && !o.now.Before(u.claimsSince.Add(o.claimAfter)) {
		u.overlong, o.ended = true, true
	}
}

// greatest is a unit in the greatest size that fits. One of a gang group has no other.
func (o *oracle) greatest(u oracleAsk, fits func(oracleAsk) bool) oracleAsk {
	if u.grows || u.GangGroup != "" {
		return u
	}
	for _, size := range sizesOf(u.Unit) {
		if other := u.asIs(size); o.mayEver(u.Unit, size.request) && fits(other) {
			return other
		}
	}
	return u
}

// next is the first unit that fits with the claims ahead of it, together with the units that are admitted with it. fits
// says of it whether another size fits.
func (o *oracle) next(waiting []oracleAsk) (found []oracleAsk, fits func(oracleAsk) bool) {
	byQueue := map[string][]int{}
	for i, u := range waiting {
		byQueue[u.Queue] = append(byQueue[u.Queue], i)
	}
	r := newOracleRound()
	seen := map[string]bool{}
	o.missing = map[string]map[string]int64{}
	o.order, o.byQueue = o.queueOrder(waiting, byQueue), byQueue
	for _, q := range o.order {
		for _, i := range byQueue[q.Name] {
			u := waiting[i]
			if o.isShutOut(u) || o.noPlace(q, u, r, seen) {
				continue
			}
			if o.isTogether(u) {
				if o.meet(r, u) {
					return r.met[namespaceOf(u.Key)+u.GangGroup], nil
				}
				continue
			}
			short, reach := o.short(u, r.claims)
			if len(short) == 0 {
				return []oracleAsk{u}, func(other oracleAsk) bool {
					short, _ := o.short(other, r.claims)
					return len(short) == 0
				}
			}
			if alike := o.alike(q, u); !seen[alike] {
				seen[alike] = true
				o.mayClaim(r, q, u, short, reach)
			}
		}
	}
	o.lines = map[string][]oracleAsk{}
	for name, units := range byQueue {
		for _, i := range units {
			o.lines[name] = append(o.lines[name], waiting[i])
		}
	}
	return nil, nil
}

// mayClaim has a unit claim that is the first of those alike, unless its line has a claim. It says whether the unit
// blocks.
func (o *oracle) mayClaim(
	r *oracleRound, q queue.Spec, u oracleAsk, short map[string]bool, reach oracleReach,
) (blocks bool) {
	if reach.tooLarge {
		return false
	}
	if !o.blocks(q, u) {
		o.note(u)
	}
	own := u.Queue + " " + u.Quota
	if !o.claims(q, u) || r.claimed[own] {
		return o.blocks(q, u) && o.claims(q, u)
	}
	_, along := o.pathsOf([]oracleAsk{u})
	r.claimed[own] = true
	r.claims = append(r.claims, o.claim(u, q, short, reach, along))
	o.note(u)
	r.place(u)
	return true
}

// oracleRound is one look at all that wait.
type oracleRound struct {
	claims  []oracleClaim
	claimed map[string]bool        // queue and quota
	met     map[string][]oracleAsk // by gang group
	places  map[string]int         // that are claimed, by queue, and by queue and namespace
}

func newOracleRound() *oracleRound {
	return &oracleRound{claimed: map[string]bool{}, met: map[string][]oracleAsk{}, places: map[string]int{}}
}

func (r *oracleRound) place(u oracleAsk) {
	if !u.grows {
		r.places[u.Queue]++
		r.places[u.Queue+" "+namespaceOf(u.Key)]++
	}
}

// members are the units with which a unit is admitted: the oldest of each gang of which none holds quota. They are not
// whole if a gang has no unit. But if all have been admitted before, a gang without units has ended or never existed.
func (o *oracle) members(u oracleAsk) (keys []string, whole bool) {
	kept, gone := false, false
	for _, gang := range gangsIn(u.GangGroup) {
		held, present, first := false, false, ""
		for key, other := range o.units {
			if other.GangGroup != u.GangGroup || namespaceOf(other.Key) != namespaceOf(u.Key) ||
				!slices.Contains(gangsIn(other.Gangs), gang) {
				continue
			}
			present = present || other.at != "over"
			if _, holds := o.held[key]; holds {
				held = true
			} else if other.at == "waiting" && o.inLine(other) && o.inside(other, o.gone) &&
				(first == "" || servedBefore("FIFO", other.Unit, o.units[first].Unit)) {
				first = key
			}
		}
		switch {
		case held:
		case first == "":
			kept, gone = kept || present, gone || !present
		case !slices.Contains(keys, first):
			keys = append(keys, first)
		}
	}
	for _, key := range append([]string{u.Key}, keys...) {
		if o.units[key].Attempts == 0 && gone {
			kept = true
		}
	}
	return keys, !kept
}

func (o *oracle) isTogether(u oracleAsk) bool {
	if u.GangGroup == "" || u.grows {
		return false
	}
	keys, whole := o.members(u)
	return len(keys) > 0 || !whole
}

// meet says whether a unit is the last of those that are admitted together, and they fit. If it is the last and they do
// not, they claim.
func (o *oracle) meet(r *oracleRound, u oracleAsk) (fit bool) {
	keys, whole := o.members(u)
	gangGroup := namespaceOf(u.Key) + u.GangGroup
	if !whole || !slices.Contains(keys, u.Key) {
		return false
	}
	r.met[gangGroup] = append(r.met[gangGroup], u)
	met := r.met[gangGroup]
	if len(met) < len(keys) {
		return false
	}
	room := o.roomFor(met, r)
	if room && o.neverTogether(met) {
		return false
	}
	if !room {
		o.waitForPlaces(r, met)
		return false
	}
	short, reach := o.shortTogether(met, r.claims)
	if len(short) == 0 {
		slices.SortFunc(met, func(a, b oracleAsk) int { return strings.Compare(a.Key, b.Key) })
		return true
	}
	before := maps.Clone(r.claimed)
	_, along := o.pathsOf(met)
	for _, m := range met {
		own, at := m.Queue+" "+m.Quota, reach.tooLarge
		if at {
			continue
		}
		for _, level := range o.path(m.Quota) {
			at = at || short[level] || m.NonPreemptible && short[level+"/min"]
		}
		if !o.blocks(o.queues[m.Queue], m) {
			o.note(m)
		}
		if o.claims(o.queues[m.Queue], m) && !before[own] && at {
			r.claimed[own] = true
			mine := map[string]bool{}
			for gate := range short {
				mine[gate] = m.NonPreemptible || !strings.HasSuffix(gate, "/min")
			}
			r.claims = append(r.claims, o.claim(m, o.queues[m.Queue], mine, reach, along))
			o.note(m)
			r.place(m)
		}
	}
	return false
}

// waitForPlaces has those claim places that are admitted together, and that could be if there were places for all.
func (o *oracle) waitForPlaces(r *oracleRound, met []oracleAsk) {
	levels, _ := o.pathsOf(met)
	if o.neverTogether(met) || o.tooLargeTogether(met, levels) {
		return
	}
	for _, m := range met {
		if !o.blocks(o.queues[m.Queue], m) {
			o.note(m)
		}
		if o.claims(o.queues[m.Queue], m) {
			o.note(m)
			r.place(m)
		}
	}
}

// roomFor: with all of them no queue has more units admitted than it may have, those ahead that claim places included.
func (o *oracle) roomFor(met []oracleAsk, r *oracleRound) bool {
	all, mine := map[string]int32{}, map[string]int32{}
	for _, m := range met {
		all[m.Queue]++
		mine[m.Queue]++
	}
	for _, q := range o.queues {
		namespace := namespaceOf(met[0].Key)
		all[q.Name] += int32(o.leftIn(q.Name, "") + r.places[q.Name])
		mine[q.Name] += int32(o.leftIn(q.Name, namespace) + r.places[q.Name+" "+namespace])
	}
	for key, h := range o.held {
		all[h.queue]++
		if namespaceOf(key) == namespaceOf(met[0].Key) {
			mine[h.queue]++
		}
	}
	for _, m := range met {
		q := o.queues[m.Queue]
		if q.MaxAdmitted >= 0 && all[m.Queue] > q.MaxAdmitted ||
			q.PerNamespace != nil && q.PerNamespace.MaxAdmitted >= 0 && mine[m.Queue] > q.PerNamespace.MaxAdmitted {
			return false
		}
	}
	return true
}

// sumAt is what those of them ask for that have to keep a gate.
func (o *oracle) sumAt(met []oracleAsk, level string, ofMin bool, resource string) (sum int64, some, leaf bool) {
	for _, m := range met {
		if slices.Contains(o.path(m.Quota), level) && (m.NonPreemptible || !ofMin) {
			sum, some, leaf = sum+oracleNeed(m, resource), true, leaf || m.Quota == level
		}
	}
	return sum, some, leaf
}

func (o *oracle) neverTogether(met []oracleAsk) bool {
	for level, spec := range o.quotas {
		if sum, some, _ := o.sumAt(met, level, false, resources.Jobs); some {
			if most, named := spec.Limit.Get(resources.Jobs); named && sum > most {
				return true
			}
		}
		for _, k := range []string{"cpu", "gpu"} {
			if sum, some, _ := o.sumAt(met, level, false, k); some {
				if most, named := spec.Max.Get(k); named && sum > most {
					return true
				}
			}
			if sum, some, _ := o.sumAt(met, level, true, k); some {
				if least, named := spec.Min.Get(k); named && sum > least {
					return true
				}
			}
		}
	}
	return false
}

func (o *oracle) shortTogether(met []oracleAsk, claims []oracleClaim) (map[string]bool, oracleReach) {
	var reach oracleReach
	short, missing := o.together(met, claims)
	if len(short) > 0 {
		levels, _ := o.pathsOf(met)
		reach = o.reach(met, levels, claims)
		more, lacks := o.shortBeyond(met, claims)
		alone, _ := o.together(met, nil)
		if reach.beyond() || !reach.exceeds && len(alone) == 0 && len(more) == 0 {
			short, missing = more, lacks
		}
	}
	for _, m := range met {
		o.missing[m.Key] = missing
	}
	return short, reach
}

// together lists the gates where units do not fit together within their shares.
func (o *oracle) together(met []oracleAsk, claims []oracleClaim) (short map[string]bool, missing map[string]int64) {
	short, missing = map[string]bool{}, map[string]int64{}
	compare := func(gate, level string, ofMin bool, limits, used resources.List) {
		for _, limit := range limits.Items() {
			need, some, leaf := o.sumAt(met, level, ofMin, limit.Name)
			inUse, _ := used.Get(limit.Name)
			free := limit.Amount - inUse - o.outstanding(level, limit.Name, ofMin)
			claimed := o.claimed(gate, limit.Name, claims)
			switch {
			case !some:
			case need > 0 && need > free-claimed:
				short[gate], missing[gate+" "+limit.Name] = true, need+claimed-free
			case leaf && need == 0 && free < 0:
				short[gate], missing[gate+" "+limit.Name] = true, -free
			}
		}
	}
	for level, spec := range o.quotas {
		compare(level, level, false, spec.Limit, spec.Used)
		compare(level+"/min", level, true, spec.Min, spec.NonPreemptibleUsed)
	}
	return short, missing
}

// queueOrder sorts the units of each queue and then the queues.
func (o *oracle) queueOrder(waiting []oracleAsk, byQueue map[string][]int) []queue.Spec {
	type ranked struct {
		overdue        time.Time
		queue          queue.Spec
		byMin, byLimit float64
		head           oracleAsk
	}
	var all []ranked
	for name, units := range byQueue {
		q := o.queues[name]
		sort.Slice(units, func(a, b int) bool {
			return servedBefore(q.Policy, waiting[units[a]].Unit, waiting[units[b]].Unit)
		})
		head := waiting[units[0]]
		r := ranked{queue: q, head: head}
		spec := o.quotas[head.Quota]
		for _, k := range []string{"cpu", "gpu"} {
			used, _ := spec.Used.Get(k)
			used += o.outstanding(head.Quota, k, false)
			if used <= 0 {
				continue
			}
			if least, _ := spec.Min.Get(k); least > 0 {
				r.byMin = math.Min(1, math.Max(r.byMin, float64(used)/float64(least)))
			} else {
				r.byMin = 1
			}
			if most, ok := spec.Limit.Get(k); ok && most > 0 {
				r.byLimit = math.Max(r.byLimit, float64(used)/float64(most))
			} else if ok {
				r.byLimit = math.Inf(1)
			}
		}
		ordered := make([]oracleAsk, len(units))
		for i, at := range units {
			ordered[i] = waiting[at]
		}
		r.overdue = o.overdue(name, ordered)
		all = append(all, r)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		switch {
		case a.queue.Priority != b.queue.Priority:
			return a.queue.Priority > b.queue.Priority
		case !a.overdue.Equal(b.overdue):
			return !a.overdue.IsZero() && (b.overdue.IsZero() || a.overdue.Before(b.overdue))
		case a.byMin != b.byMin:
			return a.byMin < b.byMin
		case a.byLimit != b.byLimit:
			return a.byLimit < b.byLimit
		case !a.head.Created.Equal(b.head.Created):
			return a.head.Created.Before(b.head.Created)
		}
		return a.queue.Name < b.queue.Name
	})
	out := make([]queue.Spec, len(all))
	for i := range all {
		out[i] = all[i].queue
	}
	return out
}

// servedBefore says whether a is ahead of b in a queue of this policy.
func servedBefore(policy string, a, b unit.Unit) bool {
	item := func(u unit.Unit) rulebook.Unit {
		return rulebook.Unit{Priority: u.Priority, Created: u.Created, UID: u.UID}
	}
	return rulebook.Ahead(policy, item(a), item(b)) != ""
}

func (o *oracle) blocks(q queue.Spec, u oracleAsk) bool {
	return q.Policy == "FIFO" || q.Policy == "Block" || (q.Policy == "Intelligent" && u.Priority >= q.Threshold)
}

// noPlace says that a queue has no place for a unit: others hold quota there, or claim places ahead. No claim counts
// for one behind another that is alike: both wait for the same.
func (o *oracle) noPlace(q queue.Spec, u oracleAsk, r *oracleRound, seen map[string]bool) bool {
	if seen[o.alike(q, u)] {
		r = newOracleRound()
	}
	return !u.grows && (o.full(q, r) || o.fullFor(q, u, r))
}

func (o *oracle) full(q queue.Spec, r *oracleRound) bool {
	n := o.leftIn(q.Name, "") + r.places[q.Name]
	for _, h := range o.held {
		if h.queue == q.Name {
			n++
		}
	}
	return q.MaxAdmitted >= 0 && n >= int(q.MaxAdmitted)
}

func (o *oracle) fullFor(q queue.Spec, u oracleAsk, r *oracleRound) bool {
	n := o.leftIn(q.Name, namespaceOf(u.Key)) + r.places[q.Name+" "+namespaceOf(u.Key)]
	for key, h := range o.held {
		if h.queue == q.Name && namespaceOf(key) == namespaceOf(u.Key) {
			n++
		}
	}
	return q.PerNamespace != nil && q.PerNamespace.MaxAdmitted >= 0 && n >= int(q.PerNamespace.MaxAdmitted)
}

// short lists the gates ("level" or "level/min") where the unit does not fit together with the claims.
func (o *oracle) short(u oracleAsk, claims []oracleClaim) (map[string]bool, oracleReach) {
	var reach oracleReach
	short, missing := o.withinShares(u, claims)
	if len(short) > 0 {
		reach = o.reach([]oracleAsk{u}, o.path(u.Quota), claims)
		more, lacks := o.shortBeyond([]oracleAsk{u}, claims)
		alone, _ := o.withinShares(u, nil)
		switch {
		case o.behind(claims, u):
			reach.exceeds = false
		case reach.beyond(), !reach.exceeds && len(alone) == 0 && len(more) == 0:
			short, missing = more, lacks
		}
	}
	o.missing[u.Key] = missing
	return short, reach
}

// withinShares lists the gates where a unit does not fit within its shares.
func (o *oracle) withinShares(u oracleAsk, claims []oracleClaim) (short map[string]bool, missing map[string]int64) {
	short, missing = map[string]bool{}, map[string]int64{}
	compare := func(gate, level string, leaf, nonPreemptible bool, limits, used resources.List) {
		for _, limit := range limits.Items() {
			inUse, _ := used.Get(limit.Name)
			free := limit.Amount - inUse - o.outstanding(level, limit.Name, nonPreemptible)
			need := oracleNeed(u, limit.Name)
			claimed := o.claimed(gate, limit.Name, o.binding(claims, u, level))
			if need > 0 && need > free-claimed {
				short[gate], missing[gate+" "+limit.Name] = true, need+claimed-free
			}
			if leaf && need == 0 && free < 0 {
				short[gate], missing[gate+" "+limit.Name] = true, -free
			}
		}
	}
	for i, level := range o.path(u.Quota) {
		spec := o.quotas[level]
		compare(level, level, i == 0, false, spec.Limit, spec.Used)
		if u.NonPreemptible {
			compare(level+"/min", level, i == 0, true, spec.Min, spec.NonPreemptibleUsed)
		}
	}
	return short, missing
}

// oracleRow is what lend knows of a waiting unit: where it is short, and which claims are ahead of it.
type oracleRow struct {
	u           oracleAsk
	short       map[string]bool
	ahead       []oracleClaim
	head, claim bool // the first of all that are alike; the one of its line that claims
	blocks      bool
	beyond      bool // goes beyond its share
}

// rows lists what waits in queues that are not full, in the order in which next has just looked at it.
func (o *oracle) rows(waiting []oracleAsk) (rows []oracleRow) {
	round := newOracleRound()
	seen, blocking := map[string]bool{}, map[string]bool{}
	for _, q := range o.order {
		for _, i := range o.byQueue[q.Name] {
			u := waiting[i]
			if o.isShutOut(u) || o.noPlace(q, u, round, seen) {
				continue
			}
			if o.isTogether(u) { // such units neither borrow nor keep others from borrowing, except by their claims
				o.meet(round, u)
				continue
			}
			short, reach := o.short(u, round.claims)
			r := oracleRow{
				u: u, short: short, ahead: round.claims[:len(round.claims):len(round.claims)], beyond: reach.beyond(),
			}
			alike := o.alike(q, u)
			if r.head = !seen[alike]; r.head {
				before := len(round.claims)
				blocking[alike] = o.mayClaim(round, q, u, short, reach)
				r.claim = len(round.claims) > before
			}
			seen[alike], r.blocks = true, blocking[alike]
			rows = append(rows, r)
		}
	}
	return rows
}

// isShutOut: a filter of an extension stops the unit. It claims nothing, and keeps nobody from borrowing.
func (o *oracle) isShutOut(u oracleAsk) bool {
	for _, kind := range doorKinds {
		if o.shut[kind(u.Unit)] {
			return true
		}
	}
	return false
}

// alike is the same for units that are looked at together.
func (o *oracle) alike(q queue.Spec, u oracleAsk) string {
	namespace, alone := "", ""
	if u.GangGroup != "" && !u.grows {
		alone = u.Key
	}
	if q.PerNamespace != nil && q.PerNamespace.MaxAdmitted >= 0 {
		namespace = namespaceOf(u.Key)
	}
	filters := ""
	for _, kind := range doorKinds {
		if o.shut != nil {
			filters += kind(u.Unit)
		}
	}
	return fmt.Sprint(filters, namespace, " ", u.Queue, " ", u.Quota, u.Request.Key(), u.NonPreemptible, o.blocks(q, u),
		u.grows, u.total.Key(), sizesOf(u.Unit), alone)
}

// claims says whether a unit that is short may claim now.
func (o *oracle) claims(q queue.Spec, u oracleAsk) bool {
	begin := o.units[u.Key].claimsSince
	switch {
	case o.blocks(q, u) && begin.IsZero():
		return true
	case o.blocks(q, u):
	case begin.IsZero() || o.claimAfter == 0 || o.now.Before(begin.Add(o.claimAfter)):
		return false
	default:
		begin = begin.Add(o.claimAfter)
	}
	if o.claimTimeout == 0 || o.now.Before(begin.Add(o.claimTimeout)) {
		return true
	}
	m := o.units[u.Key]
	o.ended, m.claimEnded = o.ended || m.overlong && !m.claimEnded, true
	return false
}

// overdue is since when the unit waits that was first of a queue when all were looked at last, if that is long.
func (o *oracle) overdue(queue string, units []oracleAsk) (since time.Time) {
	for _, u := range units {
		if m := o.units[u.Key]; u.Key == o.first[queue] && m.overlong && !m.claimEnded {
			since = m.claimsSince
		}
	}
	return since
}

// lend is the first unit that may borrow, when nobody fits within the limits; fits as that of next.
func (o *oracle) lend(waiting []oracleAsk) (found []oracleAsk, fits func(oracleAsk) bool) {
	if len(waiting) == 0 {
		return nil, nil
	}
	rows := o.rows(waiting)
	shut := map[string]bool{}
	for _, r := range rows {
		for _, level := range o.path(r.u.Quota)[1:] {
			shut[level] = shut[level] || o.entitledAt(r, level)
		}
	}
	asked := map[string]map[string]int64{}
	for _, r := range rows {
		for _, level := range o.path(r.u.Quota) {
			if asked[level] == nil {
				asked[level] = o.asked(level, map[string]bool{})
			}
		}
		if o.mayBorrow(r, shut, asked) {
			return []oracleAsk{r.u}, func(other oracleAsk) bool {
				r.u = other
				sizes := sizesOf(other.Unit)
				least := other.pods == sizes[len(sizes)-1].pods
				return (least || !other.NonPreemptible) && o.mayBorrow(r, shut, asked)
			}
		}
	}
	return nil, nil
}

// entitledAt says whether a unit is within its limits on all levels and waits for what is in use there, and not below.
func (o *oracle) entitledAt(r oracleRow, level string) bool {
	for _, at := range o.path(r.u.Quota) {
		for _, limit := range o.quotas[at].Limit.Items() {
			if oracleNeed(r.u, limit.Name) > limit.Amount {
				return false
			}
		}
	}
	if !r.head || r.shortOfMin() || r.beyond {
		return false
	}
	for _, at := range o.path(r.u.Quota) {
		if r.short[at] {
			return at == level && o.shortAt(r.u, at)
		}
	}
	return false
}

func (r oracleRow) shortOfMin() bool {
	for gate := range r.short {
		if strings.HasSuffix(gate, "/min") {
			return true
		}
	}
	return false
}

// shortAt says whether a unit is short at a level, claims aside.
func (o *oracle) shortAt(u oracleAsk, level string) bool {
	spec := o.quotas[level]
	for _, limit := range spec.Limit.Items() {
		inUse, _ := spec.Used.Get(limit.Name)
		free := limit.Amount - inUse - o.outstanding(level, limit.Name, false)
		if need := oracleNeed(u, limit.Name); (need > 0 && need > free) || (level == u.Quota && need == 0 && free < 0) {
			return true
		}
	}
	return false
}

func (o *oracle) mayBorrow(r oracleRow, shut map[string]bool, asked map[string]map[string]int64) bool {
	if (r.blocks && !r.claim) || r.shortOfMin() {
		return false
	}
	shared := false
	for i, level := range o.path(r.u.Quota) {
		spec := o.quotas[level]
		shared = shared || spec.Shared
		for _, c := range r.ahead {
			path := o.path(c.u.Quota)
			shut[level] = shut[level] || c.beyond && slices.Contains(path[:len(path)-1], level)
		}
		if shut[level] {
			return false
		}
		for _, limit := range spec.Limit.Items() {
			most := limit.Amount
			if m, ok := spec.Max.Get(limit.Name); ok && spec.Shared {
				most = m
			}
			inUse, _ := spec.Used.Get(limit.Name)
			inUse += o.outstanding(level, limit.Name, false)
			free := most - max(inUse, asked[level][limit.Name])
			need := oracleNeed(r.u, limit.Name)
			if need == 0 && i == 0 && free < 0 {
				return false
			}
			for _, c := range r.ahead {
				if need > 0 && slices.Contains(o.path(c.u.Quota), level) {
					free -= oracleNeed(c.u, limit.Name)
				}
			}
			if need > 0 && need > free {
				return false
			}
		}
	}
	return shared
}

// asked sums what is asked for at a level and below if nobody waits.
func (o *oracle) asked(level string, seen map[string]bool) map[string]int64 {
	seen[level] = true
	spec := o.level(level)
	sum := map[string]int64{}
	for _, k := range []string{"cpu", "gpu"} {
		own, _ := spec.Requested.Get(k)
		for key, u := range o.units {
			if h, holds := o.held[key]; holds && h.quota == level {
				amount, _ := h.amount.Get(k)
				missing := h.expected.Pods
				var all, assigned int64
				for _, p := range o.pods[key] {
					if p.Quota == level && !o.ahead(p) {
						r, _ := p.Request.Get(k)
						all += r
						if p.Assigned {
							assigned += r
						}
						missing--
					}
				}
				own += mostOutstanding(h.expected, amount-all, k, missing) - max(0, all-max(amount, assigned))
			} else if !holds && u.at == "waiting" && u.Quota == level {
				for _, p := range o.pods[key] {
					if r, _ := p.Request.Get(k); p.Quota == level && !p.Assigned && !o.ahead(p) {
						own -= r
					}
				}
			}
		}
		sum[k] = max(own, 0)
	}
	for child := range o.children(level) {
		if !seen[child] {
			for k, v := range o.asked(child, seen) {
				sum[k] += v
			}
		}
	}
	for k := range sum {
		if least, _ := spec.Min.Get(k); spec.KeepsMin {
			sum[k] = max(sum[k], least)
		}
		if most, ok := spec.Max.Get(k); ok && spec.Parent != "" {
			sum[k] = min(sum[k], most)
		}
	}
	return sum
}

func (o *oracle) children(level string) map[string]bool {
	out := map[string]bool{}
	for name, q := range o.quotas {
		if q.Parent == level {
			out[name] = true
		}
	}
	for name, q := range o.former {
		if q.Parent == level {
			out[name] = true
		}
	}
	return out
}

func oracleNeed(u oracleAsk, resource string) int64 {
	switch {
	case resource == resources.Jobs && u.grows:
		return 0
	case resource == resources.Jobs:
		return 1
	}
	amount, _ := u.Request.Get(resource)
	return amount
}

func (o *oracle) claimed(gate, resource string, claims []oracleClaim) (sum int64) {
	for _, c := range claims {
		sum += c.amounts[gate+" "+resource]
	}
	return sum
}

// outstanding sums, over all holders at or below the level, what they hold beyond their assigned pods.
func (o *oracle) outstanding(level, resource string, nonPreemptible bool) (sum int64) {
	for key, place := range o.left {
		if _, again := o.held[key]; !again && resource == resources.Jobs && !nonPreemptible &&
			slices.Contains(o.path(place.quota), level) {
			sum++
		}
	}
	for key, h := range o.held {
		if nonPreemptible && !h.nonPreemptible {
			continue
		}
		below := false
		for _, at := range o.path(h.quota) {
			below = below || at == level
		}
		if !below {
			continue
		}
		if resource == resources.Jobs {
			sum++
			continue
		}
		amount, _ := h.amount.Get(resource)
		missing := h.expected.Pods
		for _, p := range o.pods[key] {
			if p.Assigned && !o.ahead(p) && p.Quota == h.quota && (!nonPreemptible || p.NonPreemptible) {
				r, _ := p.Request.Get(resource)
				amount -= r
				missing--
			}
		}
		sum += mostOutstanding(h.expected, amount, resource, missing)
	}
	return sum
}

// bound is what is known of the pods of a unit that holds quota: they are at least as many as its object says.
func (u *modelUnit) bound() unit.Expected { return (&oracleAsk{Unit: u.Unit}).bound() }

func (a *oracleAsk) bound() unit.Expected {
	x := a.Expected
	if x.Pods > 0 && x.Pods < a.HeldPods {
		x.Pods = a.HeldPods
	}
	return x
}

// mostOutstanding bounds an amount by what the missing pods can ask for.
func mostOutstanding(x unit.Expected, amount int64, resource string, missing int64) int64 {
	each, named := x.Each.Get(resource)
	switch {
	case x.Pods <= 0:
	case missing <= 0:
		amount = 0
	case named:
		amount = min(amount, each*missing)
	}
	return max(amount, 0)
}
