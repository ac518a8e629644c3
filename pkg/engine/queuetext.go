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
	q      *queueObject
	spec   *v1alpha1.QueueSpec
	notes  map[string]string // annotations
}

func (r *queueText) reset(text []byte) *textLexer {
	*r = queueText{textLexer: newTextLexer(text), policy: r.policy}
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
	r.q = &queueObject{unread: &rawStatus{}}
	r.spec = &noSpec
	var s seen
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "metadata":
			r.once(&s, 0)
			r.metadata()
		case "spec":
			r.once(&s, 1)
			r.spec = interned(&r.textLexer, queueSpecs)
		case "status":
			r.once(&s, 2)
			r.status()
		default:
			r.skip()
		}
	}
	if !r.Ok() || s&1 == 0 {
		return nil
	}
	r.q.spec = admission.Queue{Name: r.q.Name, Threshold: defaultThreshold, MaxAdmitted: -1}
	r.q.setSpec(r.spec, r.policy)
	r.q.setAnnotations(r.notes)
	return r.q
}

func (r *queueText) metadata() {
	var s, others seen
	m := &r.q.objectMeta
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "name":
			r.once(&s, 0)
			m.Name = textOf(r.text())
		case "namespace":
			r.once(&s, 1)
			m.Namespace = textOf(r.text())
		case "annotations":
			r.once(&s, 2)
			r.notes = interned(&r.textLexer, annotationTexts)
		default:
			r.meta(&others, m)
		}
	}
}

func (r *queueText) status() {
	var s seen
	unread := r.q.unread
	for r.Delim('{'); r.member(); r.WantComma() {
		switch string(r.key) {
		case "conditions":
			r.once(&s, 0)
			r.q.conditions = interned(&r.textLexer, conditionLists)
		case "queueItemDetails":
			r.once(&s, 1)
			unread.items = string(r.skip())
		case "pending":
			r.once(&s, 2)
			unread.pending = r.count()
		case "admitted":
			r.once(&s, 3)
			unread.admitted = r.count()
		default:
			r.skip()
		}
	}
}

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
