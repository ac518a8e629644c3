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
// and quotas, so that it lasts when a job is deleted. The zero value remembers nobody.
type Vain struct{ of map[Beneficiary]pause }

type pause struct {
	times int
	until time.Time
}

// Taking is how far a unit has come that takes what others hold.
type Taking struct {
	// Takes: it takes something, or is about to. Holds: it holds quota.
	Takes, Holds bool
	// Lost: others have just lost for it what they held. Took: they did, and none of its pods has been on a node since.
	Lost, Took bool
	// OnNode says that a pod of it is on a node.
	OnNode func() bool
}

// Judge says whether a unit took something and has had no pod on a node since, and whether that was in vain. It was if
// the unit gives up after others have lost what they held, or gives back what it got before a pod of it is on a node.
func (v *Vain) Judge(now time.Time, by Beneficiary, t Taking) (took, inVain bool) {
	switch {
	case t.Takes:
	case t.Holds && t.Lost:
		return true, false
	case t.Holds && t.Took && t.OnNode():
		v.Used(by)
		return false, false
	case !t.Holds && (t.Lost || t.Took):
		v.Note(now, by)
		return false, true
	}
	return t.Took, false
}

// Note that something was taken for nothing: nobody takes there for a while that doubles each time.
func (v *Vain) Note(now time.Time, by Beneficiary) {
	if v.of == nil {
		v.of = map[Beneficiary]pause{}
	}
	p := v.of[by]
	if v.isOver(now, p) {
		p.times = 0
	}
	p.until = now.Add(min(firstPause<<min(p.times, 10), longestPause))
	p.times++
	v.of[by] = p
	v.sweep(now)
}

// Used says that a pod of what was taken is on a node.
func (v *Vain) Used(by Beneficiary) { delete(v.of, by) }

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
