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
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
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
//   - A reserved unit that has passed its admission checks is let go once a unit of each other gang was let go or has
//     passed its own. Until then it keeps its quota, for as long as a check may take.
//   - A member is admitted whole, whatever sizes it may have: UpsertUnit takes it as of one size.
//   - Members that have all been admitted before wait for no gang of which there is no unit any more: it is over, and
//     they are to end as well. That holds for being let go, too.

// partyKey names the party of a unit and the gangs of its own; zero for a unit in none.
type partyKey struct{ party, gangs string }

func partyKeyOf(in *unit.Unit) partyKey {
	if in.GangGroup == "" {
		return partyKey{}
	}
	return partyKey{in.Namespace() + " " + in.GangGroup, in.Gangs}
}

// parties are those of all units that are not over.
type parties struct {
	records map[string]*partyRecord
	// seen are the units of parties that are not over, and cleared those of them that were let go, or may be as far as
	// their own checks say, as they were counted.
	seen, cleared map[*record]partyKey
}

func newParties() parties {
	return parties{records: map[string]*partyRecord{}, seen: map[*record]partyKey{}, cleared: map[*record]partyKey{}}
}

type partyRecord struct {
	// present counts the units that are not over, holding those that hold quota, and cleared those of them that were let
	// go or have passed their checks, by gang. waiting are those in line, by gang, the first made first.
	present, holding, cleared map[string]int
	waiting                   map[string]*ordered.Tree[*record]
	// checked are reserved units that have passed their checks, and may go once those of other gangs have.
	checked map[*record]struct{}
}

func (ps *parties) record(party string) *partyRecord {
	if ps.records[party] == nil {
		ps.records[party] = &partyRecord{
			present: map[string]int{}, holding: map[string]int{}, cleared: map[string]int{},
			waiting: map[string]*ordered.Tree[*record]{}, checked: map[*record]struct{}{},
		}
	}
	return ps.records[party]
}

func (ps *parties) prune(party string) {
	if r := ps.records[party]; len(r.present)+len(r.holding)+len(r.cleared)+len(r.waiting)+len(r.checked) == 0 {
		delete(ps.records, party)
	}
}

// see takes in what a unit is now, and says whether a party may be another one for that.
func (ps *parties) see(u *record) (news bool) {
	before, now := ps.seen[u], partyKeyOf(&u.spec)
	if u.stage == stageDone {
		now = partyKey{}
	}
	if before == now {
		return false
	}
	lost := ps.clear(u, false) // until it is known whether it is cleared as what it is now
	if ps.seen[u] = now; now == (partyKey{}) {
		delete(ps.seen, u)
	}
	return ps.recount(before, now, func(r *partyRecord) map[string]int { return r.present }) || lost
}

// clear notes whether a unit was let go, or may be as far as its own checks say. That is news if no other of its gang
// is like that.
func (ps *parties) clear(u *record, cleared bool) (news bool) {
	before, now := ps.cleared[u], partyKey{}
	if cleared {
		now = partyKeyOf(&u.spec)
	}
	if before == now {
		return false
	}
	if ps.cleared[u] = now; now == (partyKey{}) {
		delete(ps.cleared, u)
	}
	return ps.recount(before, now, func(r *partyRecord) map[string]int { return r.cleared })
}

// mayGo says whether no gang keeps a unit back that has passed its own checks.
func (ps *parties) mayGo(u *record) bool {
	r := ps.records[partyKeyOf(&u.spec).party]
	if r == nil {
		return true
	}
	own := gangsOf(u.spec.Gangs)
	for _, gang := range gangsOf(u.spec.GangGroup) {
		over := r.present[gang] == 0 && u.spec.Attempts > 1
		if r.cleared[gang] == 0 && !over && !slices.Contains(own, gang) {
			return false
		}
	}
	return true
}

// setChecked says whether a unit is reserved and has passed its own checks.
func (ps *parties) setChecked(u *record, is bool) {
	party := partyKeyOf(&u.spec).party
	if is && party != "" {
		ps.record(party).checked[u] = struct{}{}
	} else if r := ps.records[party]; party != "" && r != nil {
		delete(r.checked, u)
		ps.prune(party)
	}
}

// checkedOf are the reserved units of a party that have passed their checks, by their keys.
func (ps *parties) checkedOf(party string) []*record {
	if r := ps.records[party]; r != nil {
		return inOrder(maps.Clone(r.checked))
	}
	return nil
}

// hold counts a unit that begins or ends to hold quota.
func (ps *parties) hold(k partyKey, by int) {
	ps.count(k, by, func(r *partyRecord) map[string]int { return r.holding })
}

// count says whether a gang has its first now, or none any more.
func (ps *parties) count(k partyKey, by int, in func(*partyRecord) map[string]int) (news bool) {
	if k.party == "" {
		return false
	}
	counts := in(ps.record(k.party))
	for _, gang := range gangsOf(k.gangs) {
		before := counts[gang]
		if counts[gang] += by; counts[gang] == 0 {
			delete(counts, gang)
		}
		news = news || (before == 0) != (counts[gang] == 0)
	}
	ps.prune(k.party)
	return news
}

// recount counts a unit by another key than before.
func (ps *parties) recount(before, now partyKey, in func(*partyRecord) map[string]int) (news bool) {
	gone, come := ps.count(before, -1, in), ps.count(now, 1, in)
	return gone || come
}

// join and part take units that come into line, and that leave it.
func (ps *parties) join(u *record) {
	r := ps.record(partyKeyOf(&u.spec).party)
	for _, gang := range gangsOf(u.spec.Gangs) {
		if r.waiting[gang] == nil {
			r.waiting[gang] = ordered.NewTree(madeBefore)
		}
		r.waiting[gang].Insert(u)
	}
}

func (ps *parties) part(u *record) {
	party := partyKeyOf(&u.spec).party
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

func madeBefore(a, b *record) int {
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
