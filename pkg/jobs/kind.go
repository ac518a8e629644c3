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
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Path is the way to a field of an object, one key for each level.
type Path []string

// path reads ".spec.suspend".
func path(dotted string) Path {
	return strings.Split(strings.TrimPrefix(dotted, "."), ".")
}

// String is the path as a user writes it: ".spec.suspend".
func (p Path) String() string { return "." + strings.Join(p, ".") }

// child is the path of a field below; the receiver is not changed.
func (p Path) child(keys ...string) Path {
	return append(append(make(Path, 0, len(p)+len(keys)), p...), keys...)
}

// CountTerm is one bound on the number of pods of a pod set.
type CountTerm struct {
	// Field holds the number; Default is taken where it is absent, and without a Default the term bounds nothing.
	Field   Path
	Default *int64
	// Less, when set, holds a number to take off, for instance pods that have ended well.
	Less Path
}

// PodSetFields says where a kind keeps one group of pods with the same template.
type PodSetFields struct {
	// Name of the pod set; empty takes the name of the job.
	Name string
	// Count is the least of its terms.
	Count []CountTerm
	// Template is the path of the pod template.
	Template Path
}

// Kind says where a kind of job keeps what the queue needs. Kinds are data: adding one adds no code.
type Kind struct {
	GVK schema.GroupVersionKind
	GVR schema.GroupVersionResource
	// UnitSuffix is put behind the job's name, after a dash, to name its unit; empty gives the job's name.
	UnitSuffix string
	// Suspend is a boolean: true keeps the job from having pods, and takes them away.
	Suspend Path
	// Sets of pods in the order in which they appear in the unit.
	Sets []PodSetFields
	// PriorityClass lists fields of the job that hold the name of a priority class, before the pod templates are asked.
	PriorityClass []Path
	// ManagedBy, when set, names the controller of the job; any value but one of OwnControllers hands it to somebody else.
	ManagedBy      Path
	OwnControllers []string
	// Conditions is a list of {type, status, reason, message}; one of these types with status True ends the job.
	Conditions            Path
	Succeeded, Failed     string
	SuspendedCondition    string
	ReadyPods, ActivePods Path
	// StartTime is set once the job has run. Metadata of pod templates may change only while it is absent and the job is
	// suspended.
	StartTime Path
	// PodOwnerLabel is on every pod of the job, with the job's UID as value.
	PodOwnerLabel string
}

// String is the form in which configuration and consumers name a kind: "Job.v1.batch".
func (k *Kind) String() string { return KindString(k.GVK) }

// KindString is "<Kind>.<version>.<group>", and "<Kind>.<version>." for the core group.
func KindString(gvk schema.GroupVersionKind) string {
	return fmt.Sprintf("%s.%s.%s", gvk.Kind, gvk.Version, gvk.Group)
}

// UnitName is the name of the unit of a job.
func (k *Kind) UnitName(job string) string {
	if k.UnitSuffix == "" {
		return job
	}
	return job + "-" + k.UnitSuffix
}

func number(n int64) *int64 { return &n }

// Builtin returns the kinds that are known, each time as new values.
func Builtin() []Kind {
	return []Kind{{
		GVK:     schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"},
		GVR:     schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"},
		Suspend: path(".spec.suspend"),
		Sets: []PodSetFields{{
			Count: []CountTerm{
				{Field: path(".spec.parallelism"), Default: number(1)},
				{Field: path(".spec.completions"), Less: path(".status.succeeded")},
			},
			Template: path(".spec.template"),
		}},
		ManagedBy:          path(".spec.managedBy"),
		OwnControllers:     []string{"kubernetes.io/job-controller"},
		Conditions:         path(".status.conditions"),
		Succeeded:          "Complete",
		Failed:             "Failed",
		SuspendedCondition: "Suspended",
		ReadyPods:          path(".status.ready"),
		ActivePods:         path(".status.active"),
		StartTime:          path(".status.startTime"),
		PodOwnerLabel:      "batch.kubernetes.io/controller-uid",
	}}
}

// Find returns the built-in kind that String names so.
func Find(name string) (*Kind, bool) {
	kinds := Builtin()
	for i := range kinds {
		if kinds[i].String() == name {
			return &kinds[i], true
		}
	}
	return nil, false
}
