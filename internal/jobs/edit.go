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
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// Addition is what resuming puts on one pod template.
type Addition struct {
	Labels, Annotations map[string]string
	Update              podupdate.Update
}

// ErrNotAddable: an addition has a key that RestoreTemplates would not take back.
var ErrNotAddable = errors.New("not a key that resuming adds")

// addable are the keys that an addition may have. The record of what was added is an annotation of the job, which its
// owner may forge. So it is believed about these keys alone, and says only that they go: no value that it holds is ever
// written.
var addable = map[jobkind.MetadataKey][]string{
	jobkind.LabelsKey: {v1alpha1.LabelQuotaName, v1alpha1.LabelPreemptible, extension.LabelDisablePreemptible},
	jobkind.AnnotationsKey: {
		v1alpha1.AnnotationRelatedQueueUnit, v1alpha1.AnnotationRelatedPodSet,
		extension.AnnotationGangName, extension.AnnotationGangMinNum, extension.AnnotationGangGroups,
		extension.AnnotationGangMode, extension.AnnotationGangWaitTime,
	},
}

// record names the keys that were added to one template. The values are nil; the first release kept what the keys had
// held before.
type record struct {
	Labels      map[string]*string `json:"labels,omitempty"`
	Annotations map[string]*string `json:"annotations,omitempty"`
	Update      *updateRecord      `json:"update,omitempty"`
}

// Edit changes a job: what is read of it may be another thing after each step.
type Edit struct {
	kind   *jobkind.Kind
	object *unstructured.Unstructured
}

// EditOf changes the object itself.
func EditOf(k *jobkind.Kind, object *unstructured.Unstructured) *Edit {
	return &Edit{kind: k, object: object}
}

// Job is the job as it was changed. It is not changed any more.
func (e *Edit) Job() *Job { return e.now() }

// Copy goes on with a copy; what it is of stays as it is.
func (e *Edit) Copy() *Edit { return EditOf(e.kind, e.object.DeepCopy()) }

// now is the job between two steps.
func (e *Edit) now() *Job { return Open(e.kind, e.object) }

// Annotate gives the job an annotation; one without a value is taken away.
func (e *Edit) Annotate(key, value string) {
	annotations := e.object.GetAnnotations() // a copy
	if value == "" {
		delete(annotations, key)
	} else {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[key] = value
	}
	if len(annotations) == 0 { // no empty map is left behind
		unstructured.RemoveNestedField(e.object.Object, "metadata", "annotations")
		return
	}
	e.object.SetAnnotations(annotations)
}

// Label gives the job a label.
func (e *Edit) Label(key, value string) {
	labels := e.object.GetLabels() // a copy
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	e.object.SetLabels(labels)
}

// SetSuspend writes the suspension into the object. Of a kind that cannot be suspended it changes nothing.
func (e *Edit) SetSuspend(suspend bool) error {
	k := e.kind
	if k.SuspendAnnotation != "" &&
		(len(k.SuspendField) == 0 || !suspend && e.object.GetAnnotations()[k.SuspendAnnotation] == "true") {
		e.Annotate(k.SuspendAnnotation, strconv.FormatBool(suspend))
	}
	if len(k.SuspendField) == 0 {
		return nil
	}
	if err := unstructured.SetNestedField(e.object.Object, suspend, k.SuspendField...); err != nil {
		return fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
	}
	return nil
}

// AddToTemplates writes additions, by pod set name, into the pod templates. It records on the job every key that did
// not have the value before, so that RestoreTemplates can remove it. Keys of an earlier record stay recorded.
func (e *Edit) AddToTemplates(additions map[string]Addition) error {
	records := recordsOf(e.object)
	sets, err := e.now().podSets()
	if err != nil {
		return err
	}
	for i := range sets {
		s := &sets[i]
		addition, ok := additions[s.Called]
		if !ok {
			continue
		}
		r := records[s.Called]
		if r.Labels, err = s.add(jobkind.LabelsKey, addition.Labels, r.Labels); err != nil {
			return err
		}
		if r.Annotations, err = s.add(jobkind.AnnotationsKey, addition.Annotations, r.Annotations); err != nil {
			return err
		}
		if r.Update, err = s.update(&addition.Update, r.Update); err != nil {
			return err
		}
		if len(r.Labels)+len(r.Annotations) > 0 || r.Update != nil {
			records[s.Called] = r
		}
	}
	return keepRecord(e, v1alpha1.AnnotationTemplateAdditions, records)
}

// keepRecord writes what is recorded of pod sets, by their names, into an annotation of the job, if that is anything.
func keepRecord[T any](e *Edit, annotation string, records map[string]T) error {
	if len(records) == 0 {
		return nil
	}
	text, err := json.Marshal(records)
	if err != nil {
		return fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
	}
	e.Annotate(annotation, string(text))
	return nil
}

