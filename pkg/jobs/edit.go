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
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Addition is what resuming puts on one pod template.
type Addition struct {
	Labels, Annotations map[string]string
}

// ErrNotAddable: an addition has a key that RestoreTemplates would not take back.
var ErrNotAddable = errors.New("not a key that resuming adds")

// addable are the keys that an addition may have. The record of what was added is an annotation of the job, which its
// owner may forge. So it is believed about these keys alone, and says only that they go: no value that it holds is ever
// written.
var addable = struct{ labels, annotations []string }{
	labels:      []string{v1alpha1.LabelQuotaName, v1alpha1.LabelPreemptible},
	annotations: []string{v1alpha1.AnnotationRelatedQueueUnit, v1alpha1.AnnotationRelatedPodSet},
}

// record names the keys that were added to one template. The values are nil; the first release kept what the keys had
// held before.
type record struct {
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
}

// SetSuspend writes the suspension into the object.
func (k *Kind) SetSuspend(job *unstructured.Unstructured, suspend bool) error {
	if err := unstructured.SetNestedField(job.Object, suspend, k.Suspend...); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// AddToTemplates writes additions, by pod set name, into the pod templates and records on the job what
// RestoreTemplates is to take back: every key that did not hold the value before. What an earlier record names stays
// recorded.
func (k *Kind) AddToTemplates(job *unstructured.Unstructured, additions map[string]Addition) error {
	records := recordsOf(job)
	for i := range k.Sets {
		name := k.Sets[i].podSetName(job.GetName())
		addition, ok := additions[name]
		if !ok {
			continue
		}
		r := records[name]
		metadata := k.Sets[i].Template.child("metadata")
		var err error
		if r.Labels, err = add(job, metadata.child("labels"), addition.Labels, addable.labels, r.Labels); err != nil {
			return err
		}
		r.Annotations, err = add(job, metadata.child("annotations"), addition.Annotations, addable.annotations, r.Annotations)
		if err != nil {
			return err
		}
		if len(r.Labels)+len(r.Annotations) > 0 {
			records[name] = r
		}
	}
	if len(records) == 0 {
		return nil
	}
	text, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	annotations := maps.Clone(job.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationTemplateAdditions] = string(text)
	job.SetAnnotations(annotations)
	return nil
}

// add sets the values and returns what is recorded of them.
func add(
	job *unstructured.Unstructured, p Path, values map[string]string, keys []string, recorded map[string]*string,
) (map[string]*string, error) {
	if len(values) == 0 {
		return recorded, nil
	}
	have := stringMap(lookup(job.Object, p))
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range values {
		if !slices.Contains(keys, key) {
			return nil, fmt.Errorf("%w: %q", ErrNotAddable, key)
		}
		if old, had := have[key]; had && old == value {
			continue
		}
		if recorded == nil {
			recorded = map[string]*string{}
		}
		recorded[key], have[key] = nil, value
	}
	if err := unstructured.SetNestedStringMap(job.Object, have, p...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return recorded, nil
}

// RestoreTemplates takes back what AddToTemplates wrote, together with its record, and says whether there was
// anything to take back. Without a record nothing changes.
func (k *Kind) RestoreTemplates(job *unstructured.Unstructured) bool {
	annotations := job.GetAnnotations()
	if _, ok := annotations[v1alpha1.AnnotationTemplateAdditions]; !ok {
		return false
	}
	for name, r := range recordsOf(job) {
		for i := range k.Sets {
			if k.Sets[i].podSetName(job.GetName()) != name {
				continue
			}
			metadata := k.Sets[i].Template.child("metadata")
			remove(job, metadata.child("labels"), addable.labels, r.Labels)
			remove(job, metadata.child("annotations"), addable.annotations, r.Annotations)
			if fields, ok := lookup(job.Object, metadata).(map[string]any); ok && len(fields) == 0 {
				unstructured.RemoveNestedField(job.Object, metadata...)
			}
		}
	}
	delete(annotations, v1alpha1.AnnotationTemplateAdditions) // GetAnnotations returns a copy
	setAnnotations(job, annotations)
	return true
}

// remove takes those of the keys out that were recorded.
func remove(job *unstructured.Unstructured, p Path, keys []string, recorded map[string]*string) {
	have := stringMap(lookup(job.Object, p))
	if len(recorded) == 0 || have == nil {
		return
	}
	for _, key := range keys {
		if _, ok := recorded[key]; ok {
			delete(have, key)
		}
	}
	if len(have) == 0 {
		unstructured.RemoveNestedField(job.Object, p...)
		return
	}
	// The path was read as an object just above, so it can be written.
	_ = unstructured.SetNestedStringMap(job.Object, have, p...)
}

// recordsOf reads the record; one that a person made unreadable counts as empty.
func recordsOf(job *unstructured.Unstructured) map[string]record {
	records := map[string]record{}
	text := job.GetAnnotations()[v1alpha1.AnnotationTemplateAdditions]
	if err := json.Unmarshal([]byte(text), &records); err != nil || records == nil {
		return map[string]record{}
	}
	return records
}

// MarkSuspended records that the controller, and nobody else, suspended the job.
func MarkSuspended(job *unstructured.Unstructured) {
	annotations := job.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.AnnotationSuspendedBy] = v1alpha1.CreatedByController
	job.SetAnnotations(annotations)
}

// SuspendedByUs says whether MarkSuspended holds.
func SuspendedByUs(job *unstructured.Unstructured) bool {
	return job.GetAnnotations()[v1alpha1.AnnotationSuspendedBy] == v1alpha1.CreatedByController
}

// UnmarkSuspended takes the mark back.
func UnmarkSuspended(job *unstructured.Unstructured) {
	annotations := job.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationSuspendedBy)
	setAnnotations(job, annotations)
}

// setAnnotations leaves no empty map behind.
func setAnnotations(job *unstructured.Unstructured, annotations map[string]string) {
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(job.Object, "metadata", "annotations")
		return
	}
	job.SetAnnotations(annotations)
}

// HasAdditions says whether the job bears a record of what resuming wrote into its pod templates.
func HasAdditions(job *unstructured.Unstructured) bool {
	_, ok := job.GetAnnotations()[v1alpha1.AnnotationTemplateAdditions]
	return ok
}

// DropAdditions removes the record and leaves the pod templates as they are, where they cannot be changed any more.
func DropAdditions(job *unstructured.Unstructured) {
	annotations := job.GetAnnotations()
	delete(annotations, v1alpha1.AnnotationTemplateAdditions)
	setAnnotations(job, annotations)
}
