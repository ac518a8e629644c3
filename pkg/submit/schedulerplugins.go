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

// schedulerPluginsGroup names the PodGroup of a pod.
const schedulerPluginsGroup = "scheduling.x-k8s.io/pod-group"

func schedulerPluginsGroups(w *work) (map[string]Metadata, []Object, error) {
	g, err := w.gang()
	if err != nil || g.minimum < 1 {
		return nil, nil, err
	}
	groups := map[string]Metadata{}
	for i := range w.sets {
		groups[w.sets[i].Name] = Metadata{Labels: map[string]string{schedulerPluginsGroup: g.name}}
	}
	spec := g.spec()
	if n := w.job.Gang.seconds(); n > 0 {
		spec["scheduleTimeoutSeconds"] = n
	}
	return groups, []Object{{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": w.groupMeta(g.name), "spec": spec,
	}}, nil
}
