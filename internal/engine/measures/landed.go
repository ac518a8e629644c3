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

package measures

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/waits"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Tally counts and logs what became of decisions, whose outcomes are definite.
type Tally struct {
	*env.Env
	gauges  *Gauges
	startup *Startup
	waits   *waits.Waits
}

func NewTally(v *env.Env, g *Gauges, s *Startup, w *waits.Waits) *Tally {
	return &Tally{Env: v, gauges: g, startup: s, waits: w}
}

// ManyEvictions is the number of evictions of a unit beyond which each is counted as repeated.
const ManyEvictions = 5

func (t *Tally) Attempt(result string, w *statuswrite.Write) {
	t.Metrics.Inc(metrics.AttemptsTotal, string(w.Kind)+"-"+result, w.Reason)
}

// Landed notes the outcome of a decision in flight.
func (t *Tally) Landed(now time.Time, rec *unitbook.Record, w *statuswrite.Write, outcome transition.Outcome) {
	t.Attempt(statuswrite.LabelOf(outcome), w)
	t.Log.V(2).Info("Wrote a decision", "queueUnit", w.Key, "cycle", w.Cycle, "kind", w.Kind, "reason", w.Reason,
		"queue", rec.Queue, "quota", rec.Quota, "attempt", w.Attempt, "outcome", statuswrite.LabelOf(outcome))
	if outcome != transition.Confirmed {
		return
	}
	queue, quota := t.gauges.Labels(rec)
	switch d := w.Decision.(type) {
	case *transition.Admit:
		t.startup.noteAdmission(now, w)
		if d.Borrows {
			t.Metrics.Inc(metrics.LoansTotal, queue, quota)
		}
		if len(d.Counts) > 0 {
			t.Metrics.Inc(metrics.PartialAdmissionsTotal, queue, quota)
		}
		if !w.Phase().Releases() {
			t.Metrics.Inc(metrics.ReservationsTotal, queue, quota)
			return
		}
		t.admitted(now, rec, w)
	case *transition.Dequeue:
		t.Metrics.Observe(metrics.AdmissionChecksSeconds, w.Decided.Sub(w.Base.Admitted).Seconds(), queue)
		t.admitted(now, rec, w)
	case *transition.Resize:
		if d.Borrows {
			t.Metrics.Inc(metrics.LoansTotal, queue, quota)
		}
		switch before := w.Base.Held; {
		case !before.Covers(d.Held):
			t.Metrics.Inc(metrics.ResizesTotal, queue, "Grown")
		case !d.Held.Covers(before):
			t.Metrics.Inc(metrics.ResizesTotal, queue, "Shrunk")
		}
	case *transition.Preempt:
		t.Log.Info("A unit preempts others", "queueUnit", w.Key, "cycle", w.Cycle, "queue", rec.Queue, "quota", rec.Quota,
			"holds", d.Joined())
	case *transition.Evict:
		t.evicted(rec, w, d)
	}
}

func (t *Tally) evicted(rec *unitbook.Record, w *statuswrite.Write, d *transition.Evict) {
	t.Log.Info("Took an admission back", "queueUnit", w.Key, "queue", rec.Queue, "quota", rec.Quota, "reason", d.Reason)
	if d.Reason == unit.ReasonConsumerNotFound || d.Reason == unit.ReasonConsumerUIDMismatch {
		return // its job was deleted
	}
	queue, _ := t.gauges.Labels(rec)
	t.Metrics.Inc(metrics.EvictedUnitsTotal, queue, string(d.Reason))
	// Each admission before this one ended with an eviction.
	t.Metrics.CountIf(d.Unit.Attempts > ManyEvictions, metrics.RepeatedEvictionsTotal, queue)
	if d.Deactivate != "" {
		t.Metrics.Inc(metrics.DeactivatedUnitsTotal, queue, string(d.Deactivate))
	}
}

// admitted is for a unit whose pods may go now.
func (t *Tally) admitted(now time.Time, rec *unitbook.Record, w *statuswrite.Write) {
	rec.Act().AdmittedAt = now
	queue, quota := t.gauges.Labels(rec)
	waited := w.Decided.Sub(objects.WaitsSince(w.Base))
	if rec.Object.Observed {
		t.Metrics.Observe(metrics.ObservedWaitSeconds, waited.Seconds(), queue)
		return
	}
	t.Metrics.Inc(metrics.AdmissionsTotal, queue, quota)
	t.waits.Admitted(queue, rec.Object.Namespace, waited)
}
