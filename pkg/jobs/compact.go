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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/overlay"
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

// CompactJob returns the compact form of a job, which must not be used any more. Of pod templates it keeps what scheduling
// needs, unless they are to be whole.
func CompactJob(k *Kind, job *unstructured.Unstructured, wholeTemplates bool) *unstructured.Unstructured {
	if _, is := job.Object[compactKey].(stdjson.Number); is {
		return job
	}
	metadata, _ := job.Object["metadata"].(map[string]any)
	compact := map[string]any{
		"apiVersion": job.GetAPIVersion(), "kind": job.GetKind(), "metadata": only(metadata, identity),
	}
	text := stdjson.Number("")
	if raw, err := json.Marshal(keptOf(k, job, metadata, wholeTemplates)); err == nil && len(raw) <= maxCompact {
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

// keptOf is what is read of a job, its identity aside.
func keptOf(k *Kind, job *unstructured.Unstructured, metadata map[string]any, wholeTemplates bool) map[string]any {
	kept := projectionOf(k, wholeTemplates).of(job.Object).(map[string]any)
	m := only(metadata, readMetadata)
	reduceAnnotations(m)
	// Fields of metadata that the kind reads are kept with those that everybody reads.
	if m, _ = overlay.Merged(kept["metadata"], m).(map[string]any); len(m) > 0 {
		kept["metadata"] = m
	}
	return kept
}

// projection is what is kept of an object: all of it, what scheduling needs of a pod template, or some fields.
type projection struct {
	whole, template bool
	fields          map[string]*projection
}

// add has the field at the path kept, and returns what stands for it.
func (p *projection) add(at Path) *projection {
	for _, key := range at {
		if p.fields == nil {
			p.fields = map[string]*projection{}
		}
		if p.fields[key] == nil {
			p.fields[key] = &projection{}
		}
		p = p.fields[key]
	}
	return p
}

// field is what is kept of a field of this name, or of an element, nil if nothing is.
func (p *projection) field(key string) *projection {
	named, every := p.fields[key], p.fields[star]
	switch {
	case named == nil:
		return every
	case every == nil:
		return named
	}
	both := &projection{whole: named.whole || every.whole, template: named.template || every.template}
	for _, one := range []*projection{named, every} {
		for key, below := range one.fields {
			*both.add(Path{key}) = *below
		}
	}
	return both
}

func (p *projection) of(value any) any {
	switch {
	case p.whole:
		return value
	case p.template:
		return reduced(value)
	}
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, item := range v {
			if below := p.field(key); below != nil {
				kept[key] = below.of(item)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(v))
		for _, item := range v {
			if below := p.fields[star]; below != nil {
				kept = append(kept, below.of(item))
			}
		}
		return kept
	default:
		return value
	}
}

// projectionOf a job of this kind, its metadata aside.
func projectionOf(k *Kind, wholeTemplates bool) *projection {
	root := &projection{}
	for _, p := range pathsOf(k) {
		if len(p) > 0 {
			root.add(p).whole = true
		}
	}
	for i := range k.sets {
		s := &k.sets[i]
		for _, template := range s.templates {
			at := root.add(append(s.path.child(), template...))
			at.whole, at.template = at.whole || wholeTemplates, true
		}
	}
	return root
}

// pathsOf are those of all fields of a job that are read, but for metadata and pod templates.
func pathsOf(k *Kind) []Path {
	paths := append([]Path{k.suspend, k.managedBy, k.startTime, k.pods.value, k.pods.selector}, k.priorityClass...)
	for _, e := range expressionsOf(k) {
		if e != nil {
			paths = append(paths, e.reads...)
		}
	}
	if k.gang != nil {
		for _, from := range sources(k.gang.minimum) {
			paths = append(paths, from.path)
		}
	}
	for i := range k.sets {
		s := &k.sets[i]
		if len(s.nameField) > 0 {
			paths = append(paths, append(s.path.child(), s.nameField...))
		}
		from := append(sources(s.count), sources(s.minCount)...)
		from = append(from, s.labels, s.annotations)
		for j := range s.adds {
			from = append(from, s.adds[j].resources)
		}
		if s.computed != nil {
			from = append(from, s.computed.reads...)
		}
		if p := s.partial; p != nil {
			from = append(append(from, sources(p.least)...), p.field, p.each, p.along)
			for _, key := range p.annotations {
				paths = append(paths, Path{"metadata", "annotations", key})
			}
		}
		for _, from := range from {
			switch {
			case len(from.path) == 0:
			case from.ofJob:
				paths = append(paths, from.path)
			default:
				paths = append(paths, append(s.path.child(), from.path...))
			}
		}
	}
	return paths
}

func expressionsOf(k *Kind) []*expression {
	all := []*expression{
		k.succeeded, k.failed, k.message, k.suspensionSeen, k.started, k.running, k.ready, k.active,
		k.readyBySet, k.completed, k.all, k.reclaimable,
	}
	for i := range k.valid {
		all = append(all, k.valid[i].rule)
	}
	if k.gang != nil {
		all = append(all, k.gang.when, k.gang.unless)
	}
	for i := range k.sets {
		all = append(all, k.sets[i].when, k.sets[i].later)
		if p := k.sets[i].partial; p != nil {
			all = append(all, p.when, p.unless, p.alongWhen)
		}
		for j := range k.sets[i].adds {
			all = append(all, k.sets[i].adds[j].when)
		}
	}
	return all
}

// sources of numbers of pods.
func sources(terms []countTerm) (all []source) {
	for i := range terms {
		all = append(append(all, terms[i].field, terms[i].less), sources(terms[i].least)...)
	}
	return all
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

// CompactChild is a child with what is read of it, which must not be used any more.
func CompactChild(k *Kind, child *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := child.Object["metadata"].(map[string]any)
	compact := map[string]any{
		"apiVersion": child.GetAPIVersion(), "kind": child.GetKind(),
		"metadata": only(metadata, append([]string{"ownerReferences"}, identity...)),
	}
	read, _ := projectionOf(k, false).add(Path{childKey}).of(child.Object).(map[string]any)
	for key, value := range read {
		if _, ok := compact[key]; !ok {
			compact[key] = value
		}
	}
	return &unstructured.Unstructured{Object: compact}
}
