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
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
)

// A job that was admitted with fewer pods than it asks for gets that number when it is resumed. The same write records
// the former number on the job, and it is restored when the job waits again. The owner of the job can forge the record,
// or change the number while the job runs. So the record counts only while the job has the number that was written with
// it. A forged record restores only a number of pods that the owner could ask for anyway.

// wholeCount is the record of one pod set: the former and the written value of its field, and whether the accompanying
// field got the same.
type wholeCount struct {
	Whole int64 `json:"whole"`
	Now   int64 `json:"now"`
	Along bool  `json:"along,omitempty"`
}

// readPartial reads with how few pods the job may be admitted.
func (s *podSetAt) readPartial(set *PodSet) error {
	rule := s.Partial
	if rule == nil || rule.When != nil && !rule.When.Holds(s.Job) || rule.Unless != nil && rule.Unless.Holds(s.Job) {
		return nil
	}
	least, known, by, err := s.partialLeast()
	if err != nil || !known {
		return err
	}
	if least > set.Count {
		set.Beyond = fmt.Sprintf("%s asks for at least %d pods of %s, and the job has %d", by, least, s.Called, set.Count)
	}
	each, err := s.partialEach()
	if least = max(least, each); err != nil || least >= set.Count {
		return err
	}
	set.Least = &least
	return nil
}

// partialLeast is what the job says in its annotations, else in its fields, and by which of them.
func (s *podSetAt) partialLeast() (least int32, known bool, by string, err error) {
	annotations := jobkind.StringMap(jobkind.Lookup(s.Job, jobkind.PathOf(".metadata.annotations")))
	for _, key := range s.Partial.Annotations {
		text, said := annotations[key]
		if !said {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return 0, false, "", fmt.Errorf("%w: annotation %s is not a whole number of pods, at least 1",
				podtemplate.ErrMalformed, key)
		}
		return int32(n), true, "annotation " + key, nil
	}
	if least, known, err = s.Pods(s.Partial.Least); known {
		by = s.Partial.Least[0].Field.Path.String()
	}
	return least, known, by, err
}

// partialEach is how many pods there are for each that the field counts.
func (s *podSetAt) partialEach() (int32, error) {
	n, found, err := s.Number(s.Partial.Each)
	if !found || err != nil {
		return 1, err
	}
	n = min(max(n, 1), math.MaxInt32)
	return int32(n), nil
}

// SetCounts writes these numbers of pods, by pod set, into the job, where they are less than it asks for, and records
// what was there. Pod sets that are not named have as many as the job asks for. Pods that have to come several at a
// time are at most that many.
func (e *Edit) SetCounts(counts map[string]int32) error {
	e.RestoreCounts()
	sets, err := e.now().podSets()
	if err != nil {
		return err
	}
	records := map[string]wholeCount{}
	for i := range sets {
		s := &sets[i]
		n, named := counts[s.Called]
		if !named || s.Partial == nil {
			continue
		}
		r, err := s.setCount(int64(n))
		if err != nil {
			return err
		}
		if r != nil {
			records[s.Called] = *r
		}
	}
	return keepRecord(e, v1alpha1.AnnotationWholeCounts, records)
}

// setCount returns what must be recorded, nil if the pod set has at most that many pods.
func (s *podSetAt) setCount(pods int64) (*wholeCount, error) {
	count, _, err := s.Counts()
	if err != nil || int64(count) <= pods {
		return nil, err
	}
	rule := s.Partial
	each, err := s.partialEach()
	whole, found, errWhole := s.Number(rule.Field)
	switch {
	case err != nil:
		return nil, err
	case errWhole != nil:
		return nil, errWhole
	case !found:
		return nil, fmt.Errorf("%w: %s says no number of pods", podtemplate.ErrMalformed, rule.Field.Path)
	}
	r := &wholeCount{Whole: whole, Now: max(pods, 0) / int64(each)}
	along, hasAlong, err := s.Number(rule.Along)
	if err != nil {
		return nil, err
	}
	r.Along = hasAlong && along == whole && (rule.AlongWhen == nil || rule.AlongWhen.Holds(s.Job))
	return r, s.writeCount(r, r.Now)
}

func (s *podSetAt) writeCount(r *wholeCount, n int64) error {
	to := []jobkind.Source{s.Partial.Field}
	if r.Along {
		to = append(to, s.Partial.Along)
	}
	for _, field := range to {
		object := s.Fields
		if field.OfJob {
			object = s.Job
		}
		if err := unstructured.SetNestedField(object, n, field.Path...); err != nil {
			return fmt.Errorf("%w: %w", podtemplate.ErrMalformed, err)
		}
	}
	return nil
}

// RestoreCounts gives a job the numbers of pods back that SetCounts took, together with the record, and says whether
// there was one. A number that is not the one that was written with the record stays as it is.
func (e *Edit) RestoreCounts() bool {
	if !e.now().HasCounts() {
		return false
	}
	records := map[string]wholeCount{}
	text := e.object.GetAnnotations()[v1alpha1.AnnotationWholeCounts]
	_ = json.Unmarshal([]byte(text), &records) // an unreadable record is empty
	sets, _ := e.now().podSets()
	for i := range sets {
		s := &sets[i]
		r, ok := records[s.Called]
		if !ok || s.Partial == nil || r.Whole > math.MaxInt32 || r.Now < 0 || r.Now >= r.Whole ||
			!s.holds(s.Partial.Field, r.Now) || r.Along && !s.holds(s.Partial.Along, r.Now) {
			continue
		}
		// The path was read as a number just above, so it can be written.
		_ = s.writeCount(&r, r.Whole)
	}
	e.DropCounts()
	return true
}

func (s *podSetAt) holds(field jobkind.Source, n int64) bool {
	have, found, err := s.Number(field)
	return err == nil && found && have == n
}

// least is the number of pods that the job cannot do without.
func (s *podSetAt) least() (int32, error) {
	count, least, err := s.Counts()
	if least != nil {
		return *least, err
	}
	return count, err
}
