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

import "strings"

// maxPodSetName is the bound of the API on the name of a pod set.
const maxPodSetName = 63

// podSetRule is a PodSetRule that was checked.
type podSetRule struct {
	when            *expression
	path            Path
	stars, optional bool
	early           bool
	name            string
	nameField       Path
	count, minCount []countTerm
	partial         *partialRule
	later           *expression
	templates       []Path
	computed        *computedTemplate
	adds            []addRule
	// labels and annotations that are given to the pods beside those of the template.
	labels, annotations source
}

// addRule is an AddRule that was checked; containers are as in JSON.
type addRule struct {
	when             *expression
	init, containers []any
	resources        source
}

// countTerm is one factor of a number of pods.
type countTerm struct {
	field, less  source
	byDefault    *int64
	lessConstant int64
	least        []countTerm
}

// source is a field of the object that a pod set is in, or of the job.
type source struct {
	path  Path
	ofJob bool
}

// nameOf a pod set: what the rule says, else the field that it names, else the key of a map or list, else the job's.
func (r *podSetRule) nameOf(at *place, job string) string {
	name := job
	switch given, _ := lookup(at.object, r.nameField).(string); {
	case r.name != "":
		return r.name
	case given != "":
		name = given
	case r.stars:
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

// metadataKey is a field of the metadata of pods that is read and written.
type metadataKey string

const (
	labelsKey      metadataKey = "labels"
	annotationsKey metadataKey = "annotations"
)

// partialRule is a PartialRule that was checked.
type partialRule struct {
	when, unless *expression
	least        []countTerm
	annotations  []string
	field, each  source
	along        source
	alongWhen    *expression
}

// gangRule is a GangRule that was checked.
type gangRule struct {
	when, unless *expression
	minimum      []countTerm
}

// validRule is a ValidRule that was checked.
type validRule struct {
	rule    *expression
	message string
}

// podsRule is a PodsRule that was checked.
type podsRule struct {
	label    string
	byName   bool
	value    Path
	selector Path
}
