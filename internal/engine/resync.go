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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// again looks at everything for which no event may have come.
func (f *facts) again(now time.Time, leading bool) {
	f.resolveAgain(now, f.units.Unlabelled())
	f.pods.Settle(now)
	f.dropGhosts(now)
	if leading {
		f.findMissingConsumers(now)
	}
	f.pods.Activation.FreeIdle(true)
}

// dropGhosts forgets units of the list at Lead that no watch ever reported: they were deleted in between. A watch that
// has not reached the version of the unit only hangs, however long, and the unit may hold quota (I1, I7). A watch that
// has reached it has an interval to report.
func (f *facts) dropGhosts(now time.Time) {
	for _, key := range slices.Sorted(maps.Keys(f.ghosts)) {
		rec := f.units.Get(key)
		if rec != nil && f.sources.WatchIsBefore(rec.Object.ResourceVersion) {
			f.ghosts[key] = 0
			continue
		}
		if f.ghosts[key]++; f.ghosts[key] < 2 {
			continue
		}
		delete(f.ghosts, key)
		if rec != nil && !f.sources.HasUnit(key) {
			f.forgetUnit(now, key, rec)
		}
	}
}

// findMissingConsumers tells the core of units that hold quota for a job that is not there: of such a job no watch
// ever speaks.
func (f *facts) findMissingConsumers(now time.Time) {
	for _, key := range f.units.Holders() {
		rec := f.units.Get(key)
		if !rec.Managed || f.sources.Unlisted(rec.Object.Consumer.Kind) {
			continue
		}
		live := false
		f.core.Call(key, func(s *admission.State) {
			if live = s.Live(rec.Object.Consumer); !live {
				s.SetConsumer(now, rec.Object.Consumer, false)
			}
		})
		if !live {
			f.touch(now, key, rec)
		}
	}
}

// manage looks at everything that depends on what is managed, which no event may do; configurations change rarely.
func (f *facts) manage(next *intake.Following) {
	now := f.Clock.Now()
	f.sources.Take(next)
	f.managed.Store(next.Predicate())
	for _, job := range sortedJobs(f.jobs) {
		if !next.Has(job.Consumer(string(f.jobs[job]))) {
			f.applyJob(now, job, mail.JobEvent{}) // the job was deleted between both informers
		}
	}
	f.resolveAgain(now, f.units.Keys())
	f.pods.NameAgain()
	f.findPods()
	f.pods.RetellAll(now)
	f.Log.Info("Which jobs are managed changed", "kinds", len(next.Predicate().Kinds()), "hash", next.Predicate().Hash())
}

// findPods takes pods that could belong to no unit before. Those on a node are counted already.
func (f *facts) findPods() {
	if f.opts.Pods == nil {
		return
	}
	now := f.Clock.Now()
	for _, object := range f.opts.Pods.GetStore().List() {
		if pod, ok := object.(*corev1.Pod); ok && !f.pods.Known(pod.UID) && f.managed.Concerns(pod) {
			f.pods.Apply(now, mail.PodEvent{Pod: pod, Initial: true})
		}
	}
}
