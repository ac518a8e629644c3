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
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects/objectstest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/queuestatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// TestFieldsOfUnits: where a field may be said in more than one way, or may be absent.
// TestOneObjectDoesNotBreakAList, whatever it says.
func TestOneObjectDoesNotBreakAList(t *testing.T) {
	bad := []string{
		`{"metadata":{"name":"a","namespace":"b","uid":"c","labels":[]},"spec":{}}`,
		`{"metadata":5}`, `{"spec":[]}`, `{}`, `null`,
		`{"metadata":{"creationTimestamp":[],"name":"d","namespace":"b"},"spec":"x","status":[1]}`,
	}
	client := served(t,
		`{"kind":"QueueUnitList","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"resourceVersion":"9"},"items":[`+
			strings.Join(bad, ",")+","+objectstest.Unit(1, 7, objectstest.Waiting)+`]}`)
	e, err := New(Options{
		Client: client, Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*statuswrite.Write) {},
	})
	require.NoError(t, err)
	units, version, err := e.sources.ListUnits(t.Context())
	require.NoError(t, err)
	require.Equal(t, "9", version)
	require.Len(t, units, len(bad)+1)
	require.Equal(t, "b/a", units[0].Path)
	require.Equal(t, "b/d", units[len(bad)-1].Path)
	require.Empty(t, units[len(bad)].Invalid)
}

// streamed serves one watch of a resource; of everything else there is nothing.
func streamed(t testing.TB, gvr schema.GroupVersionResource, write func(w io.Writer)) rest.Interface {
	var served atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if path.Base(req.URL.Path) == gvr.Resource && req.URL.Query().Get("watch") == "true" &&
			served.CompareAndSwap(false, true) {
			write(w)
			w.(http.Flusher).Flush()
		} else if req.URL.Query().Get("watch") != "true" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		<-req.Context().Done()
	}))
	t.Cleanup(server.Close)
	return clientAt(t, server)
}

// served answers everything with this.
func served(t testing.TB, text string) rest.Interface {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	return clientAt(t, server)
}

func clientAt(t testing.TB, server *httptest.Server) rest.Interface {
	client, err := objects.NewClient(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	return client
}

const endOfUnits = `{"type":"BOOKMARK","object":{"kind":"QueueUnit","apiVersion":"scheduling.x-k8s.io/v1alpha1",` +
	`"metadata":{"creationTimestamp":null,"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},` +
	`"spec":{},"status":{}}}` + "\n"

// running is an engine that reads from the client until the test ends.
func running(t *testing.T, client rest.Interface) (*Engine, context.Context) {
	t.Helper()
	e, err := New(Options{
		Client: client, Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*statuswrite.Write) {},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return e, ctx
}

// TestUnitsAreWatched: units come through the informer whether they are in order, odd, large or go.
func TestUnitsAreWatched(t *testing.T) {
	client := streamed(t, v1alpha1.QueueUnitResource, func(w io.Writer) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", objectstest.Unit(i, 10+i, objectstest.Waiting))
		}
		_, _ = fmt.Fprintf(w,
			`{"type":"ADDED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit",`+
				`"metadata":{"name":"odd","namespace":"team","uid":"odd","resourceVersion":"13","annotations":{"large":%q}},`+
				`"spec":{"request":{"cpu":{}}}}}`+"\n\n", strings.Repeat("x", 1<<18))
		_, _ = io.WriteString(w, endOfUnits)
		_, _ = fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", objectstest.Unit(1, 20, objectstest.Admitted))
		_, _ = fmt.Fprintf(w, `{"type":"DELETED","object":%s}`+"\n", objectstest.Unit(2, 21, objectstest.Waiting))
	})
	e, ctx := running(t, client)
	require.Eventually(t, func() bool {
		found := map[string]string{}
		require.NoError(t, e.Ask(ctx, func(questions.View) {
			for _, key := range e.units.Keys() {
				rec := e.units.Get(key)
				found[key] = string(rec.Object.Phase) + rec.Object.ResourceVersion + string(rec.Object.Invalid)
			}
		}))
		return len(found) == 3 && found["team/job-train-0"] == "Enqueued10" && found["team/job-train-1"] == "Dequeued20" &&
			found["team/odd"] == "13"+string(unit.ReasonInvalidRequest) && e.sources.Units.LastSyncResourceVersion() == "21"
	}, 10*time.Second, 5*time.Millisecond)
	require.True(t, e.sources.HasUnit("team/job-train-1"))
	require.False(t, e.sources.HasUnit("team/job-train-2"))
}

// queueIn reads a queue.
func queueIn(t testing.TB, text, policy string) *objects.Queue {
	t.Helper()
	w := &objects.WireQueue{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), w))
	return objects.DecodeQueue(w, policy, queue.Timeouts{Idle: time.Minute, Unbound: time.Hour})
}

