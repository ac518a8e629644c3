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

package podrequest

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

func podTemplate(t *testing.T, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	out := &corev1.PodTemplateSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte("spec: "+spec), out))
	return out
}

func TestPodRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want map[corev1.ResourceName]string
	}{
		"one container": {
			"{containers: [{name: a, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}",
			map[corev1.ResourceName]string{"cpu": "500m", "memory": "1Gi"},
		},
		"limits where requests are absent": {
			"{containers: [{name: a, resources: {limits: {cpu: 2, memory: 1Gi, nvidia.com/gpu: 1}, requests: {cpu: 1}}}]}",
			map[corev1.ResourceName]string{"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"},
		},
		"init containers count while they run": {
			"{initContainers: [{name: i, resources: {requests: {cpu: 4}}}], containers: [{name: a, " +
				"resources: {requests: {cpu: 1}}}, {name: b, resources: {requests: {cpu: 1}}}]}",
			map[corev1.ResourceName]string{"cpu": "4"},
		},
		"sidecars stay": {
			"{initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 1}}}, {name: i, " +
				"resources: {requests: {cpu: 4}}}], containers: [{name: a, resources: {requests: {cpu: 2}}}]}",
			map[corev1.ResourceName]string{"cpu": "5"},
		},
		"overhead": {
			"{overhead: {cpu: 250m}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}",
			map[corev1.ResourceName]string{"cpu": "1250m"},
		},
		"pod-level requests": {
			"{resources: {requests: {cpu: 3}}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}",
			map[corev1.ResourceName]string{"cpu": "3"},
		},
		"pod-level limits, containers ask": {
			"{resources: {limits: {cpu: 3, memory: 2Gi}}, containers: [{name: a, resources: {requests: {cpu: 1}}}]}",
			map[corev1.ResourceName]string{"cpu": "1", "memory": "2Gi"},
		},
		"nothing asked": {"{containers: [{name: a}]}", map[corev1.ResourceName]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			tmpl := podTemplate(t, tc.spec)
			before := tmpl.DeepCopy()
			got, err := Of(tmpl)
			require.NoError(t, err)
			require.Equal(t, before, tmpl, "the template is not changed")
			texts := map[corev1.ResourceName]string{}
			for resource, quantity := range got {
				texts[resource] = quantity.String()
			}
			require.Equal(t, tc.want, texts)
		})
	}
}

func TestPodRequestRefuses(t *testing.T) {
	for name, spec := range map[string]string{
		"negative": "{containers: [{name: a, resources: {requests: {cpu: -1}}}]}",
		"negative hidden by another": "{containers: [{name: a, resources: {requests: {cpu: 5}}}, {name: b, " +
			"resources: {requests: {cpu: -1}}}]}",
		"negative limit": "{containers: [{name: a, resources: {limits: {cpu: -1}}}]}",
		"absurd cpu":     "{containers: [{name: a, resources: {requests: {cpu: 9e18}}}]}",
		"sum beyond 64 bits": "{containers: [{name: a, resources: {requests: {memory: 6Ei}}}, {name: b, " +
			"resources: {requests: {memory: 6Ei}}}]}",
		"negative overhead": "{overhead: {cpu: -1}, containers: [{name: a}]}",
		"less than its containers": "{resources: {requests: {cpu: 1, memory: 9Gi}}, containers: [{name: a, resources: " +
			"{requests: {cpu: 1, memory: 5Gi}}}, {name: b, resources: {requests: {cpu: 500m}}}]}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Of(podTemplate(t, spec))
			require.ErrorIs(t, err, ErrRequest)
		})
	}
}

func TestAmountWithEndlessExponent(t *testing.T) {
	quantity, err := resource.ParseQuantity("1e99999999")
	require.NoError(t, err)
	_, err = Times(corev1.ResourceList{"cpu": quantity}, 2)
	require.ErrorIs(t, err, ErrRequest)
}
