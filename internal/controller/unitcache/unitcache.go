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

// Package unitcache keeps units in memory. Of a very large unit it keeps only the names of the unit and its job.
package unitcache

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// maxKeptUnit is the greatest unit that the cache keeps, in bytes of JSON. A unit of a job has less; a user who makes
// units by hand decides how large they are.
const maxKeptUnit = 16 << 10

// notKept is the manager in the managed fields, which the cache keeps of no unit, of one that is too large to be kept.
// It has no operation, which every manager has that the API server writes down.
const notKept = "not-kept"

// maxReference is the largest kept reference to a job, in bytes. A larger one names no job, because a name has 253 at
// most.
const maxReference = 1 << 10

// Transform reduces each unit that is too large for the cache to the names of the unit and its job.
func Transform() toolscache.TransformFunc {
	return func(object any) (any, error) {
		unit, ok := object.(*v1alpha1.QueueUnit)
		if !ok {
			return object, nil // the last known state of a deleted unit
		}
		if isStub(unit) {
			return unit, nil
		}
		unit.ManagedFields = nil
		if text, err := json.Marshal(unit); err == nil && len(text) <= maxKeptUnit {
			return unit, nil
		}
		return stubOf(unit), nil
	}
}

func stubOf(unit *v1alpha1.QueueUnit) *v1alpha1.QueueUnit {
	stub := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{
		Namespace: unit.Namespace, Name: unit.Name, UID: unit.UID, ResourceVersion: unit.ResourceVersion,
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: notKept}},
	}}
	if path := unit.Annotations[v1alpha1.QueuePathKey]; path != "" && len(path) <= maxReference {
		stub.Annotations = map[string]string{v1alpha1.QueuePathKey: path} // the job waits for the quotas on it
	}
	if ref := unit.Spec.ConsumerRef; ref != nil {
		named := &corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID,
		}
		if named.Size() <= maxReference {
			stub.Spec.ConsumerRef = named
		}
	}
	return stub
}

// isStub says whether the unit has to be read from the API server.
func isStub(unit *v1alpha1.QueueUnit) bool {
	return len(unit.ManagedFields) == 1 && unit.ManagedFields[0] == metav1.ManagedFieldsEntry{Manager: notKept}
}

// Reader reads units from the cache, and those that are larger than it keeps from the API server.
type Reader struct {
	Cache, Live client.Reader
}

// List implements client.Reader; it reads from the cache alone.
func (r Reader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return r.Cache.List(ctx, list, opts...)
}

// Get implements client.Reader.
func (r Reader) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption,
) error {
	err := r.Cache.Get(ctx, key, object, opts...)
	if unit, ok := object.(*v1alpha1.QueueUnit); ok && err == nil && isStub(unit) {
		*unit = v1alpha1.QueueUnit{}
		err = r.Live.Get(ctx, key, unit, opts...)
	}
	return err
}
