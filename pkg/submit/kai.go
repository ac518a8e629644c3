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
	"slices"
	"strconv"
)

// Keys of the KAI scheduler.
const (
	kaiQueue          = "kai.scheduler/queue"
	kaiPreemptibility = "kai.scheduler/preemptibility"
	kaiMinMember      = "kai.scheduler/batch-min-member"
)

// kaiLabels: a pod without a queue stays pending, so the queue is needed.
func kaiLabels(w *work) (own, pods Metadata, err error) {
	if err := checkName("queue", w.job.Queue); err != nil {
		return own, pods, err
	}
	if w.kind.Kind == "RayJob" && slices.ContainsFunc(w.sets, func(s PodSet) bool { return s.Later }) {
		return own, pods, fmt.Errorf("RayJob with submissionMode K8sJobMode: %w by kai: "+
			"its submitter waits for a cluster that waits for the submitter", ErrUnsupported)
	}
	labels := map[string]string{kaiQueue: w.job.Queue}
	if w.job.NonPreemptible {
		labels[kaiPreemptibility] = "non-preemptible"
	}
	return Metadata{Labels: labels}, Metadata{Labels: labels}, nil
}

// kaiGroups: KAI makes the PodGroup itself, with the pods that the kind needs. Of a Job it needs one pod, unless the
// annotation says more.
func kaiGroups(w *work) (map[string]Metadata, []Object, error) {
	if w.kind.APIVersion != "batch/v1" {
		return nil, nil, nil
	}
	g, err := w.gang()
	if err != nil || g.minimum < 1 {
		return nil, nil, err
	}
	return w.each(Metadata{Annotations: map[string]string{kaiMinMember: strconv.Itoa(int(g.minimum))}}), nil, nil
}
