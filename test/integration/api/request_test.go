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

package api_test

import (
	"maps"
	"testing"
	"time"

	configv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
	"github.com/koordinator-sh/koordinator/pkg/util/transformer"
	"github.com/koordinator-sh/koordinator/pkg/webhook/pod/mutating"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/podwebhook"
)

const estimated = "estimated"

// TestRequestOfRealPods has the API server admit pods, with koord-manager's own webhook called over HTTPS, and asks
// ElasticQuota for their requests. The queue must have computed the same from their templates. The point is the order
// of the steps, which no library answers: in-tree plugins run again after a webhook.
func TestRequestOfRealPods(t *testing.T) {
	connect(t)
	creation := estimatedCluster(t)
	admin := typedClient(t)
	for name, spec := range map[string]string{
		"plain": "{containers: [{name: a, image: x, resources: {requests: {cpu: 1}}}]}",
		"limits": "{containers: [{name: a, image: x, resources: {limits: {cpu: 2, nvidia.com/gpu: 1}, " +
			"requests: {cpu: 1500m}}}]}",
		"nothing": "{containers: [{name: a, image: x}, {name: b, image: x}]}",
		"sidecars": "{initContainers: [{name: s, image: x, restartPolicy: Always, resources: {requests: {cpu: 1}}}, " +
			"{name: i, image: x, resources: {requests: {cpu: 4}}}], containers: [{name: a, image: x, " +
			"resources: {requests: {cpu: 2}}}]}",
		"overhead": "{runtimeClassName: heavy, containers: [{name: a, image: x, resources: {requests: {cpu: 1}}}]}",
		"pod level": "{resources: {limits: {cpu: 3, memory: 2Gi}}, containers: [{name: a, image: x, " +
			"resources: {requests: {cpu: 1}}}]}",
		"gpu": "{containers: [{name: a, image: x, resources: {limits: {koordinator.sh/gpu: 200}}}]}",
		"former names": "{containers: [{name: a, image: x, resources: {limits: {kubernetes.io/gpu: 200, " +
			"kubernetes.io/batch-cpu: 500}}}]}",
		"fine fractions": "{containers: [{name: a, image: x, resources: {requests: {cpu: 0.0001, memory: 0.5}}}, {name: b, " +
			"image: x, resources: {requests: {cpu: 0.0001}}}]}",
	} {
		for _, labels := range []map[string]string{nil, {"colocate": "batch"}, {"colocate": "patched"}} {
			t.Run(name+" "+labels["colocate"], func(t *testing.T) {
				if name == "overhead" && labels != nil {
					t.Skip("Koordinator translates the overhead, and Kubernetes refuses the pod for it")
				}
				template := &corev1.PodTemplateSpec{}
				require.NoError(t, yaml.UnmarshalStrict([]byte("spec: "+spec), template))
				template.Labels, template.Spec.SchedulerName = maps.Clone(labels), "koord-scheduler"
				pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
				pod.Namespace, pod.GenerateName = estimated, "p-"
				require.NoError(t, admin.Create(t.Context(), pod, client.DryRunAll))

				_, err := transformer.TransformPodFactory()(pod)
				require.NoError(t, err)
				have, err := creation.Request(template)
				require.NoError(t, err)
				require.Equal(t, milli(core.PodRequests(pod)), milli(have))
				seen, err := creation.Pod(template)
				require.NoError(t, err)
				require.Equal(t, pod.Labels, seen.Labels)
				require.Equal(t, pod.Spec.Priority, seen.Spec.Priority)
			})
		}
	}
}

func milli(list corev1.ResourceList) map[string]int64 {
	out := map[string]int64{}
	for name, quantity := range list {
		out[string(name)] = quantity.MilliValue()
	}
	return out
}

func estimateScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, configv1alpha1.AddToScheme(scheme))
	return scheme
}

func typedClient(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(server.RESTConfig(controlplane.Admin), client.Options{Scheme: estimateScheme(t)})
	require.NoError(t, err)
	return c
}

// estimatedCluster makes a namespace in which much is added to pods, and returns what the queue knows of that.
func estimatedCluster(t *testing.T) *podrequest.Creation {
	t.Helper()
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: estimated, Labels: map[string]string{"webhook": estimated}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: estimated}}
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: estimated},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			Default:        corev1.ResourceList{"memory": resource.MustParse("1Gi")},
			DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("200m")},
		}}}}
	heavy := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "heavy",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
			"cpu": resource.MustParse("250m"), "memory": resource.MustParse("64Mi"),
		}}}
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "estimated-batch"}, Value: 5500}
	admin := typedClient(t)
	for _, o := range []client.Object{namespace, account, limits, heavy, class, startWebhook(t, class)} {
		require.NoError(t, admin.Create(t.Context(), o))
		t.Cleanup(func() { _ = admin.Delete(t.Context(), o) })
	}
	awaitWebhook(t, admin)
	return &podrequest.Creation{
		Namespace: estimated, LimitRanges: []corev1.LimitRange{*limits}, RuntimeClasses: []nodev1.RuntimeClass{*heavy},
		PriorityClasses: []schedulingv1.PriorityClass{*class},
		Webhook:         &podrequest.Webhook{NamespaceLabels: namespace.Labels, Profiles: estimatedProfiles()},
	}
}

func estimatedProfiles() []configv1alpha1.ClusterColocationProfile {
	batch := configv1alpha1.ClusterColocationProfile{ObjectMeta: metav1.ObjectMeta{Name: "batch"}}
	batch.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"colocate": "batch"}}
	batch.Spec.QoSClass, batch.Spec.PriorityClassName = "BE", "estimated-batch"
	batch.Spec.Labels = map[string]string{"quota.scheduling.koordinator.sh/name": "colocated"}
	patched := configv1alpha1.ClusterColocationProfile{ObjectMeta: metav1.ObjectMeta{Name: "patched"}}
	patched.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"colocate": "patched"}}
	patched.Spec.QoSClass = "LS"
	patched.Spec.Patch.Raw = []byte(`{"spec":{"containers":[{"name":"a",` +
		`"resources":{"limits":{"example.com/patched":"1"}}}]}}`)
	return []configv1alpha1.ClusterColocationProfile{batch, patched}
}

// startWebhook serves koord-manager's handler and returns the registration of it.
func startWebhook(t *testing.T, class *schedulingv1.PriorityClass) client.Object {
	t.Helper()
	scheme := estimateScheme(t)
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(class.DeepCopy()).
		WithLists(&configv1alpha1.ClusterColocationProfileList{Items: estimatedProfiles()}).Build()
	handler := &mutating.PodMutatingHandler{Client: cluster, Decoder: admission.NewDecoder(scheme)}
	return podwebhook.Serve(t, estimated, "mpod-create.koordinator.sh", map[string]string{"webhook": estimated}, handler)
}

// awaitWebhook waits until the API server calls the webhook and knows the namespace's LimitRange.
func awaitWebhook(t *testing.T, admin client.Client) {
	t.Helper()
	require.Eventually(t, func() bool {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: estimated, GenerateName: "p-",
				Labels: map[string]string{"colocate": "batch"}},
			Spec: corev1.PodSpec{SchedulerName: "koord-scheduler", Containers: []corev1.Container{{Name: "a", Image: "x"}}},
		}
		err := admin.Create(t.Context(), pod, client.DryRunAll)
		_, limited := pod.Spec.Containers[0].Resources.Requests["cpu"]
		return err == nil && limited && pod.Labels["koordinator.sh/qosClass"] == "BE"
	}, 30*time.Second, 100*time.Millisecond)
}
