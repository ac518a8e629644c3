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

package quota_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	configv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/features"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
	koordfeature "github.com/koordinator-sh/koordinator/pkg/util/feature"
	"github.com/koordinator-sh/koordinator/pkg/util/transformer"
	"github.com/koordinator-sh/koordinator/pkg/webhook/pod/mutating"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeutil "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	apicore "k8s.io/kubernetes/pkg/apis/core"
	apicorev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// TestRequestIsWhatElasticQuotaCounts computes requests for random templates in random clusters in two ways. The queue
// computes them from the template. Koordinator's core.PodRequests computes them from the finished pod. Such a pod has
// passed the code of the API server, of koord-manager's webhook, and of the transformer of koord-scheduler's informer.
// The requests, and the labels that decide about the quota, must be equal.
func TestRequestIsWhatElasticQuotaCounts(t *testing.T) {
	for _, gates := range []podrequest.Gates{
		{}, {IgnorePodOverhead: true}, {ReplaceResources: true}, {SkipMutatingResources: true},
	} {
		t.Run(fmt.Sprintf("%+v", gates), func(t *testing.T) {
			setGates(t, gates)
			templates := 3 // in each check
			if gates == (podrequest.Gates{}) {
				templates = 10
			}
			effort.Check(t, func(t *rapid.T) {
				for range templates {
					compareRequests(t, gates)
				}
			})
		})
	}
}

// setGates sets the gates of Koordinator for the time of the test.
func setGates(t *testing.T, gates podrequest.Gates) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.ElasticQuotaIgnorePodOverhead,
		gates.IgnorePodOverhead)
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.ReplaceResourcesTransformer,
		gates.ReplaceResources)
	name := string(features.ColocationProfileSkipMutatingResources)
	require.NoError(t,
		koordfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{name: gates.SkipMutatingResources}))
	t.Cleanup(func() {
		require.NoError(t, koordfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{name: false}))
	})
}

func compareRequests(t *rapid.T, gates podrequest.Gates) {
	creation := drawCluster(t)
	creation.Gates = gates
	template := drawTemplate(t)
	before := template.DeepCopy()

	pod := createdPod(t, creation, template)
	want := core.PodRequests(pod)
	have, err := creation.Request(template)
	if template.Spec.Resources != nil && errors.Is(err, podrequest.ErrRequest) {
		t.Skip("the API server makes no pod that asks for less than its containers")
	}
	require.NoError(t, err)
	require.Equal(t, amounts(want), amounts(have))

	seen, err := creation.Pod(template)
	require.NoError(t, err)
	require.Equal(t, pod.Labels[extension.LabelQuotaName], seen.Labels[extension.LabelQuotaName])
	require.Equal(t, extension.IsPodNonPreemptible(pod), extension.IsPodNonPreemptible(seen))
	require.Equal(t, pod.Spec.PriorityClassName, seen.Spec.PriorityClassName)
	require.Equal(t, pod.Spec.Priority, seen.Spec.Priority)
	require.Equal(t, before, template, "the template is not changed")
}

// amounts in thousandths, by name; a resource that is named with zero differs from one that is not named.
func amounts(list corev1.ResourceList) map[string]int64 {
	out := map[string]int64{}
	for name, quantity := range list {
		out[string(name)] = quantity.MilliValue()
	}
	return out
}

// createdPod is the pod that Kubernetes and Koordinator make of the template.
func createdPod(t *rapid.T, c *podrequest.Creation, template *corev1.PodTemplateSpec) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy(),
	}
	pod.Namespace = c.Namespace
	apicorev1.SetObjectDefaults_Pod(pod)
	admitInTree(t, c, pod)
	if c.Webhook != nil {
		callWebhook(t, c, pod)
		apicorev1.SetObjectDefaults_Pod(pod)
		limitRanger(t, c, pod) // plugins in the tree run again after a webhook
	}
	apicorev1.SetObjectDefaults_Pod(pod)
	out, err := transformer.TransformPodFactory()(pod)
	require.NoError(t, err)
	return out.(*corev1.Pod)
}

