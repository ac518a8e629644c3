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
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Addition is what resuming puts on one pod template.
type Addition struct {
	Labels, Annotations map[string]string
}

// record says what the keys that were added to one template held before; nil stands for absent.
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
// RestoreTemplates needs to take them back. What an earlier record holds is kept: it is older.
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
		if r.Labels, err = add(job, metadata.child("labels"), addition.Labels, r.Labels); err != nil {
			return err
		}
		if r.Annotations, err = add(job, metadata.child("annotations"), addition.Annotations, r.Annotations); err != nil {
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

// add sets the values and returns the record, with what the keys held before.
func add(
	job *unstructured.Unstructured, p Path, values map[string]string, before map[string]*string,
) (map[string]*string, error) {
	if len(values) == 0 {
		return before, nil
	}
	have := stringMap(lookup(job.Object, p))
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range values {
		old, had := have[key]
		if had && old == value {
			continue
		}
		if _, recorded := before[key]; !recorded {
			if before == nil {
				before = map[string]*string{}
			}
			before[key] = nil
			if had {
				before[key] = &old
			}
		}
		have[key] = value
	}
	if err := unstructured.SetNestedStringMap(job.Object, have, p...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return before, nil
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
			restore(job, metadata.child("labels"), r.Labels)
			restore(job, metadata.child("annotations"), r.Annotations)
			if fields, ok := lookup(job.Object, metadata).(map[string]any); ok && len(fields) == 0 {
				unstructured.RemoveNestedField(job.Object, metadata...)
			}
		}
	}
	delete(annotations, v1alpha1.AnnotationTemplateAdditions) // GetAnnotations returns a copy
	setAnnotations(job, annotations)
	return true
}

func restore(job *unstructured.Unstructured, p Path, before map[string]*string) {
	have := stringMap(lookup(job.Object, p))
	if len(before) == 0 || have == nil {
		return
	}
	for key, value := range before {
		if value == nil {
			delete(have, key)
		} else {
			have[key] = *value
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
