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
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/testjobs"
)

// life is one job in a namespace.
type life struct {
	t         *testing.T
	cluster   *cluster
	kind      *jobKind
	namespace string
	name      string
	client    dynamic.ResourceInterface
}

// resource of a kind, for which its definition must be served.
func (c *cluster) resource(t *testing.T, gvk schema.GroupVersionKind) dynamic.NamespaceableResourceInterface {
	t.Helper()
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	require.NoError(t, err)
	return c.dyn.Resource(mapping.Resource)
}

// manifest reads the job of a kind, and what it needs.
func manifest(t *testing.T, name string) (others []*unstructured.Unstructured, job *unstructured.Unstructured) {
	t.Helper()
	others, job, err := testjobs.Read(name)
	require.NoError(t, err)
	return others, job
}

// create makes a namespace and the job of the kind in it, suspended or not, after the edits.
func (c *cluster) create(
	t *testing.T, kind *jobKind, namespace string, suspended bool, edits ...func(job *unstructured.Unstructured),
) *life {
	t.Helper()
	kind.count(t)
	ctx := t.Context()
	_, err := c.kube.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	if len(kind.suspend) == 0 { // the maker of the pods is no author: docs/operators/tenancy.md
		require.NoError(t, c.GrantUse(ctx, namespace, namespace))
	}
	others, job := manifest(t, kind.name)
	for _, other := range others {
		_, err := c.resource(t, other.GroupVersionKind()).Namespace(namespace).Create(ctx, other, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	l := &life{
		t: t, cluster: c, kind: kind, namespace: namespace, name: job.GetName(),
		client: c.resource(t, job.GroupVersionKind()).Namespace(namespace),
	}
	if len(kind.suspend) > 0 {
		require.NoError(t, unstructured.SetNestedField(job.Object, suspended, kind.suspend...))
	}
	for _, edit := range edits {
		edit(job)
	}
	err = retry.OnError(wait.Backoff{Duration: pace, Steps: int(soon / pace), Factor: 1}, runtimeUnseen, func() error {
		_, err := l.client.Create(ctx, job, metav1.CreateOptions{})
		return err
	})
	require.NoError(t, err)
	return l
}

// runtimeUnseen: the Trainer's webhook looks in its informer cache for the runtime of a TrainJob. The cache may not yet
// have a runtime that was created a moment before.
func runtimeUnseen(err error) bool {
	return strings.Contains(err.Error(), "specified trainingRuntime must be created before the TrainJob is created")
}

func (l *life) eventually(what string, condition wait.ConditionWithContextFunc) {
	l.t.Helper()
	err := wait.PollUntilContextTimeout(l.t.Context(), pace, soon, true, condition)
	if err != nil {
		job, _ := l.client.Get(context.Background(), l.name, metav1.GetOptions{})
		require.NoError(l.t, err, "%s: %s\njob: %v\nunit: %v\npods: %v", l.kind.name, what, job, l.unit(), l.pods())
	}
}

// current returns the job as it is.
func (l *life) current() *unstructured.Unstructured {
	l.t.Helper()
	job, err := l.client.Get(l.t.Context(), l.name, metav1.GetOptions{})
	require.NoError(l.t, err)
	return job
}

func (l *life) patch(patch map[string]any) {
	l.t.Helper()
	content, err := json.Marshal(patch)
	require.NoError(l.t, err)
	_, err = l.client.Patch(l.t.Context(), l.name, types.MergePatchType, content, metav1.PatchOptions{})
	require.NoError(l.t, err)
}

// pods of its namespace, which has no others.
func (l *life) pods() []corev1.Pod {
	l.t.Helper()
	list, err := l.cluster.kube.CoreV1().Pods(l.namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(l.t, err)
	return list.Items
}

// awaitRunning waits until all its pods run, and returns them.
func (l *life) awaitRunning() []corev1.Pod {
	l.t.Helper()
	var running []corev1.Pod
	l.eventually(fmt.Sprintf("%d pods run", l.kind.pods), func(context.Context) (bool, error) {
		running = l.pods()
		return len(running) == l.kind.pods && !slices.ContainsFunc(running, func(pod corev1.Pod) bool {
			return pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil
		}), nil
	})
	return running
}

func (l *life) awaitNoPods() {
	l.t.Helper()
	l.eventually("no pod is left", func(context.Context) (bool, error) { return len(l.pods()) == 0, nil })
}

// endPods has all its running pods end now, in success or not.
func (l *life) endPods(success bool) {
	l.t.Helper()
	annotations := map[string]any{controlplane.RunTimeAnnotation: "1ms"}
	if !success {
		annotations[controlplane.FailAnnotation] = "true"
	}
	content, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	require.NoError(l.t, err)
	for _, pod := range l.pods() {
		if !l.kind.decidesBy(&pod) {
			continue
		}
		_, err := l.cluster.kube.CoreV1().Pods(l.namespace).Patch(l.t.Context(), pod.Name, types.MergePatchType, content,
			metav1.PatchOptions{})
		// The end of one may have its operator delete the others.
		require.NoError(l.t, client.IgnoreNotFound(err))
	}
}

// owners returns the kinds above a pod.
func (l *life) owners(pod *corev1.Pod) []string {
	l.t.Helper()
	var kinds []string
	var object metav1.Object = pod
	for {
		owner := metav1.GetControllerOf(object)
		if owner == nil {
			return kinds
		}
		kinds = append(kinds, owner.Kind)
		gvk := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
		above, err := l.cluster.resource(l.t, gvk).Namespace(l.namespace).Get(l.t.Context(), owner.Name, metav1.GetOptions{})
		require.NoError(l.t, err)
		object = above
	}
}