// admitInTree is LimitRanger, Priority and RuntimeClass; the latter two cannot be called without their informers.
func admitInTree(t *rapid.T, c *podrequest.Creation, pod *corev1.Pod) {
	limitRanger(t, c, pod)
	value := int32(0)
	for _, class := range c.PriorityClasses {
		if class.Name == pod.Spec.PriorityClassName || pod.Spec.PriorityClassName == "" && class.GlobalDefault {
			pod.Spec.PriorityClassName, value = class.Name, class.Value
			break
		}
	}
	pod.Spec.Priority = &value
	for _, class := range c.RuntimeClasses {
		if pod.Spec.RuntimeClassName != nil && class.Name == *pod.Spec.RuntimeClassName && class.Overhead != nil {
			pod.Spec.Overhead = class.Overhead.PodFixed.DeepCopy()
		}
	}
}

func limitRanger(t *rapid.T, c *podrequest.Creation, pod *corev1.Pod) {
	internal := &apicore.Pod{}
	require.NoError(t, apicorev1.Convert_v1_Pod_To_core_Pod(pod, internal, nil))
	for i := range c.LimitRanges {
		require.NoError(t, limitranger.PodMutateLimitFunc(&c.LimitRanges[i], internal))
	}
	require.NoError(t, apicorev1.Convert_core_Pod_To_v1_Pod(internal, pod, nil))
}

var webhookScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	runtimeutil.Must(clientgoscheme.AddToScheme(scheme))
	runtimeutil.Must(configv1alpha1.AddToScheme(scheme))
	return scheme
}()

// callWebhook has koord-manager's handler change the pod.
func callWebhook(t *rapid.T, c *podrequest.Creation, pod *corev1.Pod) {
	objects := fake.NewClientBuilder().WithScheme(webhookScheme).
		WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace, Labels: c.Webhook.NamespaceLabels}}).
		WithLists(&configv1alpha1.ClusterColocationProfileList{Items: c.Webhook.Profiles},
			&schedulingv1.PriorityClassList{Items: c.PriorityClasses})
	raw, err := json.Marshal(pod)
	require.NoError(t, err)
	handler := &mutating.PodMutatingHandler{Client: objects.Build(), Decoder: admission.NewDecoder(webhookScheme)}
	response := handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Namespace: c.Namespace, Object: runtime.RawExtension{Raw: raw},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}})
	require.True(t, response.Allowed, "%v", response.Result)
	if len(response.Patches) == 0 {
		return
	}
	text, err := json.Marshal(response.Patches)
	require.NoError(t, err)
	patch, err := jsonpatch.DecodePatch(text)
	require.NoError(t, err)
	raw, err = patch.Apply(raw)
	require.NoError(t, err)
	*pod = corev1.Pod{}
	require.NoError(t, json.Unmarshal(raw, pod))
}

var resourceNames = []corev1.ResourceName{
	"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory",
	"kubernetes.io/mid-cpu", "koordinator.sh/batch-cpu", "koordinator.sh/batch-memory",
	"kubernetes.io/gpu", "kubernetes.io/gpu-core",
	"kubernetes.io/rdma", "koordinator.sh/gpu", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory",
	"koordinator.sh/gpu-memory-ratio", "koordinator.sh/gpu.shared", "koordinator.sh/rdma", "hugepages-2Mi",
}

// overcommitted resources may have a limit without a request, and the other way round.
var overcommitted = map[corev1.ResourceName]bool{"cpu": true, "memory": true, "ephemeral-storage": true}

