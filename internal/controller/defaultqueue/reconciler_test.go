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

package defaultqueue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/elasticquota"
)

var epoch = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func quota(namespace, name, policy string) metav1.PartialObjectMetadata {
	q := metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: epoch},
	}
	q.SetGroupVersionKind(elasticquota.Kind)
	if policy != "" {
		q.Labels = map[string]string{v1alpha1.LabelQueuePolicy: policy}
	}
	return q
}

func TestPlanQueue(t *testing.T) {
	ours := func(policy v1alpha1.QueuePolicy) *v1alpha1.Queue { return defaultQueue("koord-queue", "a", policy) }
	theirs := func() *v1alpha1.Queue {
		q := ours(v1alpha1.PolicyFIFO)
		q.Labels = nil
		return q
	}
	older := quota("z", "a", "Block")
	older.CreationTimestamp = metav1.NewTime(epoch.Add(-time.Hour))
	going := quota("n", "a", "")
	going.DeletionTimestamp = &metav1.Time{Time: epoch.Time}
	for name, tc := range map[string]struct {
		name   string
		quotas []metav1.PartialObjectMetadata
		queue  *v1alpha1.Queue
		want   string
	}{
		"new quota":               {"a", []metav1.PartialObjectMetadata{quota("n", "a", "")}, nil, "create Priority"},
		"new quota with a policy": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "FIFO")}, nil, "create FIFO"},
		"new quota with a wrong policy": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "9to5")}, nil,
			"create Priority refused 9to5"},
		"wrong policy later": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "9to5")},
			ours(v1alpha1.PolicyBlock), " refused 9to5"},
		"policy of somebody's scheduler": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "NewestFirst")},
			ours(v1alpha1.PolicyBlock), "patch NewestFirst"},
		"in step": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "Block")}, ours(v1alpha1.PolicyBlock), ""},
		"policy changed": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "Block")},
			ours(v1alpha1.PolicyFIFO), "patch Block"},
		"policy set by hand, no label": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "")},
			ours(v1alpha1.PolicyFIFO), ""},
		"a person's queue":             {"a", []metav1.PartialObjectMetadata{quota("n", "a", "Block")}, theirs(), ""},
		"a person's queue, quota gone": {"a", nil, theirs(), ""},
		"quota gone":                   {"a", nil, ours(v1alpha1.PolicyFIFO), "delete"},
		"quota going":                  {"a", []metav1.PartialObjectMetadata{going}, ours(v1alpha1.PolicyFIFO), "delete"},
		"gone with its quota":          {"a", nil, nil, ""},
		"default quota": {"koordinator-default-quota",
			[]metav1.PartialObjectMetadata{quota("n", "koordinator-default-quota", "")}, nil, "create Priority"},
		"root": {"koordinator-root-quota", []metav1.PartialObjectMetadata{quota("n", "koordinator-root-quota", "")}, nil, ""},
		"system": {"koordinator-system-quota",
			[]metav1.PartialObjectMetadata{quota("n", "koordinator-system-quota", "")}, nil, ""},
		"two of one name: the older one": {"a", []metav1.PartialObjectMetadata{quota("n", "a", "FIFO"), older}, nil,
			"create Block"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planFor(observation{Namespace: "koord-queue", Name: tc.name, Quotas: tc.quotas, Queue: tc.queue})
			got := ""
			switch {
			case plan.Create != nil:
				got = "create " + string(plan.Create.Spec.QueuePolicy)
				require.Equal(t, int32(1000), *plan.Create.Spec.Priority)
				require.Equal(t, v1alpha1.CreatedByController, plan.Create.Labels[v1alpha1.LabelCreatedBy])
			case plan.Patch != nil:
				got = "patch " + string(plan.Patch.Spec.QueuePolicy)
			case plan.Delete != nil:
				got = "delete"
			}
			if plan.Refused != "" {
				got += " refused " + plan.Refused
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// A Queue that is created reclaims as the configuration says. A Queue that exists keeps what it has.
func TestReclaimOfDefaultQueues(t *testing.T) {
	quotas := []metav1.PartialObjectMetadata{quota("n", "a", "Block")}
	for reclaim, want := range map[v1alpha1.PreemptionPolicy]*v1alpha1.QueuePreemption{
		"": nil, v1alpha1.PreemptNever: nil,
		v1alpha1.PreemptAny: {Reclaim: ptr.To(v1alpha1.PreemptAny)},
	} {
		o := observation{Name: "a", Quotas: quotas, Reclaim: reclaim}
		require.Equal(t, want, planFor(o).Create.Spec.Preemption, reclaim)
		o.Queue = defaultQueue("", "a", v1alpha1.PolicyFIFO)
		require.Nil(t, planFor(o).Patch.Spec.Preemption, reclaim)
	}
}

func quotaClient(t *testing.T, objects ...runtime.Object) client.Client {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	scheme.AddKnownTypeWithName(elasticquota.Kind, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(elasticquota.Kind.GroupVersion().WithKind("ElasticQuotaList"),
		&metav1.PartialObjectMetadataList{})
	q := quota("", "", "")
	return fake.NewClientBuilder().WithScheme(scheme).WithRuntimeObjects(objects...).
		WithIndex(&q, elasticquota.NameIndex, elasticquota.IndexByName).Build()
}

func TestQueueReconciler(t *testing.T) {
	q := quota("team", "a", "9to5")
	c := quotaClient(t, &q)
	recorder := events.NewFakeRecorder(10)
	r := NewReconciler("koord-queue", c, c, recorder)
	reconcile := func() *v1alpha1.Queue {
		for range 2 {
			_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}})
			require.NoError(t, err)
		}
		queue := &v1alpha1.Queue{}
		if err := c.Get(context.Background(), types.NamespacedName{Namespace: "koord-queue", Name: "a"}, queue); err != nil {
			require.NoError(t, client.IgnoreNotFound(err))
			return nil
		}
		return queue
	}
	require.Equal(t, v1alpha1.PolicyPriority, reconcile().Spec.QueuePolicy)
	require.Len(t, recorder.Events, 1, "a wrong policy is told once")

	q.Labels[v1alpha1.LabelQueuePolicy] = "Block"
	require.NoError(t, c.Update(context.Background(), &q))
	require.Equal(t, v1alpha1.PolicyBlock, reconcile().Spec.QueuePolicy)

	require.NoError(t, c.Delete(context.Background(), &q))
	require.Nil(t, reconcile())
}

