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

package engine

import (
	"cmp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/queuestatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// maxFuzzed bounds an input: etcd refuses larger objects by far later, and a fuzzer learns nothing from length.
const maxFuzzed = 1 << 14

// objectFrom reads JSON as the API machinery does; false for what no API server would send.
func objectFrom(raw []byte) (*unstructured.Unstructured, bool) {
	if len(raw) > maxFuzzed {
		return nil, false
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil || u.IsList() {
		return nil, false
	}
	return u, true
}

// sharedClient is asked for nothing: units are fed.
var sharedClient = sync.OnceValue(func() rest.Interface { return newFakeAPI(nil).rest })

// quickRig is a leading rig without an API, which is most of the time that it takes to make one.
func quickRig(t *testing.T) *rig {
	r := &rig{t: t, quotas: quotasOf(10, testQuota), clock: clocktesting.NewFakeClock(testStart)}
	r.drive = drive(t, Options{
		Client: sharedClient(), Quotas: r.quotas, Clock: r.clock, Config: Config{PartialAdmission: true},
		Submit: func(w *statuswrite.Write) { r.submitted = append(r.submitted, w) },
	})
	r.engine = r.drive.Engine
	r.engine.Log = logr.Discard()
	return r.queue(testQuota).lead()
}

func sane(t *testing.T, list resources.List) {
	t.Helper()
	for _, it := range list.Items() {
		require.GreaterOrEqual(t, it.Amount, int64(0), it.Name)
		require.LessOrEqual(t, it.Amount, resources.Greatest, it.Name)
	}
}

// FuzzDecodeUnit: any QueueUnit is read without a panic, and the ledger can count the amounts of a valid one. An engine
// with this unit and a good one admits the good one, and later forgets this one completely (F14).
func FuzzDecodeUnit(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw []byte) {
		obj, ok := objectFrom(raw)
		if !ok {
			t.Skip()
		}
		u := unitFrom(obj)
		require.False(t, u.Panicked, u.InvalidMessage)
		require.Equal(t, u, unitFrom(obj), "the same object reads the same (I13)")
		require.Equal(t, obj.GetNamespace()+"/"+obj.GetName(), u.Path, "it is known by its name whatever else it says")
		require.Equal(t, obj.GetUID(), u.UID)
		w := &objects.WireUnit{}
		require.NoError(t, utiljson.Unmarshal(raw, w), "no object keeps others of its list from being read")
		require.False(t, objects.DecodeUnit(w).Panicked)
		sane(t, u.Held)
		if u.Invalid == "" {
			sane(t, u.Request)
			require.GreaterOrEqual(t, u.Pods, int64(0))
		}
		sum := resources.List{}
		for _, a := range objects.AdmissionsOf(u.Sets, u.Request, u.Pods) {
			list, err := resources.FromQuantities(a.Resources)
			require.NoError(t, err)
			sum = sum.Add(list)
		}
		require.True(t, sum.Equal(u.Request), "what an admission writes adds up to what was reserved (I10)")
		if u.UID == "" || u.Name == "" || u.Namespace == "" {
			return // an API server does not send such
		}
		r := quickRig(t)
		r.drive.FeedUnit(obj, false)
		r.step()
		r.sound()
		require.Empty(t, r.engine.core.Read().Audit().Places())
		require.Zero(t, r.engine.core.InQuarantine())
		if !u.Held.IsZero() || u.Phase.Holds() || len(r.decisions()) > 0 || u.Key() == testNamespace+"/good" {
			return // uses the room of the other one, or asks for it
		}
		r.drive.FeedUnit(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{
				"name": "good", "namespace": testNamespace, "uid": "unit-good", "resourceVersion": "1",
				"labels": map[string]any{v1alpha1.LabelQuotaName: testQuota},
			},
			"spec": map[string]any{"request": map[string]any{"cpu": "10"}, "podSet": []any{map[string]any{"name": "main"}}},
		}}, false)
		r.step()
		require.Equal(t, []string{"good"}, keysOf(r.decisions()))
		r.drive.FeedUnit(obj, true)
		r.step()
		require.Nil(t, r.engine.units.Get(u.Key()))
		require.Equal(t, "cpu: 10", r.outstanding(testQuota))
	})
}

// FuzzDecodeQueue: whatever a Queue says, it is read without a panic, and twice the same.
func FuzzDecodeQueue(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw []byte) {
		obj, ok := objectFrom(raw)
		if !ok {
			t.Skip()
		}
		q := queueFrom(obj, "FIFO")
		require.False(t, q.Panicked, q.Spec.Policy)
		require.Equal(t, q, queueFrom(obj, "FIFO"))
		require.Equal(t, queuestatus.SaidOf(q), queuestatus.SaidOf(queueFrom(obj, "FIFO")))
		require.NotEmpty(t, q.Spec.Policy)
		require.NotContains(t, q.Spec.Quotas, "")
		s := admission.New(admission.Config{})
		s.UpsertQueue(testStart, q.Spec)
		s.UpsertUnit(testStart, unit.Unit{Key: "a/b", UID: "u", Queue: q.Spec.Name, Quota: "x", Pods: 1, Active: true})
		require.Empty(t, s.Decide(testStart).Writes, "its quota does not exist")
		require.Empty(t, s.Audit().Places())
	})
}

// FuzzMapping: a unit belongs to the quota of the first label with a value. Its queue is named in spec, annotation or
// label, in this order, or else is that of its quota.
func FuzzMapping(f *testing.F) {
	f.Fuzz(func(t *testing.T, label, first, second, spec, annotation, queueLabel, namespace string) {
		if !utf8.ValidString(strings.Join([]string{label, first, second, spec, annotation, queueLabel, namespace}, "/")) {
			t.Skip("an API server holds no such text")
		}
		labels, annotations := map[string]string{}, map[string]string{}
		for key, value := range map[string]string{
			v1alpha1.LabelQuotaName: label, v1alpha1.LabelQuotaNameFallback1: first, v1alpha1.LabelQuotaNameFallback2: second,
			v1alpha1.QueueNameKey: queueLabel,
		} {
			if len(value)%3 != 1 { // absent and empty are to mean the same
				labels[key] = value
			} else if value != "" {
				labels[key] = value
			}
		}
		if annotation != "" {
			annotations[v1alpha1.QueueNameKey] = annotation
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"queue": spec}}}
		obj.SetNamespace(namespace)
		obj.SetName("a")
		obj.SetUID("u")
		obj.SetCreationTimestamp(metav1.NewTime(testStart))
		obj.SetLabels(labels)
		obj.SetAnnotations(annotations)
		r := quickRig(t)
		r.quotas.byNS = map[string]string{namespace: "of-the-namespace"}
		r.drive.FeedUnit(obj, false)
		r.step()
		rec := r.engine.units.Get(namespace + "/a")
		quota := cmp.Or(label, first, second, "of-the-namespace")
		require.Equal(t, quota, rec.Quota)
		require.Equal(t, cmp.Or(spec, annotation, queueLabel, quota), rec.Queue)
	})
}
