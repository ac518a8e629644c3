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
	"maps"
	"strconv"
)

// Keys of Koordinator and of koord-jobqueue.
const (
	koordQuota       = "quota.scheduling.koordinator.sh/name"
	koordPreemptible = "quota.scheduling.koordinator.sh/preemptible"
	koordQueue       = "koord-queue/queue-name"
	koordRunTime     = "scheduling.x-k8s.io/max-exec-time-seconds"
	koordGang        = "gang.scheduling.koordinator.sh/"
)

// koordPartial are annotations of jobs that may be admitted with fewer pods.
var koordPartial = []string{
	"koord-queue/min-parallelism", "koord-queue/partial-admission", "kueue.x-k8s.io/job-min-parallelism",
}

func koordLabels(w *work) (own, pods Metadata, err error) {
	labels := map[string]string{}
	quota := w.job.Quota
	if quota == "" {
		quota = w.job.Queue // the default queue of a quota has its name
	}
	if quota != "" {
		if err := checkName("quota", quota); err != nil {
			return own, pods, err
		}
		labels[koordQuota] = quota
	}
	if w.job.NonPreemptible {
		labels[koordPreemptible] = "false"
	}
	pods = Metadata{Labels: labels}
	own = Metadata{Labels: maps.Clone(labels), Annotations: map[string]string{}}
	if w.job.Queue != "" && w.job.Queue != quota {
		if err := checkName("queue", w.job.Queue); err != nil {
			return own, pods, err
		}
		own.Labels[koordQueue] = w.job.Queue
	}
	if w.job.MaxRunTime > 0 {
		own.Annotations[koordRunTime] = seconds(w.job.MaxRunTime)
	}
	return own, pods, nil
}

// koordGroups: groups of pods have the keys of Kueue, which the queue reads as well.
func koordGroups(w *work) (map[string]Metadata, []Object, error) {
	groups, _, err := kueueGroups(w)
	if err != nil || w.job.Gang == nil {
		return groups, nil, err
	}
	g, err := w.gang()
	if err != nil {
		return nil, nil, err
	}
	if p := w.job.PodGroup; p != nil {
		g.name, g.minimum, g.total = p.Name, p.Size, p.Size
	}
	if g.minimum < 2 {
		return groups, nil, nil
	}
	for _, key := range koordPartial {
		if w.text("metadata", "annotations", key) != "" {
			return nil, nil, fmt.Errorf("annotation %s: %w: a gang runs with all its pods", key, ErrConflict)
		}
	}
	mode := "Strict"
	if w.job.Gang.Soft {
		mode = "NonStrict"
	}
	annotations := map[string]string{
		koordGang + "name": g.name, koordGang + "mode": mode,
		koordGang + "min-available": strconv.Itoa(int(g.minimum)),
		koordGang + "total-number":  strconv.Itoa(int(g.total)),
	}
	if n := w.job.Gang.seconds(); n > 0 {
		annotations[koordGang+"waiting-time"] = strconv.FormatInt(n, 10) + "s"
	}
	all := w.each(Metadata{Annotations: annotations})
	for set, m := range groups {
		maps.Copy(m.Annotations, annotations)
		all[set] = m
	}
	return all, nil, nil
}
