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
	"hash/maphash"
	"maps"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/intern"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// JobIndex finds jobs of the managed kinds by UID, from informers that hold metadata only.
type JobIndex struct {
	mu   sync.RWMutex
	jobs map[types.UID]*metav1.PartialObjectMetadata
}

// NewJobIndex registers an informer for every kind with the factory, which the caller starts. arrived, if set, is called
// for every job that comes or changes.
func NewJobIndex(factory metadatainformer.SharedInformerFactory, kinds []jobs.Kind, arrived func(uid types.UID)) (*JobIndex, error) {
	index := &JobIndex{jobs: map[types.UID]*metav1.PartialObjectMetadata{}}
	for i := range kinds {
		informer := factory.ForResource(kinds[i].GVR).Informer()
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kinds[i].String(), err)
		}
		if _, err := informer.AddEventHandler(index.follow(arrived)); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kinds[i].String(), err)
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
	return Job{Labels: meta.Labels, Annotations: meta.Annotations, Owner: metav1.GetControllerOfNoCopy(meta)}, true
}

// follow keeps the index. An index of the informer's own costs a set for every job.
func (x *JobIndex) follow(arrived func(uid types.UID)) cache.ResourceEventHandlerFuncs {
	put := func(old, obj any) {
		meta, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok {
			return
		}
		x.mu.Lock()
		if former, ok := old.(*metav1.PartialObjectMetadata); ok && former.UID != meta.UID {
			delete(x.jobs, former.UID)
		}
		x.jobs[meta.UID] = meta
		x.mu.Unlock()
		if arrived != nil {
			arrived(meta.UID)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { put(nil, obj) }, UpdateFunc: put,
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
				x.mu.Lock()
				delete(x.jobs, meta.UID)
				x.mu.Unlock()
			}
		},
	}
}

// sharedMaps are the labels and annotations of jobs: those that are submitted together mostly have the same.
var sharedMaps = intern.NewPool(hashMap, maps.Equal[map[string]string])

func hashMap(h *maphash.Hash, m map[string]string) {
	var sum uint64
	for key, value := range m {
		sum += maphash.String(h.Seed(), key) ^ maphash.String(h.Seed(), value)<<1
	}
	maphash.WriteComparable(h, sum)
}

// trim drops what is large and not read, and what others have as well.
func trim(obj any) (any, error) {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		meta.ManagedFields = nil
		if _, there := meta.Annotations[corev1.LastAppliedConfigAnnotation]; there { //nolint:staticcheck // once shared they are only read, and delete writes even where there is nothing
			delete(meta.Annotations, corev1.LastAppliedConfigAnnotation)
		}
		meta.Labels, meta.Annotations = sharedMaps.Of(meta.Labels), sharedMaps.Of(meta.Annotations)
		meta.Namespace = unique.Make(meta.Namespace).Value()
	}
	return obj, nil
}
