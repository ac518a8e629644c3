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
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

type values = map[string]string

func TestWhatPodsLack(t *testing.T) {
	listed := func(string) (Keys, bool) { return Keys{"l", "n"}, true }
	gpu := corev1.Toleration{Key: "gpu", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	checks := []v1alpha1.AdmissionCheckState{
		{Name: "nodes", State: "Ready", PodSetUpdates: []v1alpha1.PodSetUpdate{
			{Name: "worker", NodeSelector: values{"zone": "a"}, Tolerations: []corev1.Toleration{gpu}},
			{Name: "head", Labels: values{"l": "1"}},
		}},
		{Name: "notes", State: "Ready", PodSetUpdates: []v1alpha1.PodSetUpdate{
			{Name: "worker", Annotations: values{"n": "1"}},
		}},
		{Name: "late", State: "Pending", PodSetUpdates: []v1alpha1.PodSetUpdate{{Name: "worker", Labels: values{"no": "1"}}}},
	}
	pod := func(set string, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: values{}, Annotations: values{"n": "1"}}}
		if set != "" {
			p.Annotations[v1alpha1.AnnotationRelatedPodSet] = set
		}
		p.Spec = corev1.PodSpec{NodeSelector: values{"zone": "a", "disk": "ssd"}, Tolerations: []corev1.Toleration{gpu}}
		for _, of := range change {
			of(p)
		}
		return p
	}
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"it has all", pod("worker"), ""},
		{"it has another zone", pod("worker", func(p *corev1.Pod) { p.Spec.NodeSelector["zone"] = "b" }),
			`nodeSelector zone=a of pod set "worker"`},
		{"it has no annotation", pod("worker", func(p *corev1.Pod) { delete(p.Annotations, "n") }),
			`annotation n=1 of pod set "worker"`},
		{"it does not tolerate", pod("worker", func(p *corev1.Pod) { p.Spec.Tolerations = nil }),
			`toleration gpu=a:NoSchedule of pod set "worker"`},
		{"of another pod set", pod("head"), `label l=1 of pod set "head"`},
		{"it names no pod set, and has what is asked of one", pod(""), ""},
		{"it names no pod set, and has nothing", pod("", func(p *corev1.Pod) { p.Spec.NodeSelector = nil }),
			`label l=1 of pod set "head"`},
		{"it names a pod set that is none", pod("none", func(p *corev1.Pod) { p.Spec.NodeSelector = nil }),
			`label l=1 of pod set "head"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, Read(checks, []string{"worker", "head"}).Lacking(tc.pod, listed))
		})
	}
	all := Read(checks, []string{"worker", "head", "submitter"})
	require.Empty(t, all.Lacking(&corev1.Pod{}, listed), "it may be of the pod set that nothing is asked for")
	require.Nil(t, Read(checks[2:], []string{"worker"}))
	require.Empty(t, Read(nil, nil).Lacking(pod("worker"), listed))
	require.Len(t, All(checks)["worker"], 3)
}
