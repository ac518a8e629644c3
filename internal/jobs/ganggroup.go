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
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// lightweightGang is the label by which pods say to which gang they belong where no object describes it.
const lightweightGang = "pod-group.scheduling.sigs.k8s.io/name"

// ErrGangGroup says that a job names a gang group in which it can be admitted with no other.
var ErrGangGroup = errors.New("annotation " + extension.AnnotationGangGroups)

// GangGroup are the gangs that Koordinator binds together, all of one namespace, and those of them that are pods of one
// job; both sorted.
type GangGroup struct{ All, Own []string }

// Annotation has pods of these gangs name the group.
func (g *GangGroup) Annotation(namespace string) string {
	ids := make([]string, 0, len(g.All))
	for _, name := range g.All {
		ids = append(ids, namespace+"/"+name)
	}
	text, _ := json.Marshal(ids) // a list of texts
	return string(text)
}

// NamesGangGroup says whether the job or a template of it has the annotation.
func NamesGangGroup(job *Job) bool {
	names := func(s podSetAt) bool { return s.Metadata(jobkind.AnnotationsKey)[extension.AnnotationGangGroups] != "" }
	sets, _ := job.podSets()
	return job.Object.GetAnnotations()[extension.AnnotationGangGroups] != "" || slices.ContainsFunc(sets, names)
}

// GangGroupOf a job with this unit, of which no template carries what resuming adds; nil if it is admitted without
// others. Pods name the group in an annotation; where the gang is made for them, the job may.
func GangGroupOf(job *Job, everyJob bool, unit string) (*GangGroup, error) {
	sets, err := job.podSets()
	if err != nil {
		return nil, nil //nolint:nilerr // what cannot be read is told otherwise
	}
	own, text := map[string]bool{}, ""
	for i := range sets {
		annotations, labels := sets[i].Metadata(jobkind.AnnotationsKey), sets[i].Metadata(jobkind.LabelsKey)
		if labels[gangLabels[0]] != "" {
			return nil, nil // an object describes it
		}
		if text == "" {
			text = annotations[extension.AnnotationGangGroups]
		}
		for _, name := range []string{labels[lightweightGang], annotations[extension.AnnotationGangName]} {
			if name != "" {
				own[name] = true
				break
			}
		}
	}
	if len(own) == 0 {
		for _, g := range Gangs(job, everyJob) {
			own[g.Annotations(unit)[extension.AnnotationGangName]] = true
		}
		if text == "" {
			text = job.Object.GetAnnotations()[extension.AnnotationGangGroups]
		}
	}
	if text == "" {
		return nil, nil // the job has no gang group
	}
	return gangGroupOf(text, job.Object.GetNamespace(), slices.Sorted(maps.Keys(own)))
}

func gangGroupOf(text, namespace string, own []string) (*GangGroup, error) {
	var ids []string
	if err := json.Unmarshal([]byte(text), &ids); err != nil {
		return nil, fmt.Errorf("%w is no list of namespace/name: %w", ErrGangGroup, err)
	}
	if len(ids) > jobkind.MaxGangs {
		return nil, fmt.Errorf("%w names %d gangs, at most %d are admitted together", ErrGangGroup, len(ids),
			jobkind.MaxGangs)
	}
	all := make([]string, 0, len(ids))
	for _, id := range ids {
		of, name, _ := strings.Cut(id, "/")
		switch {
		case of != namespace:
			return nil, fmt.Errorf("%w names a gang of another namespace; jobs of one namespace are admitted together",
				ErrGangGroup)
		case len(validation.IsDNS1123Subdomain(name)) > 0:
			return nil, fmt.Errorf("%w: %.64q is no name of a gang", ErrGangGroup, name)
		}
		all = append(all, name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	switch in := func(name string) bool { return slices.Contains(all, name) }; {
	case len(own) == 0:
		return nil, fmt.Errorf("%w names a group, and pods of the job are in no gang", ErrGangGroup)
	case slices.ContainsFunc(own, func(name string) bool { return !in(name) }):
		return nil, fmt.Errorf("%w does not name the job's own gangs: %.256s", ErrGangGroup, strings.Join(own, ", "))
	case len(all) == len(own):
		return nil, nil // the job is the whole group
	}
	return &GangGroup{All: all, Own: own}, nil
}
