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

// Package quotatree_test expands trees with a fake API server that applies the rules of Koordinator's own webhook.
package quotatree_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/extension"
	eqv1alpha1 "github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	utilfeature "github.com/koordinator-sh/koordinator/pkg/util/feature"
	"github.com/koordinator-sh/koordinator/pkg/webhook/elasticquota"

	"github.com/koord-jobqueue/koord-jobqueue/apis/quotatree/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/quotatree"
)

const namespace = "kube-system"

// world is the reconciler before an API server with Koordinator's webhook for ElasticQuotas in it.
type world struct {
	t       *testing.T
	out     *strings.Builder
	base    client.WithWatch
	client  client.Client
	webhook elasticquota.QuotaMetaChecker
	events  *events.FakeRecorder
	r       *quotatree.Reconciler
	trees   int
	cleanup func(func())
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, eqv1alpha1.AddToScheme)
	require.NoError(t, builder.AddToScheme(scheme))
	w := &world{t: t, out: &strings.Builder{}, events: events.NewFakeRecorder(1000), cleanup: t.Cleanup}
	w.base = fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(newTree()).
		WithIndex(&corev1.Pod{}, "label.quotaName", func(o client.Object) []string {
			return []string{o.GetLabels()[extension.LabelQuotaName]}
		}).
		WithIndex(&corev1.Pod{}, "metadata.namespace", func(o client.Object) []string { return []string{o.GetNamespace()} }).
		Build()
	w.webhook.QuotaTopo = elasticquota.NewQuotaTopology(w.base)
	w.client = interceptor.NewClient(w.base, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write("create", o, func(o client.Object) error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(
			ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption,
		) error {
			return w.write("patch", o, func(client.Object) error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return w.write("delete", o, func(client.Object) error { return c.Delete(ctx, o, opts...) })
		},
	})
	w.r = &quotatree.Reconciler{
		Reader: w.base, Client: w.client, Recorder: w.events,
		Clock: clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	return w
}

func newTree() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1beta1.ElasticQuotaTreeKind)
	object.SetNamespace(namespace)
	object.SetName("tree")
	return object
}

func (w *world) printf(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

// write asks the webhook and logs what it says.
func (w *world) write(verb string, o client.Object, do func(client.Object) error) error {
	err := w.admit(verb, o)
	if err == nil {
		err = do(o)
	}
	if err != nil {
		w.printf("%s %s: %v", verb, o.GetName(), err)
	} else {
		w.printf("%s %s", verb, o.GetName())
	}
	return err
}

func (w *world) admit(verb string, o client.Object) error {
	quota, ok := w.typed(o)
	if !ok {
		return nil
	}
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{}}
	var err error
	switch verb {
	case "create":
		req.Operation = admissionv1.Create
		if err = w.webhook.AdmitQuota(context.Background(), req, quota); err == nil {
			// The API server stores what the webhook made of it.
			o.SetLabels(quota.Labels)
			o.SetAnnotations(quota.Annotations)
			err = w.webhook.QuotaTopo.ValidAddQuota(quota)
		}
	case "patch":
		old := &eqv1alpha1.ElasticQuota{}
		require.NoError(w.t, w.base.Get(context.Background(), client.ObjectKeyFromObject(o), old))
		err = w.webhook.QuotaTopo.ValidUpdateQuota(old, quota)
	case "delete":
		err = w.webhook.QuotaTopo.ValidDeleteQuota(quota)
	}
	if err != nil {
		// Which of several it names first differs from time to time.
		message, _, _ := strings.Cut(err.Error(), " failed: ")
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: 400, Message: "webhook: " + message}}
	}
	return nil
}

func (w *world) typed(o client.Object) (*eqv1alpha1.ElasticQuota, bool) {
	switch o := o.(type) {
	case *eqv1alpha1.ElasticQuota:
		return o, true
	case *unstructured.Unstructured:
		if o.GetKind() != "ElasticQuota" {
			return nil, false
		}
		quota := &eqv1alpha1.ElasticQuota{}
		require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, quota))
		return quota, true
	}
	return nil, false
}

func (w *world) run(d *datadriven.TestData) string {
	w.out.Reset()
	commands := map[string]func(*datadriven.TestData){
		"tree": w.tree, "delete-tree": w.deleteTree, "quota": w.quota, "edit": w.edit, "delete": w.remove,
		"used": w.used, "pod": w.pod, "end-pod": w.endPod, "reconcile": w.reconcile, "show": w.show,
		"gate": w.gate,
	}
	command, ok := commands[d.Cmd]
	require.True(w.t, ok, d.Cmd)
	command(d)
	if w.out.Len() == 0 {
		return "ok\n"
	}
	return w.out.String()
}

// tree creates or replaces the tree; the input is its root.
func (w *world) tree(d *datadriven.TestData) {
	var root any
	require.NoError(w.t, yaml.Unmarshal([]byte(d.Input), &root))
	w.setTree(root)
}

func (w *world) setTree(root any) {
	object := newTree()
	err := w.base.Get(w.t.Context(), client.ObjectKeyFromObject(object), object)
	object.Object["spec"] = map[string]any{"root": root}
	if apierrors.IsNotFound(err) {
		w.trees++
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", w.trees)))
		require.NoError(w.t, w.base.Create(w.t.Context(), object))
		return
	}
	require.NoError(w.t, err)
	require.NoError(w.t, w.base.Update(w.t.Context(), object))
}

