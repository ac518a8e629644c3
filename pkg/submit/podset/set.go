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

// Package podset finds the pod sets of a job by the rules of its kind: templates, numbers of pods, and the places for
// labels. The queue and programs that submit jobs both use it.
package podset

import "strings"

// maxPodSetName is the bound of the API on the name of a pod set.
const maxPodSetName = 63

// Condition is an expression over one job that was compiled; nil never holds.
type Condition struct {
	// Reads are the fields that it looks at, if the compiler knows them.
	Reads []Path
	test  func(job map[string]any) bool
}

// NewCondition is one that test evaluates. test must not change the job.
func NewCondition(test func(job map[string]any) bool, reads ...Path) *Condition {
	return &Condition{Reads: reads, test: test}
}

// Holds says whether the expression is true. An expression that fails, because a field is absent, is false.
func (c *Condition) Holds(job map[string]any) bool { return c != nil && c.test(job) }

// Set is a PodSetRule that was checked.
type Set struct {
	When            *Condition
	Path            Path
	Stars, Optional bool
	Early           bool
	Name            string
	NameField       Path
	Count, MinCount []Term
	Partial         *Partial
	Later           *Condition
	Templates       []Path
	// TemplateField holds the path of the template, from the object that the first templateFrom keys of Path lead to.
	TemplateField Path
	templateFrom  int
	Computed      *Computed
	Adds          []Add
	// Labels and annotations that are given to the pods in addition to those of the template.
	Labels, Annotations Source
	// SchedulerName is where the name of the scheduler is written; empty is the spec of the template.
	SchedulerName Source
}

// Add is an AddRule that was checked; containers are as in JSON.
type Add struct {
	When             *Condition
	Init, Containers []any
	Resources        Source
}

// Term is one factor of a number of pods.
type Term struct {
	Field, Less  Source
	LessIndexes  Source
	ByDefault    *int64
	LessConstant int64
	Least        []Term
	AtLeast      []Source
	Computed     *ComputedCount
}

// Partial is a PartialRule that was checked.
type Partial struct {
	When, Unless *Condition
	Least        []Term
	Annotations  []string
	Field, Each  Source
	Along        Source
	AlongWhen    *Condition
}

// Source is a field of the object that a pod set is in, or of the job.
type Source struct {
	Path  Path
	OfJob bool
}

// NameOf a pod set: what the rule says, else the field that it names, else the key of a map or list, else the job's.
func (r *Set) NameOf(at *Place, job string) string {
	name := job
	switch given, _ := Lookup(at.Object, r.NameField).(string); {
	case r.Name != "":
		return r.Name
	case given != "":
		name = given
	case r.Stars:
		name = keys(r, at)
	}
	if name != job {
		name = podSetName(name)
	}
	if len(name) > maxPodSetName {
		return name[:maxPodSetName]
	}
	return name
}

// keys of a place: the last of the way, or those that several stars stand for.
func keys(r *Set, at *Place) string {
	var keys []string
	for i, key := range r.Path {
		if key == Star && i < len(at.At) {
			keys = append(keys, at.At[i])
		}
	}
	if len(keys) < 2 {
		return at.Key()
	}
	return strings.Join(keys, "-")
}

// podSetName makes a name that the API takes of what a user or an operator called a group of pods.
func podSetName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if name = strings.Trim(name, "-"); name == "" {
		return "pods"
	}
	return name
}

// MetadataKey is a field of the metadata of pods that is read and written.
type MetadataKey string

const (
	LabelsKey      MetadataKey = "labels"
	AnnotationsKey MetadataKey = "annotations"
)

// Of is the set that a rule describes. compile gets the text of an expression and returns nil for none. Of checks
// nothing: what the rule names wrong is left out.
func Of(r *PodSetRule, compile func(text string) *Condition) Set {
	s := Set{
		When: compile(r.When), Path: PathOf(r.Path), Optional: r.Optional, Early: r.Early, Name: r.Name,
		NameField: PathOf(r.NameField), Count: TermsOf(r.Count), MinCount: TermsOf(r.MinCount),
		Later: compile(r.Later), Labels: sourceOf(r.Labels), Annotations: sourceOf(r.Annotations),
		SchedulerName: sourceOf(r.SchedulerName),
	}
	s.Stars = len(s.Path.Fixed()) < len(s.Path)
	s.TemplateField, s.templateFrom = PathOf(r.TemplateField), len(PathOf(r.TemplateFrom))
	if s.templateFrom > len(s.Path) {
		s.TemplateField = nil
	}
	for _, text := range r.Template {
		s.Templates = append(s.Templates, PathOf(text))
	}
	if code, known := ComputedTemplates[r.Computed]; known {
		s.Computed = &code
	}
	for i := range r.Adds {
		a := &r.Adds[i]
		s.Adds = append(s.Adds, Add{
			When: compile(a.When), Resources: sourceOf(a.Resources), Init: anyOf(a.InitContainers),
			Containers: anyOf(a.Containers),
		})
	}
	if p := r.Partial; p != nil {
		s.Partial = &Partial{
			When: compile(p.When), Unless: compile(p.Unless), Annotations: p.Annotations, Least: TermsOf(p.MinCount),
			Field: sourceOf(p.Field), Each: sourceOf(p.Each), Along: sourceOf(p.Along), AlongWhen: compile(p.AlongWhen),
		}
		if len(p.MinCount) == 0 {
			s.Partial.Least = s.MinCount
		}
	}
	return s
}

// TermsOf are the factors that the rules describe.
func TermsOf(rules []CountRule) (terms []Term) {
	for i := range rules {
		r := &rules[i]
		var atLeast []Source
		for _, text := range r.AtLeast {
			atLeast = append(atLeast, sourceOf(text))
		}
		var computed *ComputedCount
		if code, known := ComputedCounts[r.Computed]; known {
			computed = &code
		}
		terms = append(terms, Term{
			Computed: computed, Field: sourceOf(r.Field), Less: sourceOf(r.Less), LessIndexes: sourceOf(r.LessIndexes),
			ByDefault: r.Default, LessConstant: r.LessConstant, Least: TermsOf(r.Least), AtLeast: atLeast,
		})
	}
	return terms
}

func sourceOf(text string) Source {
	below, ofJob := strings.CutPrefix(text, "$")
	return Source{Path: PathOf(below), OfJob: ofJob}
}

func anyOf(objects []map[string]any) (list []any) {
	for _, o := range objects {
		list = append(list, o)
	}
	return list
}
