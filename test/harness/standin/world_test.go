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

package standin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"
)

const namespace = "team"

// world is an API server with operators and nobody else: a test plays kubelet and Job controller.
type world struct {
	client.Client
	clock  *clocktesting.FakePassiveClock
	ops    []operator
	writes int
}

// newWorld holds the object and the operators of the kinds; the first one is of the kind of the object.
func newWorld(t *testing.T, object string, kinds ...string) *world {
	t.Helper()
	w := &world{clock: clocktesting.NewFakePassiveClock(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC))}
	scheme := runtime.NewScheme()
	// No more than is needed: the fake client makes a REST mapping of all at each write.
	builtin := runtime.NewSchemeBuilder(corev1.AddToScheme, batchv1.AddToScheme, appsv1.AddToScheme)
	require.NoError(t, builtin.AddToScheme(scheme))
	var withStatus []client.Object
	for name, op := range operators(Options{}) {
		scheme.AddKnownTypeWithName(op.kind(), &unstructured.Unstructured{})
		listKind := op.kind().GroupVersion().WithKind(op.kind().Kind + "List")
		scheme.AddKnownTypeWithName(listKind, &unstructured.UnstructuredList{})
		if name != Workflow { // Argo's CRD has no status subresource
			withStatus = append(withStatus, newObject(op.kind()))
		}
	}
	// The default converter parses the schema of all of Kubernetes for each test.
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(withStatus...).
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				w.writes++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.writes)))
				return c.Create(ctx, o, opts...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				w.writes++
				return c.Update(ctx, o, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				w.writes++
				return c.Delete(ctx, o, opts...)
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
				opts ...client.SubResourceUpdateOption,
			) error {
				w.writes++
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	suffix := 0
	known := operators(Options{Client: w, Clock: w.clock, Suffix: func() string {
		suffix++
		return fmt.Sprintf("%05d", suffix)
	}})
	for _, kind := range kinds {
		w.ops = append(w.ops, known[kind])
	}
	require.NoError(t, w.Create(t.Context(), parse(t, object)))
	return w
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	object.SetNamespace(namespace)
	return object
}

// settle lets the operators work until they have nothing to write any more.
func (w *world) settle(t *testing.T) {
	t.Helper()
	for range 50 {
		before := w.writes
		for _, op := range w.ops {
			for _, object := range w.all(t, op) {
				_, err := op.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&object)})
				require.NoError(t, err)
			}
		}
		if w.writes == before {
			return
		}
	}
	t.Fatal("the operators never come to an end")
}

// once lets the first operator work once.
func (w *world) once(t *testing.T) {
	t.Helper()
	object := w.object(t)
	_, err := w.ops[0].Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	require.NoError(t, err)
}

func (w *world) all(t *testing.T, op operator) []unstructured.Unstructured {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(op.kind().GroupVersion().WithKind(op.kind().Kind + "List"))
	require.NoError(t, w.List(t.Context(), list))
	return list.Items
}

// object is the one that the test is about.
func (w *world) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	list := w.all(t, w.ops[0])
	require.Len(t, list, 1)
	return &list[0]
}

// change sets a field of the object, given by a path with dots.
func (w *world) change(t *testing.T, path string, value any) {
	t.Helper()
	object := w.object(t)
	require.NoError(t, unstructured.SetNestedField(object.Object, value, strings.Split(path, ".")...))
	require.NoError(t, w.Update(t.Context(), object))
}

func (w *world) listPods(t *testing.T) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	require.NoError(t, w.List(t.Context(), list))
	return list.Items
}

// play gives all pods whose name contains the text a phase; running ones are ready.
func (w *world) play(t *testing.T, contains string, phase corev1.PodPhase) {
	t.Helper()
	found := false
	for _, pod := range w.listPods(t) {
		if !strings.Contains(pod.Name, contains) {
			continue
		}
		found = true
		pod.Status.Phase = phase
		isReady := corev1.ConditionFalse
		if phase == corev1.PodRunning {
			isReady = corev1.ConditionTrue
		}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: isReady}}
		require.NoError(t, w.Status().Update(t.Context(), &pod))
	}
	require.True(t, found, "no pod has %q in its name", contains)
}

func (w *world) listJobs(t *testing.T) []batchv1.Job {
	t.Helper()
	list := &batchv1.JobList{}
	require.NoError(t, w.List(t.Context(), list))
	return list.Items
}

// startJob plays the Job controller: it makes the one pod of the Job, running.
func (w *world) startJob(t *testing.T, name string) {
	t.Helper()
	job := &batchv1.Job{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, job))
	require.False(t, ptr.Deref(job.Spec.Suspend, false), "the Job %s is suspended", name)
	pod := newPod(namespace, &job.Spec.Template, []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
	})
	pod.Name = name + "-pod"
	require.NoError(t, w.Create(t.Context(), pod))
	w.play(t, pod.Name, corev1.PodRunning)
}

