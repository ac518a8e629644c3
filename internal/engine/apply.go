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

	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
)

// take feeds the state with what came. Jobs come before units, so that a unit finds its job when both came together.
func (f *facts) take(now time.Time, b *mail.Batch) {
	for _, it := range b.Jobs.Items {
		f.applyJob(now, it.Key, it.Value)
	}
	for _, it := range b.Classes.Items {
		f.applyClass(now, it.Key, it.Value)
	}
	for _, it := range b.Bounds.Items {
		if f.priorities.SetBound(it.Key, it.Value) {
			f.resolveAgain(now, f.units.InNamespace(it.Key))
		}
	}
	for _, it := range b.Checks.Items {
		f.applyCheck(now, it.Key, it.Value)
	}
	for _, it := range b.Queues.Items {
		f.applyQueue(now, it.Key, it.Value)
	}
	urgent, gathered := b.QuotaNews()
	f.quotas.Note(now, urgent, gathered, b.Total)
	if b.Mapping {
		f.remap(now)
	}
	for _, it := range b.Units.Items {
		f.applyUnit(now, it.Key, it.Value)
	}
	for _, it := range b.Pods.Items {
		f.pods.Apply(now, it.Value)
	}
	for _, it := range b.Assigns.Items {
		f.pods.Assign(now, it.Key, it.Value)
	}
}

func (f *facts) applyJob(now time.Time, job owner.Name, ev mail.JobEvent) {
	before, uid := f.jobs[job], ev.UID
	if before != "" && before != uid {
		f.kinship.Forget(before)
	}
	if uid != "" {
		moved, marked := f.kinship.Set(uid, ev.Owner), f.kinship.Mark(uid, ev.Marked)
		if moved || marked {
			f.pods.Retell(now, f.kinship.Family(uid))
		}
	}
	if before == uid {
		return
	}
	if before != "" {
		delete(f.jobs, job)
		delete(f.pasts, job.Consumer(string(before)))
		f.setConsumer(now, job, before, false)
	}
	if uid != "" {
		f.jobs[job] = uid
		f.setConsumer(now, job, uid, true)
	}
}

func (f *facts) setConsumer(now time.Time, job owner.Name, uid types.UID, live bool) {
	c := job.Consumer(string(uid))
	f.core.Call("", func(s *admission.State) { s.SetConsumer(now, c, live) })
}

func (f *facts) applyClass(now time.Time, name string, class *objects.Class) {
	changed, byDefault := f.priorities.SetClass(name, class)
	if !changed {
		return
	}
	f.resolveAgain(now, f.units.OfClass(name, byDefault))
	for _, queue := range slices.Sorted(maps.Keys(f.queues)) {
		if q := f.queues[queue]; q.Class == name {
			f.pushQueue(now, q)
		}
	}
}

// applyCheck takes an AdmissionCheck; nil is none. Queues that name it may be open now, or not any more.
func (f *facts) applyCheck(now time.Time, name string, check *objects.Check) {
	f.checks.Set(name, check)
	f.opts.Witness.Check(name)
	for _, key := range f.units.Holders() {
		if rec := f.units.Get(key); rec.Object.Updates.AskedBy(name) {
			f.feed(now, rec)
			f.pods.LookAgain(rec.Object)
		}
	}
	for _, queue := range slices.Sorted(maps.Keys(f.queues)) {
		if q := f.queues[queue]; q.Asks(name) {
			f.statuses.Mark(now, queue)
			f.pushQueue(now, q)
		}
	}
}

func (f *facts) applyQueue(now time.Time, name string, q *objects.Queue) {
	f.queueNames.Set(name, q != nil)
	if (q == nil) != (f.queues[name] == nil) {
		f.gauges.Recount(now)
	}
	if q == nil {
		delete(f.queues, name)
		f.statuses.Forget(name)
		f.waits.QueueGone(name)
		f.core.Call("", func(s *admission.State) { s.DeleteQueue(now, name) })
		return
	}
	if have := f.queues[name]; have == nil || have.UID != q.UID {
		f.statuses.Forget(name)
	}
	f.opts.countUnreadable(q.Panicked)
	f.queues[name] = q
	f.waits.SetQueue(name, q.WaitObjective)
	f.gauges.Mark(now, "")
	f.statuses.Mark(now, name)
	f.pushQueue(now, q)
}

// countUnreadable counts a panic while an object was read, which happened in the goroutine of an informer.
func (o *Options) countUnreadable(panicked bool) {
	if panicked {
		o.Metrics.Inc(metrics.PanicsTotal, "decode")
	}
}

func (f *facts) pushQueue(now time.Time, q *objects.Queue) {
	spec := q.Spec
	if q.Class != "" {
		spec.Priority = f.priorities.Of(q.Class)
	}
	spec.Fault = f.checks.FaultOf(q)
	spec.AdmissionChecks = f.checks.Resolved(q.Spec.AdmissionChecks)
	f.core.Call("", func(s *admission.State) { s.UpsertQueue(now, spec) })
}

// remap asks for the quotas of units and pods again: which ones there are, or which one a namespace has, changed.
func (f *facts) remap(now time.Time) {
	f.resolveAgain(now, f.units.Unlabelled())
	f.pods.Remap(now)
}

// exists says whether there is a queue of this name.
func (f *facts) exists(queue string) bool { return f.queues[queue] != nil }
