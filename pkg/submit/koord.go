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
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Keys of Koordinator and of koord-jobqueue.
const (
	koordQuota       = "quota.scheduling.koordinator.sh/name"
	koordPreemptible = "quota.scheduling.koordinator.sh/preemptible"
	koordQuotas      = "koord-queue/quota-names"
	koordQueue       = "koord-queue/queue-name"
	koordPath        = "koord-queue/queue-path"
	koordRunTime     = "scheduling.x-k8s.io/max-exec-time-seconds"
	koordGang        = "gang.scheduling.koordinator.sh/"
)

// koordPartial are annotations of jobs that may be admitted with fewer pods.
var koordPartial = []string{
	"koord-queue/min-parallelism", "koord-queue/partial-admission", "kueue.x-k8s.io/job-min-parallelism",
}

// maxQuotas is how many quotas a job may list.
const maxQuotas = 8

// A path begins with the root quota of Koordinator, and has at most these elements and bytes.
const (
	koordRoot       = "root."
	maxPathElements = 8
	maxPathBytes    = 253
)

// isKoordPath tells the path of a quota from the name of one.
func (d Driver) isKoordPath(queue string) bool {
	return d.Driver == "koord" && strings.HasPrefix(queue, koordRoot)
}

// checkKoordPath wants a name of a quota in every element. Such a name has no dot.
func checkKoordPath(path string) error {
	elements := strings.SplitN(path, ".", maxPathElements+1)
	if len(path) > maxPathBytes || len(elements) > maxPathElements {
		return fmt.Errorf("path %.100q: %w: want at most %d elements and %d bytes", path, ErrInvalid, maxPathElements,
			maxPathBytes)
	}
	for _, element := range elements {
		if problems := validation.IsDNS1123Label(element); len(problems) > 0 {
			return invalid("path", path, problems)
		}
	}
	return nil
}

// koordQuotaOf is the quota that the job names, by a path or not. Pods have it as a label, since not all of them can be
// given one later; the queue finds a path that leads elsewhere.
func koordQuotaOf(w *work) (quota, path string, err error) {
	switch {
	case w.job.NoQuota && (w.job.Quota != "" || len(w.job.Quotas) > 0 || w.driver.isKoordPath(w.job.Queue)):
		return "", "", fmt.Errorf("no quota: %w: the job names one", ErrInvalid)
	case w.job.NoQuota:
		return "", "", nil
	case len(w.job.Quotas) > 0:
		return w.job.Quotas[0], "", checkQuotas(w)
	case !w.driver.isKoordPath(w.job.Queue):
		if quota = w.job.Quota; quota == "" {
			quota = w.job.Queue // the default queue of a quota has its name
		}
	case w.job.Quota != "":
		return "", "", fmt.Errorf("quota %.100q: %w: the path %.253q names the quota", w.job.Quota, ErrInvalid, w.job.Queue)
	default:
		path = w.job.Queue
		if err := checkKoordPath(path); err != nil {
			return "", "", err
		}
		quota = path[strings.LastIndex(path, ".")+1:]
	}
	if quota != "" {
		err = checkName("quota", quota)
	}
	return quota, path, err
}

// checkQuotas wants a list of different names, and no other quota.
func checkQuotas(w *work) error {
	list := w.job.Quotas
	if w.job.Quota != "" || w.driver.isKoordPath(w.job.Queue) || len(list) > maxQuotas {
		return fmt.Errorf("quotas %.100q: %w: want at most %d, and no quota or path in addition", list, ErrInvalid,
			maxQuotas)
	}
	for i, name := range list {
		if slices.Contains(list[:i], name) {
			return fmt.Errorf("quota %.100q: %w: it is listed twice", name, ErrInvalid)
		}
		if err := checkName("quota", name); err != nil {
			return err
		}
	}
	return nil
}

func koordLabels(w *work) (own, pods Metadata, err error) {
	labels := map[string]string{}
	quota, path, err := koordQuotaOf(w)
	if err != nil {
		return own, pods, err
	}
	if quota != "" {
		labels[koordQuota] = quota
	}
	if w.job.Queue != "" || quota != "" {
		w.forget(koordQueue, koordPath, koordQuotas) // a user might have named another
	}
	if w.job.NonPreemptible {
		labels[koordPreemptible] = "false"
	}
	pods = Metadata{Labels: labels}
	own = Metadata{Labels: maps.Clone(labels), Annotations: map[string]string{}}
	if len(w.job.Quotas) > 1 {
		own.Annotations[koordQuotas] = strings.Join(w.job.Quotas, ",")
		delete(pods.Labels, koordQuota)
		w.forget(koordQuota)
	}
	if path != "" {
		own.Annotations[koordPath] = path
	} else if w.job.Queue != "" && w.job.Queue != quota {
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
