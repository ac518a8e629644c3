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

// Package doubt warns early about jobs that can never run on the present cluster. Such a job waits nevertheless,
// because its nodes, its quota or the job itself can change. CheckScheduler of jobunit parks jobs whose pods name
// another scheduler.
package doubt

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/survey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// Reason of the events.
const Reason = "Doubtful"

// Job that enters the queue. Cluster is nil where nobody has looked.
type Job struct {
	Demand   *jobunit.Demand
	Creation *podrequest.Creation
	Cluster  *survey.Cluster
}

// Doubts are sentences, each bounded: why the job may never be admitted or never run.
func (j *Job) Doubts() (doubts []string) {
	if p := j.Demand.Problem; p != nil && !heldByOwner(p) {
		return nil // its unit says that
	}
	for _, words := range []string{gangTooLarge(j), leastTooLarge(j), noNodeFits(j), unlimited(j), ofParent(j)} {
		if words != "" {
			doubts = append(doubts, event.Short(words))
		}
	}
	return doubts
}

// heldByOwner says that nothing is wrong with a job but that its owner wants it to wait.
func heldByOwner(p *jobunit.Problem) bool {
	return p.Reason == unitcondition.ReasonHeldByOwner || p.Reason == unitcondition.ReasonSuspendedByOwner
}

// gangTooLarge finds a gang of Koordinator that asks for more pods than the job has for it: none would be bound.
func gangTooLarge(j *Job) string {
	pods, least := map[string]int64{}, map[string]int64{}
	for i := range j.Demand.PodSets {
		set := &j.Demand.PodSets[i]
		name := set.Template.Annotations[extension.AnnotationGangName]
		if name == "" {
			continue
		}
		pods[name] += int64(set.Count)
		if n, err := strconv.ParseInt(set.Template.Annotations[extension.AnnotationGangMinNum], 10, 32); err == nil {
			least[name] = max(least[name], n)
		}
	}
	for _, set := range j.Demand.PodSets {
		name := set.Template.Annotations[extension.AnnotationGangName]
		if least[name] > pods[name] {
			return fmt.Sprintf("gang %q asks for %d pods and the job has %d for it: unless others come, none of them is bound",
				name, least[name], pods[name])
		}
	}
	return ""
}

// leastTooLarge finds a least number of pods that is more than the job has.
func leastTooLarge(j *Job) string {
	for i := range j.Demand.PodSets {
		if words := j.Demand.PodSets[i].Beyond; words != "" {
			return words + ": it is admitted whole, or not at all"
		}
	}
	return ""
}

// noNodeFits finds pods for which no node has the labels that they select, or is large enough.
func noNodeFits(j *Job) string {
	if j.Cluster == nil {
		return ""
	}
	for i, template := range j.Demand.Templates() {
		pod, err := j.Creation.Pod(template)
		if err != nil {
			return ""
		}
		request := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
		nodes := j.Cluster.Selected(pod)
		if len(nodes) == 0 && len(j.Cluster.Nodes) > 0 {
			return fmt.Sprintf("no node that is there now has the labels and names that a pod of %s selects (%s): unless one "+
				"comes, the job waits for a node when it has its quota", j.Demand.PodSets[i].Name, selected(pod))
		}
		if of, most := survey.TooLarge(nodes, request); of != "" {
			asks := request[of]
			return fmt.Sprintf("a pod of %s asks for %s of %s, and no node that is there now has as much with all else that "+
				"it asks for (%s): unless one comes, the job waits for a node when it has its quota",
				j.Demand.PodSets[i].Name, asks.String(), of, most.String())
		}
	}
	return ""
}

// selected is by which labels a pod selects nodes, for a person.
func selected(pod *corev1.Pod) string {
	if len(pod.Spec.NodeSelector) == 0 {
		return "by its required node affinity"
	}
	return labels.Set(pod.Spec.NodeSelector).String()
}

// unlimited finds a resource for which neither the quota nor one above it has a max.
func unlimited(j *Job) string {
	if j.Cluster == nil || j.Demand.Quota == "" {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(j.Demand.Request)) {
		amount := j.Demand.Request[name]
		if limited, known := j.Cluster.Limits(j.Demand.Quota, name); known && !limited && !amount.IsZero() &&
			name != corev1.ResourcePods {
			return fmt.Sprintf("quota %q has no max for %s, nor has one above it: the job waits for none of it, and it may be "+
				"gone when the job has its quota", j.Demand.Quota, name)
		}
	}
	return ""
}

// ofParent finds a quota whose pods Koordinator's webhook refuses.
func ofParent(j *Job) string {
	if j.Cluster == nil || !j.Cluster.Quotas[j.Demand.Quota].IsParent {
		return ""
	}
	return fmt.Sprintf("quota %q is a parent of quotas: Koordinator's webhook refuses its pods, unless koord-manager "+
		"has the feature SupportParentQuotaSubmitPod; name a quota below it", j.Demand.Quota)
}
