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
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// ErrQuotaMismatch marks a job that names more than one quota.
var ErrQuotaMismatch = errors.New("job names more than one quota")

// Job is an object of a kind, opened to be read. Nobody may change the object: an Edit makes another job. A Job caches
// its values, so it is not safe for concurrent use.
type Job struct {
	Kind   *jobkind.Kind
	Object *unstructured.Unstructured
	// Alias is the quota and the queue that it names by a path or by labels of another system. Its own labels of a quota
	// and a queue count first.
	Alias alias.Names
	// Defaults are read where the job says nothing.
	Defaults Defaults
	// Further is what else it asks for by such labels. Its own annotations count first.
	Further alias.Further

	// found are its pod sets as they are in the object, and missing what is wrong with the next one.
	found   []podSetAt
	missing error
	walked  bool
	// sets are they as they were read, and unread is what could not be.
	sets   []PodSet
	unread error
	read   bool
}

// Defaults of a job that nothing in its object can say for all kinds.
type Defaults struct {
	// PriorityClass of the unit; the pods keep theirs.
	PriorityClass string
	// Gang has the job be one gang; nil is not.
	Gang *GangDefault
}

// Open an object of the kind.
func Open(k *jobkind.Kind, object *unstructured.Unstructured) *Job {
	return &Job{Kind: k, Object: object}
}

// Edit changes a copy of the job.
func (j *Job) Edit() *Edit { return EditOf(j.Kind, j.Object.DeepCopy()) }

// UnitName is the name of its unit.
func (j *Job) UnitName() string { return j.Kind.UnitName(j.Object.GetName()) }

// Plain is the job as its owner wrote it, without the additions of resuming and of checks. A suspended job has all of
// its pods, even if it was resumed with fewer.
func (j *Job) Plain(asked map[string][]podupdate.Update) *Job {
	fewer := j.Suspended() && j.HasCounts()
	if !fewer && !j.HasAdditions() {
		return j
	}
	e := j.Edit()
	e.RestoreTemplates(asked)
	if fewer {
		e.RestoreCounts()
	}
	return e.Job()
}

// ManagedByOther says whether somebody else than the kind's own controller has the job.
func (j *Job) ManagedByOther() bool {
	if len(j.Kind.ManagedBy) == 0 {
		return false
	}
	manager, ok := jobkind.Lookup(j.Object.Object, j.Kind.ManagedBy).(string)
	if !ok || manager == "" {
		return false
	}
	for _, own := range j.Kind.OwnControllers {
		if manager == own {
			return false
		}
	}
	return true
}

// Quota returns the quota that the job names, and "" when it names none: then Koordinator decides by the
// namespace. Pod templates are read before the job; where two of them name different quotas the error is
// ErrQuotaMismatch.
func (j *Job) Quota() (string, error) {
	name, from := "", ""
	sets, _ := j.podSets()
	for i, set := range append(j.TemplateLabels(), j.Object.GetLabels()) {
		origin := "the job"
		if i < len(sets) {
			origin = sets[i].TemplatePath().String()
		}
		switch found := jobkind.FirstOf(set, v1alpha1.QuotaLabels[:]...); {
		case found == "" || found == name:
		case name == "":
			name, from = found, origin
		default:
			return name, fmt.Errorf("%w: %q on %s, %q on %s", ErrQuotaMismatch, name, from, found, origin)
		}
	}
	if name == "" {
		name = j.Alias.Quota
	}
	return name, nil
}

// Chargeable says why pods of the job cannot be charged to the quota that it names. Nobody can set the labels of some
// of these pods, so they are charged to the quota of the namespace. The error is ErrQuotaMismatch.
func (j *Job) Chargeable(quota, ofNamespace string) error {
	if quota == "" || quota == ofNamespace {
		return nil
	}
	sets, _ := j.podSets()
	for i := range sets {
		s := &sets[i]
		object, _ := s.MetadataAt(jobkind.LabelsKey)
		reached := object != nil && CanBeSuspended(j) && !s.Early
		if reached || jobkind.FirstOf(s.Metadata(jobkind.LabelsKey), v1alpha1.LabelQuotaName) != "" {
			continue
		}
		anew := ""
		if s.Early {
			anew = " and create the job again"
		}
		return fmt.Errorf("%w: the job says %q, and pods of %s cannot be given a label: name the quota in their template%s, "+
			"or use the quota of the namespace", ErrQuotaMismatch, quota, s.Called, anew)
	}
	return nil
}

