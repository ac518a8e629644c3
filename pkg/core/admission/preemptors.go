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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/gang"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/preemption"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/victims"
)

// noNodesBackoff is for how long a unit is not tried that finds no nodes, at first.
const noNodesBackoff = 5 * time.Second

// preemptors are the units in line as package preemption sees them.
type preemptors struct {
	roster   *roster
	pass     *pass
	decision preemption.Preemption[*record]
	// plan is what is decided about them.
	plan transition.Plan
}

func newPreemptors(r *roster, pass *pass) *preemptors {
	p := &preemptors{roster: r, pass: pass}
	p.decision = preemption.Preemption[*record]{
		Tree: r.lines.tree, Index: r.preemptions.index, Vain: &r.preemptions.vain, Units: p,
	}
	return p
}

// decide has the first head preempt that has the right to, and says whether there is one.
func (p *preemptors) decide(now time.Time, plan *transition.Plan) bool {
	p.roster.progress.inVain = false
	p.plan = transition.Plan{}
	launched := p.decision.Decide(now)
	plan.Writes, plan.Foresee = append(plan.Writes, p.plan.Writes...), append(plan.Foresee, p.plan.Foresee...)
	plan.Tried = plan.Tried || p.plan.Tried
	return launched
}

// Heads implements preemption.Units.
func (p *preemptors) Heads() (heads []*record) {
	all := p.pass.asks.Heads()
	for i := range all {
		u, n := all[i].Of.unit, &all[i].Of.group.Notes
		if n.queue.spec.Preemption.PreemptsNothing() && n.searched.IsZero() && u.spec.Preempts == "" { // as most are
			continue
		}
		heads = append(heads, u)
	}
	return heads
}

// Preemptor implements preemption.Units.
func (p *preemptors) Preemptor(u *record) preemption.Preemptor {
	n := &u.group.Notes
	by := preemption.Preemptor{
		Unit: u.spec, Idle: !u.inFlight() && u.waits(), Begins: u.isPreempting(), Stopped: n.cause.Stopped != "",
		Searched: n.searched, Foresight: u.foresight,
		Request: reclaim.Request{
			Key: u.spec.Key, Ask: &n.ask, Queue: u.spec.Queue, GangGroup: gang.GroupOf(u.spec),
			Priority: u.spec.PreemptionPriority(), Named: u.spec.Priority, Policy: n.queue.spec.Preemption,
		},
		Checks: life.AdmissionChecks(&life.Facts{Unit: u.spec, Queue: &n.queue.spec, Config: &p.roster.cfg.Rules}),
	}
	by.Policy.DryRun = by.Policy.DryRun || u.spec.Observed
	if n.behind != nil {
		by.Ahead = n.behind.spec
	}
	return by
}

// Together implements preemption.Units.
func (p *preemptors) Together(u *record) []*record { return p.pass.together(u) }

// Hold implements preemption.Units.
func (*preemptors) Hold(u *record) (key, hold string) { return u.spec.Key, u.spec.Hold() }

// Victims implements preemption.Units.
func (p *preemptors) Victims(of *record, state holders.State) []*record {
	return p.roster.preemptions.victims(of, state)
}

// Searched implements preemption.Units.
func (*preemptors) Searched(now time.Time, u *record) { u.group.Notes.searched = now }

// Hindered implements preemption.Units. The units of the group are told.
func (p *preemptors) Hindered(now time.Time, u *record, by reclaim.Obstacle) {
	u.group.Notes.obstacle = by
	p.pass.tell(now, u.group)
}

// Tried implements preemption.Units.
func (p *preemptors) Tried() { p.plan.Tried = true }

// Foresee implements preemption.Units.
func (p *preemptors) Foresee(by *record, f *reclaim.Foresight, victims []string) {
	by.own().foresight = f
	p.plan.Foresee = append(p.plan.Foresee, transition.Foresee{Unit: by.spec, Holds: f.Holds, Victims: victims})
}

// Preempt implements preemption.Units. The unit stays in line.
func (p *preemptors) Preempt(now time.Time, u *record, holds string) bool {
	if holds == u.spec.Preempts && holds == preemptedBy(u) {
		return false
	}
	p.roster.launch(u, &transition.Preempt{Unit: u.spec, Holds: victims.Holds(holds)}, &p.plan)
	if u.tenure.outOfDate = ""; holds == "" {
		u.tenure.outOfDate = u.spec.Preempts
	}
	p.roster.settle(now)
	return true
}

// Again implements preemption.Units.
func (p *preemptors) Again(at time.Time) {
	p.pass.watch.Next = ordered.Earlier(p.pass.watch.Next, at)
	p.roster.progress.inVain = true
}

// ReservedAt is the amount protected from pods outside of units at a level and below it: outstanding quota, and the
// requests of preemptors. Quota of victims becomes free before the preemptor holds it, and a pending pod would bind in
// that moment. So the top counts too while a unit preempts; otherwise it protects nothing.
func ReservedAt(s *State, level string) resources.List {
	var claimed resources.List
	for _, key := range s.roster.preemptions.preemptors.Keys() {
		u, known := s.roster.units[key]
		if known && slices.ContainsFunc(s.lines.tree.Route(u.spec.Quota).Levels, func(l *capacity.Level) bool {
			return l.Name() == level
		}) {
			claimed = claimed.Add(u.asks())
		}
	}
	if top := len(s.lines.tree.Route(level).Levels) == 1; top && claimed.IsZero() {
		return claimed
	}
	return s.roster.holdings.Read(level).Outstanding().List().Add(claimed)
}