// add sets the values and returns what is recorded of them. Where the job has no place for them, or they
// reach no pod, it does nothing.
func (s *podSetAt) add(
	to jobkind.MetadataKey, values map[string]string, recorded map[string]*string,
) (map[string]*string, error) {
	object, p := s.MetadataAt(to)
	if len(values) == 0 || object == nil || s.Early {
		return recorded, nil
	}
	have := jobkind.StringMap(jobkind.Lookup(object, p))
	if have == nil {
		have = map[string]string{}
	}
	for key, value := range values {
		if !slices.Contains(addable[to], key) {
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
	if err := unstructured.SetNestedStringMap(object, have, p...); err != nil {
		return nil, fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
	}
	return recorded, nil
}

// RestoreTemplates removes the additions of AddToTemplates with its record, and says whether there were any. Without a
// record nothing changes. Updates are removed only if asked has them too, by pod set: its author is not the owner of
// the job.
func (e *Edit) RestoreTemplates(asked map[string][]podupdate.Update) bool {
	if !e.now().HasAdditions() {
		return false
	}
	records := recordsOf(e.object)
	sets, _ := e.now().podSets()
	for i := range sets {
		s := &sets[i]
		r, ok := records[s.Called]
		if !ok {
			continue
		}
		s.remove(jobkind.LabelsKey, r.Labels)
		s.remove(jobkind.AnnotationsKey, r.Annotations)
		s.takeBack(r.Update, asked[s.Called])
		if metadata := s.Template.Child("metadata"); len(s.Template) > 0 {
			if fields, ok := jobkind.Lookup(s.Object, metadata).(map[string]any); ok && len(fields) == 0 {
				unstructured.RemoveNestedField(s.Object, metadata...)
			}
		}
	}
	e.DropAdditions()
	return true
}

// remove takes those of the keys out that were recorded.
func (s *podSetAt) remove(from jobkind.MetadataKey, recorded map[string]*string) {
	object, p := s.MetadataAt(from)
	have := jobkind.StringMap(jobkind.Lookup(object, p))
	if len(recorded) == 0 || have == nil {
		return
	}
	for _, key := range addable[from] {
		if _, ok := recorded[key]; ok {
			delete(have, key)
		}
	}
	if len(have) == 0 {
		unstructured.RemoveNestedField(object, p...)
		return
	}
	// The path was read as an object just above, so it can be written.
	_ = unstructured.SetNestedStringMap(object, have, p...)
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
func (e *Edit) MarkSuspended() {
	e.Annotate(v1alpha1.AnnotationSuspendedBy, v1alpha1.CreatedByController)
}

// UnmarkSuspended takes the mark back.
func (e *Edit) UnmarkSuspended() { e.Annotate(v1alpha1.AnnotationSuspendedBy, "") }

// DropAdditions removes the record and leaves the pod templates as they are, where they cannot be changed any more.
func (e *Edit) DropAdditions() { e.Annotate(v1alpha1.AnnotationTemplateAdditions, "") }

// ClearStart takes the start time of an earlier run out.
func (e *Edit) ClearStart() {
	unstructured.RemoveNestedField(e.object.Object, e.kind.StartTime...)
}

// DropCounts removes the record and leaves the numbers of pods as they are.
func (e *Edit) DropCounts() { e.Annotate(v1alpha1.AnnotationWholeCounts, "") }

// KeepMaps restores empty maps of labels and annotations in a changed job. A compact job does not have all keys of a
// map. A patch that removes the map would remove the missing keys too.
func (e *Edit) KeepMaps(before *Job) {
	for _, key := range []jobkind.MetadataKey{jobkind.LabelsKey, jobkind.AnnotationsKey} {
		keepMap(before.Object.Object, e.object.Object, jobkind.Path{"metadata", string(key)})
	}
	sets, _ := before.podSets()
	others, _ := e.now().podSets()
	for i := range sets {
		for j := range others {
			if sets[i].Called == others[j].Called {
				sets[i].keepMaps(&others[j])
			}
		}
	}
}

func (s *podSetAt) keepMaps(after *podSetAt) {
	for _, key := range []jobkind.MetadataKey{jobkind.LabelsKey, jobkind.AnnotationsKey} {
		if object, p := s.MetadataAt(key); object != nil {
			other, _ := after.MetadataAt(key)
			keepMap(object, other, p)
		}
	}
}

func keepMap(before, after map[string]any, p jobkind.Path) {
	if after != nil && jobkind.Lookup(before, p) != nil && jobkind.Lookup(after, p) == nil {
		_ = unstructured.SetNestedMap(after, map[string]any{}, p...) // the path existed before
	}
}