func drawQuantity(t *rapid.T, name corev1.ResourceName) resource.Quantity {
	switch {
	case name == "cpu":
		return resource.MustParse(rapid.SampledFrom([]string{"0", "100m", "1", "1500m", "3", "0.0004"}).Draw(t, "cpu"))
	case strings.Contains(string(name), "memory") && !strings.Contains(string(name), "ratio"), name == "ephemeral-storage":
		return resource.MustParse(rapid.SampledFrom([]string{"0", "1", "128Mi", "1Gi", "1500M"}).Draw(t, "memory"))
	case name == "hugepages-2Mi":
		return resource.MustParse(rapid.SampledFrom([]string{"2Mi", "4Mi"}).Draw(t, "pages"))
	default:
		return resource.MustParse(rapid.SampledFrom([]string{"1", "2", "50", "100", "150", "200", "400"}).Draw(t, "amount"))
	}
}

func drawResources(t *rapid.T) corev1.ResourceRequirements {
	var r corev1.ResourceRequirements
	for range rapid.IntRange(0, 4).Draw(t, "resources") {
		name := rapid.SampledFrom(resourceNames).Draw(t, "resource")
		quantity := drawQuantity(t, name)
		which := rapid.SampledFrom([]string{"both", "limit", "request"}).Draw(t, "which")
		if !overcommitted[name] && which == "request" {
			which = "both" // the API asks for that
		}
		if which != "request" {
			put(&r.Limits, name, quantity)
		}
		if which != "limit" {
			put(&r.Requests, name, quantity)
		}
	}
	return r
}

func put(list *corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = quantity
}

func drawLabels(t *rapid.T, what string) map[string]string {
	return rapid.MapOfN(
		rapid.SampledFrom([]string{
			"app", "tier", extension.LabelQuotaName, extension.LabelPreemptible, extension.LabelPodQoS,
			extension.LabelPodPriorityClass,
		}),
		rapid.SampledFrom([]string{"a", "b", "false", "BE", "LS", "koord-batch", "koord-mid", "koord-prod"}),
		0, 3).Draw(t, what)
}

func drawTemplate(t *rapid.T) *corev1.PodTemplateSpec {
	template := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: drawLabels(t, "labels")}}
	if rapid.Bool().Draw(t, "replaces") {
		template.Annotations = map[string]string{
			extension.AnnotationPodReplaceResources: "nvidia.com/gpu:koordinator.sh/gpu," +
				"ephemeral-storage:,cpu : example.com/cpu",
		}
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "init containers") {
		c := corev1.Container{Name: fmt.Sprintf("i%d", i), Image: "x", Resources: drawResources(t)}
		if rapid.Bool().Draw(t, "sidecar") {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		template.Spec.InitContainers = append(template.Spec.InitContainers, c)
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "containers") {
		template.Spec.Containers = append(template.Spec.Containers,
			corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "x", Resources: drawResources(t)})
	}
	if rapid.IntRange(0, 3).Draw(t, "pod level") == 0 {
		r := corev1.ResourceRequirements{}
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if rapid.Bool().Draw(t, "limit") {
				put(&r.Limits, name, drawQuantity(t, name))
			}
			if rapid.Bool().Draw(t, "request") {
				put(&r.Requests, name, drawQuantity(t, name))
			}
		}
		template.Spec.Resources = &r
	}
	if rapid.Bool().Draw(t, "runtime class") {
		template.Spec.RuntimeClassName = ptr.To(rapid.SampledFrom([]string{"plain", "heavy"}).Draw(t, "class"))
	}
	template.Spec.PriorityClassName = rapid.SampledFrom([]string{"", "", "batch", "mid", "prod"}).Draw(t, "priority class")
	return template
}

