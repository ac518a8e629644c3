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

package controller

import (
	"context"
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// cachedUnits is a client that reads units as the cache has them.
type cachedUnits struct{ client.Client }

func (c cachedUnits) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, opts...)
	if unit, ok := o.(*v1alpha1.QueueUnit); ok && err == nil {
		kept, _ := compactUnits()(unit.DeepCopy())
		kept.(*v1alpha1.QueueUnit).DeepCopyInto(unit)
	}
	return err
}

func TestALargeUnitIsNotKept(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	for name, enlarge := range map[string]func(u *v1alpha1.QueueUnit){
		"template": func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets = []v1alpha1.PodSet{{Template: runtime.RawExtension{Raw: []byte(`"` + large + `"`)}}}
		},
		"template that is no JSON": func(u *v1alpha1.QueueUnit) {
			u.Spec.PodSets = []v1alpha1.PodSet{{Template: runtime.RawExtension{Raw: []byte(large)}}}
		},
		"annotation": func(u *v1alpha1.QueueUnit) { u.Annotations = map[string]string{"a": large} },
		"name of its job": func(u *v1alpha1.QueueUnit) {
			u.Spec.ConsumerRef = &corev1.ObjectReference{Name: large}
		},
		"many resources": func(u *v1alpha1.QueueUnit) {
			u.Spec.Request = corev1.ResourceList{}
			for i := range 1000 {
				u.Spec.Request[corev1.ResourceName(fmt.Sprintf("example.com/%d", i))] = resource.MustParse("1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			unit := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j", UID: "u"}}
			enlarge(unit)
			kept, err := compactUnits()(unit)
			require.NoError(t, err)
			again, err := compactUnits()(kept)
			require.NoError(t, err)
			stub := again.(*v1alpha1.QueueUnit)
			require.True(t, isStub(stub), "what the informer hands in once more stays what it is")
			require.Equal(t, "j", stub.Name)
			require.Empty(t, stub.Spec.PodSets)
			require.Empty(t, stub.Annotations)
			require.Empty(t, stub.Spec.Request)
			if ref := stub.Spec.ConsumerRef; ref != nil {
				require.Less(t, len(ref.Name), 1024)
			}
		})
	}
}

// Whoever calls himself as the mark of units that are not kept has his unit kept like any other.
func TestNobodyForgesAUnitThatIsNotKept(t *testing.T) {
	forged := &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Name: "j", Annotations: map[string]string{"a": "b"}}}
	forged.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: notKept, Operation: metav1.ManagedFieldsOperationUpdate}}
	kept, err := compactUnits()(forged)
	require.NoError(t, err)
	require.False(t, isStub(kept.(*v1alpha1.QueueUnit)))
}

// A job whose unit is too large for the cache lives as any other, with a read of the unit for each look at it.
func TestALargeUnitIsReadFromTheAPIServer(t *testing.T) {
	job := newJob()
	job.Spec.Template.Spec.NodeSelector = map[string]string{"a": strings.Repeat("x", 2*maxKeptUnit)}
	w := newWorld(t, job)
	w.r.Client = cachedUnits{w.client}
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle())
	require.True(t, isStub(w.cached()), "or the test shows nothing")
	w.admit()
	w.settle()
	require.False(t, *w.job().Spec.Suspend)
	require.Empty(t, w.settle())
}

func (w *world) cached() *v1alpha1.QueueUnit {
	unit := &v1alpha1.QueueUnit{}
	require.NoError(w.t, w.r.Client.Get(context.Background(), client.ObjectKey{Namespace: "team", Name: "j"}, unit))
	return unit
}

// BenchmarkBytesPerCachedUnit measures what the cache holds of units, after a collection of garbage.
func BenchmarkBytesPerCachedUnit(b *testing.B) {
	w := newWorld(b, newJob())
	w.settle()
	large := func(bytes int) *v1alpha1.QueueUnit {
		unit := w.unit().DeepCopy()
		unit.Spec.PodSets[0].Template.Raw = []byte(`{"a":"` + strings.Repeat("x", bytes) + `"}`)
		return unit
	}
	for _, c := range []struct {
		name string
		unit *v1alpha1.QueueUnit
	}{
		{"of a job", w.unit()},
		{"by hand, the largest that is kept", large(maxKeptUnit - 2<<10)},
		{"by hand, 1 MB", large(1 << 20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(bytesPerUnit(b, c.unit), "B/unit")
			}
		})
	}
}

func bytesPerUnit(b *testing.B, unit *v1alpha1.QueueUnit) float64 {
	const n = 200
	text, err := json.Marshal(unit)
	require.NoError(b, err)
	inUse := func() uint64 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	kept := make([]any, 0, n)
	before := inUse()
	for range n {
		decoded := &v1alpha1.QueueUnit{}
		require.NoError(b, json.Unmarshal(text, decoded))
		one, err := compactUnits()(decoded)
		require.NoError(b, err)
		kept = append(kept, one)
	}
	after := inUse()
	goruntime.KeepAlive([]any{kept, text, unit})
	return float64(int64(after)-int64(before)) / n
}
