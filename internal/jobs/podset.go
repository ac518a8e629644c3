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

	"github.com/koordinator-sh/koordinator/apis/extension"
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// PodSet is one group of pods of a job.
type PodSet struct {
	Name string
	// Count of pods that the job still needs at once; may be zero. MinCount is the least that it can do with, nil if that
	// is Count.
	Count    int32
	MinCount *int32
	// Least number of pods that the job may be admitted with, nil if that is Count.
	Least *int32
	// Beyond says in words that the job names a least number of pods that is more than Count. It is admitted whole.
	Beyond   string
	Template *corev1.PodTemplateSpec
	// SchedulerField is where the job names the scheduler of these pods; empty where its operator alone decides.
	SchedulerField string
	// Raw is the template as the job has it, as JSON.
	Raw []byte
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

// podSetAt is a pod set that a job has.
type podSetAt struct{ podset.Found }

func findPodSets(j *Job) ([]podSetAt, error) {
	found, err := podset.Find(j.Kind.Sets, j.Object.Object)
	sets := make([]podSetAt, len(found))
	for i := range found {
		sets[i].Found = found[i]
	}
	return sets, err
}

// PodSets reads the pod sets, once. They must not be changed. The error is ErrMalformed for an unreadable count or
// template. Then the readable sets before it are returned as well.
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
	set := PodSet{Name: s.Called}
	if at := podset.SchedulerOf(&s.Found); at != nil {
		set.SchedulerField = at.String()
	}
	var err error
	if set.Count, set.MinCount, err = s.Counts(); err != nil {
		return set, err
	}
	if err := s.readPartial(&set); err != nil {
		return set, err
	}
	value, err := s.ReadTemplate()
	if err != nil {
		return set, err
	}
	if err := checkContainers(s); err != nil {
		return set, err
	}
	if set.Raw, err = json.Marshal(value); err != nil {
		return set, fmt.Errorf("%w: %s: %w", podtemplate.ErrMalformed, s.TemplatePath(), err)
	}
	if set.Template, err = podtemplate.Decode(set.Raw); err != nil {
		return set, fmt.Errorf("%s: %w", s.TemplatePath(), err)
	}
	return set, nil
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
	return s.Metadata(jobkind.AnnotationsKey)[extension.AnnotationGangName] != "" ||
		jobkind.FirstOf(s.Metadata(jobkind.LabelsKey), gangLabels...) != ""
}

// checkContainers refuses a template of which no pod can be made, whatever its operator adds. Decoding reports a value
// that is no list.
func checkContainers(s *podSetAt) error {
	if len(s.Template) == 0 {
		return nil // a computed template has a container
	}
	containers := jobkind.Lookup(s.Object, s.Template.Child("spec", "containers"))
	if list, isList := containers.([]any); containers == nil || isList && len(list) == 0 {
		return fmt.Errorf("%w: %s has no containers", podtemplate.ErrMalformed, s.TemplatePath())
	}
	return nil
}
