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
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/config/v1alpha1"

	queuev1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// requestOf is what one pod with one container of these requests and limits asks for.
func requestOf(t *testing.T, c *Creation, resources string) map[string]string {
	t.Helper()
	list, err := c.Request(podTemplate(t,
		"{containers: [{name: a, resources: {requests: "+resources+", limits: "+resources+"}}]}"))
	require.NoError(t, err)
	texts := map[string]string{}
	for name, quantity := range list {
		texts[string(name)] = quantity.String()
	}
	return texts
}

// TestDevices covers the translation of device resources. ElasticQuota v1.8.0 translates nothing
// (elasticquota/core/helper.go PodRequests). It counts the resources that the webhook
// (pkg/webhook/pod/mutating/device_resource_spec.go) and the transformer of the scheduler's informer
// (pkg/util/transformer/pod_transformer.go, apis/extension/deprecated.go) have written.
func TestDevices(t *testing.T) {
	for name, tc := range map[string]struct {
		asks string
		// without and with koord-manager
		without, with map[string]string
	}{
		"of a device plugin": {
			"{nvidia.com/gpu: 2}",
			map[string]string{"nvidia.com/gpu": "2"}, map[string]string{"nvidia.com/gpu": "2"},
		},
		"koordinator.sh/gpu": {
			"{koordinator.sh/gpu: 100}",
			map[string]string{"koordinator.sh/gpu": "100"},
			map[string]string{
				"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu.shared": "1",
			},
		},
		"several koordinator.sh/gpu": {
			"{koordinator.sh/gpu: 400}",
			map[string]string{"koordinator.sh/gpu": "400"},
			map[string]string{
				"koordinator.sh/gpu-core": "400", "koordinator.sh/gpu-memory-ratio": "400", "koordinator.sh/gpu.shared": "4",
			},
		},
		"a share": {
			"{koordinator.sh/gpu-core: 50, koordinator.sh/gpu-memory: 8Gi}",
			map[string]string{"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi"},
			map[string]string{
				"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory": "8Gi", "koordinator.sh/gpu.shared": "1",
			},
		},
		"a share of a number of GPUs": {
			"{koordinator.sh/gpu-memory-ratio: 100, koordinator.sh/gpu.shared: 2}",
			map[string]string{"koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu.shared": "2"},
			map[string]string{"koordinator.sh/gpu-memory-ratio": "100", "koordinator.sh/gpu.shared": "2"},
		},
		// koord-manager v1.8.0 divides the memory ratio, which is absent.
		"cores of two GPUs alone": {
			"{koordinator.sh/gpu-core: 200}",
			map[string]string{"koordinator.sh/gpu-core": "200"},
			map[string]string{"koordinator.sh/gpu-core": "200", "koordinator.sh/gpu.shared": "0"},
		},
		"rdma": {
			"{koordinator.sh/rdma: 100}",
			map[string]string{"koordinator.sh/rdma": "100"}, map[string]string{"koordinator.sh/rdma": "100"},
		},
		// The webhook does not know the former names; the scheduler renames them.
		"former names": {
			"{kubernetes.io/gpu: 100, kubernetes.io/rdma: 1, koordinator.sh/batch-cpu: 500}",
			map[string]string{"koordinator.sh/gpu": "100", "koordinator.sh/rdma": "1", "kubernetes.io/batch-cpu": "500"},
			map[string]string{"koordinator.sh/gpu": "100", "koordinator.sh/rdma": "1", "kubernetes.io/batch-cpu": "500"},
		},
		"both names": {
			"{kubernetes.io/gpu-core: 30, koordinator.sh/gpu-core: 50, koordinator.sh/gpu.shared: 1}",
			map[string]string{"kubernetes.io/gpu-core": "30", "koordinator.sh/gpu-core": "50", "koordinator.sh/gpu.shared": "1"},
			map[string]string{"kubernetes.io/gpu-core": "30", "koordinator.sh/gpu-core": "50", "koordinator.sh/gpu.shared": "1"},
		},
		"of other vendors": {
			"{huawei.com/npu-core: 1, amd.com/gpu: 1}",
			map[string]string{"huawei.com/npu-core": "1", "amd.com/gpu": "1"},
			map[string]string{"huawei.com/npu-core": "1", "amd.com/gpu": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.without, requestOf(t, &Creation{}, tc.asks))
			require.Equal(t, tc.with, requestOf(t, &Creation{Webhook: &Webhook{}}, tc.asks))
		})
	}
}

func profile(edit func(*v1alpha1.ClusterColocationProfile)) *Creation {
	p := v1alpha1.ClusterColocationProfile{}
	p.Name = "p"
	edit(&p)
	return &Creation{Webhook: &Webhook{Profiles: []v1alpha1.ClusterColocationProfile{p}}}
}

