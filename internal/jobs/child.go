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

package jobs

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// WithChild is the job with its child as the field that descriptors call child. Without a child, or for a kind that has
// none, it is the job without such a field, no matter who wrote one.
func WithChild(k *jobkind.Kind, job, child *unstructured.Unstructured) *unstructured.Unstructured {
	object := maps.Clone(job.Object)
	delete(object, jobkind.ChildKey)
	if child != nil && k.Child != nil {
		object[jobkind.ChildKey] = child.Object
	}
	return &unstructured.Unstructured{Object: object}
}

// OpenWith opens an object of the kind together with the child that it controls, if there is one. get reads an object
// of the child's kind that has the name of the job.
func OpenWith(
	k *jobkind.Kind, object *unstructured.Unstructured, get func(child *unstructured.Unstructured) (found bool, err error),
) (*Job, error) {
	if k.Child == nil {
		return Open(k, WithChild(k, object, nil)), nil
	}
	child := &unstructured.Unstructured{}
	child.SetGroupVersionKind(k.Child.GVK)
	found, err := get(child)
	if err != nil {
		return nil, err
	}
	if !found || !metav1.IsControlledBy(child, object) {
		child = nil
	}
	return Open(k, WithChild(k, object, child)), nil
}

// HasChild says whether the job was given its child.
func (j *Job) HasChild() bool {
	_, ok := j.Object.Object[jobkind.ChildKey].(map[string]any)
	return ok
}

// Split is the job as the API server has it, and its child, nil if it was given none.
func Split(job *unstructured.Unstructured) (own, child *unstructured.Unstructured) {
	if fields, ok := job.Object[jobkind.ChildKey].(map[string]any); ok {
		child = &unstructured.Unstructured{Object: fields}
	}
	own = &unstructured.Unstructured{Object: maps.Clone(job.Object)}
	delete(own.Object, jobkind.ChildKey)
	return own, child
}
