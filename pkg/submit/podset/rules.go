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

import "encoding/json"

// SuspendRule is how a job is suspended.
type SuspendRule struct {
	// Field is a boolean, which the job may lack.
	Field string `json:"field,omitempty"`
	// Unless, an expression, is true of a job that its operator does not let suspend. Nothing is written into such a job.
	// Its pods wait in the scheduler, and name their quota in their template.
	Annotation string `json:"annotation,omitempty"`
	// KeepsPods: the operator makes no new pods of a suspended job, and lets those that are there run on.
	KeepsPods bool `json:"keepsPods,omitempty"`
	// Unless, an expression, is true of a job that its operator does not let suspend. Nothing is written into such a job:
	// its pods wait in the scheduler, and name their quota in their template.
	Unless string `json:"unless,omitempty"`
}

// GangRule is for kinds whose templates are written when a job is resumed. Without it, jobs are gangs where the
// configuration lists their kind.
type GangRule struct {
	// When, an expression, is true of a job that asks to be a gang; absent, none does.
	When string `json:"when,omitempty"`
	// Unless, an expression, is true of a job some of whose pods are made once others run, which no pod set says by
	// itself. Such a job is never a gang: its pods would wait for each other.
	Unless string `json:"unless,omitempty"`
	// Minimum of pods that have to be bound together, as a Count. Absent, or where a field is not there, these are all
	// pods of the gang, and of elastic pod sets MinCount.
	Minimum []CountRule `json:"minimum,omitempty"`
}

// ValidRule is a condition for a job, with the message for its owner.
type ValidRule struct {
	Rule    string `json:"rule"`
	Message string `json:"message"`
}

// PodSetRule is one group of pods with the same template, or several of them.
type PodSetRule struct {
	// When, an expression, says whether the job has these pods; absent is always.
	When string `json:"when,omitempty"`
	// Path of the object that has the fields below; absent is the job itself. With stars it is one pod set for each object
	// that is there, and for none if none is. Without, it has to be there unless Optional.
	Path     string `json:"path,omitempty"`
	Optional bool   `json:"optional,omitempty"`
	// Name of the pod set. If absent with a star, it is the last key of the path, in lower case, without the name of the
	// job. With several stars the name has all their keys, with dashes between them.
	Name string `json:"name,omitempty"`
	// NameField holds the name instead.
	NameField string `json:"nameField,omitempty"`
	// Count of pods: the product of its terms, at least zero. MinCount is the least number with which the job can run. It
	// is Count if MinCount, or the fields of one of its terms, are absent.
	Count    []CountRule `json:"count"`
	MinCount []CountRule `json:"minCount,omitempty"`
	// Partial says how the job may be admitted with fewer of these pods. Absent, it may not.
	Partial *PartialRule `json:"partial,omitempty"`
	// Later, an expression, is true where the operator makes these pods once others of the job run: they are in no gang.
	Later string `json:"later,omitempty"`
	// Early is true if the writes of resuming do not reach the pods. Either the operator creates their owners before the
	// job is resumed, or nobody may change their template. So such pods name their quota in their template, and are in no
	// gang.
	Early bool `json:"early,omitempty"`
	// Template is the path of the pod template, from Path. Several are tried in their order: the first that is there.
	Template Paths `json:"template,omitempty"`
	// TemplateField, in place of Template, holds the path of the template as a text: names of fields, and indexes of lists
	// in brackets. The path begins at the object that TemplateFrom, a beginning of Path, leads to. Policies cannot follow
	// such a text: PodMetadata of the kind has to list where it may lead.
	TemplateField string `json:"templateField,omitempty"`
	TemplateFrom  string `json:"templateFrom,omitempty"`
	// Computed names the code that makes the template where none of them is there.
	Computed string `json:"computed,omitempty"`
	// Adds are containers that the operator puts into the pods in addition to those of the template.
	Adds []AddRule `json:"adds,omitempty"`
	// Labels and Annotations that the pods get in addition to those of the template; from Path, or with "$" before it from
	// the job. Absent are those of the template.
	Labels      string `json:"labels,omitempty"`
	Annotations string `json:"annotations,omitempty"`
	// SchedulerName is where the name of the scheduler is written, as Labels is; absent is the spec of the template.
	SchedulerName string `json:"schedulerName,omitempty"`
}

// PartialRule is for pods of which a job may be admitted with fewer than Count. It has the least number, and the place
// of the admitted number. Fields are as those of a CountRule.
type PartialRule struct {
	// When, an expression, is true of a job that may be; absent, every one may that says with how few. Unless is true of
	// one that may not be.
	When   string `json:"when,omitempty"`
	Unless string `json:"unless,omitempty"`
	// Annotations of the job hold the least number of pods; the first that is there counts. Else it is MinCount, or that
	// of the pod set where that is absent.
	Annotations []string    `json:"annotations,omitempty"`
	MinCount    []CountRule `json:"minCount,omitempty"`
	// Field gets the number that is admitted, divided by what Each holds; absent is one.
	Field string `json:"field"`
	Each  string `json:"each,omitempty"`
	// Along is a field that gets the same number if it has the same as Field, and AlongWhen, an expression, is true.
	Along     string `json:"along,omitempty"`
	AlongWhen string `json:"alongWhen,omitempty"`
}

// AddRule is an operator's addition to pods. Of containers only name, restart policy and resources matter.
type AddRule struct {
	// When, an expression, says whether it does; absent is always.
	When           string           `json:"when,omitempty"`
	InitContainers []map[string]any `json:"initContainers,omitempty"`
	Containers     []map[string]any `json:"containers,omitempty"`
	// Resources is a path, from Path or with "$" before it from the job: what it holds replaces the resources of all these
	// containers.
	Resources string `json:"resources,omitempty"`
}

// CountRule is one factor of a number of pods. Fields are paths from that of the pod set; those that begin with "$" are
// from the job.
type CountRule struct {
	// Field holds the number; Default is taken where it is absent, and alone it is the number. Without a Default a field
	// that is absent bounds nothing among Least, and elsewhere is one.
	Field   string `json:"field,omitempty"`
	Default *int64 `json:"default,omitempty"`
	// Less holds a number to take off, for instance pods that have ended well.
	Less string `json:"less,omitempty"`
	// LessIndexes holds a list of indexes, as in "1,3-5"; their number is taken off, for instance indexes that have failed
	// and are not tried again.
	LessIndexes string `json:"lessIndexes,omitempty"`
	// LessConstant is such a number.
	LessConstant int64 `json:"lessConstant,omitempty"`
	// Least is the least of these, in place of Field.
	Least []CountRule `json:"least,omitempty"`
	// Computed names the code that has the number, in place of Field.
	Computed string `json:"computed,omitempty"`
	// AtLeast are fields that hold numbers which this one is not below; one that is absent bounds nothing.
	AtLeast []string `json:"atLeast,omitempty"`
}

// Paths are one path or a list of them.
type Paths []string

// UnmarshalJSON reads a text or a list of texts.
func (p *Paths) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*p = Paths{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(raw, &many); err != nil {
		return err
	}
	*p = many
	return nil
}
