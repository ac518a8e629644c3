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

package restraint

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	// firstPause is for how long a beneficiary does not preempt after it preempted in vain, at first; longestPause at
	// most.
	firstPause, longestPause = 30 * time.Second, time.Hour
	// mostPauses bounds how many are remembered.
	mostPauses = 4096
)

// Beneficiary is the group of units that pause together: those of one namespace in one quota.
type Beneficiary struct{ Namespace, Quota string }

// Of is the beneficiary of a unit.
func Of(u *unit.Unit) Beneficiary { return Beneficiary{Namespace: u.Namespace(), Quota: u.Quota} }

// Vain remembers beneficiaries that preempted in vain: no pod of the preemptor was on a node before it gave the quota
// back. It is about namespaces and quotas, so that it lasts when a job is deleted. Units are known by their keys. The
// zero value remembers nobody.
type Vain struct {
	of map[Beneficiary]pause
	// gains are those of units, until it is known whether they preempted in vain.
	gains map[string]gain
	noted int
}

type pause struct {
	times int
	until time.Time
}

// Preemption is the progress of a preemptor.
type Preemption struct {
	By Beneficiary
	// Preempts: it has victims, or is about to. InLine: it is in line. Holds: it holds quota.
	Preempts, InLine, Holds bool
	// Lost: others have just lost for it what they held.
	Lost bool
	// OnNode: a pod of it is on a node.
	OnNode bool
}

// gain of a unit from a preemption.
type gain struct {
	step step
	// by is the beneficiary when the unit began to preempt: its quota may change since.
	by Beneficiary
}

type step uint8

const (
	none  step = iota
	begun      // nobody has lost anything yet
	freed      // others have lost what they held, and it waits
	got        // the unit holds it, and no pod of the unit has been on a node
)

// Judge follows a preemptor. It preempted in vain if it leaves its line after others have lost quota. It also preempted
// in vain if it gives its quota back before a pod of it is on a node. A unit that stops preempting may fit now: GiveUp
// judges that.
func (v *Vain) Judge(now time.Time, key string, t Preemption) {
	is := v.gains[key].begin(t)
	switch {
	case is.step == got && t.Holds && t.OnNode:
		delete(v.of, is.by) // the preemption was useful
		is = gain{}
	case is.step >= freed && t.Holds:
		is.step = got
	case is.step == got || is.step == freed && !t.Preempts && !t.InLine:
		v.Note(now, is.by)
		is = gain{}
	}
	v.set(key, is)
}

// begin is the gain of a unit that waits still.
func (g gain) begin(t Preemption) gain {
	if g.step == none && (t.Preempts || t.Lost) {
		g = gain{begun, t.By}
	}
	switch {
	case g.step == begun && t.Lost:
		g.step = freed
	case g.step == begun && !t.Preempts:
		g = gain{}
	}
	return g
}

func (v *Vain) set(key string, is gain) {
	switch {
	case is.step == none:
		delete(v.gains, key)
		return
	case v.gains == nil:
		v.gains = map[string]gain{}
	}
	v.gains[key] = is
}

// Gains says that it is not known yet whether a unit preempts in vain.
func (v *Vain) Gains(key string) bool { return v.gains[key].step != none }

// GiveUp is for a unit that stops preempting though it does not fit. That is in vain unless others are to blame.
func (v *Vain) GiveUp(now time.Time, key string, blameless bool) {
	if is := v.gains[key]; is.step >= freed && !blameless {
		v.Note(now, is.by)
	}
	delete(v.gains, key)
}

// Noted is how often units preempted in vain since the last call.
func (v *Vain) Noted() (times int) {
	times, v.noted = v.noted, 0
	return times
}

// Note that a beneficiary preempted in vain. It does not preempt for a pause that doubles each time. A note during a
// pause is about an earlier preemption, for example of another unit of a gang group, and counts as the same time.
func (v *Vain) Note(now time.Time, by Beneficiary) {
	if v.of == nil {
		v.of = map[Beneficiary]pause{}
	}
	v.noted++
	p := v.of[by]
	if now.Before(p.until) {
		return
	}
	if v.isOver(now, p) {
		p.times = 0
	}
	p.until = now.Add(min(firstPause<<min(p.times, 10), longestPause))
	p.times++
	v.of[by] = p
	v.sweep(now)
}

// Until is until when a beneficiary pauses, and how often in a row it preempted in vain; zero if it may preempt.
func (v *Vain) Until(now time.Time, by Beneficiary) (until time.Time, times int) {
	if p := v.of[by]; now.Before(p.until) {
		return p.until, p.times
	}
	return until, 0
}

// isOver says that the last time was so long ago that it does not count any more.
func (v *Vain) isOver(now time.Time, p pause) bool { return !now.Before(p.until.Add(longestPause)) }

// sweep forgets beneficiaries if there are too many: first those that do not count any more, then those whose pause
// ends first.
func (v *Vain) sweep(now time.Time) {
	if len(v.of) <= mostPauses {
		return
	}
	var first time.Time
	for by, p := range v.of {
		if v.isOver(now, p) {
			delete(v.of, by)
		} else if first.IsZero() || p.until.Before(first) {
			first = p.until
		}
	}
	for by, p := range v.of {
		if len(v.of) > mostPauses && !p.until.After(first) {
			delete(v.of, by)
		}
	}
}
