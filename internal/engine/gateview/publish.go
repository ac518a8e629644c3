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

// Package gateview makes the snapshots that the scheduler's gate reads: which units are admitted, and which of their
// pods may go (I3).
package gateview

import (
	"cmp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/latest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
)

// Publisher makes the snapshots that the scheduler's gate reads.
type Publisher struct {
	*env.Env
	core    *recovery.Core
	records *unitbook.Book
	// listed are the keys that an admission check may write into pods; false if the check is not known.
	listed func(check string) (podupdate.Keys, bool)
	view   atomic.Pointer[Snapshot]
	// Whose place in the snapshot may have changed.
	units     latest.Map[string, struct{}]
	consumers latest.Map[types.UID, struct{}]
	pods      latest.Map[types.UID, struct{}]
	sequence  int64 // of admissions
}

func New(
	v *env.Env, c *recovery.Core, units *unitbook.Book, listed func(string) (podupdate.Keys, bool),
) *Publisher {
	p := &Publisher{Env: v, core: c, records: units, listed: listed}
	p.view.Store(newSnapshot())
	return p
}

func (p *Publisher) Newest() *Snapshot { return p.view.Load() }

// Touch has a unit looked at again.
func (p *Publisher) Touch(key string, consumer types.UID) {
	p.units.Put(key, struct{}{})
	if consumer != "" {
		p.consumers.Put(consumer, struct{}{})
	}
}

// TouchPod has a pod looked at again.
func (p *Publisher) TouchPod(uid types.UID) { p.pods.Put(uid, struct{}{}) }

// Place is the next one in the order of admissions.
func (p *Publisher) Place() int64 {
	p.sequence++
	return p.sequence
}

// Publish brings touched units and pods in the snapshot up to date with the core. It returns the pods that may pass the
// gate since then, in the order of the admissions of their units. It comes before pods are activated and before
// evictions are written. A pod passes only while its unit is admitted, and that write is confirmed (I3).
func (p *Publisher) Publish(loaded bool, pods waitingPods) []types.UID {
	if p.core.Sound() {
		p.core.Call("", func(s *admission.State) {
			for _, g := range s.Holdings().Grants() {
				p.TouchPod(types.UID(g.Pod))
			}
		})
	}
	next := *p.Newest()
	if len(p.units.Items)+len(p.consumers.Items)+len(p.pods.Items) == 0 && next.loaded == loaded {
		return nil
	}
	next.loaded = loaded
	p.publishUnits(&next)
	fresh := p.publishPods(&next, pods)
	p.units, p.consumers = latest.Map[string, struct{}]{}, latest.Map[types.UID, struct{}]{}
	p.pods = latest.Map[types.UID, struct{}]{}
	p.view.Store(&next)
	return fresh
}

func (p *Publisher) publishUnits(next *Snapshot) {
	var fresh []*unitbook.Record
	for _, it := range p.units.Items {
		rec := p.records.Get(it.Key)
		switch ok := rec != nil && p.releases(it.Key, rec); {
		case ok && !rec.Published:
			fresh = append(fresh, rec)
		case !ok:
			next.units = next.units.Delete(it.Key)
			p.records.Withdraw(rec)
		}
	}
	slices.SortFunc(fresh, func(a, b *unitbook.Record) int {
		return cmp.Or(a.Object.Admitted.Compare(b.Object.Admitted), cmp.Compare(a.Seq, b.Seq),
			strings.Compare(a.Object.Key(), b.Object.Key()))
	})
	for _, rec := range fresh {
		if rec.Seq == 0 {
			rec.Act().Seq = p.Place()
		}
		p.records.Publish(rec)
		next.units = next.units.Set(rec.Object.Key(), rec.Object.ConsumerUID())
	}
	for _, it := range p.consumers.Items {
		if known, published := p.records.Published(it.Key); known {
			next.consumers = next.consumers.Set(string(it.Key), published)
		} else {
			next.consumers = next.consumers.Delete(string(it.Key))
		}
	}
}

// publishPods has in the snapshot the pods that may go. They are asked for when their units are published.
func (p *Publisher) publishPods(next *Snapshot, pods waitingPods) []types.UID {
	type released struct {
		pod  types.UID
		unit *unitbook.Record
	}
	var fresh []released
	for _, it := range p.pods.Items {
		unit, now := p.goes(pods, it.Key)
		if unit == nil {
			next.pods = next.pods.Delete(string(it.Key))
			continue
		}
		before, there := next.pods.Get(string(it.Key))
		if !there || before != now {
			next.pods = next.pods.Set(string(it.Key), now)
		}
		if !there || before.lacking != now.lacking {
			fresh = append(fresh, released{it.Key, unit})
		}
	}
	slices.SortFunc(fresh, func(a, b released) int {
		return cmp.Or(cmp.Compare(a.unit.Seq, b.unit.Seq), cmp.Compare(a.pod, b.pod))
	})
	free := make([]types.UID, len(fresh))
	for i := range fresh {
		free[i] = fresh[i].pod
	}
	return free
}

// Granted says whether the newest snapshot lets the pod go.
func (p *Publisher) Granted(uid types.UID) bool { return p.Newest().Granted(uid) }

// waitingPods finds a pod that is on no node, and its unit; nil for another one.
type waitingPods interface {
	Waiting(uid types.UID) (pod *corev1.Pod, unit string)
}

// goes returns the unit of a pod that may go as far as that holds quota for it, and what else is granted with that. It
// returns nil for another one. A pod that is on a node has gone.
func (p *Publisher) goes(pods waitingPods, uid types.UID) (unit *unitbook.Record, now grant) {
	pod, key := pods.Waiting(uid)
	if pod == nil {
		return nil, now
	}
	if unit = p.records.Get(key); unit == nil || !unit.Published {
		return nil, now
	}
	before, granted := p.Newest().pods.Get(string(uid))
	if now.until = before.until; p.core.Sound() {
		granted = false
		p.core.Call(key, func(s *admission.State) {
			granted, now.until = s.Holdings().Granted(key, string(uid)), admission.Of(s, key, time.Time{}, life.RunsUntil)
		})
	}
	if !granted {
		return nil, now
	}
	now.lacking = objects.Shorten(unit.Object.Updates.Lacking(pod, p.listed))
	if now.lacking != "" && now.lacking != before.lacking {
		p.Log.Info("A pod is held back, since it lacks what admission checks asked to write into it",
			"reason", "CheckUpdatesMissing", "queueUnit", key, "pod", pod.Name, "lacks", now.lacking)
	}
	return unit, now
}

// releases says whether pods of the unit may be scheduled. No decision about it is in flight, the core has it as
// admitted, and its phase releases. An unreadable object that holds quota counts in the ledger, but releases nothing.
func (p *Publisher) releases(key string, rec *unitbook.Record) bool {
	if !p.core.Sound() {
		// The core's answer is worthless. No unit is admitted, and a unit whose object releases its pods stays admitted.
		return rec.Published && rec.Flight.KeepsAdmission() && rec.Object.Phase.Releases()
	}
	ok := false
	p.core.Call(key, func(s *admission.State) { ok = s.Releases(key) })
	return ok && rec.Flight.KeepsAdmission()
}
