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
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/benbjohnson/immutable"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// maxExplainTries bounds how often a reason is written again after a conflict or an error.
const maxExplainTries = 5

// explanation waits to be written into a unit.
type explanation struct {
	reason  admission.Reason
	message string
	at      time.Time
	tries   int
}

// decide lets the core decide and turns its plan into writes.
func (e *Engine) decide(now time.Time) {
	var plan admission.Plan
	ok := e.guard("core", func() { plan = e.state.Decide(now) })
	if !ok {
		e.corePanicked("")
		e.retryIn(now, e.rebuildDelay())
		return
	}
	e.recovered()
	e.decideAt = plan.WakeAt
	e.opts.Metrics.Observe(metrics.CycleExaminedUnits, float64(plan.Examined))
	for range plan.Panics {
		e.opts.Metrics.Inc(metrics.PanicsTotal, "extension")
	}
	for i := range plan.Evict {
		d := &plan.Evict[i]
		if rec := e.decided(now, d.Unit.Key, d.Unit.Attempts); rec != nil {
			e.fly(rec, writeEvict, d.Unit.Attempts, d.Reason, evictStatus(rec.object, d.Reason, d.Message, now), now)
		}
	}
	for i := range plan.Admit {
		d := &plan.Admit[i]
		if rec := e.decided(now, d.Unit.Key, d.Attempt); rec != nil {
			e.sequence++
			rec.act().seq = e.sequence
			e.fly(rec, writeAdmit, d.Attempt, "", admitStatus(rec.object, d, now), now)
			rec.flight.borrows = d.Borrows
		}
	}
	for i := range plan.Explain {
		d := &plan.Explain[i]
		e.explains[d.Unit.Key] = explanation{reason: d.Reason, message: d.Message, at: now}
	}
}

// decided prepares the record of a unit for the write of a decision. A decision about a unit that is not there, or is
// being written already, cannot be carried out and is given back.
func (e *Engine) decided(now time.Time, key string, attempt int64) *unitRecord {
	rec := e.units[key]
	if rec == nil || rec.flight != nil {
		e.inCore(key, func() { e.state.Settle(now, key, attempt, admission.OutcomeRefuted) })
		return nil
	}
	delete(e.explains, key)
	if rec.explaining != nil {
		// It would change the version that the decision is written on.
		rec.explaining.cancel()
		rec.act().explaining = nil
	}
	e.touch(now, key, rec)
	return rec
}

func (e *Engine) fly(rec *unitRecord, kind writeKind, attempt int64, reason admission.Reason, status map[string]any, now time.Time) {
	w := e.newWrite(rec, kind, status, now)
	w.attempt, w.reason = attempt, reason
	rec.act().flight, rec.act().unknown = w, false
	e.writes = append(e.writes, w)
	if !e.alone(rec.object.consumerUID()) {
		e.rejoin(now, rec.object)
	}
}

func (e *Engine) newWrite(rec *unitRecord, kind writeKind, status map[string]any, now time.Time) *Write {
	e.nextWrite++
	w := &Write{
		id: e.nextWrite, kind: kind, resource: v1alpha1.QueueUnitResource, base: rec.object,
		key: types.NamespacedName{Namespace: rec.object.Namespace, Name: rec.object.Name}, status: status, decided: now,
	}
	w.ctx, w.cancel = context.WithCancel(e.ctx)
	return w
}

// handOut gives the writers what is to be written, decisions first.
func (e *Engine) handOut(now time.Time) {
	for _, w := range e.writes {
		e.submit(w)
	}
	clear(e.writes)
	e.writes = e.writes[:0]
	if !e.leading {
		return
	}
	for _, key := range sortedKeys(e.explains) {
		if x := e.explains[key]; !x.at.After(now) {
			e.writeExplanation(now, key, x)
		}
	}
	e.refreshQueues(now)
}

func (e *Engine) nextExplanation() time.Time {
	var first time.Time
	for _, x := range e.explains {
		first = earliest(first, x.at)
	}
	return first
}

// writeExplanation writes a reason if it still holds and the object does not say it already: a restart writes nothing
// that is there (I8, I12).
func (e *Engine) writeExplanation(now time.Time, key string, x explanation) {
	delete(e.explains, key)
	rec := e.units[key]
	if rec == nil || rec.flight != nil || explained(rec.object, x.reason, x.message) {
		return
	}
	if x.reason == admission.ReasonInactive && conditionSaysParked(rec.object) {
		return
	}
	var reason admission.Reason
	e.inCore(key, func() { reason, _, _ = e.state.Why(key) })
	if reason != x.reason {
		return
	}
	w := e.newWrite(rec, writeExplain, explainStatus(rec.object, x.reason, x.message, now), now)
	w.reason, w.message, w.tries = x.reason, x.message, x.tries
	rec.act().explaining = w
	e.submit(w)
}