func TestProfileTranslatesResources(t *testing.T) {
	batch := profile(func(p *v1alpha1.ClusterColocationProfile) { p.Spec.QoSClass = "BE" })
	require.Equal(t, map[string]string{"cpu": "500m", "memory": "1Gi"},
		requestOf(t, &Creation{Webhook: &Webhook{}}, "{cpu: 500m, memory: 1Gi}"))
	require.Equal(t, map[string]string{"kubernetes.io/batch-cpu": "500", "kubernetes.io/batch-memory": "1Gi"},
		requestOf(t, batch, "{cpu: 500m, memory: 1Gi}"))

	mid := profile(func(p *v1alpha1.ClusterColocationProfile) {
		p.Spec.Labels = map[string]string{"koordinator.sh/priority-class": "koord-mid"}
	})
	require.Equal(t, map[string]string{"kubernetes.io/mid-cpu": "1k"}, requestOf(t, mid, "{cpu: 1}"))

	kept := profile(func(p *v1alpha1.ClusterColocationProfile) {
		p.Spec.QoSClass = "BE"
		p.Annotations = map[string]string{"config.koordinator.sh/skip-update-resources": ""}
	})
	require.Equal(t, map[string]string{"cpu": "1"}, requestOf(t, kept, "{cpu: 1}"))
}

// A patch that is not for pods, or whose amounts would take minutes to read, changes nothing.
func TestPatchOfAProfile(t *testing.T) {
	for raw, want := range map[string]string{
		`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"3"}}}]}}`:              "3",
		`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"1e999999999"}}}]}}`:    "1",
		`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":["not a number"]}}}]}}`: "1",
		`{"spec":`: "1",
	} {
		c := profile(func(p *v1alpha1.ClusterColocationProfile) { p.Spec.Patch = runtime.RawExtension{Raw: []byte(raw)} })
		template := podTemplate(t, "{containers: [{name: a, resources: {requests: {cpu: 1}}}]}")
		list, err := c.Request(template)
		require.NoError(t, err, raw)
		require.Equal(t, want, list.Cpu().String(), raw)
	}
	negative := profile(func(p *v1alpha1.ClusterColocationProfile) {
		p.Spec.Patch.Raw = []byte(`{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"-3"}}}]}}`)
	})
	_, err := negative.Request(podTemplate(t, "{containers: [{name: a}]}"))
	require.ErrorIs(t, err, ErrRequest)
}

func TestGates(t *testing.T) {
	template := podTemplate(t, "{overhead: {cpu: 250m}, containers: [{name: a, resources: {requests: {cpu: 1, "+
		"nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}}]}")
	template.Annotations = map[string]string{
		"pod.koordinator.sh/replace-resources": "nvidia.com/gpu:koordinator.sh/gpu, cpu:",
	}
	for _, tc := range []struct {
		gates Gates
		want  map[corev1.ResourceName]string
	}{
		{Gates{}, map[corev1.ResourceName]string{"cpu": "1250m", "nvidia.com/gpu": "1"}},
		{Gates{IgnorePodOverhead: true}, map[corev1.ResourceName]string{"cpu": "1", "nvidia.com/gpu": "1"}},
		{Gates{ReplaceResources: true}, map[corev1.ResourceName]string{"koordinator.sh/gpu": "1"}},
	} {
		list, err := (&Creation{Gates: tc.gates}).Request(template)
		require.NoError(t, err)
		have := map[corev1.ResourceName]string{}
		for name, quantity := range list {
			have[name] = quantity.String()
		}
		require.Equal(t, tc.want, have, "%+v", tc.gates)
	}
}

// The profile that is shipped as an example has pods scheduled by koord-scheduler in the namespaces that it selects.
func TestProfileNamesTheScheduler(t *testing.T) {
	text, err := os.ReadFile("../../../examples/scheduler-name/profile.yaml")
	require.NoError(t, err)
	profile := v1alpha1.ClusterColocationProfile{}
	require.NoError(t, yaml.UnmarshalStrict(text, &profile))
	for namespace, want := range map[string]string{"true": "koord-scheduler", "false": "other"} {
		c := &Creation{Webhook: &Webhook{
			NamespaceLabels: map[string]string{queuev1alpha1.LabelManaged: namespace},
			Profiles:        []v1alpha1.ClusterColocationProfile{profile},
		}}
		pod, err := c.Pod(podTemplate(t, "{schedulerName: other, containers: [{name: a}]}"))
		require.NoError(t, err)
		require.Equal(t, want, pod.Spec.SchedulerName)
	}
}
