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

package observer

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

// offline returns an observer of a store that is not there, and what it has taken.
func offline(t *testing.T) (*Observer, *[]Change) {
	t.Helper()
	var taken []Change
	o, err := New("127.0.0.1:1", func(c Change) error {
		taken = append(taken, c)
		return nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.Close() })
	return o, &taken
}

func put(key string, value []byte, revision int64) *clientv3.Event {
	return &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key), Value: value, ModRevision: revision}}
}

func TestAGapIsNoticed(t *testing.T) {
	o, _ := offline(t)
	revisions := func(all ...int64) {
		for _, revision := range all {
			o.apply([]*clientv3.Event{put("/registry/leases/x", nil, revision)})
		}
	}
	require.True(t, o.Last().IsZero())
	revisions(2, 3, 3, 4)
	require.Zero(t, o.Missing())
	require.WithinDuration(t, time.Now(), o.Last(), time.Minute)
	revisions(7)
	require.EqualValues(t, 2, o.Missing())
}

func TestObjectsAreReadAsTheStoreHoldsThem(t *testing.T) {
	o, taken := offline(t)
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	require.True(t, ok)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"}, Spec: corev1.PodSpec{NodeName: "n"},
	}
	stored, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion), pod)
	require.NoError(t, err)
	unit, err := json.Marshal(&v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "u", UID: "u"},
		Status:     v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued},
	})
	require.NoError(t, err)
	const quotaKey = "/registry/scheduling.sigs.k8s.io/elasticquotas/ns/q"
	quota := []byte(`{"apiVersion":"scheduling.sigs.k8s.io/v1alpha1","kind":"ElasticQuota",` +
		`"metadata":{"name":"q"},"spec":{"max":{"cpu":"2"}}}`)
	deleted := put(quotaKey, nil, 5)
	deleted.Type, deleted.PrevKv = mvccpb.DELETE, &mvccpb.KeyValue{Value: quota}
	o.apply([]*clientv3.Event{
		put("/registry/pods/ns/p", stored, 2),
		put("/registry/scheduling.x-k8s.io/queueunits/ns/u", unit, 3),
		put(quotaKey, quota, 4), deleted,
		put("/registry/scheduling.x-k8s.io/queues/koord-queue/q", []byte(`{"metadata":{"name":"q"}}`), 6),
	})
	require.NoError(t, o.err)
	require.Len(t, *taken, 5)

	event := func(i int) checker.Event {
		e, ok, err := (*taken)[i].Event()
		require.NoError(t, err)
		require.True(t, ok)
		return e
	}
	require.Equal(t, checker.Event{Version: 2, Object: checker.PodOf(pod)}, event(0))
	require.True(t, event(1).Object.(checker.Unit).Admitted)
	max := checker.Quota{Name: "q", Max: checker.Resources{"cpu": 2000}, Used: checker.Resources{}}
	require.Equal(t, checker.Event{Version: 4, Object: max}, event(2))
	require.Equal(t, checker.Event{Version: 5, Deleted: true, Object: max}, event(3))
	_, ok, err = (*taken)[4].Event()
	require.NoError(t, err)
	require.False(t, ok, "the checker does not look at queues")
	require.Equal(t, "q", (*taken)[4].Object.(*v1alpha1.Queue).Name)
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	for name, e := range map[string]*clientv3.Event{
		"no object":     put("/registry/pods/ns/p", []byte("x"), 2),
		"no last state": {Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte("/registry/pods/ns/p"), ModRevision: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			o, taken := offline(t)
			o.apply([]*clientv3.Event{e})
			require.ErrorContains(t, o.err, "revision 2 of /registry/pods/ns/p")
			require.Empty(t, *taken)
		})
	}
}

func TestOtherResourcesAreObservedOnRequest(t *testing.T) {
	taken := 0
	var object any
	o, err := New("127.0.0.1:1", func(c Change) error {
		taken++
		object = c.Object
		_, ok, err := c.Event()
		require.False(t, ok, "the checker knows nothing of it")
		return err
	}, schema.GroupResource{Group: "kubeflow.org", Resource: "tfjobs"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = o.Close() })
	job := []byte(`{"apiVersion":"kubeflow.org/v1","kind":"TFJob","metadata":{"name":"j"}}`)
	o.apply([]*clientv3.Event{
		put("/registry/kubeflow.org/tfjobs/ns/j", job, 2), put("/registry/kubeflow.org/mpijobs/ns/j", job, 3),
	})
	require.NoError(t, o.err)
	require.Equal(t, 1, taken)
	require.Equal(t, "j", object.(*unstructured.Unstructured).GetName())
}
