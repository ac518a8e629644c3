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

package jobkind

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Descriptor says where a kind of job keeps what the queue needs. Kinds are data: those that are built in are files of
// this form, and a configuration may have more of them. What is written is a path; what is only read may be an
// expression in CEL, which sees the job as self and is false, zero or empty where a field that it names is not there.
type Descriptor struct {
	// APIVersion and Kind of the jobs, and their resource, in the plural: batch/v1, Job, jobs.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
	// UnitSuffix is put behind the job's name, after a dash, to name its unit. Absent is the kind in lower case; an empty
	// text, which batch/v1 Job has, gives the job's own name.
	UnitSuffix *string `json:"unitSuffix,omitempty"`
	// Suspend keeps the job from having pods. Without it the job is never suspended: its pods wait in the scheduler.
	Suspend *SuspendRule `json:"suspend,omitempty"`
	// Valid has to hold before the job can be queued. A job for which one of them does not is left as it is, and its pods
	// are held back.
	Valid []ValidRule `json:"valid,omitempty"`
	// Children are the kinds of objects that stand between the job and its pods, no matter who made them for it: they own
	// its pods.
	Children []ObjectKind `json:"children,omitempty"`
	// Child is one of them that has the name of the job and is read with it, as the field child of the job.
	Child *ObjectKind `json:"child,omitempty"`
	// PodSets in the order in which they appear in the unit.
	PodSets []PodSetRule `json:"podSets"`
	// PodMetadata lists, with stars, what else has labels and annotations that reach the pods. Nothing is written there,
	// and nobody but the policies of manifests/components/kinds reads it.
	PodMetadata []string `json:"podMetadata,omitempty"`
	// Gang says which jobs are one gang for Koordinator: their pods are bound together, or not at all.
	Gang *GangRule `json:"gang,omitempty"`
	// PriorityClass lists fields that hold the name of a priority class, before the pod templates are asked.
	PriorityClass []string `json:"priorityClass,omitempty"`
	// ManagedBy names the controller of the job.
	ManagedBy *ManagedByRule `json:"managedBy,omitempty"`
	State     StateRules     `json:"state"`
	// StartTime, where the kind has such a rule, is set once the job has run, and until it is cleared pod templates cannot
	// be changed. It is cleared before a job that was suspended is resumed.
	StartTime string `json:"startTime,omitempty"`
	// Pods says how pods of the job are found.
	Pods PodsRule `json:"pods"`
}

// ObjectKind names a kind of object and its resource, in the plural.
type ObjectKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resource   string `json:"resource"`
}

// SuspendRule is how a job is suspended.
type SuspendRule struct {
	// Field is a boolean, which the job may lack.
	Field string `json:"field,omitempty"`
	// Annotation suspends with the value "true", for operators that go by one. If there is a Field as well, the Field
	// alone decides, and an annotation that says "true" is set to "false" when the job is resumed.
	Annotation string `json:"annotation,omitempty"`
	// KeepsPods: the operator makes no new pods of a suspended job, and lets those that are there run on.
	KeepsPods bool `json:"keepsPods,omitempty"`
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

// ValidRule is what has to hold for a job, and what its owner is told if it does not.
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
	// Name of the pod set; absent with stars is the last key of the path, in lower case, and without the name of the job.
	Name string `json:"name,omitempty"`
	// NameField holds the name instead.
	NameField string `json:"nameField,omitempty"`
	// Count of pods: the product of its terms, at least zero. MinCount is the least that the job can do with; absent, or
	// where the fields of one of its terms are not there, it is Count.
	Count    []CountRule `json:"count"`
	MinCount []CountRule `json:"minCount,omitempty"`
	// Partial says how the job may be admitted with fewer of these pods. Absent, it may not.
	Partial *PartialRule `json:"partial,omitempty"`
	// Later, an expression, is true where the operator makes these pods once others of the job run: they are in no gang.
	Later string `json:"later,omitempty"`
	// Early is true where the operator makes what makes these pods before the job is resumed, and does not change it
	// afterwards: what resuming writes does not reach them. So they name their quota in their template, and are in no
	// gang.
	Early bool `json:"early,omitempty"`
	// Template is the path of the pod template, from Path. Several are tried in their order: the first that is there.
	Template Paths `json:"template,omitempty"`
	// Computed names the code that makes the template where none of them is there.
	Computed string `json:"computed,omitempty"`
	// Adds are containers that the operator puts into the pods in addition to those of the template.
	Adds []AddRule `json:"adds,omitempty"`
	// Labels and Annotations that the pods get in addition to those of the template; from Path, or with "$" before it from
	// the job. Absent are those of the template.
	Labels      string `json:"labels,omitempty"`
	Annotations string `json:"annotations,omitempty"`
}