func TestQueuesAreRead(t *testing.T) {
	whole := objectstest.Queue(1, objectstest.QueueStatus(3))
	runs := queue.Preemption{MinRunTime: queue.DefaultMinRunTime}
	all := queue.Spec{Name: "team-1", Policy: "Block", Priority: 3, Threshold: 7, MaxPending: -1, MaxAdmitted: 9,
		Preemption: runs}
	with := func(change func(q *queue.Spec)) queue.Spec {
		q := all
		change(&q)
		return q
	}
	plain := queue.Spec{Name: "a", Policy: "FIFO", Threshold: 4, MaxPending: -1, MaxAdmitted: -1, Preemption: runs}
	for _, tt := range []struct {
		name, text string
		want       queue.Spec
		says       string
		conditions int
	}{
		{"whole", whole, all, `"pending":3`, 1},
		{"nobody waits", objectstest.Queue(1, objectstest.QueueStatus(0)), all, `"pending":0`, 1},
		{"new", `{"kind":"Queue","metadata":{"name":"a","namespace":"b"},"spec":{}}`, plain, "", 0},
		{"nothing", `{"kind":"Queue","metadata":{"name":"a"}}`, plain, "", 0},
		{"spec is null", `{"kind":"Queue","metadata":{"name":"a"},"spec":null}`, plain, "", 0},
		{"status without a count", strings.Replace(whole, `"admitted":4`, `"other":[{}]`, 1), all, "", 1},
		{"items that are none", strings.Replace(whole, `"position":1`, `"position":"first"`, 1), all, "", 1},
		{"count out of range", strings.Replace(whole, `"admitted":4`, `"admitted":4000000000`, 1), all, "", 1},
		{"conditions that are none", strings.Replace(whole, `"observedGeneration":2`, `"observedGeneration":"x"`, 1),
			all, "", 0},
		{"items are null", objectstest.Queue(1, `{"queueItemDetails":null}`), all, "", 0},
		{"priority is null", strings.Replace(whole, `"priority":3`, `"priority":null`, 1),
			with(func(q *queue.Spec) { q.Priority = 0 }), `"pending":3`, 1},
		{"times", strings.Replace(whole, `"priority":3`, `"priority":3,`+
			`"timeouts":{"podsReadySeconds":60,"unboundSeconds":0},`+
			`"backoffLimit":2,"executionTime":{"defaultSeconds":5,"maximumSeconds":9},"heartbeatTimeoutSeconds":30`, 1),
			with(func(q *queue.Spec) {
				q.Timeouts = &queue.Timeouts{Idle: time.Minute, PodsReady: time.Minute}
				q.HeartbeatTimeout, q.MostEvictions = 30*time.Second, 3
				q.Execution = queue.ExecutionTimes{Default: 5 * time.Second, Most: 9 * time.Second}
			}), `"pending":3`, 1},
		{"every field", strings.NewReplacer(
			`"priority":3`, `"priorityClassName":"high","stopPolicy":"Hold","admissionChecks":[{"name":"a",`+
				`"labelSelector":{"matchLabels":{"a":"b"}}}],"maxPending":1`,
			`"other":"x"`, `"koord-queue/available-quota":"b, a"`).Replace(whole),
			with(func(q *queue.Spec) {
				q.Priority, q.Held, q.MaxPending, q.Quotas = 0, true, 1, []string{"a", "b"}
				q.AdmissionChecks = []queue.AdmissionCheck{{Name: "a", Selector: "a=b", Timeout: objects.DefaultTimeout}}
			}), `"pending":3`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := queueIn(t, tt.text, "FIFO")
			require.Equal(t, tt.want, q.Spec)
			require.Contains(t, queuestatus.SaidOf(q), tt.says)
			require.Equal(t, tt.says == "", queuestatus.SaidOf(q) == "")
			require.Len(t, q.Conditions, tt.conditions)
		})
	}
	for name, text := range map[string]string{
		"policy is a number":     strings.Replace(whole, `"Block"`, `5`, 1),
		"spec is a list":         `{"kind":"Queue","metadata":{"name":"team-1"},"spec":[]}`,
		"annotation is a number": strings.Replace(whole, `"x"`, `5`, 1),
		"selector of a check":    strings.Replace(whole, `"priority":3`, `"admissionChecks":[{"labelSelector":[]}]`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			q := queueIn(t, text, "FIFO")
			require.Equal(t, "team-1", q.Name)
			require.Contains(t, q.Spec.Policy, "unreadable: ")
			require.False(t, q.Panicked)
		})
	}
}

const endOfQueues = `{"type":"BOOKMARK","object":{"kind":"Queue","apiVersion":"scheduling.x-k8s.io/v1alpha1",` +
	`"metadata":{"creationTimestamp":null,"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},` +
	`"spec":{},"status":{}}}` + "\n"

// TestQueuesAreWatched: they come through the informer whether they are in order or odd, and go.
func TestQueuesAreWatched(t *testing.T) {
	client := streamed(t, v1alpha1.QueueResource, func(w io.Writer) {
		for i, name := range []string{"one", "two", "three"} {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n",
				strings.ReplaceAll(objectstest.Queue(10+i, objectstest.QueueStatus(1000)), "team-1", name))
		}
		_, _ = io.WriteString(w, endOfQueues)
		_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue",`+
			`"metadata":{"name":"two","namespace":"koord-queue","resourceVersion":"20"},"spec":{"priority":"high"}}}`+"\n")
		_, _ = io.WriteString(w, `{"type":"DELETED","object":{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue",`+
			`"metadata":{"name":"three","namespace":"koord-queue","resourceVersion":"21"}}}`+"\n")
	})
	e, ctx := running(t, client)
	require.Eventually(t, func() bool {
		found := map[string]string{}
		require.NoError(t, e.Ask(ctx, func(questions.View) {
			for name, q := range e.facts.queues {
				found[name] = q.Spec.Policy + q.ResourceVersion
			}
		}))
		return len(found) == 2 && found["one"] == "Block10" && strings.HasPrefix(found["two"], "unreadable")
	}, 10*time.Second, 5*time.Millisecond)
}