// TestOldNewsOfAQuotaWriteNoQueue: two controllers at once would take turns otherwise (I12).
func TestOldNewsOfAQuotaWriteNoQueue(t *testing.T) {
	named := func(namespace, name, policy string) *metav1.PartialObjectMetadata {
		q := quota(namespace, name, policy)
		return &q
	}
	queue := func(policy v1alpha1.QueuePolicy) *v1alpha1.Queue { return defaultQueue("koord-queue", "a", policy) }
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		want         *v1alpha1.Queue
	}{
		"gone, and still cached":    {[]runtime.Object{named("n", "a", "")}, nil, nil},
		"there, and not cached yet": {nil, []runtime.Object{named("n", "a", ""), queue("FIFO")}, queue("FIFO")},
		"another policy than in the cache": {[]runtime.Object{named("n", "a", "Block")},
			[]runtime.Object{named("n", "a", "FIFO"), queue("FIFO")}, queue("FIFO")},
		"one of two gone": {[]runtime.Object{named("m", "a", "Block"), named("n", "a", "FIFO")},
			[]runtime.Object{named("n", "a", "FIFO")}, queue("FIFO")},
		"another one than that which went": {nil, []runtime.Object{named("n", "b", ""), queue("FIFO")}, nil},
		"a policy that was changed, and why": {[]runtime.Object{named("n", "a", "Block")},
			[]runtime.Object{named("n", "a", "Block"), queue("FIFO")}, queue("Block")},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := quotaClient(t, tc.cached...), quotaClient(t, tc.live...)
			// The client reads Queues from the server and writes there: only quotas are old.
			r := NewReconciler("koord-queue", oldQuotas{live, cached}, live, events.NewFakeRecorder(10))
			_, err := r.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "a"}})
			require.NoError(t, err)
			got := &v1alpha1.Queue{}
			err = live.Get(context.Background(), types.NamespacedName{Namespace: "koord-queue", Name: "a"}, got)
			if tc.want == nil {
				require.True(t, apierrors.IsNotFound(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want.Spec, got.Spec)
		})
	}
}

// oldQuotas lists from a cache.
type oldQuotas struct {
	client.Client
	cached client.Client
}

// List reads the cache.
func (c oldQuotas) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cached.List(ctx, list, opts...)
}
