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
	"strconv"
	"time"
)

const kueue = "kueue.x-k8s.io/"

// kueueLabels: Kueue reads the labels of the object alone, and admits a job as a whole.
func kueueLabels(w *work) (own, pods Metadata, err error) {
	if err := checkName("queue", w.job.Queue); err != nil {
		return own, pods, err
	}
	if w.kind.Kind == "Workflow" {
		return own, pods, fmt.Errorf("%s: %w by kueue: label the pods of its steps", w.kind.Kind, ErrUnsupported)
	}
	own.Labels = map[string]string{kueue + "queue-name": w.job.Queue}
	if w.job.PriorityClass != "" {
		own.Labels[kueue+"priority-class"] = w.job.PriorityClass
	}
	if w.job.MaxRunTime > 0 {
		own.Labels[kueue+"max-exec-time-seconds"] = seconds(w.job.MaxRunTime)
	}
	return own, pods, nil
}

// kueueGroups: a job is admitted as a whole. Pods that nobody owns say to which group they belong, and how large it is.
func kueueGroups(w *work) (map[string]Metadata, []Object, error) {
	g := w.job.PodGroup
	if g == nil {
		return nil, nil, nil
	}
	if !w.kind.isPod() {
		return nil, nil, fmt.Errorf("%s: %w: only pods that nobody owns are in a group of pods", w.kind.Kind, ErrInvalid)
	}
	return w.each(Metadata{
		Labels:      map[string]string{kueue + "pod-group-name": g.Name},
		Annotations: map[string]string{kueue + "pod-group-total-count": strconv.Itoa(int(g.Size))},
	}), nil, nil
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
