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
	// firstPause is for how long nobody takes for whom something was taken for nothing, at first; longestPause at most.
	firstPause, longestPause = 30 * time.Second, time.Hour
	// mostPauses bounds how many are remembered.
	mostPauses = 4096
)

// Beneficiary is for whom units take: those of one namespace, for one quota.
type Beneficiary struct{ Namespace, Quota string }

// Of is for whom a unit takes.
func Of(u *unit.Unit) Beneficiary { return Beneficiary{Namespace: u.Namespace(), Quota: u.Quota} }

// Vain remembers who took what others held, and gave it back before a pod of it was on a node. It is about namespaces
// and quotas, so that it lasts when a job is deleted. Units are known by their keys. The zero value remembers nobody.
type Vain struct {
	of map[Beneficiary]pause
	// gains are those of units, until it is known whether they took in vain.
	gains map[string]gain
	noted int
}

type pause struct {
	times int
	until time.Time
}

// Taking is how far a unit has come that takes what others hold.
type Taking struct {
	By Beneficiary
	// Takes: it takes something, or is about to. InLine: it is in line. Holds: it holds quota.
	Takes, InLine, Holds bool
	// Lost: others have just lost for it what they held.
	Lost bool
	// OnNode: a pod of it is on a node.
	OnNode bool
}

// gain of a unit from a taking.
type gain struct {
	step step
	// by is for whom the unit began to take: its quota may change since.
	by Beneficiary
}

type step uint8

const (
	none  step = iota
	begun      // nobody has lost anything yet
	freed      // others have lost what they held, and it waits
	got        // it holds that, and no pod of it has been on a node
)

// Judge follows a unit that takes. That was in vain if the unit leaves its line after others have lost what they held,
// or gives back what it got before a pod of it is on a node. A unit that stops to take may fit now, which GiveUp
// judges.
func (v *Vain) Judge(now time.Time, key string, t Taking) {
	is := v.gains[key].begin(t)
	switch {
	case is.step == got && t.Holds && t.OnNode:
		delete(v.of, is.by) // it was of use
		is = gain{}
	case is.step >= freed && t.Holds:
		is.step = got
	case is.step == got || is.step == freed && !t.Takes && !t.InLine:
		v.Note(now, is.by)
		is = gain{}
	}
	v.set(key, is)
}

// begin is the gain of a unit that waits still.
func (g gain) begin(t Taking) gain {
	if g.step == none && (t.Takes || t.Lost) {
		g = gain{begun, t.By}
	}
	switch {
	case g.step == begun && t.Lost:
		g.step = freed
	case g.step == begun && !t.Takes:
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

// Gains says that it is not known yet whether what a unit takes, or took, is in vain.
func (v *Vain) Gains(key string) bool { return v.gains[key].step != none }

// GiveUp is for a unit that takes nothing any more though it does not fit. That is in vain unless others are to blame.
func (v *Vain) GiveUp(now time.Time, key string, blameless bool) {
	if is := v.gains[key]; is.step >= freed && !blameless {
		v.Note(now, is.by)
	}
	delete(v.gains, key)
}

// Noted is how often something was taken for nothing since the last call.
func (v *Vain) Noted() (times int) {
	times, v.noted = v.noted, 0
	return times
}

// Note that something was taken for nothing: nobody takes there for a while that doubles each time. What is noted
// during such a while was taken before it, as by another unit of a gang group, and is the same time.
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

// Until is until when nobody takes, and how often in a row that was for nothing; zero for one who may.
func (v *Vain) Until(now time.Time, by Beneficiary) (until time.Time, times int) {
	if p := v.of[by]; now.Before(p.until) {
		return p.until, p.times
	}
	return until, 0
}

// isOver says that the last time was so long ago that it does not count any more.
func (v *Vain) isOver(now time.Time, p pause) bool { return !now.Before(p.until.Add(longestPause)) }

// sweep forgets who does not count any more where too many are remembered, and those who may take first where all do.
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
