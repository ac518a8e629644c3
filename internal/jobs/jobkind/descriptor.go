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
	"fmt"

	"sigs.k8s.io/yaml"
)

// Descriptor says where a kind of job keeps the fields that the queue needs. Kinds are data: built-in kinds are files
// of this form, and a configuration can add more. A field that is written is a path. A field that is only read can be a
// CEL expression, which sees the job as self. It is false, zero or empty if a field that it names is absent.
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
	// PodMetadata lists, with stars, other fields with labels and annotations that reach the pods. Only the policies of
	// manifests/components/kinds read it.
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
	// ReadyBySet is the number of ready pods by pod set, if the job has it: a list of {"name": ..., "count": ...}. Further
	// pods of Ready count for the other pod sets, in their order.
	ReadyBySet string `json:"readyBySet,omitempty"`
	// Completed is the number of pods that have ended well and do not come again. All is how many are to be ready, or to
	// have ended so; absent are all pods of the unit. Both count what Ready counts.
	Completed string `json:"completed,omitempty"`
	All       string `json:"all,omitempty"`
	// Reclaimable lists pods that have succeeded and are not replaced while the job runs, by pod set: a list of {"name":
	// ..., "count": ...}. It is for kinds whose Count of pods does not change.
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
