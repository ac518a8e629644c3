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

package operators_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// madeUp is a kind that nobody has heard of, as an administrator describes it in the configuration.
const madeUp = `
- apiVersion: factory.example/v1
  kind: Widget
  resource: widgets
  suspend: {field: .spec.paused}
  podSets:
  - path: .spec.groups.*
    nameField: .groupName
    count: [{field: .replicas, default: 1}]
    template: .pod
  state:
    succeeded: self.status.phase == "Done"
    failed: self.status.phase == "Broken"
    running: self.status.phase == "Working"
    suspended: self.status.phase == "Paused"
  pods: {label: factory.example/widget, value: Name}
`

const madeUpDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.factory.example}
spec:
  group: factory.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              paused: {type: boolean}
              groups: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

var (
	widgets     = schema.GroupVersionResource{Group: "factory.example", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// TestMadeUpKind: a kind needs no code. It is described in the configuration while everything runs, its definition
// comes later, and its jobs wait, run and end. Its definition goes and comes back, and nobody is started again.
func TestMadeUpKind(t *testing.T) {
	c := start(t, "madeup", controlplane.Options{Components: controlplane.Full(), Nodes: 1})
	t.Cleanup(func() { _ = c.Stop() })
	require.NoError(t, c.Install(t.Context()))
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{}))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	scheduler, controller := c.PID(controlplane.Scheduler), c.PID(controlplane.Controller)
	kind, err := jobkind.ParseDescriptor([]byte(strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(madeUp), "- "),
		"\n  ", "\n")))
	require.NoError(t, err)
	rights, err := kind.RightsManifest("widget")
	require.NoError(t, err)
	require.NoError(t, c.Apply(t.Context(), rights))
	c.configure(t, "kinds:\n- Job.v1.batch"+madeUp)
	c.awaitManaged(t)
	for _, round := range []string{"first", "second"} {
		require.NoError(t, c.Apply(t.Context(), []byte(madeUpDefinition)))
		w := c.widget(t, "factory-"+round)
		w.waitsAndRuns()
		require.NoError(t, c.dyn.Resource(definitions).Delete(t.Context(), "widgets.factory.example", metav1.DeleteOptions{}))
		w.eventually("its definition is gone", func(ctx context.Context) (bool, error) {
			_, err := c.dyn.Resource(definitions).Get(ctx, "widgets.factory.example", metav1.GetOptions{})
			return apierrors.IsNotFound(err), nil
		})
		require.Nil(t, w.unit())
	}
	require.Equal(t, scheduler, c.PID(controlplane.Scheduler))
	require.Equal(t, controller, c.PID(controlplane.Controller))
}

// widget makes one in a namespace of its own, not paused.
func (c *cluster) widget(t *testing.T, namespace string) *life {
	t.Helper()
	_, err := c.kube.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	l := &life{
		t: t, cluster: c, namespace: namespace, name: "w", client: c.dyn.Resource(widgets).Namespace(namespace),
		kind: &jobKind{name: "widget", suspend: []string{"spec", "paused"}, pods: 2},
	}
	group := map[string]any{"groupName": "small", "replicas": int64(2), "pod": map[string]any{"spec": map[string]any{
		"schedulerName": "koord-scheduler",
		"containers": []any{map[string]any{
			"name": "c", "image": "x", "resources": map[string]any{"requests": map[string]any{"cpu": "100m"}},
			"command": []any{"kept", "as", "it", "is"},
		}},
	}}}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "factory.example/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "labels": map[string]any{v1alpha1.LabelQuotaName: namespace}},
		"spec":     map[string]any{"groups": []any{group}},
	}}
	l.eventually("the API server takes it", func(ctx context.Context) (bool, error) {
		_, err := l.client.Create(ctx, job, metav1.CreateOptions{})
		return err == nil, nil
	})
	return l
}

// waitsAndRuns plays the operator.
func (l *life) waitsAndRuns() {
	l.t.Helper()
	l.quota("0")
	l.awaitPhase(v1alpha1.PhaseEnqueued)
	l.eventually("it is paused", func(context.Context) (bool, error) { return l.suspended(), nil })
	l.say("Paused")
	l.setQuota("1")
	l.eventually("it is resumed", func(context.Context) (bool, error) { return !l.suspended(), nil })
	job := l.current()
	groups, _, err := unstructured.NestedSlice(job.Object, "spec", "groups")
	require.NoError(l.t, err)
	template := groups[0].(map[string]any)["pod"].(map[string]any)
	labels, _, err := unstructured.NestedStringMap(template, "metadata", "labels")
	require.NoError(l.t, err)
	require.Equal(l.t, l.namespace, labels[v1alpha1.LabelQuotaName])
	containers, _, err := unstructured.NestedSlice(template, "spec", "containers")
	require.NoError(l.t, err)
	require.Equal(l.t, []any{"kept", "as", "it", "is"}, containers[0].(map[string]any)["command"])
	labels["factory.example/widget"] = l.name
	for _, name := range []string{"w-0", "w-1"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, job.GroupVersionKind())}
		pod.Spec.SchedulerName = "koord-scheduler"
		pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "x", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")},
		}}}
		_, err := l.cluster.kube.CoreV1().Pods(l.namespace).Create(l.t.Context(), pod, metav1.CreateOptions{})
		require.NoError(l.t, err)
	}
	l.say("Working")
	pods := l.awaitRunning()
	requireEstimate(l.t, l.awaitPhase(v1alpha1.PhaseRunning), pods)
	l.say("Done")
	require.Empty(l.t, l.awaitPhase(v1alpha1.PhaseSucceed).Status.Admissions)
}

// say writes the phase into the status.
func (l *life) say(phase string) {
	l.t.Helper()
	_, err := l.client.Patch(l.t.Context(), l.name, "application/merge-patch+json",
		[]byte(`{"status":{"phase":"`+phase+`"}}`), metav1.PatchOptions{}, "status")
	require.NoError(l.t, err)
}