// PartialRule is for pods of which a job may be admitted with fewer than Count: with how few, and where the number is
// written that it gets. Fields are as those of a CountRule.
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

// AddRule is what an operator puts into pods. Of the containers nothing but name, restart policy and resources matters.
type AddRule struct {
	// When, an expression, says whether it does; absent is always.
	When           string             `json:"when,omitempty"`
	InitContainers []corev1.Container `json:"initContainers,omitempty"`
	Containers     []corev1.Container `json:"containers,omitempty"`
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
	// LessConstant is such a number.
	LessConstant int64 `json:"lessConstant,omitempty"`
	// Least is the least of these, in place of Field.
	Least []CountRule `json:"least,omitempty"`
}

// ManagedByRule hands the job to somebody else for any value but one of Own, and for none.
type ManagedByRule struct {
	Field string   `json:"field"`
	Own   []string `json:"own"`
}

// StateRules are expressions over the job.
type StateRules struct {
	// Succeeded and Failed are true once the job has ended so; one that says both has failed. Message says more.
	Succeeded string `json:"succeeded,omitempty"`
	Failed    string `json:"failed,omitempty"`
	Message   string `json:"message,omitempty"`
	// Suspended is true once the job's own controller has seen that it is suspended, and has taken its pods away. Absent
	// is at once.
	Suspended string `json:"suspended,omitempty"`
	// Started is true while the job may have pods; absent is as long as StartTime is there, and always for a kind that has
	// none.
	Started string `json:"started,omitempty"`
	// Ready and Active are the numbers of pods that are ready, and that have not ended. Running is true while the job
	// runs, where it does not say how many pods are ready.
	Ready   string `json:"ready,omitempty"`
	Active  string `json:"active,omitempty"`
	Running string `json:"running,omitempty"`
	// ReadyBySet says of pod sets how many of their pods are ready, where the job tells it: a list of {"name": ...,
	// "count": ...}. What Ready has beyond these is taken to be of the other pod sets, in their order.
	ReadyBySet string `json:"readyBySet,omitempty"`
	// Completed is the number of pods that have ended well and do not come again. All is how many are to be ready, or to
	// have ended so; absent are all pods of the unit. Both count what Ready counts.
	Completed string `json:"completed,omitempty"`
	All       string `json:"all,omitempty"`
	// Reclaimable lists pods that have ended well and do not come again as long as the job goes on, by pod set: a list of
	// {"name": ..., "count": ...}. It is for kinds whose Count of pods stays what it was.
	Reclaimable string `json:"reclaimable,omitempty"`
}

// PodsRule finds the pods of a job.
type PodsRule struct {
	// Label that all of them bear, with the UID of the job, its name, or what a field of the job says.
	Label string `json:"label,omitempty"`
	// Value is UID, Name, or the path of a field; absent is UID.
	Value string `json:"value,omitempty"`
	// Selector is the path of a label selector in the job, in place of Label.
	Selector string `json:"selector,omitempty"`
}

const (
	podsByUID  = "UID"
	podsByName = "Name"
)

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

// ParseDescriptor reads YAML. Every mistake is an error that names its field.
func ParseDescriptor(text []byte) (*Kind, error) {
	var d Descriptor
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		return nil, err
	}
	return d.Compile()
}

// Compile checks the descriptor and makes a kind of it.
func (d *Descriptor) Compile() (*Kind, error) {
	x, err := sharedExpressions()
	if err != nil {
		return nil, err
	}
	c := &compiler{expressions: x}
	k := c.kind(d)
	if err := c.errs.ToAggregate(); err != nil {
		return nil, fmt.Errorf("kind %q: %w", d.Kind, err)
	}
	return k, nil
}
