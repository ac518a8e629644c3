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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	textQueue = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"Queue","metadata":{"annotations":{"koord-queue/priority-threshold":"7","other":"x"},"creationTimestamp":"2026-01-01T00:00:00Z","generation":2,` +
		`"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:admitted":{},"f:pending":{}}},"manager":"koord-scheduler","operation":"Update","subresource":"status","time":"2026-01-01T00:00:00Z"}],` +
		`"name":"team-1","namespace":"koord-queue","resourceVersion":"%[1]d","uid":"a1b2c3d4-1111-4222-8333-000000000001"},` +
		`"spec":{"maxAdmitted":9,"priority":3,"queuePolicy":"Block"},"status":%[2]s}`

	textActive = `"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"the queue admits units","observedGeneration":2,"reason":"Ready","status":"True","type":"Active"}]`
)

// textOfStatus lists so many units that wait.
func textOfStatus(items int) string {
	list := make([]string, items)
	for i := range list {
		list[i] = fmt.Sprintf(`{"name":"job-train-%06d","namespace":"team","position":%d,"priority":100}`, i, i+1)
	}
	return `{"admitted":4,` + textActive + fmt.Sprintf(`,"pending":%d,"queueItemDetails":{"active":[`, items) + strings.Join(list, ",") + `]}}`
}

// requireSameQueue: read from its bytes it says what decodeQueue says.
func requireSameQueue(t *testing.T, want *queueObject, raw []byte) {
	t.Helper()
	r := &queueText{policy: "FIFO"}
	lexer := r.reset(raw)
	obj := r.object()
	if obj == nil || !lexer.atEnd() {
		var err error
		obj, err = r.odd(raw)
		require.NoError(t, err)
		require.Equal(t, want, obj)
		return
	}
	got := *obj.(*queueObject)
	require.Equal(t, want.status, got.says())
	got.status, got.unread = want.status, nil
	require.Equal(t, want, &got)
}

func TestQueueTextSaysTheSame(t *testing.T) {
	whole := fmt.Sprintf(textQueue, 1, textOfStatus(3))
	for _, tt := range []struct {
		name, text string
		odd        bool
	}{
		{"whole", whole, false},
		{"nobody waits", fmt.Sprintf(textQueue, 1, textOfStatus(0)), false},
		{"new", `{"kind":"Queue","metadata":{"name":"a","namespace":"b"},"spec":{}}`, false},
		{"nothing", `{"kind":"Queue","metadata":{"name":"a"}}`, false},
		{"other parts of a status", strings.Replace(whole, `"admitted":4`, `"other":[{}]`, 1), false},
		{"every field", strings.NewReplacer(`"priority":3`, `"priorityClassName":"high","stopPolicy":"Hold","admissionChecks":[{"name":"a","labelSelector":{"matchLabels":{"a":"b"}}}],"maxPending":1`,
			`"other":"x"`, `"koord-queue/available-quota":"b, a"`).Replace(whole), false},
		{"items that are none", strings.Replace(whole, `"position":1`, `"position":"first"`, 1), false},
		{"items are null", fmt.Sprintf(textQueue, 1, `{"queueItemDetails":null}`), false},
		{"policy is a number", strings.Replace(whole, `"Block"`, `5`, 1), true},
		{"priority is null", strings.Replace(whole, `"priority":3`, `"priority":null`, 1), false},
		{"spec is null", `{"kind":"Queue","metadata":{"name":"a"},"spec":null}`, true},
		{"spec is a list", `{"kind":"Queue","metadata":{"name":"a"},"spec":[]}`, true},
		{"spec comes twice", `{"kind":"Queue","metadata":{"name":"a"},"spec":{"priority":1},"spec":{"maxAdmitted":1}}`, true},
		{"count out of range", strings.Replace(whole, `"admitted":4`, `"admitted":4000000000`, 1), true},
		{"conditions that are none", strings.Replace(whole, `"observedGeneration":2`, `"observedGeneration":"x"`, 1), true},
		{"annotation is a number", strings.Replace(whole, `"x"`, `5`, 1), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			obj := &unstructured.Unstructured{}
			require.NoError(t, obj.UnmarshalJSON([]byte(tt.text)))
			requireSameQueue(t, decodeQueue(obj, "FIFO"), []byte(tt.text))
			r := &queueText{policy: "FIFO"}
			r.reset([]byte(tt.text))
			require.Equal(t, tt.odd, r.object() == nil)
		})
	}
}

const endOfQueues = `{"type":"BOOKMARK","object":{"kind":"Queue","apiVersion":"scheduling.x-k8s.io/v1alpha1","metadata":{"creationTimestamp":null,"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{},"status":{}}}` + "\n"

// TestQueuesAreWatched: they come through the informer whether they are in order or odd, and go.
func TestQueuesAreWatched(t *testing.T) {
	client := streamed(t, v1alpha1.QueueResource, func(w io.Writer) {
		for i, name := range []string{"one", "two", "three"} {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", strings.ReplaceAll(fmt.Sprintf(textQueue, 10+i, textOfStatus(1000)), "team-1", name))
		}
		_, _ = io.WriteString(w, endOfQueues)
		_, _ = io.WriteString(w, `{"type":"MODIFIED","object":{"kind":"Queue","metadata":{"name":"two","namespace":"koord-queue","resourceVersion":"20"},"spec":{"priority":"high"}}}`+"\n")
		_, _ = io.WriteString(w, `{"type":"DELETED","object":{"kind":"Queue","metadata":{"name":"three","namespace":"koord-queue","resourceVersion":"21"}}}`+"\n")
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
			for name, q := range e.queues {
				found[name] = q.spec.Policy + q.ResourceVersion
			}
		}))
		return len(found) == 2 && found["one"] == "Block10" && strings.HasPrefix(found["two"], "unreadable")
	}, 10*time.Second, 5*time.Millisecond)
	cancel()
	<-ended
}

// BenchmarkQueueEvents: what one write of a queue's status costs when it comes back, from the socket to the mailbox, by the
// number of units that it lists.
func BenchmarkQueueEvents(b *testing.B) {
	for _, items := range []int{0, 100} {
		for _, bytes := range []bool{false, true} {
			b.Run(fmt.Sprintf("items=%d/bytes=%t", items, bytes), func(b *testing.B) {
				var events strings.Builder
				start := make(chan struct{})
				client := streamed(b, v1alpha1.QueueResource, func(w io.Writer) {
					_, _ = io.WriteString(w, endOfQueues)
					w.(http.Flusher).Flush()
					<-start
					_, _ = io.WriteString(w, events.String())
				})
				for i := range b.N {
					_, _ = fmt.Fprintf(&events, `{"type":"MODIFIED","object":%s}`+"\n", fmt.Sprintf(textQueue, 100+i, textOfStatus(items)))
				}
				options := Options{Dynamic: dynamic.New(client), Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*Write) {}}
				if bytes {
					options.REST = client
				}
				e, err := New(options)
				require.NoError(b, err)
				queues := e.sources.owned[1]
				go queues.RunWithContext(b.Context())
				poll := options.Clock.NewTicker(time.Millisecond)
				defer poll.Stop()
				for !queues.HasSynced() {
					<-poll.C()
				}
				b.ReportAllocs()
				b.SetBytes(int64(events.Len() / b.N))
				b.ResetTimer()
				close(start)
				for last := fmt.Sprint(100 + b.N - 1); queues.LastSyncResourceVersion() != last; {
					<-poll.C()
				}
			})
		}
	}
}
