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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/intern"
)

// queueText reads Queues. Most events of one are our own writes of its status, which is long and says what we know: it is
// passed, and kept as it is for a scheduler that takes over. What is not as the API server writes queues that are in order
// is left to decodeQueue; a queue that queueText returns says the same.
type queueText struct {
	textLexer
	policy string // of queues that name none

	q       *queueObject
	hasMeta bool
	spec    *v1alpha1.QueueSpec
	notes   map[string]string // annotations
}

// Fields of a queue. What they do not name is passed.
var (
	queueFields = []field[*queueText]{
		{"metadata", (*queueText).metadata},
		{"spec", func(r *queueText) { r.spec = interned(&r.textLexer, queueSpecs) }},
		{"status", func(r *queueText) { readObject(r, queueStatusFields, (*queueText).pass) }},
	}
	queueMetaFields = []field[*queueText]{
		{"name", func(r *queueText) { r.q.Name = textOf(r.text()) }},
		{"namespace", func(r *queueText) { r.q.Namespace = textOf(r.text()) }},
		{"uid", func(r *queueText) { r.q.UID = types.UID(r.text()) }},
		{"resourceVersion", func(r *queueText) { r.q.ResourceVersion = string(r.text()) }},
		{"generation", func(r *queueText) { r.q.Generation = r.integer() }},
		{"creationTimestamp", func(r *queueText) { r.q.CreationTimestamp = metav1.Time{Time: r.time()} }},
		{"annotations", func(r *queueText) { r.notes = interned(&r.textLexer, annotationTexts) }},
	}
	queueStatusFields = []field[*queueText]{
		{"conditions", func(r *queueText) { r.q.conditions = interned(&r.textLexer, conditionLists) }},
		{"queueItemDetails", func(r *queueText) { r.q.unread.items = string(r.skip()) }},
		{"pending", func(r *queueText) { r.q.unread.pending = r.count() }},
		{"admitted", func(r *queueText) { r.q.unread.admitted = r.count() }},
	}
)

func (r *queueText) reset(text []byte) *textLexer {
	*r = queueText{textLexer: newTextLexer(text), policy: r.policy, q: &queueObject{unread: &rawStatus{}}, spec: &noSpec}
	return &r.textLexer
}

func (r *queueText) odd(raw []byte) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	return decodeQueue(obj, r.policy), nil
}

func (r *queueText) object() runtime.Object {
	readObject(r, queueFields, (*queueText).pass)
	if !r.Ok() || !r.hasMeta {
		return nil
	}
	r.q.spec = admission.Queue{Name: r.q.Name, Threshold: defaultThreshold, MaxAdmitted: -1}
	r.q.setSpec(r.spec, r.policy)
	r.q.setAnnotations(r.notes)
	return r.q
}

func (r *queueText) metadata() {
	r.hasMeta = true
	readObject(r, queueMetaFields, (*queueText).pass)
}

func (r *queueText) pass() { r.skip() }

func (r *queueText) count() *int32 {
	n := r.int32()
	return &n
}

// interned reads a value whose text comes again and again. What it returns is shared.
func interned[T any](r *textLexer, texts *intern.Texts[T]) T {
	value, err := texts.Of(r.skip())
	if err != nil {
		r.fail()
	}
	return value
}

var noSpec v1alpha1.QueueSpec

// What is read of queues, by its text.
var (
	queueSpecs = intern.NewTexts(func(text string) (*v1alpha1.QueueSpec, error) {
		var read v1alpha1.Queue
		err := readField("spec", text, &read)
		return &read.Spec, err
	})
	annotationTexts = intern.NewTexts(func(text string) (map[string]string, error) {
		var read metav1.ObjectMeta
		err := readField("annotations", text, &read)
		return read.Annotations, err
	})
	conditionLists = intern.NewTexts(func(text string) ([]metav1.Condition, error) {
		var read v1alpha1.QueueStatus
		err := readField("conditions", text, &read)
		return read.Conditions, err
	})
)

// readField reads a field of an object, as decodeQueue does.
func readField(name, text string, object any) (err error) {
	defer func() {
		if recover() != nil {
			err = errOdd // decodeQueue counts it
		}
	}()
	var value any
	if err := utiljson.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	if value == nil {
		return errOdd
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{name: value}, object)
}

// rawStatus is what a status says besides its conditions.
type rawStatus struct {
	items             string // as JSON
	pending, admitted *int32
}

// says reads it, as decodeQueue does.
func (s *rawStatus) says(conditions []metav1.Condition) string {
	status := v1alpha1.QueueStatus{}
	if s.items != "" && readField("queueItemDetails", s.items, &status) != nil {
		return ""
	}
	status.Conditions, status.Pending, status.Admitted = conditions, s.pending, s.admitted
	return statusOf(&status)
}
