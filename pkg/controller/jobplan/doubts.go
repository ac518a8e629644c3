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

package jobplan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
)

// The controller warns when it queues a job that cannot run on the present cluster. The job waits nevertheless, because
// its nodes, its quota or the job itself may change. If its pods name another scheduler, the unit is parked instead:
// see checkScheduler.

// doubts are warnings about a job that may never be admitted or never run.
func doubts(s *Situation) []Action {
	if s.demand.Problem != nil {
		return nil // its unit says that
	}
	var actions []Action
	for _, words := range []string{gangTooLarge(s), leastTooLarge(s), podTooLarge(s), unlimited(s)} {
		if words != "" {
			actions = append(actions, tell(event.Warning("Doubtful", "Queue", event.Short(words))))
		}
	}
	return actions
}

// ignoredKeys tells of keys that have no effect on this kind of job: those of the stand-alone Koord-Queue, and those of
// the system by whose label the job names its queue.
func ignoredKeys(s *Situation) []Action {
	honoured := []string{s.Kind.SuspendAnnotation}
	if jobs.CanBeSuspended(s.Job) {
		honoured = append(honoured, v1alpha1.LabelPreemptibleFallback)
	}
	words := formerkey.Ignored(formerkey.Job, s.Job.Object.GetLabels(), s.Job.Object.GetAnnotations(), honoured...)
	var told []Action
	for _, words := range []string{words, s.Further.Ignored} {
		if words != "" {
			told = append(told, tell(event.Warning(formerkey.Reason, "Queue", event.Short(words))))
		}
	}
	return told
}

// gangTooLarge finds a gang of Koordinator that asks for more pods than the job has for it: none would be bound.
func gangTooLarge(s *Situation) string {
	pods, least := map[string]int64{}, map[string]int64{}
	for i := range s.demand.PodSets {
		set := &s.demand.PodSets[i]
		name := set.Template.Annotations[extension.AnnotationGangName]
		if name == "" {
			continue
		}
		pods[name] += int64(set.Count)
		if n, err := strconv.ParseInt(set.Template.Annotations[extension.AnnotationGangMinNum], 10, 32); err == nil {
			least[name] = max(least[name], n)
		}
	}
	for _, set := range s.demand.PodSets {
		name := set.Template.Annotations[extension.AnnotationGangName]
		if least[name] > pods[name] {
			return fmt.Sprintf("gang %q asks for %d pods and the job has %d for it: unless others come, none of them is bound",
				name, least[name], pods[name])
		}
	}
	return ""
}

// leastTooLarge finds a least number of pods that is more than the job has.
func leastTooLarge(s *Situation) string {
	for i := range s.demand.PodSets {
		if words := s.demand.PodSets[i].Beyond; words != "" {
			return words + ": it is admitted whole, or not at all"
		}
	}
	return ""
}

// podTooLarge finds pods for which no node is large enough.
func podTooLarge(s *Situation) string {
	if s.Cluster == nil {
		return ""
	}
	for i, template := range s.demand.Templates() {
		pod, err := s.Creation.Pod(template)
		if err != nil {
			return ""
		}
		request := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		if of, most := s.Cluster.TooLarge(request); of != "" {
			asks := request[of]
			return fmt.Sprintf("a pod of %s asks for %s of %s, and no node that is there now has as much with all else that "+
				"it asks for (%s): unless one comes, the job waits for a node when it has its quota",
				s.demand.PodSets[i].Name, asks.String(), of, most.String())
		}
	}
	return ""
}

// unlimited finds a resource for which neither the quota nor one above it has a max.
func unlimited(s *Situation) string {
	if s.Cluster == nil || s.demand.Quota == "" {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.demand.Request)) {
		amount := s.demand.Request[name]
		if limited, known := s.Cluster.Limits(s.demand.Quota, name); known && !limited && !amount.IsZero() &&
			name != corev1.ResourcePods {
			return fmt.Sprintf("quota %q has no max for %s, nor has one above it: the job waits for none of it, and it may be "+
				"gone when the job has its quota", s.demand.Quota, name)
		}
	}
	return ""
}
