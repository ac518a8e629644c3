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

package podupdate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Update is the set of additions that admission checks ask for in the pods of one pod set. Values that a template has
// already stay.
type Update struct {
	Labels, Annotations, NodeSelector map[string]string
	Tolerations                       []corev1.Toleration
}

// Empty says that it asks for nothing.
func (u *Update) Empty() bool {
	return len(u.Labels)+len(u.Annotations)+len(u.NodeSelector)+len(u.Tolerations) == 0
}

// values are the maps of an update, each with its name.
func (u *Update) values() [3]named {
	return [3]named{{"label", u.Labels}, {"annotation", u.Annotations}, {"nodeSelector", u.NodeSelector}}
}

type named struct {
	what string
	of   map[string]string
}

// Lacking is the first thing that a pod, or a pod template, lacks of it; empty if it has all.
func (u *Update) Lacking(labels, annotations map[string]string, spec *corev1.PodSpec) string {
	have := [3]map[string]string{labels, annotations, spec.NodeSelector}
	for i, want := range u.values() {
		for _, key := range slices.Sorted(maps.Keys(want.of)) {
			if value, ok := have[i][key]; !ok || value != want.of[key] {
				return fmt.Sprintf("%s %s=%s", want.what, key, want.of[key])
			}
		}
	}
	for _, want := range u.Tolerations {
		if !slices.ContainsFunc(spec.Tolerations, func(have corev1.Toleration) bool {
			return equality.Semantic.DeepEqual(have, want)
		}) {
			return "toleration " + want.Key + "=" + want.Value + ":" + string(want.Effect)
		}
	}
	return ""
}

// All are the updates that checks ask or have asked for, by pod set, whatever they answered.
func All(checks []v1alpha1.AdmissionCheckState) map[string][]Update {
	all := map[string][]Update{}
	for i := range checks {
		for j := range checks[i].PodSetUpdates {
			asked := &checks[i].PodSetUpdates[j]
			all[asked.Name] = append(all[asked.Name], of(asked))
		}
	}
	return all
}

// Ready are the updates of the checks that were passed, one for each pod set. They do not contradict each other: the
// scheduler releases no unit for which they do.
func Ready(checks []v1alpha1.AdmissionCheckState) map[string]Update {
	whole := map[string]Update{}
	for i := range checks {
		if !ready(&checks[i]) {
			continue
		}
		for j := range checks[i].PodSetUpdates {
			asked := &checks[i].PodSetUpdates[j]
			all, more := whole[asked.Name], of(asked)
			all.Labels, all.Annotations = merged(all.Labels, more.Labels), merged(all.Annotations, more.Annotations)
			all.NodeSelector = merged(all.NodeSelector, more.NodeSelector)
			all.Tolerations = append(slices.Clip(all.Tolerations), more.Tolerations...)
			whole[asked.Name] = all
		}
	}
	return whole
}

func ready(check *v1alpha1.AdmissionCheckState) bool {
	return check.State == v1alpha1.CheckState(unit.CheckReady)
}

func of(asked *v1alpha1.PodSetUpdate) Update {
	return Update{
		Labels: asked.Labels, Annotations: asked.Annotations, NodeSelector: asked.NodeSelector,
		Tolerations: asked.Tolerations,
	}
}

func merged(a, b map[string]string) map[string]string {
	if len(b) == 0 {
		return a
	}
	out := maps.Clone(a)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, b)
	return out
}
