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
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// unitMeta, unitSpec and the statuses are the parts of a QueueUnit as an API server sends it.
const (
	textManagedFields = `"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:koord-queue/submitted-by":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:quota.scheduling.koordinator.sh/name":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"7d3b2c1e-5f4a-4b6d-8c9e-000000000001\"}":{}}},"f:spec":{".":{},"f:consumerRef":{},"f:podSet":{".":{},"k:{\"name\":\"main\"}":{".":{},"f:count":{},"f:name":{},"f:template":{}}},"f:priority":{},"f:queue":{},"f:request":{".":{},"f:cpu":{},"f:memory":{}}}},"manager":"jobqueue-controller","operation":"Update","time":"2026-01-01T00:00:00Z"}]`

	textUnit = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit","metadata":{"annotations":{"koord-queue/submitted-by":"alice@example.com"},"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,` +
		`"labels":{"app.kubernetes.io/name":"resnet","quota.scheduling.koordinator.sh/name":"team-1"},` + textManagedFields + `,` +
		`"name":"job-train-%[1]d","namespace":"team","ownerReferences":[{"apiVersion":"batch/v1","blockOwnerDeletion":true,"controller":true,"kind":"Job","name":"train-%[1]d","uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"}],"resourceVersion":"%[2]d","uid":"a1b2c3d4-1111-4222-8333-%012[1]d"},` +
		`"spec":{"consumerRef":{"apiVersion":"batch/v1","kind":"Job","name":"train-%[1]d","namespace":"team","uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"},"podSet":[{"count":1,"name":"main","template":{"metadata":{"labels":{"quota.scheduling.koordinator.sh/name":"team-1"}},"spec":{"containers":[{"args":["--epochs=90"],"command":["python","train.py"],"image":"registry.example.com/ml/resnet:1.4.2","name":"main","resources":{"limits":{"cpu":"4","memory":"4Gi"},"requests":{"cpu":"4","memory":"4Gi"}}}],"restartPolicy":"Never"}}}],"priority":100,"queue":"team-1","request":{"cpu":"4","memory":"4Gi"}},` +
		`"status":%[3]s}`

	textWaiting  = `{"phase":"Enqueued"}`
	textAdmitted = `{"admissions":[{"name":"main","replicas":1,"resources":{"cpu":"4","memory":"4Gi"}}],"attempts":1,"conditions":[` +
		`{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"quota is reserved: cpu: 4, memory: 4Gi","observedGeneration":1,"reason":"QuotaReserved","status":"True","type":"QuotaReserved"},` +
		`{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"admitted, attempt 1","observedGeneration":1,"reason":"Admitted","status":"True","type":"Admitted"}],` +
		`"lastAllocateTime":"2026-01-01T00:00:05Z","lastUpdateTime":"2026-01-01T00:00:05Z","message":"","phase":"Dequeued"}`
	textRequeued = `{"attempts":2,"conditions":[{"lastTransitionTime":"2026-01-01T00:00:05Z","message":"pods of \"main\" are missing","reason":"Evicted","status":"True","type":"Evicted"}],` +
		`"message":"pods of \"main\" are missing","phase":"Enqueued","podState":{"pending":0,"running":0},"requeueState":{"count":1,"requeueAt":"2026-01-01T00:01:00Z"}}`
)

var textEnded = strings.Replace(textAdmitted, "Dequeued", "Succeed", 1)

func unitOfStatus(number, version int, status string) string {
	return fmt.Sprintf(textUnit, number, version, status)
}

// TestUnitTextKnowsUnits: what comes in the ordinary life of a unit is read in one pass, and reads the same as otherwise.
func TestUnitTextKnowsUnits(t *testing.T) {
	plain := `{"metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"name":"a","namespace":"b","uid":"c","resourceVersion":"1"},"spec":{"podSet":[{"name":"main","count":3,"template":{"spec":{"containers":[{"name":"x","resources":{"requests":{"cpu":"2"}}}]}}}],"priority":-5,"resource":{"cpu":6}},"kind":"QueueUnit"}`
	for name, text := range map[string]string{
		"waiting":     unitOfStatus(1, 1, textWaiting),
		"admitted":    unitOfStatus(1, 2, textAdmitted),
		"ended":       unitOfStatus(1, 3, textEnded),
		"requeued":    unitOfStatus(1, 4, textRequeued),
		"plain":       plain,
		"by template": strings.Replace(plain, `,"resource":{"cpu":6}`, "", 1),
		"with spaces": strings.NewReplacer(":", " :\t", ",", " ,\n").Replace(`{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b","labels":{}},"spec":{"podSet":[]},"status":{"conditions":[],"admissions":[]}}`),
	} {
		t.Run(name, func(t *testing.T) {
			r := newUnitText([]byte(text))
			u := r.unit()
			require.NotNil(t, u)
			obj := &unstructured.Unstructured{}
			require.NoError(t, obj.UnmarshalJSON([]byte(text)))
			require.Equal(t, decodeUnit(obj), u)
		})
	}
}

