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
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Units of a namespace whose gangs Koordinator binds together, or not at all, are admitted together, or not at all: a
// part of them would hold quota for pods that wait for the others. (What follows says party for a gang group, since
// units that are decided alike are a group here.)
//
//   - A party is whole once each of its gangs has a unit that waits in line or holds quota. Before, its units claim
//     nothing. Where several units wait for one gang, the first that was made stands for it.
//   - Those that stand for gangs of which no unit holds quota are its members. A whole party is decided where the pass
//     meets the last of its members: what they ask for together is compared with every limit of all of them, beside the
//     claims ahead. If it fits, all are admitted. If not, those that block claim there, each as it would alone.
//   - A party that is not met as a whole waits, and claims nothing: a member is in a full or held queue, or a check
//     stops it. It neither borrows nor keeps others from borrowing.
//   - What is admitted stays admitted. A unit of a party whose other gangs hold quota is decided alone: its write
//     failed, or it has lost its admission.
//   - A member is admitted whole, whatever sizes it may have: UpsertUnit takes it as of one size.
//   - Members that have all been admitted before wait for no gang of which there is no unit any more: it is over, and
//     they are to end as well.

// partyKey names the party of a unit and the gangs of its own; zero for a unit in none.
type partyKey struct{ party, gangs string }

func (in *Unit) partyKey() partyKey {
	if in.GangGroup == "" {
		return partyKey{}
	}
	return partyKey{in.namespace() + " " + in.GangGroup, in.Gangs}
}

// parties are those of all units that are not over.
type parties struct {
	records map[string]*partyRecord
	// seen are the units of parties that are not over, as they were counted.
	seen map[*unit]partyKey
}

func newParties() parties {
	return parties{records: map[string]*partyRecord{}, seen: map[*unit]partyKey{}}
}

type partyRecord struct {
	// present counts the units that are not over, and holding those that hold quota, by gang. waiting are those in line,
	// by gang, the first made first.
	present, holding map[string]int
	waiting          map[string]*queue.Tree[*unit]
}

func (ps *parties) record(party string) *partyRecord {
	if ps.records[party] == nil {
		ps.records[party] = &partyRecord{
			present: map[string]int{}, holding: map[string]int{}, waiting: map[string]*queue.Tree[*unit]{},
		}
	}
	return ps.records[party]
}

func (ps *parties) prune(party string) {
	if r := ps.records[party]; len(r.present) == 0 && len(r.holding) == 0 && len(r.waiting) == 0 {
		delete(ps.records, party)
	}
}

// see takes in what a unit is now, and says whether a party may be another one for that.
func (ps *parties) see(u *unit) (news bool) {
	before, now := ps.seen[u], u.spec.partyKey()
	if u.stage == stageDone {
		now = partyKey{}
	}
	if before == now {
		return false
	}
	ps.count(before, -1, func(r *partyRecord) map[string]int { return r.present })
	ps.count(now, 1, func(r *partyRecord) map[string]int { return r.present })
	if ps.seen[u] = now; now == (partyKey{}) {
		delete(ps.seen, u)
	}
	return true
}

// hold counts a unit that begins or ends to hold quota.
func (ps *parties) hold(k partyKey, by int) {
	ps.count(k, by, func(r *partyRecord) map[string]int { return r.holding })
}

func (ps *parties) count(k partyKey, by int, in func(*partyRecord) map[string]int) {
	if k.party == "" {
		return
	}
	counts := in(ps.record(k.party))
	for _, gang := range gangsOf(k.gangs) {
		if counts[gang] += by; counts[gang] == 0 {
			delete(counts, gang)
		}
	}
	ps.prune(k.party)
}

// join and part take units that come into line, and that leave it.
func (ps *parties) join(u *unit) {
	r := ps.record(u.spec.partyKey().party)
	for _, gang := range gangsOf(u.spec.Gangs) {
		if r.waiting[gang] == nil {
			r.waiting[gang] = queue.NewTree(madeBefore)
		}
		r.waiting[gang].Insert(u)
	}
}

