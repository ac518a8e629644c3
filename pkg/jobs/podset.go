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
	"math"
	"slices"

	"github.com/koordinator-sh/koordinator/apis/extension"
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/podtemplate"
)

// PodSet is one group of pods of a job.
type PodSet struct {
	Name string
	// Count of pods that the job still needs at once; may be zero. MinCount is the least that it can do with, nil if that
	// is Count.
	Count    int32
	MinCount *int32
	// Least number of pods that the job may be admitted with, nil if that is Count.
	Least    *int32
	Template *corev1.PodTemplateSpec
	// Raw is the template as the job has it, as JSON.
	Raw []byte
}

// podSetAt is a pod set that a job has: the object that it is in, by the rule for it.
type podSetAt struct {
	*jobkind.Set
	jobkind.Place
	job map[string]any
	set string
	// template is the path of the template that is there, from the object; empty if it is computed, or missing.
	template jobkind.Path
}

// podSets finds those that the job has, in the order of the rules. The error is ErrMalformed if one is not there that
// has to be, or two have one name; those before it are returned as well.
func (j *Job) podSets() ([]podSetAt, error) {
	if !j.walked {
		j.found, j.missing = findPodSets(j)
		j.walked = true
	}
	return j.found, j.missing
}

func findPodSets(j *Job) ([]podSetAt, error) {
	var found []podSetAt
	object := j.Object.Object
	names := map[string]bool{}
	for i := range j.Kind.Sets {
		rule := &j.Kind.Sets[i]
		if rule.When != nil && !rule.When.Holds(object) {
			continue
		}
		places := jobkind.Walk(object, rule.Path)
		if len(places) == 0 && !rule.Stars && !rule.Optional {
			return found, fmt.Errorf("%w: %s is not an object", podtemplate.ErrMalformed, rule.Path)
		}
		for _, place := range places {
			at := podSetAt{Set: rule, Place: place, job: object, set: rule.NameOf(&place, j.Object.GetName())}
			if names[at.set] {
				return found, fmt.Errorf("%w: two groups of pods are called %q", podtemplate.ErrMalformed, at.set)
			}
			names[at.set] = true
			at.template = at.templateThere()
			found = append(found, at)
		}
	}
	return found, nil
}

// templateThere is the first of the templates that is there.
func (s *podSetAt) templateThere() jobkind.Path {
	for _, p := range s.Templates {
		if _, ok := jobkind.Lookup(s.Object, p).(map[string]any); ok {
			return p
		}
	}
	return nil
}

// templatePath is that of the pod template in the job, for a person.
func (s *podSetAt) templatePath() jobkind.Path {
	switch {
	case len(s.template) > 0:
		return append(s.At.Child(), s.template...)
	case len(s.Templates) > 0:
		return append(s.At.Child(), s.Templates[0]...)
	default:
		return s.At
	}
}

// metadataAt is the object and the path in it where labels or annotations of the pods are written; nil if nowhere.
func (s *podSetAt) metadataAt(key jobkind.MetadataKey) (map[string]any, jobkind.Path) {
	given := s.Labels
	if key == jobkind.AnnotationsKey {
		given = s.Annotations
	}
	switch {
	case len(given.Path) > 0 && given.OfJob:
		return s.job, given.Path
	case len(given.Path) > 0:
		return s.Object, given.Path
	case len(s.template) > 0:
		return s.Object, s.template.Child("metadata", string(key))
	default:
		return nil, nil
	}
}

// metadata are the labels or annotations that the pods will have, nil if none.
func (s *podSetAt) metadata(key jobkind.MetadataKey) map[string]string {
	var own map[string]string
	if len(s.template) > 0 { // without a template the metadata is that of the job
		own = jobkind.StringMap(jobkind.Lookup(s.Object, s.template.Child("metadata", string(key))))
	}
	object, p := s.metadataAt(key)
	if object == nil {
		return own
	}
	given := jobkind.StringMap(jobkind.Lookup(object, p))
	if own == nil {
		return given
	}
	maps.Copy(own, given)
	return own
}

// PodSets reads the pod sets. The error is ErrMalformed for a count or template that cannot be read; then the
// sets that could be read, up to it, are returned as well. They are read once and must not be changed.
func (j *Job) PodSets() ([]PodSet, error) {
	if !j.read {
		j.sets, j.unread = readPodSets(j)
		j.read = true
	}
	return j.sets, j.unread
}

func readPodSets(j *Job) ([]PodSet, error) {
	found, missing := j.podSets()
	sets := make([]PodSet, 0, len(found))
	for i := range found {
		set, err := found[i].read()
		if err != nil {
			return sets, err
		}
		sets = append(sets, set)
	}
	return sets, missing
}

