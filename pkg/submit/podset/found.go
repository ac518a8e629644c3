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

package podset

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// Found is a pod set that a job has: the object that its template is in, by the rule for it.
type Found struct {
	*Set
	Place
	// Fields is the object that has the fields of the rule.
	Fields map[string]any
	// Job is the whole object.
	Job map[string]any
	// Called is the name of the pod set.
	Called string
	// Template is the path of the template that is there, from the object; empty if it is computed, or missing.
	Template Path
}

// Find the pod sets that the job has, in the order of the rules. The error is ErrMalformed if one is not there that
// has to be, or two have one name; those before it are returned as well.
func Find(sets []Set, job map[string]any) ([]Found, error) {
	var found []Found
	jobName, _ := Lookup(job, Path{"metadata", "name"}).(string)
	names := map[string]bool{}
	for i := range sets {
		rule := &sets[i]
		if rule.When != nil && !rule.When.Holds(job) {
			continue
		}
		places := Walk(job, rule.Path)
		if len(places) == 0 && !rule.Stars && !rule.Optional {
			return found, fmt.Errorf("%w: %s is not an object", ErrMalformed, rule.Path)
		}
		for _, place := range places {
			at := Found{Set: rule, Place: place, Fields: place.Object, Job: job, Called: rule.NameOf(&place, jobName)}
			if names[at.Called] {
				return found, fmt.Errorf("%w: two groups of pods are called %q", ErrMalformed, at.Called)
			}
			names[at.Called] = true
			at.Template = at.templateThere()
			if len(rule.TemplateField) > 0 {
				if err := at.follow(); err != nil {
					return found, err
				}
			}
			found = append(found, at)
		}
	}
	return found, nil
}

// templateThere is the first of the templates that is there.
func (s *Found) templateThere() Path {
	for _, p := range s.Templates {
		if _, ok := Lookup(s.Object, p).(map[string]any); ok {
			return p
		}
	}
	return nil
}

// TemplatePath is that of the pod template in the job, for a person.
func (s *Found) TemplatePath() Path {
	switch {
	case len(s.Template) > 0:
		return append(s.At.Child(), s.Template...)
	case len(s.Templates) > 0:
		return append(s.At.Child(), s.Templates[0]...)
	default:
		return s.At
	}
}

// SchedulerOf is the path of the field of the job that names the scheduler of the pods. It is nil if only the operator
// of the job decides.
func SchedulerOf(s *Found) Path {
	switch given := s.SchedulerName; {
	case len(given.Path) > 0 && given.OfJob:
		return given.Path
	case len(given.Path) > 0:
		return append(s.At.Child(), given.Path...)
	case len(s.Template) > 0:
		return append(s.At.Child(), s.Template.Child("spec", "schedulerName")...)
	default:
		return nil
	}
}

// MetadataAt is the object and the path in it where labels or annotations of the pods are written; nil if nowhere.
func (s *Found) MetadataAt(key MetadataKey) (map[string]any, Path) {
	given := s.Labels
	if key == AnnotationsKey {
		given = s.Annotations
	}
	switch {
	case len(given.Path) > 0 && given.OfJob:
		return s.Job, given.Path
	case len(given.Path) > 0:
		return s.Object, given.Path
	case len(s.Template) > 0:
		return s.Object, s.Template.Child("metadata", string(key))
	default:
		return nil, nil
	}
}

// Metadata are the labels or annotations that the pods will have, nil if none.
func (s *Found) Metadata(key MetadataKey) map[string]string {
	var own map[string]string
	if len(s.Template) > 0 { // without a template the metadata is that of the job
		own = StringMap(Lookup(s.Object, s.Template.Child("metadata", string(key))))
	}
	object, p := s.MetadataAt(key)
	if object == nil {
		return own
	}
	given := StringMap(Lookup(object, p))
	if own == nil {
		return given
	}
	maps.Copy(own, given)
	return own
}

// Counts are the number of pods that the job needs at once, and the least that it can do with, nil if that is all.
func (s *Found) Counts() (count int32, least *int32, err error) {
	count, _, err = s.Pods(s.Count)
	if err != nil {
		return 0, nil, err
	}
	n, known, err := s.Pods(s.MinCount)
	if err != nil || !known || n >= count {
		return count, nil, err
	}
	return count, &n, nil
}

// ReadTemplate is the template with the scheduler, labels and annotations that pods get in addition to it.
func (s *Found) ReadTemplate() (map[string]any, error) {
	value, _ := Lookup(s.Object, s.Template).(map[string]any)
	switch {
	case value != nil:
	case s.Computed == nil:
		return nil, fmt.Errorf("%w: %s is not an object", ErrMalformed, s.TemplatePath())
	default:
		var err error
		if value, err = s.Computed.Make(s.Job, s.Object); err != nil {
			return nil, err
		}
	}
	value = withScheduler(s, s.withAdded(value))
	for key, given := range map[MetadataKey]Source{
		LabelsKey: s.Labels, AnnotationsKey: s.Annotations,
	} {
		if len(given.Path) > 0 {
			value = withMetadata(value, key, s.Metadata(key))
		}
	}
	return value, nil
}