func (ps *parties) part(u *unit) {
	party := u.spec.partyKey().party
	r := ps.record(party)
	for _, gang := range gangsOf(u.spec.Gangs) {
		if tree := r.waiting[gang]; tree != nil {
			if tree.Delete(u); tree.Len() == 0 {
				delete(r.waiting, gang)
			}
		}
	}
	ps.prune(party)
}

func madeBefore(a, b *unit) int {
	if c := a.spec.Created.Compare(b.spec.Created); c != 0 {
		return c
	}
	if c := strings.Compare(a.spec.UID, b.spec.UID); c != 0 {
		return c
	}
	return compareKeys(a, b)
}

func gangsOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// party is one that is decided in a pass.
type party struct {
	// members by their keys; none if the party is not whole.
	members []*unit
	// met are the heads of the pass that are members.
	met []int
	// asks is what the members ask for together, at each limit that one of them has to keep.
	asks []partyAsk
}

type partyAsk struct {
	limit *capacity.Limit
	need  []int64
	leaf  bool
}

// partyOf is the party of a unit that is decided with others; nil for one that is decided alone.
func (r *roster) partyOf(u *unit) *party {
	if u.group == nil || u.group.Key().Alone == "" {
		return nil
	}
	record, y := r.parties.record(u.spec.partyKey().party), &party{}
	kept, gone := false, false
	for _, gang := range gangsOf(u.spec.GangGroup) {
		if record.holding[gang] > 0 {
			continue
		}
		tree := record.waiting[gang]
		if tree == nil {
			kept, gone = kept || record.present[gang] > 0, gone || record.present[gang] == 0
			continue
		}
		if first, _ := tree.Min(); !slices.Contains(y.members, first) {
			y.members = append(y.members, first)
		}
	}
	again := u.spec.Attempts > 0 && !slices.ContainsFunc(y.members, func(u *unit) bool { return u.spec.Attempts == 0 })
	if kept || gone && !again {
		return &party{}
	}
	if len(y.members) == 0 {
		return nil
	}
	slices.SortFunc(y.members, compareKeys)
	y.sum()
	return y
}

func (y *party) sum() {
	for _, u := range y.members {
		n := &u.group.Notes
		for _, lim := range n.limits {
			i := slices.IndexFunc(y.asks, func(a partyAsk) bool { return a.limit == lim })
			if i < 0 {
				i = len(y.asks)
				y.asks = append(y.asks, partyAsk{limit: lim})
			}
			a := &y.asks[i]
			for len(a.need) < len(n.need) {
				a.need = append(a.need, 0)
			}
			for number, amount := range n.need {
				a.need[number] = resources.SaturatingAdd(a.need[number], amount)
			}
			a.leaf = a.leaf || lim.Level() == n.leaf()
		}
	}
}

// together are the units that are admitted with a head that fits.
func (p *pass) together(u *unit) []*unit {
	if y := p.partyInPass(u); y != nil {
		return y.members
	}
	return []*unit{u}
}

// partyInPass is partyOf, worked out once in a pass.
func (p *pass) partyInPass(u *unit) *party {
	if u.group.Key().Alone == "" {
		return nil
	}
	key := u.spec.partyKey().party
	y, known := p.inPass[key]
	if !known {
		if y = p.partyOf(u); y != nil && len(y.members) > 0 {
			p.inPass[key] = y
		}
	}
	return y
}

// meet is for a head that is decided with others, and says whether all of them fit.
func (p *pass) meet(now time.Time, y *party, g *group) (fit bool) {
	h := p.enter(g)
	h.stopped, h.together = ReasonWaitingForGroup, true
	if !slices.Contains(y.members, g.Head()) {
		return false
	}
	if y.met = append(y.met, len(p.heads)-1); len(y.met) < len(y.members) || !p.roomForAll(y) {
		return false
	}
	stopped, v := p.never(y)
	if stopped == "" {
		for i := range y.asks {
			v.compare(y.asks[i].limit, y.asks[i].need, y.asks[i].leaf)
		}
		if v.fits() {
			return true
		}
	}
	ahead, short := len(p.claims), y.short()
	for _, i := range y.met {
		h := &p.heads[i]
		h.stopped, h.verdict = stopped, v
		if stopped == "" {
			h.ahead = ahead
			p.claimTogether(now, g, h, short)
		}
	}
	return false
}

