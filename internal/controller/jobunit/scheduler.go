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

package jobunit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// CheckScheduler finds pods that go to a scheduler that knows of no queue. The templates of a resumed job are fixed, so
// the job is parked before anything is reserved. Pods whose operator alone chooses their scheduler are not judged, and
// no pods are if ours is empty.
func (d *Demand) CheckScheduler(creation *podrequest.Creation, ours []string) {
	if d.Problem != nil || len(ours) == 0 {
		return
	}
	for i, template := range d.Templates() {
		set := &d.PodSets[i]
		if set.SchedulerField == "" {
			continue
		}
		pod, err := creation.Pod(template)
		if err != nil {
			return // the request has the same error
		}
		if name := otherScheduler(pod, ours); name != "" {
			d.Problem = &Problem{Reason: unitcondition.ReasonOtherScheduler, Message: event.Short(fmt.Sprintf(
				"the pods of %s go to scheduler %q, and the queue holds pods of %s only: set %s to %s, and create the job again "+
					"if it cannot be changed", set.Name, name, strings.Join(ours, ", "), set.SchedulerField, ours[0]))}
			return
		}
	}
}

// otherScheduler is the scheduler that takes the pod and is none of ours; empty if there is none. Koordinator reads the
// label first. Other schedulers do not know the label, and take the pod by its spec as well.
func otherScheduler(pod *corev1.Pod, ours []string) string {
	bySpec := pod.Spec.SchedulerName
	if bySpec == "" {
		bySpec = corev1.DefaultSchedulerName
	}
	byLabel, labelled := pod.Labels[extension.LabelSchedulerName]
	switch {
	case labelled && !slices.Contains(ours, byLabel):
		return byLabel
	case slices.Contains(ours, bySpec) || labelled && bySpec != corev1.DefaultSchedulerName:
		return ""
	default:
		return bySpec
	}
}
