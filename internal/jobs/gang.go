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
	"math"
	"slices"
	"strconv"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// LabelPodGroup names a PodGroup of scheduling.x-k8s.io. Koordinator reads those of scheduling.sigs.k8s.io.
const LabelPodGroup = "scheduling.x-k8s.io/pod-group"

// gangLabels are those by which pods say themselves to which gang of Koordinator they belong.
var gangLabels = []string{"pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"}

// kubernetesGroup are the fields by which a pod template names a PodGroup of scheduling.k8s.io: since Kubernetes 1.36,
// and in 1.35.
var kubernetesGroup = []jobkind.Path{{"spec", "schedulingGroup", "podGroupName"}, {"spec", "workloadRef", "podGroup"}}

// Gang is a number of pods that Koordinator binds together: as many as the gang needs, or none.
type Gang struct {
	// PodGroup of scheduling.x-k8s.io that the templates name; empty for the gang of the whole job.
	PodGroup string   `json:"podGroup,omitempty"`
	PodSets  []string `json:"podSets"`
	// Minimum of pods that are bound together, at least two.
	Minimum int32 `json:"minimum"`
	// Mode and WaitTime by default; empty where a template of the job says its own.
	Mode     string `json:"mode,omitempty"`
	WaitTime string `json:"waitTime,omitempty"`
}

// GangDefault has a job be one gang, unless a template of it says how many pods of its gang are bound together.
type GangDefault struct {
	// Mode and WaitTime as the annotations of Koordinator have them; may be empty.
	Mode, WaitTime string
}

// Annotations make pods of a job with this unit members of the gang.
func (g *Gang) Annotations(unit string) map[string]string {
	name := g.PodGroup
	if name == "" {
		name = unit
	}
	annotations := map[string]string{
		extension.AnnotationGangName: name, extension.AnnotationGangMinNum: strconv.Itoa(int(g.Minimum)),
	}
	if g.Mode != "" {
		annotations[extension.AnnotationGangMode] = g.Mode
	}
	if g.WaitTime != "" {
		annotations[extension.AnnotationGangWaitTime] = g.WaitTime
	}
	return annotations
}

// Gangs returns the gangs of the job, read from templates without the additions of resuming. Templates that name a
// PodGroup of scheduling.x-k8s.io form a gang of its name. Otherwise the job is one gang if its kind asks for that by
// default, a template names a PodGroup of Kubernetes, or everyJob is set.
//
// There is no gang if a template names a gang of Koordinator itself, or if nothing is written into templates. There is
// also none if the operator creates some pods only after others run: pods of such a gang would wait for each other.
func Gangs(job *Job, everyJob bool) []Gang {
	rule := job.Kind.Gang
	if rule == nil {
		rule = &jobkind.Gang{}
	}
	if !CanBeSuspended(job) || rule.Unless != nil && rule.Unless.Holds(job.Object.Object) {
		return nil
	}
	sets, err := job.podSets()
	if err != nil || slices.ContainsFunc(sets, func(s podSetAt) bool { return s.namesGang() }) {
		return nil
	}
	asked := everyJob || job.Defaults.Gang.asks(sets) || rule.When != nil && rule.When.Holds(job.Object.Object) ||
		slices.ContainsFunc(sets, inKubernetesGroup)
	gangs, complete := gangsOf(sets, asked)
	least, known, err := minimumOf(rule, job)
	if err != nil || !complete {
		return nil
	}
	gangs = atLeastTwo(gangs, least, known)
	job.Defaults.Gang.fill(gangs, sets)
	return gangs
}

// asks says whether a job with these pod sets is a gang by default.
func (d *GangDefault) asks(sets []podSetAt) bool {
	return d != nil && !annotated(sets, extension.AnnotationGangMinNum)
}

// fill in what no template says. Koordinator reads the first pod of a gang, so that templates must not differ.
func (d *GangDefault) fill(gangs []Gang, sets []podSetAt) {
	for i := range gangs {
		if d != nil && !annotated(sets, extension.AnnotationGangMode) {
			gangs[i].Mode = d.Mode
		}
		if d != nil && !annotated(sets, extension.AnnotationGangWaitTime) {
			gangs[i].WaitTime = d.WaitTime
		}
	}
}

// annotated says whether a template has the annotation.
func annotated(sets []podSetAt, key string) bool {
	return slices.ContainsFunc(sets, func(s podSetAt) bool { return s.Metadata(jobkind.AnnotationsKey)[key] != "" })
}

// inKubernetesGroup says whether the template of these pods names a PodGroup of scheduling.k8s.io.
func inKubernetesGroup(s podSetAt) bool {
	return slices.ContainsFunc(kubernetesGroup, func(field jobkind.Path) bool {
		name, _ := jobkind.Lookup(s.Object, s.Template.Child(field...)).(string)
		return len(s.Template) > 0 && name != ""
	})
}

// gangsOf the pod sets; false if pods cannot be told of theirs, or are not counted.
func gangsOf(sets []podSetAt, asked bool) (gangs []Gang, complete bool) {
	for i := range sets {
		s := &sets[i]
		group := s.Metadata(jobkind.LabelsKey)[LabelPodGroup]
		if s.Early || s.Later != nil && s.Later.Holds(s.Job) || group == "" && !asked {
			continue
		}
		least, err := s.least()
		if object, _ := s.MetadataAt(jobkind.AnnotationsKey); object == nil || err != nil {
			return nil, false
		}
		gangs = join(gangs, group, s.Called, least)
	}
	return gangs, true
}

// join adds pods to the gang of the group, which may be the first of it.
func join(gangs []Gang, group, set string, pods int32) []Gang {
	for i := range gangs {
		if g := &gangs[i]; g.PodGroup == group {
			g.PodSets = append(g.PodSets, set)
			g.Minimum += min(pods, math.MaxInt32-g.Minimum)
			return gangs
		}
	}
	return append(gangs, Gang{PodGroup: group, PodSets: []string{set}, Minimum: pods})
}

// atLeastTwo drops gangs of one pod. If the job states a minimum, its only gang has that minimum, up to the number of
// its pods.
func atLeastTwo(gangs []Gang, least int32, known bool) (kept []Gang) {
	for _, g := range gangs {
		if known && len(gangs) == 1 {
			g.Minimum = min(g.Minimum, least)
		}
		if g.Minimum > 1 {
			kept = append(kept, g)
		}
	}
	return kept
}

func minimumOf(rule *jobkind.Gang, job *Job) (least int32, known bool, err error) {
	object := job.Object.Object
	whole := podset.Found{Set: &jobkind.Set{}, Fields: object, Job: object}
	return whole.Pods(rule.Minimum)
}
