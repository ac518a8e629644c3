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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit/podset"
)

// kubernetesAPIs are the versions of scheduling.k8s.io that have Workload and PodGroup.
var kubernetesAPIs = []string{"v1alpha2", "v1beta1"}

// maxTemplates is the bound of a Workload on its templates of PodGroups.
const maxTemplates = 8

// kubernetesGroups: a PodGroup holds pods of one template, so a job has one for each pod set. Its template has the name
// of the pod set.
func kubernetesGroups(w *work) (map[string]Metadata, []Object, error) {
	version := "scheduling.k8s.io/" + w.driver.KubernetesAPI
	var templates []any
	var objects []Object
	groups := map[string]Metadata{}
	for i := range w.sets {
		s := &w.sets[i]
		if !s.inGang() || s.MinCount < 1 || len(s.found.Template) == 0 {
			continue
		}
		groups[s.Name] = Metadata{}
		policy := Object{"gang": Object{"minCount": int64(s.MinCount)}}
		templates = append(templates, Object{"name": s.Name, "schedulingPolicy": policy})
		objects = append(objects, Object{
			"apiVersion": version, "kind": "PodGroup", "metadata": w.groupMeta(podGroupName(w, s)),
			"spec": Object{
				"podGroupTemplateRef": Object{
					"workload": Object{"workloadName": w.groupName(), "podGroupTemplateName": s.Name},
				},
				"schedulingPolicy": podset.Copy(policy),
			},
		})
	}
	if len(templates) == 0 {
		return nil, nil, nil
	}
	if len(templates) > maxTemplates {
		return nil, nil, fmt.Errorf("%d groups of pods: %w by k8s: a Workload has at most %d", len(templates), ErrUnsupported,
			maxTemplates)
	}
	spec := Object{"podGroupTemplates": templates}
	return groups, append([]Object{{
		"apiVersion": version, "kind": "Workload", "metadata": w.groupMeta(w.groupName()), "spec": spec,
	}}, objects...), nil
}

func podGroupName(w *work, s *PodSet) string { return fit(w.groupName() + "-" + s.Name) }

// joinGroups names the PodGroup in the templates: it is a field and no label.
func joinGroups(w *work, groups map[string]Metadata) error {
	for i := range w.sets {
		s := &w.sets[i]
		if _, member := groups[s.Name]; !member {
			continue
		}
		at := s.found.Template.Child("spec", "schedulingGroup", "podGroupName")
		if err := writeField(s.found.Object, at, podGroupName(w, s)); err != nil {
			return err
		}
	}
	return nil
}