func (s *podSetAt) read() (PodSet, error) {
	set := PodSet{Name: s.set}
	if err := s.readCounts(&set); err != nil {
		return set, err
	}
	if err := s.readPartial(&set); err != nil {
		return set, err
	}
	value, err := s.readTemplate()
	if err != nil {
		return set, err
	}
	if set.Raw, err = json.Marshal(value); err != nil {
		return set, fmt.Errorf("%w: %s: %w", podtemplate.ErrMalformed, s.templatePath(), err)
	}
	if set.Template, err = podtemplate.Decode(set.Raw); err != nil {
		return set, fmt.Errorf("%s: %w", s.templatePath(), err)
	}
	return set, nil
}

func (s *podSetAt) readCounts(set *PodSet) error {
	n, _, err := s.pods(s.Count)
	if err != nil {
		return err
	}
	set.Count = n
	least, known, err := s.pods(s.MinCount)
	if err != nil || !known || least >= n {
		return err
	}
	set.MinCount = &least
	return nil
}

// readTemplate is the template with the labels and annotations that pods get in addition to it.
func (s *podSetAt) readTemplate() (map[string]any, error) {
	value, _ := jobkind.Lookup(s.Object, s.template).(map[string]any)
	switch {
	case value != nil:
	case s.Computed == nil:
		return nil, fmt.Errorf("%w: %s is not an object", podtemplate.ErrMalformed, s.templatePath())
	default:
		var err error
		if value, err = s.Computed.Make(s.job, s.Object); err != nil {
			return nil, err
		}
	}
	value = s.withAdded(value)
	for key, given := range map[jobkind.MetadataKey]jobkind.Source{
		jobkind.LabelsKey: s.Labels, jobkind.AnnotationsKey: s.Annotations,
	} {
		if len(given.Path) > 0 {
			value = withMetadata(value, key, s.metadata(key))
		}
	}
	return value, nil
}

// withAdded is the template with what the operator adds to it; the template itself is not changed.
func (s *podSetAt) withAdded(template map[string]any) map[string]any {
	spec, _ := template["spec"].(map[string]any)
	for i := range s.Adds {
		a := &s.Adds[i]
		if spec == nil || a.When != nil && !a.When.Holds(s.job) {
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

func (s *podSetAt) valueAt(from jobkind.Source) any {
	if from.OfJob {
		return jobkind.Lookup(s.job, from.Path)
	}
	return jobkind.Lookup(s.Object, from.Path)
}

// withMetadata is a template with these labels or annotations; the template itself is not changed.
func withMetadata(template map[string]any, key jobkind.MetadataKey, values map[string]string) map[string]any {
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

// pods is the product of the terms, between zero and the greatest number that the API takes. It is not known if there
// are no terms, or the field of one is not there and bounds nothing.
func (s *podSetAt) pods(terms []jobkind.Term) (n int32, known bool, err error) {
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
func (s *podSetAt) term(t *jobkind.Term) (n int64, there bool, err error) {
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
	n, found, err := s.number(t.Field)
	switch {
	case err != nil:
		return 0, false, err
	case !found && t.ByDefault == nil:
		return 1, false, nil
	case !found:
		n = *t.ByDefault
	}
	if n < 0 {
		return 0, false, fmt.Errorf("%w: %s is negative", podtemplate.ErrMalformed, t.Field.Path)
	}
	less, _, err := s.number(t.Less)
	return n - max(less, 0) - t.LessConstant, true, err
}

func (s *podSetAt) number(from jobkind.Source) (int64, bool, error) {
	if from.OfJob {
		return jobkind.Integer(s.job, from.Path)
	}
	return jobkind.Integer(s.Object, from.Path)
}

// PodSetsRequest is the request of the whole job: for every pod set its count times what one pod asks for.
func PodSetsRequest(sets []PodSet, creation *podrequest.Creation) (corev1.ResourceList, error) {
	total := corev1.ResourceList{}
	for i := range sets {
		if sets[i].Template == nil {
			continue
		}
		one, err := creation.Request(sets[i].Template)
		if err != nil {
			return nil, fmt.Errorf("pod set %q: %w", sets[i].Name, err)
		}
		all, err := podrequest.Times(one, int64(sets[i].Count))
		if err != nil {
			return nil, fmt.Errorf("pod set %q: %w", sets[i].Name, err)
		}
		if total, err = podrequest.Sum(total, all); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// namesGang says whether the author of the job put these pods into a gang of Koordinator.
func (s *podSetAt) namesGang() bool {
	return s.metadata(jobkind.AnnotationsKey)[extension.AnnotationGangName] != "" ||
		jobkind.FirstOf(s.metadata(jobkind.LabelsKey), gangLabels...) != ""
}
