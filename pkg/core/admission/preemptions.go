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
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holding"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/restraint"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/victims"
)

// preemptions keeps which unit preempts which holds, and the index of those that may be preempted.
type preemptions struct {
	roster *roster
	// byUID are the units that hold quota.
	byUID map[string]*record
	// index is empty until begun is set: while no unit may preempt, nobody asks it.
	index      *holders.Index[*record]
	begun      bool
	preemptors *victims.Book
	vain       restraint.Vain
}

func newPreemptions(r *roster) *preemptions {
	return &preemptions{
		roster: r, byUID: map[string]*record{}, index: holders.New[*record](r.lines.tree), preemptors: victims.NewBook(),
	}
}

// settle has the victims of a unit in line lose their quota. It also brings the index up to date with the state of the
// unit.
func (p *preemptions) settle(now time.Time, u *record) {
	holds := ""
	if u.group != nil {
		holds = preemptedBy(u)
	}
	preempted, spared, begun := p.preemptors.Set(u.spec.Key, u.spec.Quota, holds, u.begins())
	if holds != "" || u.begins() != "" {
		p.begin()
		p.index.Promise(u.spec.Key, u.spec.Quota, u.asks(), u.jobs())
	} else {
		p.index.Forgive(u.spec.Key)
	}
	for _, o := range p.holding(begun) {
		p.reindex(o.spec.Key, o)
	}
	for _, o := range p.holding(preempted) {
		p.roster.touch(o)
	}
	lost := len(spared)
	for _, o := range p.holding(spared) {
		p.roster.touch(o)
		if !o.leaves() && !o.reserves() { // else it has lost that
			lost--
		}
	}
	_, onNodes := p.roster.holdings.Pods(u.spec.Key)
	p.vain.Judge(now, u.spec.Key, restraint.Preemption{
		By: restraint.Of(u.spec), Preempts: u.group != nil && preempts(u), InLine: u.group != nil, Holds: u.holding,
		Lost: lost > 0, OnNode: onNodes > 0,
	})
	p.reindex(u.spec.Key, u)
}

// reindex brings the index in line with what a unit keeps from others. A unit that is not known is nil, and may have
// pods.
func (p *preemptions) reindex(key string, u *record) {
	if !p.begun {
		return
	}
	use, some := p.roster.holdings.Use(key)
	if !some || use.Quota == "" {
		p.index.Drop(key)
		return
	}
	p.index.Set(u, p.about(u, &use), use.Amount)
}

// about is what the index knows of a unit that keeps something from others.
func (p *preemptions) about(u *record, use *holding.Use) holders.Hold {
	h := holders.Hold{Key: use.Key, Quota: use.Quota}
	if u != nil {
		h.UID = u.spec.UID
	}
	switch {
	case !use.Holds:
		h.Leaves, h.Pods, h.LeavesBy = true, true, use.LeavesBy
		h.Unsure = !use.Deleted && (u == nil || u.parked.JobIsGone()) // a job that is there is suspended
	case u.leaves() || p.preemptors.IsVictim(u.spec.Hold()):
		h.Leaves = true
	default:
		h.Evictions, h.GangGroup, h.Gangs = u.preempted, gang.GroupOf(u.spec), u.spec.Gangs
		h.Judge(u.spec, &p.roster.lines.queue(u.spec.Queue).spec.Preemption, u.nonPreemptible(), u.inFlight())
	}
	return h
}

// holding are the units that hold these.
func (p *preemptions) holding(holds []string) (units []*record) {
	for _, hold := range holds {
		uid, _, _ := strings.Cut(hold, "/")
		if u := p.byUID[uid]; u != nil && u.spec.Hold() == hold {
			units = append(units, u)
		}
	}
	return units
}

// victims are the units that a unit preempts and of whose holds this has become, by their keys.
func (p *preemptions) victims(of *record, state holders.State) (units []*record) {
	for _, hold := range p.preemptors.PreemptedBy(of.spec.Key) {
		uid, _, _ := strings.Cut(hold, "/")
		if u, is := p.index.ByUID(uid); is == state && u.spec.Hold() == hold {
			units = append(units, u)
		}
	}
	slices.SortFunc(units, compareKeys)
	return units
}

// begin keeps the index from now on: a unit may preempt.
func (p *preemptions) begin() {
	if !p.begun {
		p.begun, *p.index = true, *p.scan()
	}
}

// scan makes the index from all units.
func (p *preemptions) scan() *holders.Index[*record] {
	scan := holders.New[*record](p.roster.lines.tree)
	for _, key := range p.roster.holdings.Users() {
		if use, _ := p.roster.holdings.Use(key); use.Quota != "" {
			u := p.roster.units[key]
			scan.Set(u, p.about(u, &use), use.Amount)
		}
	}
	for _, key := range p.preemptors.Keys() {
		u := p.roster.units[key]
		scan.Promise(key, u.spec.Quota, u.asks(), u.jobs())
	}
	return scan
}