// stopJob plays the Job controller: the Job is suspended, its pod goes.
func (w *world) stopJob(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, w.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name + "-pod",
	}}))
}

// endJob plays the Job controller: the Job is Complete or Failed, its pod ended.
func (w *world) endJob(t *testing.T, name string, how batchv1.JobConditionType) {
	t.Helper()
	phase := corev1.PodSucceeded
	if how == batchv1.JobFailed {
		phase = corev1.PodFailed
	}
	w.play(t, name+"-pod", phase)
	job := &batchv1.Job{}
	require.NoError(t, w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, job))
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: how, Status: corev1.ConditionTrue})
	if how == batchv1.JobComplete {
		job.Status.CompletionTime = ptr.To(metav1.NewTime(w.clock.Now()))
	}
	require.NoError(t, w.Status().Update(t.Context(), job))
}

// collect plays the garbage collector: what has an owner that is gone goes.
func (w *world) collect(t *testing.T) {
	t.Helper()
	for range 5 {
		for _, child := range w.children(t) {
			owner := metav1.GetControllerOf(child)
			if owner == nil || w.exists(t, owner) {
				continue
			}
			require.NoError(t, w.Delete(t.Context(), child))
		}
	}
}

func (w *world) exists(t *testing.T, owner *metav1.OwnerReference) bool {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(owner.APIVersion)
	object.SetKind(owner.Kind)
	err := w.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: owner.Name}, object)
	require.NoError(t, client.IgnoreNotFound(err))
	return err == nil && object.GetUID() == owner.UID
}

// children are all objects but the one that the test is about.
func (w *world) children(t *testing.T) []client.Object {
	t.Helper()
	var out []client.Object
	for i := range w.ops {
		if i > 0 {
			for _, object := range w.all(t, w.ops[i]) {
				out = append(out, &object)
			}
		}
	}
	for _, job := range w.listJobs(t) {
		job.Kind = "Job"
		out = append(out, &job)
	}
	sets := &appsv1.StatefulSetList{}
	require.NoError(t, w.List(t.Context(), sets))
	for i := range sets.Items {
		sets.Items[i].Kind = "StatefulSet"
		out = append(out, &sets.Items[i])
	}
	for _, pod := range w.listPods(t) {
		pod.Kind = "Pod"
		out = append(out, &pod)
	}
	return out
}

// view is what there is, a line for each child with its controller.
func (w *world) view(t *testing.T) string {
	t.Helper()
	var lines []string
	for _, child := range w.children(t) {
		name := child.GetName()
		if child.GetGenerateName() != "" {
			name = child.GetGenerateName() + "*"
		}
		line := child.GetObjectKind().GroupVersionKind().Kind + " " + name
		switch child := child.(type) {
		case *corev1.Pod:
			if child.Status.Phase != "" {
				line += " " + string(child.Status.Phase)
			}
		case *batchv1.Job:
			if ptr.Deref(child.Spec.Suspend, false) {
				line += " suspended"
			}
		case *appsv1.StatefulSet:
			line += fmt.Sprintf(" replicas=%d", *child.Spec.Replicas)
		}
		if owner := metav1.GetControllerOf(child); owner != nil {
			line += " of " + owner.Kind + " " + owner.Name
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// conditions of the object, by kind.
func (w *world) conditions(t *testing.T) string {
	t.Helper()
	var out []string
	for _, c := range parts(w.object(t).Object, "status", "conditions") {
		out = append(out, text(c, "type")+"="+text(c, "status"))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// step of a story: what happens, and what is to be seen after it.
type step struct {
	name string
	do   func(t *testing.T, w *world)
	// children as view prints them; state as the story's own function prints it.
	children []string
	state    string
}

// tell runs the steps of a story one after the other.
func tell(t *testing.T, w *world, state func(t *testing.T, w *world) string, steps []step) {
	t.Helper()
	for _, s := range steps {
		if !t.Run(s.name, func(t *testing.T) {
			if s.do != nil {
				s.do(t, w)
			}
			w.settle(t)
			slices.Sort(s.children)
			require.Equal(t, strings.Join(s.children, "\n"), w.view(t), "children")
			require.Equal(t, s.state, state(t, w), "state")
		}) {
			return
		}
	}
}

func changing(path string, value any) func(*testing.T, *world) {
	return func(t *testing.T, w *world) { t.Helper(); w.change(t, path, value) }
}

func playing(contains string, phase corev1.PodPhase) func(*testing.T, *world) {
	return func(t *testing.T, w *world) { t.Helper(); w.play(t, contains, phase) }
}

// podNamed is the pod whose name contains the text.
func (w *world) podNamed(t *testing.T, contains string) corev1.Pod {
	t.Helper()
	for _, pod := range w.listPods(t) {
		if strings.Contains(pod.Name, contains) {
			return pod
		}
	}
	t.Fatalf("no pod has %q in its name", contains)
	return corev1.Pod{}
}
