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

package submit

import (
	"fmt"
	"math"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// PodSet is a group of pods of a job that have one template.
type PodSet struct {
	// Name of the group, as the queue calls it: a DNS label.
	Name string
	// Count of pods that the job needs at once, and the least that it can do with.
	Count, MinCount int32
	// Later: the operator makes these pods once others of the job run.
	Later bool
	// Early: the operator makes them before the job is resumed.
	Early bool
	// Template of the pods, with the containers that the operator adds. It must not be changed.
	Template Object

	found podset.Found
}

// PodSets are the groups of pods of a job, in the order in which the queue has them. A group that has the template of
// another one is a part of that. A TrainJob has none: its pods are described by its runtime.
func PodSets(object Object) ([]PodSet, error) {
	k, err := kindOf(object, nil)
	if err != nil {
		return nil, err
	}
	if k.isPod() {
		object = wrapPod(object)
	}
	return k.podSets(object)
}

// wrapPod has a pod as the template of a job, so that one way of reading fits both.
func wrapPod(object Object) Object {
	template := Object{}
	for _, key := range []string{"metadata", "spec"} {
		if fields, isObject := object[key].(Object); isObject {
			template[key] = fields
		}
	}
	return Object{
		"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"],
		"spec": Object{"template": template},
	}
}

func (k *kind) podSets(object Object) ([]PodSet, error) {
	found, err := podset.Find(k.sets, object)
	if err != nil {
		return nil, err
	}
	sets := make([]PodSet, 0, len(found))
	places := map[string]int{}
	for i := range found {
		set, err := readPodSet(&found[i])
		if err != nil {
			return nil, err
		}
		place := strings.Join(found[i].TemplatePath(), "\x00")
		if first, shared := places[place]; shared && len(found[i].Template) > 0 {
			sets[first].Count = sum(sets[first].Count, set.Count)
			sets[first].MinCount = sum(sets[first].MinCount, set.MinCount)
			continue
		}
		places[place] = len(sets)
		sets = append(sets, set)
	}
	return sets, nil
}

func readPodSet(f *podset.Found) (PodSet, error) {
	set := PodSet{Name: f.Called, Early: f.Early, Later: f.Later.Holds(f.Job), found: *f}
	count, least, err := f.Counts()
	if err != nil {
		return set, err
	}
	set.Count, set.MinCount = count, count
	if least != nil {
		set.MinCount = *least
	}
	if set.Template, err = f.ReadTemplate(); err != nil {
		return set, err
	}
	if _, isObject := set.Template["spec"].(Object); !isObject && set.Template["spec"] != nil {
		return set, fmt.Errorf("%w: the spec of %s is not an object", podset.ErrMalformed, f.TemplatePath())
	}
	return set, nil
}

func sum(a, b int32) int32 { return a + min(b, math.MaxInt32-a) }

// gangMinimum is the number of pods that are bound together. It is zero if the pods of the job wait for each other, or
// are created one after the other.
func (k *kind) gangMinimum(object Object, sets []PodSet) (int32, error) {
	if k.unless.Holds(object) {
		return 0, nil
	}
	n := int32(0)
	for i := range sets {
		if sets[i].inGang() {
			n = sum(n, sets[i].MinCount)
		}
	}
	job := podset.Found{Set: &podset.Set{}, Fields: object, Job: object}
	least, known, err := job.Pods(k.minimum)
	if err != nil {
		return 0, err
	}
	if known {
		n = min(n, least)
	}
	return n, nil
}

// inGang says whether the pods are bound together with the others of the job.
func (s *PodSet) inGang() bool { return !s.Later && !s.Early }