// Preemptible returns the value of the preemptible label, or of its former name. It is "false" if any pod template says
// so, or the job for a template without the label. Otherwise it is the first value that exists. Only "false" has a
// meaning: the job draws on min only. ElasticQuota reads the label of each pod. A job with both sorts of pods counts as
// a whole, so that none of its pods is refused for min.
func (j *Job) Preemptible() string {
	keys := []string{v1alpha1.LabelPreemptible}
	if CanBeSuspended(j) { // its pods get the label that ElasticQuota reads
		keys = append(keys, v1alpha1.LabelPreemptibleFallback)
	}
	valueOf := func(labels map[string]string) string { return jobkind.FirstOf(labels, keys...) }
	first, own := "", valueOf(j.Object.GetLabels())
	for _, set := range j.TemplateLabels() {
		value := valueOf(set)
		if value == "" {
			value = own
		}
		if value == "false" {
			return value
		}
		if first == "" {
			first = value
		}
	}
	if first == "" {
		return own
	}
	return first
}

// Queue returns the queue that the job names by annotation or label, or "".
func (j *Job) Queue() string {
	if name := j.Object.GetAnnotations()[v1alpha1.QueueNameKey]; name != "" {
		return name
	}
	for _, set := range append([]map[string]string{j.Object.GetLabels()}, j.TemplateLabels()...) {
		if name := set[v1alpha1.QueueNameKey]; name != "" {
			return name
		}
	}
	return j.Alias.Queue
}

// QueuePath returns the path by which a job names its quota, in an annotation or a label, or "". ErrQuotaMismatch is
// of a job that names two.
func QueuePath(j *Job) (string, error) {
	sets := append([]map[string]string{j.Object.GetAnnotations(), j.Object.GetLabels()}, j.TemplateLabels()...)
	path := ""
	for _, set := range sets {
		switch found := set[v1alpha1.QueuePathKey]; {
		case found == "" || found == path:
		case path == "":
			path = found
		default:
			return "", fmt.Errorf("%w: by the paths %.64q and %.64q", ErrQuotaMismatch, path, found)
		}
	}
	return path, nil
}

// Priority of a job: the name of a class that has one, and a number in its place. Both may be absent: then the
// cluster's default holds.
type Priority struct {
	Value *int32
	Class string
	// OfPods: neither an annotation nor a field of the job gives another than its pods have. A default does not count.
	OfPods bool
}

// Priority reads the job's own field, else the first pod template, else the default; an annotation puts its number in
// the place of theirs. The error is ErrMalformed for one that is no 32-bit integer; then what would hold without it is
// returned.
func (j *Job) Priority() (Priority, error) {
	sets, _ := j.podSets()
	priority := templatePriority(sets)
	priority.OfPods = true
	for _, field := range j.Kind.PriorityClass {
		if class, ok := jobkind.Lookup(j.Object.Object, field).(string); ok && class != "" {
			priority = Priority{Class: class}
			break
		}
	}
	if priority.Value == nil && priority.Class == "" {
		priority.Class = j.Defaults.PriorityClass
	}
	text, annotated := j.Object.GetAnnotations()[v1alpha1.AnnotationPriority]
	if !annotated {
		if j.Further.Priority != nil {
			priority.Value, priority.OfPods = j.Further.Priority, false
		}
		return priority, nil
	}
	priority.OfPods = false
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return priority, fmt.Errorf("%w: annotation %s: %q is not a 32-bit integer", podtemplate.ErrMalformed,
			v1alpha1.AnnotationPriority, text)
	}
	value := int32(n)
	priority.Value = &value
	return priority, nil
}

func templatePriority(sets []podSetAt) Priority {
	for i := range sets {
		template, err := sets[i].ReadTemplate()
		if err != nil {
			continue
		}
		class, _ := jobkind.Lookup(template, jobkind.Path{"spec", "priorityClassName"}).(string)
		n, found, err := jobkind.Integer(template, jobkind.Path{"spec", "priority"})
		if err != nil || !found || n != int64(int32(n)) { //nolint:gosec // that is the question
			if class == "" {
				continue
			}
			return Priority{Class: class}
		}
		value := int32(n) //nolint:gosec // checked above
		return Priority{Value: &value, Class: class}
	}
	return Priority{}
}

// TemplateLabels are the labels of the pod templates, one set for each pod set, nil where there are none.
func (j *Job) TemplateLabels() []map[string]string { return metadataOf(j, jobkind.LabelsKey) }

// TemplateAnnotations are the annotations of its pod templates.
func (j *Job) TemplateAnnotations() []map[string]string { return metadataOf(j, jobkind.AnnotationsKey) }

func metadataOf(j *Job, key jobkind.MetadataKey) []map[string]string {
	found, _ := j.podSets()
	sets := make([]map[string]string, 0, len(found)+2)
	for i := range found {
		sets = append(sets, found[i].Metadata(key))
	}
	return sets
}
