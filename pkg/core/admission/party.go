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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
)

// party is a gang group as a pass decides it, by the rules of package gang.
type party struct {
	// members by their keys; none if the party is not whole.
	members []*record
	asks    decide.Group
	// met are the heads of the pass that are members, by their indices there.
	met []int
}

// partyOf is the party of a unit that is decided with others; nil for one that is decided alone.
func partyOf(gangs *gang.Book[*record], u *record) *party {
	if u.group == nil || u.group.Key().Alone == "" {
		return nil
	}
	members, together := gangs.Members(u)
	if !together {
		return nil
	}
	y := &party{members: members}
	y.sum()
	return y
}

// sum has the members decided together.
func (y *party) sum() {
	asks := make([]*decide.Ask, 0, len(y.members))
	for _, u := range y.members {
		asks = append(asks, &u.group.Notes.ask)
	}
	y.asks = decide.Together(asks)
}

// together are the units that are admitted with a head that fits.
func (p *pass) together(u *record) []*record {
	if y := p.partyInPass(u); y != nil {
		return y.members
	}
	return []*record{u}
}

// partyInPass is partyOf, worked out once in a pass.
func (p *pass) partyInPass(u *record) *party {
	if u.group.Key().Alone == "" {
		return nil
	}
	key := gang.GroupOf(&u.spec)
	y, known := p.inPass[key]
	if !known {
		if y = partyOf(p.lines.gangs, u); y != nil && len(y.members) > 0 {
			p.inPass[key] = y
		}
	}
	return y
}

// meet is for a head that is decided with others, and says whether all of them fit.
func (p *pass) meet(now time.Time, y *party, at turn) (fit bool) {
	index := p.asks.Await(at, &at.group.Notes.ask)
	if !slices.Contains(y.members, at.unit) {
		return false
	}
	if y.met = append(y.met, index); len(y.met) < len(y.members) || !p.roomForAll(y) {
		return false
	}
	if p.asks.TryTogether(&y.asks, y.met) {
		return true
	}
	for _, i := range y.met {
		if of := p.asks.Heads()[i].Of; of.group.Notes.ask.Blocking && !p.claimEnded(now, of.unit) {
			p.asks.BlockTogether(&y.asks, i)
		}
	}
	return false
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
		if !p.lines.roomFor(q, all) || !p.lines.roomForOf(q, u.spec.Namespace(), same) {
			return false
		}
	}
	return true
}