// explained takes the result of writing a reason. It is tried a few times; if it is lost the reason is told again when
// it changes.
func (e *Engine) explained(now time.Time, rec *unitRecord, r Result) {
	w := r.write
	if rec.explaining == w {
		w.cancel()
		rec.act().explaining = nil
	}
	if r.outcome == admission.OutcomeConfirmed {
		e.countAttempt("confirmed", w)
		return
	}
	if r.outcome == admission.OutcomeRefused || w.tries >= maxExplainTries {
		e.countAttempt("refused", w)
		return
	}
	if _, newerReason := e.explains[rec.object.key()]; !newerReason && rec.flight == nil {
		e.explains[rec.object.key()] = explanation{
			reason: w.reason, message: w.message, at: now.Add(time.Second << w.tries), tries: w.tries + 1,
		}
	}
}

// publish makes the snapshot say what the core says of the units that were touched. It comes before pods are activated
// and before evictions are written: a pod passes only while its unit is admitted, confirmed (I3).
func (e *Engine) publish(now time.Time) {
	next := *e.view.Load()
	if len(e.touched.items)+len(e.rejudged.items) == 0 && next.loaded == e.loaded {
		return
	}
	next.loaded = e.loaded
	var admitted []*unitRecord
	for _, it := range e.touched.items {
		rec := e.units[it.key]
		switch ok := rec != nil && e.admitted(it.key, rec); {
		case ok && !rec.published:
			admitted = append(admitted, rec)
		case !ok:
			next.units = next.units.Delete(it.key)
			rec.withdraw()
		}
	}
	slices.SortFunc(admitted, func(a, b *unitRecord) int {
		return cmp.Or(a.object.allocated.Compare(b.object.allocated), cmp.Compare(a.seq, b.seq), strings.Compare(a.object.key(), b.object.key()))
	})
	for _, rec := range admitted {
		if rec.seq == 0 {
			e.sequence++
			rec.act().seq = e.sequence
		}
		rec.act().published, rec.act().publishedAt = true, now
		next.units = next.units.Set(rec.object.key(), rec.object.consumerUID())
	}
	for _, it := range e.rejudged.items {
		next.consumers = e.publishConsumer(next.consumers, it.key)
	}
	e.touched, e.rejudged = latest[string, struct{}]{}, latest[types.UID, struct{}]{}
	e.view.Store(&next)
	for _, rec := range admitted {
		for _, uid := range e.podsOfUnit(rec) {
			e.activate.put(uid, struct{}{})
		}
	}
}

// withdraw notes that the snapshot does not have the unit as admitted any more.
func (rec *unitRecord) withdraw() {
	if rec == nil || rec.activity == noActivity {
		return
	}
	rec.activity.published = false
	if rec.flight == nil {
		rec.activity.seq = 0
	}
}

// publishConsumer says of a job of a managed kind whether its unit is admitted. Other units that name its UID let none of
// its pods go: who writes them says how much they ask for, and of which quota.
func (e *Engine) publishConsumer(consumers *immutable.Map[string, bool], uid types.UID) *immutable.Map[string, bool] {
	known, admitted := false, false
	for rec := e.consumers[uid]; rec != nil; rec = rec.next {
		if rec.managed && !rec.misnamed {
			known, admitted = true, admitted || rec.published
		}
	}
	if !known {
		return consumers.Delete(string(uid))
	}
	return consumers.Set(string(uid), admitted)
}

// admitted says whether pods of the unit may go: nothing is being written about it, and the core has it as admitted.
// An object that holds quota but is unreadable otherwise counts in the ledger, yet lets nobody pass.
func (e *Engine) admitted(key string, rec *unitRecord) bool {
	if e.rebuild {
		// What the core says is worth nothing. Nobody comes in, and whose object holds quota stays in.
		return rec.published && rec.flight == nil && rec.object.phase.Holds()
	}
	ok := false
	e.inCore(key, func() { ok = e.state.Admitted(key) })
	return ok && rec.flight == nil
}

// mayGo says whether a pod is let through by the newest snapshot.
func (e *Engine) mayGo(rec *podRecord) bool {
	if unit := e.units[rec.unit]; unit != nil {
		return unit.published
	}
	return false
}