// short are the limits that have too little for the members together.
func (y *party) short() (limits []*capacity.Limit) {
	for i := range y.asks {
		a := &y.asks[i]
		if _, short := a.limit.Short(a.need, a.leaf); short {
			limits = append(limits, a.limit)
		}
	}
	return limits
}

// claimTogether has a member claim where the party is short, unless its own line has a claim in its quota already.
func (p *pass) claimTogether(now time.Time, at *group, h *head, short []*capacity.Limit) {
	n := &h.group.Notes
	h.blocks = n.blocks && !p.claimEnded(now, h.group.Head())
	own := func(c claim) bool { return c.group.Notes.queue == n.queue && c.group.Notes.route == n.route }
	isShort := func(lim *capacity.Limit) bool { return slices.Contains(short, lim) }
	if h.blocks && !slices.ContainsFunc(p.claims, own) && slices.ContainsFunc(n.limits, isShort) {
		h.claims = true
		if n.queue == at.Notes.queue {
			p.claimed = append(p.claimed, n.route)
		}
		p.add(h.group, isShort)
		p.claims[len(p.claims)-1].place = at.Head()
	}
}

// roomForAll says whether the queues of the members may have them all.
func (p *pass) roomForAll(y *party) bool {
	for _, u := range y.members {
		q, all, same := u.group.Notes.queue, 0, 0
		for _, o := range y.members {
			if o.group.Notes.queue == q {
				all++
			}
			if o.group.Key().Namespace != "" && o.group.Notes.queue == q {
				same++
			}
		}
		if q.known && q.spec.MaxAdmitted >= 0 && q.holding+all > int(q.spec.MaxAdmitted) {
			return false
		}
		most, namespace := q.bounds().MaxAdmitted, u.spec.namespace()
		if most >= 0 && q.namespaces.holding[namespace]+same > int(most) {
			return false
		}
	}
	return true
}

// never says why the members can never be admitted together, and at which limit of which resource: they ask for more
// than a quota may ever have.
func (r *roster) never(y *party) (reason Reason, at verdict) {
	for i := range y.asks {
		a := &y.asks[i]
		for number, amount := range a.need {
			most, bounded := a.limit.Most(number)
			first := at.short == nil || r.tree.Resource(number) < r.tree.Resource(at.shortNumber)
			if bounded && amount > most && first {
				at.short, at.shortNumber = a.limit, number
			}
		}
		switch {
		case at.short == nil:
		case at.short.IsMin():
			return ReasonExceedsMin, at
		default:
			return ReasonExceedsMax, at
		}
	}
	return "", at
}

// Why a unit waits that is decided with others.

const withGroup = "with the other jobs of its gang group: "

const waitsForGroup = "it is admitted together with the other jobs of its gang group (annotation " +
	"gang.scheduling.koordinator.sh/groups), and not all of them can be: each of the gangs needs a job that waits in a " +
	"queue with room for all of them"

func (w *why) together(u *unit, y *party) (Finding, string) {
	if !slices.Contains(y.members, u) || !w.allMet(y) || !w.pass.roomForAll(y) {
		return Finding{Reason: ReasonWaitingForGroup}, waitsForGroup
	}
	if never, at := w.never(y); never != "" {
		return w.tooMuch(u, y, never, at)
	}
	found, message := w.explain(u)
	return found, withGroup + message
}

func (w *why) tooMuch(u *unit, y *party, never Reason, at verdict) (Finding, string) {
	found := Finding{never, at.short.Level().Name(), w.tree.Resource(at.shortNumber)}
	i := slices.IndexFunc(y.asks, func(a partyAsk) bool { return a.limit == at.short })
	most, _ := at.short.Most(at.shortNumber)
	return found, fmt.Sprintf("%s: %s: the jobs of its gang group ask together for %s, and there are never more than %s",
		place(u.spec.Quota, found.Level, at.short.IsMin()), found.Resource,
		resources.Format(found.Resource, y.asks[i].need[at.shortNumber]), resources.Format(found.Resource, most))
}

