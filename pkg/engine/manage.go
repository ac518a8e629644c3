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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// Follow registers with the informers of a factory for what another configuration manages. The owner of the factory
// starts it, and calls Manage once the result of Follow is settled.
func (e *Engine) Follow(from metadatainformer.SharedInformerFactory, p *managedjobs.Predicate) (*Following, error) {
	return e.sources.followJobs(from, p)
}

// Manage has another configuration hold, and done called when it does. Informers of the one before are not listened to
// any more.
func (e *Engine) Manage(f *Following, done func()) {
	e.box.call(func() {
		e.manage(f)
		done()
	})
}

// manage looks at everything that depends on what is managed, which no event may do; configurations change rarely.
func (e *Engine) manage(f *Following) {
	now := e.opts.Clock.Now()
	before := e.sources.kinds.Swap(f)
	before.over.Store(true)
	e.managed.Store(f.predicate)
	for _, name := range sortedKeys(before.kinds) {
		if why := before.kinds[name].why(); why != "" && (f.kinds[name] == nil || f.kinds[name].why() != why) {
			e.opts.Metrics.Set(metrics.JobKindUnavailable, 0, name, why)
		}
	}
	for _, job := range sortedJobs(e.jobs) {
		if !f.has(job.Consumer(string(e.jobs[job]))) {
			e.applyJob(now, job, jobEvent{}) // it went while one informer followed the other
		}
	}
	e.resolveAgain(now, e.units.keys())
	e.pods.nameAgain()
	e.findPods()
	e.pods.retellAll(now)
	e.log.Info("Which jobs are managed changed", "kinds", len(f.predicate.Kinds()), "hash", f.predicate.Hash())
}

// kindsListed looks again at units whose jobs could not be listed, once they were.
func (e *Engine) kindsListed() { e.resolveAgain(e.opts.Clock.Now(), e.units.keys()) }

// findPods takes pods that could belong to no unit before. Those on a node are counted already.
func (e *Engine) findPods() {
	if e.opts.Pods == nil {
		return
	}
	now := e.opts.Clock.Now()
	for _, object := range e.opts.Pods.GetStore().List() {
		if pod, ok := object.(*corev1.Pod); ok && e.pods.index.byUID[pod.UID] == nil && e.concerns(pod) {
			e.pods.apply(now, podEvent{pod: pod, initial: true})
		}
	}
}
