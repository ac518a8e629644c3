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
	stdjson "encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// A job in memory as its maps takes five to ten times what its text takes, and its author says how long that is. So
// caches keep a job in a compact form: its identity, and as one text what is read of it.

// maxCompact is the greatest text of a compact job, in bytes. A job of which there is more to read is kept without it.
const maxCompact = 3 << 10

// compactKey is the field of a compact job that holds the text. Its value is a json.Number, which no decoder of the API
// machinery leaves in an object: what somebody writes into such a field is not taken for it.
const compactKey = "compact"

// ErrNotKept says that a job is larger than caches keep: it has to be read from the API server.
var ErrNotKept = errors.New("the job is larger than what is kept of jobs")

// identity are the fields of metadata that a compact job has outside of the text.
var identity = []string{"name", "namespace", "uid", "resourceVersion"}

// readMetadata are the other fields of metadata that are read.
var readMetadata = []string{
	"labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp", "generation",
}

// Compact returns the compact form of a job, which must not be used any more. Of pod templates it keeps what scheduling
// needs, unless they are to be whole.
func (k *Kind) Compact(job *unstructured.Unstructured, wholeTemplates bool) *unstructured.Unstructured {
	if _, is := job.Object[compactKey].(stdjson.Number); is {
		return job
	}
	metadata, _ := job.Object["metadata"].(map[string]any)
	compact := map[string]any{
		"apiVersion": job.GetAPIVersion(), "kind": job.GetKind(), "metadata": only(metadata, identity),
	}
	text := stdjson.Number("")
	if raw, err := json.Marshal(k.read(job, metadata, wholeTemplates)); err == nil && len(raw) <= maxCompact {
		text = stdjson.Number(raw)
	}
	compact[compactKey] = text
	return &unstructured.Unstructured{Object: compact}
}

// Expand returns the job of a compact form, with all that is read of it. Any other job is returned as it is. The error
// is ErrNotKept for a job that has to be read from the API server.
func Expand(job *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, is := job.Object[compactKey].(stdjson.Number)
	switch {
	case !is:
		return job, nil
	case text == "":
		return nil, ErrNotKept
	}
	expanded := map[string]any{}
	if err := json.Unmarshal([]byte(text), &expanded); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	metadata, _ := expanded["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		expanded["metadata"] = metadata
	}
	own, _ := job.Object["metadata"].(map[string]any)
	for key, value := range own {
		metadata[key] = value
	}
	expanded["apiVersion"], expanded["kind"] = job.GetAPIVersion(), job.GetKind()
	return &unstructured.Unstructured{Object: expanded}, nil
}

// read is what is read of a job, its identity aside.
func (k *Kind) read(job *unstructured.Unstructured, metadata map[string]any, wholeTemplates bool) map[string]any {
	kept := map[string]any{}
	if m := only(metadata, readMetadata); len(m) > 0 {
		reduceAnnotations(m)
		kept["metadata"] = m
	}
	for _, p := range k.paths() {
		value := lookup(job.Object, p)
		if value == nil || len(p) == 0 {
			continue
		}
		if !wholeTemplates && slices.ContainsFunc(k.Sets, func(s PodSetFields) bool {
			return slices.Equal(s.Template, p)
		}) {
			value = reduced(value)
		}
		_ = unstructured.SetNestedField(kept, value, p...) // it was found there, so it can be put there
	}
	return kept
}

func reduced(template any) any {
	whole, ok := template.(map[string]any)
	if !ok {
		return template
	}
	kept := schedulingFields.of(whole)
	if metadata, ok := kept["metadata"].(map[string]any); ok {
		reduceAnnotations(metadata)
	}
	return kept
}

// paths are those of all fields of a job that are read, but for metadata.
func (k *Kind) paths() []Path {
	paths := append([]Path{
		k.Suspend, k.ManagedBy, k.Conditions, k.ReadyPods, k.ActivePods, k.StartTime,
	}, k.PriorityClass...)
	for i := range k.Sets {
		paths = append(paths, k.Sets[i].Template)
		for _, term := range k.Sets[i].Count {
			paths = append(paths, term.Field, term.Less)
		}
	}
	return paths
}

func only(object map[string]any, keys []string) map[string]any {
	kept := make(map[string]any, len(keys))
	for _, key := range keys {
		if value, ok := object[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// KeepMaps gives a changed job back the maps of labels and annotations that have become empty. A compact job does not
// have all of a map, and a patch that takes the map away would take away what it does not have.
func (k *Kind) KeepMaps(before, after *unstructured.Unstructured) {
	metadata := []Path{{"metadata"}}
	for i := range k.Sets {
		metadata = append(metadata, k.Sets[i].Template.child("metadata"))
	}
	for _, m := range metadata {
		for _, key := range []string{"labels", "annotations"} {
			p := m.child(key)
			if lookup(before.Object, p) != nil && lookup(after.Object, p) == nil {
				_ = unstructured.SetNestedMap(after.Object, map[string]any{}, p...) // it was there before
			}
		}
	}
}
