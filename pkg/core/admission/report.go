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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
)

const (
	// mostReports bounds the reports of one Decide; the rest follows in the next.
	mostReports = 64
	// mostSwept bounds the units of whole groups that one call plans to report.
	mostSwept = 1024
)

// reports plan which unit is to be told its reason, and when. Heads of groups are told when they have waited for a
// while, parked units at once, and nobody more often than once in a while (I12).
type reports struct {
	after, every time.Duration
	due          *backlog.Due[*unit]
	// sweeps are the groups whose units are being gone through, because all of them were parked, or are not any more.
	sweeps []*group
}

func newReports(cfg *Config) reports {
	return reports{
		after: cfg.ExplainAfter, every: cfg.ExplainEvery,
		due: backlog.NewDue(func(u *unit) backlog.Moment { return u.reportAt }),
	}
}

// move sets when the reason of a unit is to be told; zero for never.
func (r *reports) move(u *unit, at backlog.Moment) {
	r.due.Move(u, at, func(m backlog.Moment) { u.reportAt = m })
}

// plan has a reason told at that time, unless the unit was told just that last.
func (r *reports) plan(u *unit, found Finding, at time.Time) {
	if found == u.report.Finding {
		r.move(u, 0)
		return
	}
	if u.report.Reason != "" {
		at = later(at, u.report.at.Add(r.every))
	}
	r.move(u, backlog.MomentOf(at))
}

// parked plans to tell why a unit is parked.
func (r *reports) parked(now time.Time, u *unit, found Finding) {
	if untold(found.Reason) {
		r.move(u, 0)
		return
	}
	at := now
	if fleeting[found.Reason] {
		at = now.Add(r.after)
	}
	r.plan(u, found, at)
}

// fleeting reasons are often over before anybody could read them: informers of two kinds race, and the controller
// makes the default queue of a new quota.
var fleeting = map[Reason]bool{
	ReasonConsumerNotFound: true, ReasonInactive: true, ReasonWriteRefused: true,
	ReasonUnknownQueue: true, ReasonUnknownQuota: true, ReasonRestoring: true,
}

// untold says whether whoever caused the reason has written it down already.
func untold(reason Reason) bool { return reason == ReasonAdopting || reason == ReasonBackoff }

// head plans to tell why the head of a group has waited so long.
func (r *reports) head(g *group, found Finding, now time.Time) {
	if u := g.Head(); u.reportAt == 0 {
		r.plan(u, found, later(now, g.Notes.since.Add(r.after)))
	}
}

// joined plans what a unit that came into line is told.
func (r *reports) joined(now time.Time, u *unit) {
	n := &u.group.Notes
	switch {
	case n.isParked():
		r.parked(now, u, n.parked)
	case u.report.Reason != "":
		// What the object says is not true any more.
		r.move(u, backlog.MomentOf(later(now.Add(r.after), u.report.at.Add(r.every))))
	default:
		r.move(u, 0)
	}
}

// regrouped plans it for all units of a group that was parked, or is not any more: some now, others in calls to come.
func (r *reports) regrouped(now time.Time, g *group) {
	g.Notes.head = nil // what is found of it is news
	if g.Notes.swept == nil {
		r.sweeps = append(r.sweeps, g)
	}
	g.Notes.swept = nil
	r.sweep(now)
}

// sweep goes on with the groups, up to a number of units.
func (r *reports) sweep(now time.Time) {
	left := mostSwept
	for len(r.sweeps) > 0 && left > 0 {
		g := r.sweeps[0]
		var last *unit
		visit := func(u *unit) bool {
			r.joined(now, u)
			left--
			last = u
			return left > 0
		}
		if g.Notes.swept == nil {
			g.Walk(visit)
		} else {
			g.WalkFrom(g.Notes.swept, visit)
		}
		if left == 0 {
			g.Notes.swept = &unit{spec: last.spec} // the unit itself may leave, or have another place
			return
		}
		g.Notes.swept = nil
		r.sweeps = r.sweeps[1:]
	}
}

func (r *reports) sweeping() bool { return len(r.sweeps) > 0 }

// earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