// TestUnitTextLeavesOddUnits to decodeUnit.
func TestUnitTextLeavesOddUnits(t *testing.T) {
	for name, text := range map[string]string{
		"amount out of range": `{"kind":"QueueUnit","metadata":{"name":"a"},"spec":{"request":{"cpu":"1e999"}}}`,
		"amount unread":       `{"kind":"QueueUnit","metadata":{"name":"a"},"spec":{"other":{"requests":{"cpu":"1e999"}}}}`,
		"label is a number":   `{"kind":"QueueUnit","metadata":{"name":"a","labels":{"a":1}}}`,
		"twice":               `{"kind":"QueueUnit","metadata":{"name":"a"},"spec":{"priority":1,"priority":2}}`,
		"null":                `{"kind":"QueueUnit","metadata":{"name":"a"},"spec":{"priority":null}}`,
		"no metadata":         `{"kind":"QueueUnit","spec":{"priority":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newUnitText([]byte(text))
			require.Nil(t, r.unit())
			obj := &unstructured.Unstructured{}
			require.NoError(t, obj.UnmarshalJSON([]byte(text)))
			u, err := readUnit([]byte(text))
			require.NoError(t, err)
			require.Equal(t, decodeUnit(obj), u)
		})
	}
}

// TestUnitTextIsJSON: also where nobody asks for what it says.
func TestUnitTextIsJSON(t *testing.T) {
	const before, after = `{"kind":"QueueUnit","metadata":{"name":"a"},"spec":{"priority":1},`, `}`
	read := func(middle string) error {
		_, err := readUnit([]byte(before + middle + after))
		return err
	}
	require.NoError(t, read(`"status":{"attempts":1,"message":"a\u00e9\n\ud800","other":-0.5e-1}`))
	for _, middle := range []string{
		`"status":{"attempts":01}`, `"status":{"attempts":-}`, `"status":{"attempts":+1}`, `"status":{"attempts":1"message":""}`,
		`"status":{"attempts":1,}`, `"status":{,"attempts":1}`, `"status":{"attempts":1,,"message":""}`, `"status":{"attempts" 1}`,
		`"status":{"attempts"}`, `"status":{"attempts":}`, `"status":{"attempts":1]`, `"status":{"conditions":[{},]}`,
		`"status":{"conditions":[{}{}]}`, `"status":{"conditions":[{}}}`, `"status":{"message":"a` + "\n" + `b"}`,
		`"status":{"message":"\x"}`, `"status":{"message":"\u12"}`, `"status":{"message":"a\"}`, `"status":{"mess` + "\t" + `age":""}`,
		`"status":{"phase":'a'}`, `"status":{}}`, `"status":{"other":1.}`, `"status":{"other":.5}`, `"status":{"other":1e}`,
		`"status":{"other":nul}`, `"status":{"other":truest}`, `"status":{"other":"` + "\x01" + `"}`, `"status":{"other":"\x"}`,
		`"other":{"a":[1,]}`, `"other":[{]}`, `"other":{"a":01}`, `"other":"` + "\n" + `"`, `"other":`, `"other"`, ``,
	} {
		require.Error(t, read(middle), middle)
	}
}

// streamed serves one watch of a resource; of everything else there is nothing.
func streamed(t testing.TB, gvr schema.GroupVersionResource, write func(w io.Writer)) *rest.RESTClient {
	var served atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if path.Base(req.URL.Path) == gvr.Resource && req.URL.Query().Get("watch") == "true" && served.CompareAndSwap(false, true) {
			write(w)
			w.(http.Flusher).Flush()
		} else if req.URL.Query().Get("watch") != "true" {
			_, _ = io.WriteString(w, `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	cfg := dynamic.ConfigFor(&rest.Config{Host: server.URL, QPS: -1})
	client, err := rest.UnversionedRESTClientForConfigAndClient(cfg, server.Client())
	require.NoError(t, err)
	return client
}

const endOfUnits = `{"type":"BOOKMARK","object":{"kind":"QueueUnit","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"creationTimestamp":null,"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{},"status":{}}}` + "\n"

// TestUnitsAreWatched: units come through the informer whether they are in order, odd, large or go.
func TestUnitsAreWatched(t *testing.T) {
	client := streamed(t, v1alpha1.QueueUnitResource, func(w io.Writer) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", unitOfStatus(i, 10+i, textWaiting))
		}
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit","metadata":{"name":"odd","namespace":"team","uid":"odd","resourceVersion":"13","annotations":{"large":%q}},"spec":{"request":{"cpu":{}}}}}`+"\n\n", strings.Repeat("x", 2*streamBuffer))
		_, _ = io.WriteString(w, endOfUnits)
		_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", unitOfStatus(1, 20, textAdmitted))
		_, _ = fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", unitOfStatus(2, 21, textWaiting))
	})
	e, err := New(Options{
		Dynamic: dynamic.New(client), REST: client, Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*Write) {},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	require.Eventually(t, func() bool {
		found := map[string]string{}
		require.NoError(t, e.Ask(ctx, func(View) {
			for key, rec := range e.units.byKey {
				found[key] = string(rec.object.phase) + rec.object.ResourceVersion + string(rec.object.invalid)
			}
		}))
		return len(found) == 3 && found["team/job-train-0"] == "Enqueued10" && found["team/job-train-1"] == "Dequeued20" &&
			found["team/odd"] == "13"+string(admission.ReasonInvalidRequest) && e.sources.units.LastSyncResourceVersion() == "21"
	}, 10*time.Second, 5*time.Millisecond)
	require.True(t, e.sources.hasUnit("team/job-train-1"))
	require.False(t, e.sources.hasUnit("team/job-train-2"))
	cancel()
	<-ended
}

// BenchmarkUnitEvents: what one watch event of a unit costs from the socket to the mailbox of the engine, through the
// informer. A unit comes, is admitted and ends.
func BenchmarkUnitEvents(b *testing.B) {
	for _, bytes := range []bool{false, true} {
		b.Run(fmt.Sprintf("bytes=%t", bytes), func(b *testing.B) {
			var events strings.Builder
			start := make(chan struct{})
			client := streamed(b, v1alpha1.QueueUnitResource, func(w io.Writer) {
				_, _ = io.WriteString(w, endOfUnits)
				w.(http.Flusher).Flush()
				<-start
				_, _ = io.WriteString(w, events.String())
			})
			for i := range b.N {
				kind, status := "MODIFIED", textAdmitted
				switch i % 3 {
				case 0:
					kind, status = "ADDED", textWaiting
				case 2:
					status = textEnded
				}
				_, _ = fmt.Fprintf(&events, `{"type":%q,"object":%s}`+"\n", kind, unitOfStatus(i/3, 100+i, status))
			}
			options := Options{Dynamic: dynamic.New(client), Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*Write) {}}
			if bytes {
				options.REST = client
			}
			e, err := New(options)
			require.NoError(b, err)
			go e.sources.units.RunWithContext(b.Context())
			poll := options.Clock.NewTicker(time.Millisecond)
			defer poll.Stop()
			for !e.sources.units.HasSynced() {
				<-poll.C()
			}
			b.ReportAllocs()
			b.SetBytes(int64(events.Len() / b.N))
			b.ResetTimer()
			close(start)
			for last := fmt.Sprint(100 + b.N - 1); e.sources.units.LastSyncResourceVersion() != last; {
				<-poll.C()
			}
		})
	}
}

