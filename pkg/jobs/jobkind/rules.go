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

import "strings"

// maxPodSetName is the bound of the API on the name of a pod set.
const maxPodSetName = 63

// Set is a PodSetRule that was checked.
type Set struct {
	When            *Expression
	Path            Path
	Stars, Optional bool
	Early           bool
	Name            string
	NameField       Path
	Count, MinCount []Term
	Partial         *Partial
	Later           *Expression
	Templates       []Path
	Computed        *Computed
	Adds            []Add
	// Labels and annotations that are given to the pods in addition to those of the template.
	Labels, Annotations Source
}

// Add is an AddRule that was checked; containers are as in JSON.
type Add struct {
	When             *Expression
	Init, Containers []any
	Resources        Source
}

// Term is one factor of a number of pods.
type Term struct {
	Field, Less  Source
	ByDefault    *int64
	LessConstant int64
	Least        []Term
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
		name = at.key()
	}
	if name != job {
		name = podSetName(name)
	}
	if len(name) > maxPodSetName {
		return name[:maxPodSetName]
	}
	return name
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

// Partial is a PartialRule that was checked.
type Partial struct {
	When, Unless *Expression
	Least        []Term
	Annotations  []string
	Field, Each  Source
	Along        Source
	AlongWhen    *Expression
}

// Gang is a GangRule that was checked.
type Gang struct {
	When, Unless *Expression
	Minimum      []Term
}

// Valid is a ValidRule that was checked.
type Valid struct {
	Rule    *Expression
	Message string
}

// PodsBy is a PodsRule that was checked.
type PodsBy struct {
	Label    string
	ByName   bool
	Value    Path
	Selector Path
}
