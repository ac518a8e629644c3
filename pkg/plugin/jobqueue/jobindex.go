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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

const byUID = "uid"

// JobIndex finds jobs of the managed kinds by UID, from informers that hold metadata only.
type JobIndex struct {
	informers []cache.SharedIndexInformer
}

// NewJobIndex registers an informer for every kind with the factory, which the caller starts. arrived, if set, is called
// for every job that comes or changes.
func NewJobIndex(factory metadatainformer.SharedInformerFactory, kinds []jobs.Kind, arrived func(uid types.UID)) (*JobIndex, error) {
	index := &JobIndex{}
	for i := range kinds {
		informer := factory.ForResource(kinds[i].GVR).Informer()
		if err := informer.SetTransform(trim); err != nil {
			return nil, fmt.Errorf("watching %s: %w", kinds[i].String(), err)
		}
		if err := informer.AddIndexers(cache.Indexers{byUID: uidOf}); err != nil {
			return nil, fmt.Errorf("indexing %s: %w", kinds[i].String(), err)
		}
		if arrived != nil {
			if _, err := informer.AddEventHandler(arrivals(arrived)); err != nil {
				return nil, fmt.Errorf("watching %s: %w", kinds[i].String(), err)
			}
		}
		index.informers = append(index.informers, informer)
	}
	return index, nil
}

// Job returns what is known of the job with this UID.
func (x *JobIndex) Job(uid types.UID) (Job, bool) {
	for _, informer := range x.informers {
		found, err := informer.GetIndexer().ByIndex(byUID, string(uid))
		if err != nil || len(found) == 0 {
			continue
		}
		if meta, ok := found[0].(*metav1.PartialObjectMetadata); ok {
			return Job{Labels: meta.Labels, Annotations: meta.Annotations, Owner: metav1.GetControllerOfNoCopy(meta)}, true
		}
	}
	return Job{}, false
}

func uidOf(obj any) ([]string, error) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, nil
	}
	return []string{string(meta.UID)}, nil
}

func arrivals(arrived func(uid types.UID)) cache.ResourceEventHandlerFuncs {
	tell := func(obj any) {
		if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
			arrived(meta.UID)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, obj any) { tell(obj) }}
}

// trim drops what is large and not read.
func trim(obj any) (any, error) {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		meta.ManagedFields = nil
		delete(meta.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
	}
	return obj, nil
}
