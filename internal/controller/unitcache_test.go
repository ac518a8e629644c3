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
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitcache"
)

// cachedUnits is a client that reads units as the cache has them.
type cachedUnits struct{ client.Client }

func (c cachedUnits) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, o, opts...)
	if unit, ok := o.(*v1alpha1.QueueUnit); ok && err == nil {
		kept, _ := unitcache.Transform()(unit.DeepCopy())
		kept.(*v1alpha1.QueueUnit).DeepCopyInto(unit)
	}
	return err
}

// A job whose unit is too large for the cache lives as any other, with a read of the unit for each look at it.
func TestALargeUnitIsReadFromTheAPIServer(t *testing.T) {
	job := newJob()
	job.Spec.Template.Spec.NodeSelector = map[string]string{"a": strings.Repeat("x", 2*16<<10)}
	w := newWorld(t, job)
	w.r.Client = cachedUnits{w.client}
	require.Equal(t, []string{"create QueueUnit/j"}, w.settle())
	require.True(t, w.cached().Annotations == nil && len(w.cached().Spec.PodSets) == 0, "or the test shows nothing")
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
		{"by hand, the largest that is kept", large(16<<10 - 2<<10)},
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
		one, err := unitcache.Transform()(decoded)
		require.NoError(b, err)
		kept = append(kept, one)
	}
	after := inUse()
	goruntime.KeepAlive([]any{kept, text, unit})
	return float64(int64(after)-int64(before)) / n
}