// ofGroup, in words, of a member of a party.
func (about *subject) ofGroup(g *group) string {
	level := levelWords(g.Key().Quota, about.Level)
	if !slices.ContainsFunc(g.Notes.route.Levels, func(l *capacity.Level) bool { return l.Name() == about.Level }) {
		level = fmt.Sprintf("quota %q, on which another of them draws,", about.Level)
	}
	switch about.Reason {
	case ReasonWaitingForGroup:
		return waitsForGroup
	case ReasonExceedsMax:
		what := "use as much " + about.Resource
		if about.Resource == resources.Jobs {
			what = "have as many admitted jobs"
		}
		return fmt.Sprintf("%s may never %s as the jobs of its gang group ask for together", level, what)
	case ReasonExceedsMin:
		return fmt.Sprintf("%s is not guaranteed as much %s as the jobs of its gang group ask for together that are "+
			"non-preemptible: that is above its min", level, about.Resource)
	default:
		return withGroup + about.at(level, g)
	}
}

// allMet says whether a pass meets all members.
func (w *why) allMet(y *party) bool {
	for _, u := range y.members {
		g := u.group
		if !g.Open() || g.Notes.queue.whyFull(g) != "" {
			return false
		}
		if said, fault := w.tryToAsk(g); fault != "" || said.reason != "" {
			return false
		}
	}
	return len(y.members) > 0
}

// last is the member at whose place a party is decided.
func (w *why) last(y *party) *unit {
	last := y.members[0]
	for _, u := range y.members[1:] {
		if w.servedBefore(last, u) {
			last = u
		}
	}
	return last
}

func (w *why) servedBefore(a, b *unit) bool {
	q, of := a.group.Notes.queue, b.group.Notes.queue
	if q == of {
		return q.line.Before(a, b)
	}
	return w.ranking.compare(q, of) < 0
}

// asker is a unit in line, and those with which it is decided, as why sees them.
type asker struct {
	unit, place *unit
	party       *party
}

func (w *why) askOf(u *unit) asker {
	if y := w.partyOf(u); y != nil && slices.Contains(y.members, u) && w.allMet(y) {
		return asker{u, w.last(y), y}
	}
	return asker{unit: u, place: u}
}

func (a *asker) members() []*unit {
	if a.party == nil {
		return []*unit{a.unit}
	}
	return a.party.members
}

func (a *asker) limits() []*capacity.Limit {
	if a.party == nil {
		return a.unit.group.Notes.limits
	}
	limits := make([]*capacity.Limit, 0, len(a.party.asks))
	for i := range a.party.asks {
		limits = append(limits, a.party.asks[i].limit)
	}
	return limits
}

func (a *asker) has(u *unit) bool { return slices.Contains(a.members(), u) }

// leafIs says whether a limit that one of the members has to keep is of the quota that this one draws on.
func (a *asker) leafIs(lim *capacity.Limit) bool {
	return slices.ContainsFunc(a.members(), func(u *unit) bool {
		n := &u.group.Notes
		return lim.Level() == n.leaf() && slices.Contains(n.limits, lim)
	})
}

// needs is what is asked for of a resource at a limit, and total what would be held of it then.
func (a *asker) needs(lim *capacity.Limit, resource string) (sum int64) {
	for _, u := range a.members() {
		if slices.Contains(u.group.Notes.limits, lim) {
			sum = resources.SaturatingAdd(sum, u.needs(resource))
		}
	}
	return sum
}

func (a *asker) total(lim *capacity.Limit, resource string) (sum int64) {
	for _, u := range a.members() {
		if slices.Contains(u.group.Notes.limits, lim) {
			amount, _ := u.total().Get(resource)
			sum = resources.SaturatingAdd(sum, amount)
		}
	}
	return sum
}
