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

// Package compact reduces jobs to the form that caches keep, and expands them again.
package compact

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/overlay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// A job in memory as its maps takes five to ten times what its text takes, and its author says how long that is. So
// caches keep a job in a compact form: its identity, and as one text what is read of it.

// maxCompact is the greatest text of a compact job, in bytes. A job of which there is more to read is kept without it.
const maxCompact = 3 << 10

// compactKey is the field of a compact job that has the text. Its value is a json.Number, which no decoder of the API
// machinery leaves in an object. So a user cannot forge the field.
const compactKey = "compact"

// ErrNotKept says that a job is larger than caches keep: it has to be read from the API server.
var ErrNotKept = errors.New("the job is larger than what is kept of jobs")

// identity are the fields of metadata that a compact job has outside of the text.
var identity = []string{"name", "namespace", "uid", "resourceVersion"}

// readMetadata are the other fields of metadata that are read.
var readMetadata = []string{
	"labels", "annotations", "ownerReferences", "creationTimestamp", "deletionTimestamp", "generation",
}

// Job returns the compact form of a job, which must not be used any more. Of pod templates it keeps what scheduling
// needs, unless they are to be whole.
func Job(k *jobkind.Kind, job *unstructured.Unstructured, wholeTemplates bool) *unstructured.Unstructured {
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
		return nil, fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
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
func keptOf(
	k *jobkind.Kind, job *unstructured.Unstructured, metadata map[string]any, wholeTemplates bool,
) map[string]any {
	kept := projectionOf(k, wholeTemplates).of(job.Object).(map[string]any)
	m := only(metadata, readMetadata)
	podtemplate.ReduceAnnotations(m)
	// Fields of metadata that the kind reads are kept with those that everybody reads.
	if m, _ = overlay.Merged(kept["metadata"], m).(map[string]any); len(m) > 0 {
		kept["metadata"] = m
	}
	return kept
}

// projection is the kept part of an object: all of it, the part of a pod template that scheduling needs, or some
// fields.
type projection struct {
	whole, template bool
	fields          map[string]*projection
}

// add has the field at the path kept, and returns what stands for it.
func (p *projection) add(at jobkind.Path) *projection {
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
	named, every := p.fields[key], p.fields[jobkind.Star]
	switch {
	case named == nil:
		return every
	case every == nil:
		return named
	}
	both := &projection{whole: named.whole || every.whole, template: named.template || every.template}
	for _, one := range []*projection{named, every} {
		for key, below := range one.fields {
			*both.add(jobkind.Path{key}) = *below
		}
	}
	return both
}

func (p *projection) of(value any) any {
	switch {
	case p.whole:
		return value
	case p.template:
		return podtemplate.QueuedValue(value)
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
			if below := p.fields[jobkind.Star]; below != nil {
				kept = append(kept, below.of(item))
			}
		}
		return kept
	default:
		return value
	}
}

// projectionOf a job of this kind, its metadata aside.
func projectionOf(k *jobkind.Kind, wholeTemplates bool) *projection {
	root := &projection{}
	for _, p := range pathsOf(k) {
		if len(p) > 0 {
			root.add(p).whole = true
		}
	}
	for i := range k.Sets {
		s := &k.Sets[i]
		for _, template := range s.Templates {
			at := root.add(append(s.Path.Child(), template...))
			at.whole, at.template = at.whole || wholeTemplates, true
		}
		if from := podset.TemplateFrom(s); len(from) > 0 {
			root.add(from).whole = true // where the template is below it the job says
		}
	}
	return root
}

// pathsOf are those of all fields of a job that are read, but for metadata and pod templates.
func pathsOf(k *jobkind.Kind) []jobkind.Path {
	paths := []jobkind.Path{k.SuspendField, k.ManagedBy, k.StartTime, k.Pods.Value, k.Pods.Selector}
	paths = append(paths, k.PriorityClass...)
	paths = append(paths, readsOf(k)...)
	if k.Gang != nil {
		for _, from := range sources(k.Gang.Minimum) {
			paths = append(paths, from.Path)
		}
	}
	for i := range k.Sets {
		s := &k.Sets[i]
		if len(s.NameField) > 0 {
			paths = append(paths, append(s.Path.Child(), s.NameField...))
		}
		from := append(sources(s.Count), sources(s.MinCount)...)
		from = append(from, s.Labels, s.Annotations, s.SchedulerName)
		for j := range s.Adds {
			from = append(from, s.Adds[j].Resources)
		}
		if s.Computed != nil {
			from = append(from, s.Computed.Reads...)
		}
		if p := s.Partial; p != nil {
			from = append(append(from, sources(p.Least)...), p.Field, p.Each, p.Along)
			for _, key := range p.Annotations {
				paths = append(paths, jobkind.Path{"metadata", "annotations", key})
			}
		}
		for _, from := range from {
			switch {
			case len(from.Path) == 0:
			case from.OfJob:
				paths = append(paths, from.Path)
			default:
				paths = append(paths, append(s.Path.Child(), from.Path...))
			}
		}
	}
	return paths
}

// readsOf are the fields that expressions look at.
func readsOf(k *jobkind.Kind) (paths []jobkind.Path) {
	for _, e := range expressionsOf(k) {
		if e != nil {
			paths = append(paths, e.Reads...)
		}
	}
	for _, c := range conditionsOf(k) {
		if c != nil {
			paths = append(paths, c.Reads...)
		}
	}
	return paths
}

func expressionsOf(k *jobkind.Kind) []*jobkind.Expression {
	all := []*jobkind.Expression{
		k.Succeeded, k.Failed, k.Message, k.SuspensionSeen, k.Started, k.Running, k.Ready, k.Active,
		k.ReadyBySet, k.Completed, k.All, k.Reclaimable, k.SuspendUnless,
	}
	for i := range k.Valid {
		all = append(all, k.Valid[i].Rule)
	}
	if k.Gang != nil {
		all = append(all, k.Gang.When, k.Gang.Unless)
	}
	return all
}

func conditionsOf(k *jobkind.Kind) (all []*jobkind.Condition) {
	for i := range k.Sets {
		all = append(all, k.Sets[i].When, k.Sets[i].Later)
		if p := k.Sets[i].Partial; p != nil {
			all = append(all, p.When, p.Unless, p.AlongWhen)
		}
		for j := range k.Sets[i].Adds {
			all = append(all, k.Sets[i].Adds[j].When)
		}
	}
	return all
}

func sources(terms []jobkind.Term) (all []jobkind.Source) {
	for i := range terms {
		all = append(append(all, terms[i].Field, terms[i].Less, terms[i].LessIndexes), terms[i].AtLeast...)
		all = append(all, sources(terms[i].Least)...)
		if c := terms[i].Computed; c != nil {
			all = append(all, c.Reads...)
		}
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

// Child is a child with what is read of it, which must not be used any more.
func Child(k *jobkind.Kind, child *unstructured.Unstructured) *unstructured.Unstructured {
	metadata, _ := child.Object["metadata"].(map[string]any)
	compact := map[string]any{
		"apiVersion": child.GetAPIVersion(), "kind": child.GetKind(),
		"metadata": only(metadata, append([]string{"ownerReferences"}, identity...)),
	}
	read, _ := projectionOf(k, false).add(jobkind.Path{jobkind.ChildKey}).of(child.Object).(map[string]any)
	for key, value := range read {
		if _, ok := compact[key]; !ok {
			compact[key] = value
		}
	}
	return &unstructured.Unstructured{Object: compact}
}
