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

package engine

import (
	"maps"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/patch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// maxReportTries bounds how often a reason is written again after a conflict or an error.
const maxReportTries = 5

// report is a reason whose writing failed. It will be tried again at that time.
type report struct {
	unit.Saying
	at    time.Time
	tries int
}

// reports are the reasons that are to be written again, by unit. There are at most as many as were told in the time of
// a few tries.
type reports map[string]report

// next is when one of them is due; zero for never.
func (r reports) next() time.Time {
	var first time.Time
	for _, x := range r {
		first = pace.Earliest(first, x.at)
	}
	return first
}

// take returns those that are due, in the order of their units' keys, and forgets them.
func (r reports) take(now time.Time, visit func(key string, x report)) {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if x := r[key]; !x.at.After(now) {
			delete(r, key)
			visit(key, x)
		}
	}
}

// again has a write that failed tried once more, later each time.
func (r reports) again(now time.Time, key string, w *statuswrite.Write) {
	r[key] = report{Saying: w.Said, at: now.Add(time.Second << w.Tries), tries: w.Tries + 1}
}

// tell has the core say which units should be told why they wait, as many as the pace allows, and writes that.
func (d *decisions) tell(now time.Time) {
	if d.reasons.Want(time.Time{}); !d.core.Sound() {
		return
	}
	var list []transition.Explain
	var wanted time.Time
	d.core.Call("", func(s *admission.State) {
		wanted = s.Telling().At(now)
		if most := d.reasons.Allowance(now); most > 0 && !wanted.IsZero() && !wanted.After(now) {
			list, wanted = s.Telling().Next(now, most)
			d.reasons.Spend(len(list))
		}
	})
	d.reasons.Want(wanted)
	for i := range list {
		delete(d.reports, list[i].Unit.Key) // the failed report is older
		d.writeReport(now, list[i].Unit.Key, report{Saying: list[i].Saying})
	}
}

// writeReport writes a reason if it still holds and the object does not say it already: a restart writes nothing that
// is there (I8, I12).
func (d *decisions) writeReport(now time.Time, key string, x report) {
	rec := d.units.Get(key)
	if rec == nil || patch.Says(rec.Object, &x.Saying) {
		return
	}
	if reason, _ := objects.Told(rec.Object, x.Reason, ""); reason != x.Reason {
		return
	}
	var told transition.Explain
	holds := false
	d.core.Call(key, func(s *admission.State) {
		told, holds = s.Telling().Of(key)
		holds = holds && told.Saying == x.Saying
	})
	if rec.Flight != nil || !holds {
		d.unsaid(now, key)
		return
	}
	w := d.writers.Unit(rec.Object, statuswrite.Report, patch.Reason(&told, d.subject(rec), now), now)
	if d.unlawful(w) {
		return
	}
	w.Reason, w.Said, w.Tries = string(x.Reason), x.Saying, x.tries
	rec.Act().Reporting = w
	d.writers.Submit(w)
}

// unsaid has the core say again what was not written.
func (d *decisions) unsaid(now time.Time, key string) {
	d.core.Call(key, func(s *admission.State) { s.Telling().Failed(now, key) })
}

// dropReport gives up what was to be written of why a unit waits: it would change the version that a decision is
// written on.
func (d *decisions) dropReport(now time.Time, key string, rec *unitbook.Record) {
	_, planned := d.reports[key]
	delete(d.reports, key)
	if rec.Reporting != nil {
		rec.Reporting.Cancel()
		rec.Act().Reporting = nil
	} else if !planned {
		return
	}
	d.unsaid(now, key)
}

// reportWritten handles the result of writing a reason. A write is tried a few times. After a refusal of the API server
// the reason is written again when it changes.
func (d *decisions) reportWritten(now time.Time, rec *unitbook.Record, r statuswrite.Result) {
	w := r.Write
	if rec.Reporting == w {
		w.Cancel()
		rec.Act().Reporting = nil
	}
	switch {
	case r.Outcome == transition.Confirmed:
		d.tally.Attempt("confirmed", w)
	case r.Outcome == transition.Refused:
		d.tally.Attempt("refused", w)
	case rec.Flight != nil:
		d.unsaid(now, rec.Object.Key())
	case w.Tries >= maxReportTries:
		d.tally.Attempt("refused", w)
		d.unsaid(now, rec.Object.Key())
	default:
		d.reports.again(now, rec.Object.Key(), w)
	}
}