func drawCluster(t *rapid.T) *podrequest.Creation {
	c := &podrequest.Creation{
		Namespace: "team",
		RuntimeClasses: []nodev1.RuntimeClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "plain"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{
				"cpu": resource.MustParse("250m"), "memory": resource.MustParse("120Mi"),
				"kubernetes.io/rdma": resource.MustParse("1"),
			}}},
		},
	}
	for name, value := range map[string]int32{"batch": 5500, "mid": 7500, "prod": 9500} {
		c.PriorityClasses = append(c.PriorityClasses,
			schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value})
	}
	slices.SortFunc(c.PriorityClasses,
		func(a, b schedulingv1.PriorityClass) int { return strings.Compare(a.Name, b.Name) })
	if i := rapid.IntRange(0, 8).Draw(t, "default class"); i < len(c.PriorityClasses) {
		c.PriorityClasses[i].GlobalDefault = true
	}
	if rapid.Bool().Draw(t, "limit range") {
		r := corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: c.Namespace}}
		for _, kind := range []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod, corev1.LimitTypeContainer} {
			both := drawResources(t)
			r.Spec.Limits = append(r.Spec.Limits,
				corev1.LimitRangeItem{Type: kind, Default: both.Limits, DefaultRequest: both.Requests})
		}
		apicorev1.SetObjectDefaults_LimitRange(&r)
		c.LimitRanges = append(c.LimitRanges, r)
	}
	if rapid.IntRange(0, 4).Draw(t, "webhook") > 0 {
		c.Webhook = &podrequest.Webhook{NamespaceLabels: drawLabels(t, "namespace labels")}
		for i := range rapid.IntRange(0, 3).Draw(t, "profiles") {
			c.Webhook.Profiles = append(c.Webhook.Profiles, drawProfile(t, fmt.Sprintf("p%d", 9-i)))
		}
	}
	return c
}

func drawSelector(t *rapid.T, what string) *metav1.LabelSelector {
	switch rapid.IntRange(0, 5).Draw(t, what) {
	case 0, 1:
		return nil
	case 2:
		return &metav1.LabelSelector{}
	case 3:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Sideways"}}}
	case 4:
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: extension.LabelQuotaName, Operator: metav1.LabelSelectorOpExists},
		}}
	default:
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	}
}

func drawProfile(t *rapid.T, name string) configv1alpha1.ClusterColocationProfile {
	p := configv1alpha1.ClusterColocationProfile{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s := &p.Spec
	if rapid.IntRange(0, 4).Draw(t, "skips resources") == 0 {
		p.Annotations = map[string]string{extension.AnnotationSkipUpdateResource: ""}
	}
	s.NamespaceSelector, s.Selector = drawSelector(t, "namespace selector"), drawSelector(t, "selector")
	s.Probability = rapid.SampledFrom([]*intstr.IntOrString{
		nil, nil, ptr.To(intstr.FromString("100%")), ptr.To(intstr.FromInt32(0)), ptr.To(intstr.FromString("99%")),
		ptr.To(intstr.FromInt32(200)),
	}).Draw(t, "probability")
	s.QoSClass = rapid.SampledFrom([]string{"", "", "BE", "LS"}).Draw(t, "qos")
	s.PriorityClassName = rapid.SampledFrom([]string{"", "", "batch", "mid", "prod"}).Draw(t, "class")
	s.KoordinatorPriority = rapid.SampledFrom([]*int32{nil, ptr.To[int32](7)}).Draw(t, "sub-priority")
	s.Labels = drawLabels(t, "profile labels")
	if rapid.IntRange(0, 3).Draw(t, "maps") == 0 {
		s.LabelKeysMapping = map[string]string{"app": extension.LabelQuotaName}
		s.AnnotationKeysMapping = map[string]string{"x": "y"}
	}
	if rapid.IntRange(0, 3).Draw(t, "suffixes") == 0 {
		s.LabelSuffixes = map[string]string{extension.LabelQuotaName: "-x"}
	}
	switch rapid.IntRange(0, 5).Draw(t, "patch") {
	case 0:
		s.Patch.Raw = []byte(`{"metadata":{"labels":{"quota.scheduling.koordinator.sh/name":"patched"}}}`)
	case 1:
		s.Patch.Raw = []byte(`{"spec":{"containers":[{"name":"c0","resources":{"limits":{"cpu":"2",` +
			`"koordinator.sh/gpu":"100"},"requests":{"koordinator.sh/gpu":"100"}}}]}}`)
	}
	return p
}
