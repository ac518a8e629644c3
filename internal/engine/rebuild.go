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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/owner"
)

// heal rebuilds the core's state from the objects, after a panic in it or when it was found to differ; nothing is
// decided before that. Decisions in flight count as held until they are settled: they may be applied.
func (f *facts) heal(now time.Time, leading bool) {
	if f.core.Sound() {
		return
	}
	if wait := f.core.Waits(now); wait > 0 {
		f.retry(now, wait)
		return
	}
	cause := f.core.Renew(now)
	for _, job := range sortedJobs(f.jobs) {
		f.setConsumer(now, job, f.jobs[job], true)
	}
	for _, name := range slices.Sorted(maps.Keys(f.queues)) {
		f.pushQueue(now, f.queues[name])
	}
	units := f.units.Keys()
	for _, key := range units {
		rec := f.units.Get(key)
		c := f.resolve(rec.Object)
		f.units.Resolved(rec, &c)
		if rec.Flight != nil {
			rec.Flight.Decision.Hold(&c)
		}
		f.core.Call(key, func(s *admission.State) { s.UpsertUnit(now, c) })
		f.touch(now, key, rec)
	}
	f.pods.ForgetTold()
	f.pods.RetellAll(now)
	f.quotas.Tell(now, f.core)
	if !leading && f.core.Sound() {
		f.core.Recovered() // a standby does not decide
	}
	f.Metrics.Inc(metrics.StateRebuildsTotal, cause)
	f.Log.Info("Rebuilt the state of admission", "cause", cause, "queueUnits", len(units))
}

func sortedJobs(jobs map[owner.Name]types.UID) []owner.Name {
	return slices.SortedFunc(maps.Keys(jobs), owner.Name.Compare)
}

// relist takes lists for what there is, and has the core's state rebuilt in this step. The list of pods counts if
// Options.Pods is set.
func (f *facts) relist(units []*objects.Unit, version string, pods []*corev1.Pod) {
	now := f.Clock.Now()
	listed := make(map[string]struct{}, len(units))
	for _, u := range units {
		key := u.Key()
		listed[key] = struct{}{}
		f.applyUnit(now, key, mail.UnitEvent{State: u})
	}
	for _, key := range f.units.Keys() {
		rec := f.units.Get(key)
		if _, ok := listed[key]; !ok && !objects.VersionAfter(rec.Object.ResourceVersion, version) {
			f.forgetUnit(now, key, rec)
		}
	}
	if f.opts.Pods != nil {
		f.pods.Relist(now, pods, f.opts.podExists)
	}
	f.core.Discard(recovery.Difference)
	f.quotas.MarkAll()
	f.retry(now, 0)
}

// podExists asks the scheduler's cache. A pod of which it cannot say so exists.
func (o *Options) podExists(pod *corev1.Pod) bool {
	obj, exists, err := o.Pods.GetStore().GetByKey(pod.Namespace + "/" + pod.Name)
	if err != nil {
		return true
	}
	now, ok := obj.(*corev1.Pod)
	return exists && (!ok || now.UID == pod.UID)
}
