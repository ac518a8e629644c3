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
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	schedulingv1alpha1 "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/formerkey"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/ignoredkey"
)

// TestKeysWithoutEffect are reported with only the shipped rights. The condition coexists with that of the scheduler,
// returns if another client drops it, and goes with the key.
func TestKeysWithoutEffect(t *testing.T) {
	const name, key = "it-ignored", "koord-queue/queue-args"
	client := connect(t)
	ended := startAsController(t, func(_ context.Context, mgr ctrl.Manager) error {
		return ignoredkey.Setup(mgr, clock.RealClock{})
	})
	queues := client.Resource(schedulingv1alpha1.QueueResource).Namespace(schedulingv1alpha1.DefaultQueueNamespace)
	queue := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	queue.SetGroupVersionKind(schedulingv1alpha1.SchemeGroupVersion.WithKind("Queue"))
	queue.SetName(name)
	queue.SetAnnotations(map[string]string{key: "x: y"})
	_, err := queues.Create(t.Context(), queue, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = queues.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	patch := func(text string, subresources ...string) {
		_, err := queues.Patch(t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{}, subresources...)
		require.NoError(t, err)
	}
	has := func(want ...string) {
		t.Helper()
		require.Eventually(t, func() bool {
			object, err := queues.Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
			var types []string
			for _, c := range conditions {
				types = append(types, c.(map[string]any)["type"].(string))
			}
			got, _ := json.Marshal(types)
			wanted, _ := json.Marshal(want)
			return string(got) == string(wanted)
		}, 30*time.Second, 50*time.Millisecond, "%v", want)
	}
	has(formerkey.Condition)
	// The scheduler writes the whole list, as it has it from its watch.
	patch(`{"status":{"conditions":[{"type":"Active","status":"True","reason":"Admits","message":"",`+
		`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, "status")
	has("Active", formerkey.Condition)
	patch(`{"metadata":{"annotations":{"` + key + `":null}}}`)
	has("Active")

	namespace := &unstructured.Unstructured{Object: map[string]any{}}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	namespace.SetName(name)
	namespace.SetAnnotations(map[string]string{"koord-queue/available-quota": "a,b"})
	_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).
		Create(t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return toldOf(t, client, "Namespace", name) }, 30*time.Second,
		50*time.Millisecond)
	select {
	case err := <-ended:
		require.Fail(t, "the controller ended", "%v", err)
	default:
	}
}

// toldOf says whether the object has an event for ignored keys.
func toldOf(t *testing.T, client dynamic.Interface, kind, name string) bool {
	events, err := client.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).
		List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range events.Items {
		e := events.Items[i].Object
		reason, _, _ := unstructured.NestedString(e, "reason")
		ofKind, _, _ := unstructured.NestedString(e, "regarding", "kind")
		of, _, _ := unstructured.NestedString(e, "regarding", "name")
		if reason == formerkey.Reason && ofKind == kind && of == name {
			return true
		}
	}
	return false
}