// TestWritesAreAnsweredTheSame: what becomes of a write does not depend on whether its answer is read from its bytes.
func TestWritesAreAnsweredTheSame(t *testing.T) {
	status := func(code int, reason metav1.StatusReason, name string) string {
		text, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason,
			Details: &metav1.StatusDetails{Name: name},
		})
		require.NoError(t, err)
		return string(text)
	}
	admitted := unitOfStatus(1, 20, textAdmitted)
	for _, tt := range []struct {
		name string
		code int
		body string
		want admission.Outcome
	}{
		{"applied", 200, admitted, admission.OutcomeConfirmed},
		{"unreadable answer", 200, "{", admission.OutcomeUnknown},
		{"conflict, applied", 409, status(409, metav1.StatusReasonConflict, "job-train-1"), admission.OutcomeConfirmed},
		{"gone", 404, status(404, metav1.StatusReasonNotFound, "job-train-1"), admission.OutcomeRefuted},
		{"no such resource", 404, "404 page not found", admission.OutcomeUnknown},
		{"invalid", 422, status(422, metav1.StatusReasonInvalid, "job-train-1"), admission.OutcomeRefused},
		{"forbidden", 403, status(403, metav1.StatusReasonForbidden, "job-train-1"), admission.OutcomeRefused},
		{"broken", 500, "", admission.OutcomeUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var paths []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				paths = append(paths, req.Method+" "+req.URL.String()+" "+req.Header.Get("Content-Type")+" "+string(body))
				w.Header().Set("Content-Type", "application/json")
				if req.Method == http.MethodGet {
					_, _ = io.WriteString(w, admitted)
					return
				}
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.body)
			}))
			defer server.Close()
			client, err := rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(&rest.Config{Host: server.URL, QPS: -1}), server.Client())
			require.NoError(t, err)
			base, err := readUnit([]byte(unitOfStatus(1, 10, textWaiting)))
			require.NoError(t, err)
			var results [2]Result
			var requests [2][]string
			for i, o := range []Options{{Dynamic: dynamic.New(client)}, {Dynamic: dynamic.New(client), REST: client}} {
				paths = nil
				w := &Write{kind: writeAdmit, resource: v1alpha1.QueueUnitResource, attempt: 1, base: base,
					key: types.NamespacedName{Namespace: base.Namespace, Name: base.Name}, status: map[string]any{"phase": "Dequeued"}}
				results[i] = w.Do(t.Context(), o.writeClient())
				results[i].write, requests[i] = nil, paths
				if err := results[i].err; err != nil {
					results[i].err = errors.New(reflect.TypeOf(err).String())
				}
			}
			require.Equal(t, requests[0], requests[1])
			require.Equal(t, tt.want, results[1].outcome)
			if tt.name == "unreadable answer" {
				results[0].err, results[1].err = nil, nil
			}
			require.Equal(t, results[0], results[1])
		})
	}
}

