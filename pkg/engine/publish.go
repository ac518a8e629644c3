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
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/engine/objects"
)

// publisher makes the snapshots that the scheduler's gate reads.
type publisher struct {
	view atomic.Pointer[snapshot]
	// Whose place in the snapshot may have changed.
	units     latest[string, struct{}]
	consumers latest[types.UID, struct{}]
	pods      latest[types.UID, struct{}]
	sequence  int64 // of admissions
}

func newPublisher() *publisher {
	p := &publisher{}
	p.view.Store(newSnapshot())
	return p
}

func (p *publisher) newest() *snapshot { return p.view.Load() }

// touch has a unit looked at again.
func (p *publisher) touch(key string, consumer types.UID) {
	p.units.put(key, struct{}{})
	if consumer != "" {
		p.consumers.put(consumer, struct{}{})
	}
}

// touchPod has a pod looked at again.
func (p *publisher) touchPod(uid types.UID) { p.pods.put(uid, struct{}{}) }

// place is the next one in the order of admissions.
func (p *publisher) place() int64 {
	p.sequence++
	return p.sequence
}

// publish stores the next snapshot and returns the pods that may go since, in the order of the admissions of their
// units. goes returns the unit of a pod that may go, nil of another.
func (p *publisher) publish(
	loaded bool, units *records, releases func(string, *unitRecord) bool, goes func(types.UID) (*unitRecord, grant),
) []types.UID {
	next := *p.newest()
	if len(p.units.items)+len(p.consumers.items)+len(p.pods.items) == 0 && next.loaded == loaded {
		return nil
	}
	next.loaded = loaded
	p.publishUnits(&next, units, releases)
	fresh := p.publishPods(&next, goes)
	p.units, p.consumers = latest[string, struct{}]{}, latest[types.UID, struct{}]{}
	p.pods = latest[types.UID, struct{}]{}
	p.view.Store(&next)
	return fresh
}

func (p *publisher) publishUnits(next *snapshot, units *records, releases func(string, *unitRecord) bool) {
	var fresh []*unitRecord
	for _, it := range p.units.items {
		rec := units.get(it.key)
		switch ok := rec != nil && releases(it.key, rec); {
		case ok && !rec.published:
			fresh = append(fresh, rec)
		case !ok:
			next.units = next.units.Delete(it.key)
			units.withdraw(rec)
		}
	}
	slices.SortFunc(fresh, func(a, b *unitRecord) int {
		return cmp.Or(a.object.Admitted.Compare(b.object.Admitted), cmp.Compare(a.seq, b.seq),
			strings.Compare(a.object.Key(), b.object.Key()))
	})
	for _, rec := range fresh {
		if rec.seq == 0 {
			rec.act().seq = p.place()
		}
		units.publish(rec)
		next.units = next.units.Set(rec.object.Key(), rec.object.ConsumerUID())
	}
	for _, it := range p.consumers.items {
		if known, published := units.published(it.key); known {
			next.consumers = next.consumers.Set(string(it.key), published)
		} else {
			next.consumers = next.consumers.Delete(string(it.key))
		}
	}
}

// publishPods has in the snapshot the pods that may go. They are asked for when their units are published.
func (p *publisher) publishPods(next *snapshot, goes func(types.UID) (*unitRecord, grant)) []types.UID {
	type released struct {
		pod  types.UID
		unit *unitRecord
	}
	var fresh []released
	for _, it := range p.pods.items {
		unit, now := goes(it.key)
		if unit == nil {
			next.pods = next.pods.Delete(string(it.key))
			continue
		}
		before, there := next.pods.Get(string(it.key))
		if !there || before != now {
			next.pods = next.pods.Set(string(it.key), now)
		}
		if !there || before.lacking != now.lacking {
			fresh = append(fresh, released{it.key, unit})
		}
	}
	slices.SortFunc(fresh, func(a, b released) int {
		return cmp.Or(cmp.Compare(a.unit.seq, b.unit.seq), cmp.Compare(a.pod, b.pod))
	})
	pods := make([]types.UID, len(fresh))
	for i := range fresh {
		pods[i] = fresh[i].pod
	}
	return pods
}

// publish makes the snapshot say what the core says of the units and pods that were touched. It comes before pods are
// activated and before evictions are written: a pod passes only while its unit is admitted, confirmed (I3).
func (e *Engine) publish() {
	if e.core.sound() {
		e.core.call("", func(s *admission.State) {
			for _, g := range s.Holdings().Grants() {
				e.publisher.touchPod(types.UID(g.Pod))
			}
		})
	}
	e.pods.free(e.publisher.publish(e.loaded, e.units, e.releases, e.goes))
}

// goes returns the unit of a pod that may go as far as that holds quota for it, and what else is granted with that. It
// returns nil for another one. A pod that is on a node has gone.
func (e *Engine) goes(uid types.UID) (unit *unitRecord, now grant) {
	rec := e.pods.index.byUID[uid]
	if rec == nil || rec.pod == nil || rec.pod.Spec.NodeName != "" {
		return nil, now
	}
	if unit = e.units.get(rec.unit); unit == nil || !unit.published {
		return nil, now
	}
	before, granted := e.publisher.newest().pods.Get(string(uid))
	if now.until = before.until; e.core.sound() {
		granted = false
		e.core.call(rec.unit, func(s *admission.State) {
			granted, now.until = s.Holdings().Granted(rec.unit, string(uid)), admission.RunsUntil(s, rec.unit)
		})
	}
	if !granted {
		return nil, now
	}
	now.lacking = objects.Shorten(unit.object.Updates.Lacking(rec.pod, e.checks.listed))
	if now.lacking != "" && now.lacking != before.lacking {
		e.log.Info("A pod is held back, since it lacks what admission checks asked to write into it",
			"reason", "CheckUpdatesMissing", "queueUnit", rec.unit, "pod", rec.pod.Name, "lacks", now.lacking)
	}
	return unit, now
}

// releases says whether pods of the unit may go: no decision about it is in flight, the core has it as admitted, and
// its phase releases. An object that holds quota but is unreadable otherwise counts in the ledger, yet lets nobody
// pass.
func (e *Engine) releases(key string, rec *unitRecord) bool {
	if !e.core.sound() {
		// What the core says is worth nothing. Nobody comes in, and whose object lets its pods go stays in.
		return rec.published && rec.flight.keepsAdmission() && rec.object.Phase.Releases()
	}
	ok := false
	e.core.call(key, func(s *admission.State) { ok = s.Releases(key) })
	return ok && rec.flight.keepsAdmission()
}