// withScheduler is a template with the scheduler that a field outside of it names; the template itself is not changed.
func withScheduler(s *Found, template map[string]any) map[string]any {
	spec, _ := template["spec"].(map[string]any)
	var name any
	if given := s.SchedulerName; given.OfJob {
		name = Lookup(s.Job, given.Path)
	} else if len(given.Path) > 0 {
		name = Lookup(s.Object, given.Path)
	}
	if spec == nil || spec["schedulerName"] != nil || name == nil || name == "" {
		return template
	}
	template, spec = maps.Clone(template), maps.Clone(spec)
	template["spec"], spec["schedulerName"] = spec, name
	return template
}

// withAdded is the template with what the operator adds to it; the template itself is not changed.
func (s *Found) withAdded(template map[string]any) map[string]any {
	spec, _ := template["spec"].(map[string]any)
	for i := range s.Adds {
		a := &s.Adds[i]
		if spec == nil || a.When != nil && !a.When.Holds(s.Job) {
			continue
		}
		template, spec = maps.Clone(template), maps.Clone(spec)
		template["spec"] = spec
		resources := s.valueAt(a.Resources)
		for key, added := range map[string][]any{"initContainers": a.Init, "containers": a.Containers} {
			list, _ := spec[key].([]any)
			if len(added) == 0 || list == nil && spec[key] != nil {
				continue // a list that is none is told when the template is decoded
			}
			list = slices.Clone(list)
			for _, container := range added {
				list = append(list, withResources(container, resources))
			}
			spec[key] = list
		}
	}
	return template
}

func withResources(container, resources any) any {
	fields, _ := container.(map[string]any)
	if resources == nil || fields == nil {
		return container
	}
	fields = maps.Clone(fields)
	fields["resources"] = resources
	return fields
}

func (s *Found) valueAt(from Source) any {
	if from.OfJob {
		return Lookup(s.Job, from.Path)
	}
	return Lookup(s.Fields, from.Path)
}

// withMetadata is a template with these labels or annotations; the template itself is not changed.
func withMetadata(template map[string]any, key MetadataKey, values map[string]string) map[string]any {
	if len(values) == 0 {
		return template
	}
	template = maps.Clone(template)
	metadata, _ := template["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	all := make(map[string]any, len(values))
	for k, v := range values {
		all[k] = v
	}
	metadata[string(key)], template["metadata"] = all, metadata
	return template
}

// Pods is the product of the terms, between zero and the greatest number that the API takes. It is not known if there
// are no terms, or the field of one is not there and bounds nothing.
func (s *Found) Pods(terms []Term) (n int32, known bool, err error) {
	product, known := int64(1), len(terms) > 0
	for i := range terms {
		n, there, err := s.term(&terms[i])
		if err != nil {
			return 0, false, err
		}
		// Both are at most that number, so that their product is at most 2^62.
		product, known = min(product*min(max(n, 0), math.MaxInt32), math.MaxInt32), known && there
	}
	return int32(product), known, nil
}

// term is what a factor is; there says that it has a field or a default.
func (s *Found) term(t *Term) (n int64, there bool, err error) {
	n, there, err = s.unbounded(t)
	for i := 0; i < len(t.AtLeast) && err == nil; i++ {
		var bound int64
		bound, _, err = s.Number(t.AtLeast[i])
		n = max(n, bound) // zero where there is none
	}
	return n, there, err
}

func (s *Found) unbounded(t *Term) (n int64, there bool, err error) {
	if len(t.Least) > 0 {
		n = math.MaxInt32
		for i := range t.Least {
			one, bounds, err := s.term(&t.Least[i])
			if err != nil {
				return 0, false, err
			}
			if bounds {
				n = min(n, one)
			}
		}
		return n - t.LessConstant, true, nil
	}
	if t.Computed != nil {
		n, err = t.Computed.Number(s.Job)
		return n, true, err
	}
	n, found, err := s.Number(t.Field)
	switch {
	case err != nil:
		return 0, false, err
	case !found && t.ByDefault == nil:
		return 1, false, nil
	case !found:
		n = *t.ByDefault
	}
	if n < 0 {
		return 0, false, fmt.Errorf("%w: %s is negative", ErrMalformed, t.Field.Path)
	}
	less, _, err := s.Number(t.Less)
	if err != nil {
		return 0, true, err
	}
	listed, err := indexes(s.valueAt(t.LessIndexes), t.LessIndexes.Path)
	return n - max(less, 0) - listed - t.LessConstant, true, err
}

// Number reads a whole number; an absent field is not found.
func (s *Found) Number(from Source) (int64, bool, error) {
	if from.OfJob {
		return Integer(s.Job, from.Path)
	}
	return Integer(s.Fields, from.Path)
}