func (w *world) deleteTree(*datadriven.TestData) {
	require.NoError(w.t, w.base.Delete(w.t.Context(), newTree()))
}

// gate switches a feature of Koordinator's webhook on.
func (w *world) gate(d *datadriven.TestData) {
	name := featuregate.Feature(d.CmdArgs[0].Key)
	require.NoError(w.t, utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(name): true}))
	w.cleanup(func() {
		_ = utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(name): false})
	})
}

func arg(d *datadriven.TestData, name, fallback string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return fallback
}

// quota makes an ElasticQuota by hand; the input is labels, annotations and spec.
func (w *world) quota(d *datadriven.TestData) {
	quota := &eqv1alpha1.ElasticQuota{}
	require.NoError(w.t, yaml.Unmarshal([]byte(d.Input), quota))
	quota.Namespace, quota.Name = arg(d, "namespace", namespace), d.CmdArgs[0].Key
	require.NoError(w.t, w.admit("create", quota))
	require.NoError(w.t, w.base.Create(w.t.Context(), quota))
}

func (w *world) get(d *datadriven.TestData) *eqv1alpha1.ElasticQuota {
	quota := &eqv1alpha1.ElasticQuota{}
	key := types.NamespacedName{Namespace: arg(d, "namespace", namespace), Name: d.CmdArgs[0].Key}
	require.NoError(w.t, w.base.Get(w.t.Context(), key, quota))
	return quota
}

// edit merges the input into an ElasticQuota by hand.
func (w *world) edit(d *datadriven.TestData) {
	quota := w.get(d)
	require.NoError(w.t, yaml.Unmarshal([]byte(d.Input), quota))
	require.NoError(w.t, w.admit("patch", quota))
	require.NoError(w.t, w.base.Update(w.t.Context(), quota))
}

func (w *world) remove(d *datadriven.TestData) {
	quota := w.get(d)
	require.NoError(w.t, w.admit("delete", quota))
	require.NoError(w.t, w.base.Delete(w.t.Context(), quota))
}

// used is what Koordinator publishes.
func (w *world) used(d *datadriven.TestData) {
	quota := w.get(d)
	quota.Status.Used = corev1.ResourceList{"cpu": resource.MustParse(arg(d, "cpu", "0"))}
	require.NoError(w.t, w.base.Update(w.t.Context(), quota))
}

func (w *world) pod(d *datadriven.TestData) {
	require.NoError(w.t, w.base.Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: d.CmdArgs[0].Key,
		Labels: map[string]string{extension.LabelQuotaName: arg(d, "quota", "")},
	}}))
}

func (w *world) endPod(d *datadriven.TestData) {
	require.NoError(w.t, w.base.Delete(w.t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: d.CmdArgs[0].Key}}))
}

// reconcile repeats until nothing changes, as events would do, and returns the reports.
func (w *world) reconcile(*datadriven.TestData) {
	key := types.NamespacedName{Namespace: namespace, Name: "tree"}
	for round := 0; ; round++ {
		require.Less(w.t, round, 10, "it does not come to rest")
		before := w.state()
		result, err := w.r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: key})
		require.NoError(w.t, err)
		if w.state() == before {
			if result.RequeueAfter > 0 {
				w.printf("again after %s", result.RequeueAfter)
			}
			break
		}
	}
	object, tree := newTree(), &struct {
		Status v1beta1.ElasticQuotaTreeStatus `json:"status"`
	}{}
	if err := w.base.Get(w.t.Context(), key, object); err == nil {
		require.NoError(w.t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, tree))
		c := meta.FindStatusCondition(tree.Status.Conditions, v1beta1.ConditionReady)
		require.NotNil(w.t, c)
		w.printf("Ready=%s %s, quotas %d, parked %d", c.Status, c.Reason, tree.Status.Quotas, tree.Status.Parked)
	}
	for len(w.events.Events) > 0 {
		w.printf("event: %s", <-w.events.Events)
	}
}

func (w *world) quotas() []eqv1alpha1.ElasticQuota {
	list := &eqv1alpha1.ElasticQuotaList{}
	require.NoError(w.t, w.base.List(w.t.Context(), list))
	return list.Items
}

func (w *world) state() string {
	var b strings.Builder
	for _, q := range w.quotas() {
		fmt.Fprintf(&b, "%s/%s %s\n", q.Namespace, q.Name, q.ResourceVersion)
	}
	return b.String()
}

func (w *world) show(*datadriven.TestData) {
	for _, q := range w.quotas() {
		kind := "leaf"
		if extension.IsParentQuota(&q) {
			kind = "parent"
		}
		w.printf("%s/%s: %s below %s max %s min %s namespaces %v", q.Namespace, q.Name,
			kind, q.Labels[extension.LabelQuotaParent],
			text(q.Spec.Max), text(q.Spec.Min), extension.GetAnnotationQuotaNamespaces(&q))
	}
}

func text(list corev1.ResourceList) string {
	var parts []string
	for name, amount := range list {
		parts = append(parts, string(name)+":"+amount.String())
	}
	slices.Sort(parts)
	return "(" + strings.Join(parts, " ") + ")"
}

// TestStories plays testdata/*.txt. Run with -rewrite to regenerate.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			return w.run(d)
		})
	})
}
