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

// Keys of Volcano.
const (
	volcanoQueue       = "volcano.sh/queue-name"
	volcanoPodQueue    = "scheduling.volcano.sh/queue-name"
	volcanoPreemptable = "volcano.sh/preemptable"
	volcanoTask        = "volcano.sh/task-spec"
	volcanoGroup       = "scheduling.k8s.io/group-name"
)

func volcanoLabels(w *work) (own, pods Metadata, err error) {
	pods.Annotations = map[string]string{}
	if w.job.Queue != "" {
		if err := checkName("queue", w.job.Queue); err != nil {
			return own, pods, err
		}
		own.Labels = map[string]string{volcanoQueue: w.job.Queue}
		pods.Annotations[volcanoPodQueue] = w.job.Queue
	}
	if w.job.NonPreemptible {
		pods.Annotations[volcanoPreemptable] = "false"
	}
	return own, pods, nil
}

// volcanoGroups: pods that come later belong to the group, and it does not wait for them. Their resources are reserved.
func volcanoGroups(w *work) (map[string]Metadata, []Object, error) {
	g, err := w.gang()
	if err != nil || g.minimum < 1 {
		return nil, nil, err
	}
	groups := map[string]Metadata{}
	for i := range w.sets {
		groups[w.sets[i].Name] = Metadata{Annotations: map[string]string{
			volcanoGroup: g.name, volcanoTask: w.sets[i].Name,
		}}
	}
	spec := g.spec()
	if w.job.Queue != "" {
		spec["queue"] = w.job.Queue
	}
	if w.job.PriorityClass != "" {
		spec["priorityClassName"] = w.job.PriorityClass
	}
	return groups, []Object{{
		"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": w.groupMeta(g.name), "spec": spec,
	}}, nil
}
