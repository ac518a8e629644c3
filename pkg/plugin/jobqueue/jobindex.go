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

package jobqueue

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// JobIndex finds jobs of the managed kinds by UID, from informers that hold metadata only.
type JobIndex struct {
	mu   sync.RWMutex
	jobs map[types.UID]*intake.JobMeta
}

// NewJobIndex registers an informer for every kind with the factory, which the caller starts. arrived, if set, is
// called for every job that comes or changes.
func NewJobIndex(
	factory metadatainformer.SharedInformerFactory, predicate *managedjobs.Predicate, arrived func(uid types.UID),
) (*JobIndex, error) {
	index := &JobIndex{jobs: map[types.UID]*intake.JobMeta{}}
	for _, kind := range predicate.Followed() {
		informer := factory.ForResource(kind.GVR).Informer()
		if err := informer.SetTransform(intake.TrimJobs(predicate.LabelKeys())); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.GVR, err)
		}
		if _, err := informer.AddEventHandler(index.follow(arrived)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kind.GVR, err)
		}
	}
	return index, nil
}

// Job returns what is known of the job with this UID.
func (x *JobIndex) Job(uid types.UID) (Job, bool) {
	x.mu.RLock()
	meta, ok := x.jobs[uid]
	x.mu.RUnlock()
	if !ok {
		return Job{}, false
	}
	return Job{Labels: meta.Labels(), Annotations: meta.Annotations(), Owner: meta.Owner()}, true
}

// follow keeps the index. An index of the informer's own costs a set for every job.
func (x *JobIndex) follow(arrived func(uid types.UID)) cache.ResourceEventHandlerFuncs {
	put := func(old, obj any) {
		meta, ok := obj.(*intake.JobMeta)
		if !ok {
			return
		}
		x.mu.Lock()
		if former, ok := old.(*intake.JobMeta); ok && former.UID() != meta.UID() {
			delete(x.jobs, former.UID())
		}
		x.jobs[meta.UID()] = meta
		x.mu.Unlock()
		if arrived != nil {
			arrived(meta.UID())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { put(nil, obj) }, UpdateFunc: put,
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if meta, ok := obj.(*intake.JobMeta); ok {
				x.mu.Lock()
				delete(x.jobs, meta.UID())
				x.mu.Unlock()
			}
		},
	}
}