// BenchmarkUnitObject: what is kept of a waiting unit in memory, by how it is read.
func BenchmarkUnitObject(b *testing.B) {
	live := func() uint64 {
		var stats runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	for name, read := range map[string]func(raw []byte) (*unitObject, error){"bytes=false": readOddUnit, "bytes=true": readUnit} {
		b.Run(name, func(b *testing.B) {
			units := make([]*unitObject, b.N)
			before := live()
			for i := range units {
				var err error
				if units[i], err = read([]byte(unitOfStatus(i, 1_000_000+i, textWaiting))); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(live()-before)/float64(b.N), "B/unit")
			runtime.KeepAlive(units)
		})
	}
}

func TestHowLongAfterItsAdmissionAUnitRan(t *testing.T) {
	admitted := time.Unix(1000, 0).Add(300 * time.Millisecond)
	seen := admitted.Add(10 * time.Second)
	ready := func(status metav1.ConditionStatus, second int64) *unitObject {
		return &unitObject{unitHistory: &unitHistory{conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionPodsReady, Status: status, LastTransitionTime: metav1.Unix(second, 0),
		}}}}
	}
	for name, c := range map[string]struct {
		unit *unitObject
		want time.Duration
	}{
		"after some time":       {ready(metav1.ConditionTrue, 1003), 3200 * time.Millisecond},
		"in the same second":    {ready(metav1.ConditionTrue, 1000), 200 * time.Millisecond},
		"a second before":       {ready(metav1.ConditionTrue, 999), 10 * time.Second},
		"ahead of our clock":    {ready(metav1.ConditionTrue, 2000), 10 * time.Second},
		"in an earlier run":     {ready(metav1.ConditionTrue, 900), 10 * time.Second},
		"not by that condition": {ready(metav1.ConditionFalse, 1003), 10 * time.Second},
		"not said":              {&unitObject{unitHistory: noHistory}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, c.unit.ranAfter(admitted, seen)) })
	}
}
