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
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects/objectstest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

func benchEngine(b *testing.B, client rest.Interface) *Engine {
	e, err := New(Options{
		Client: client, Quotas: quotasOf(10, testQuota), Clock: clock.RealClock{}, Submit: func(*statuswrite.Write) {},
	})
	require.NoError(b, err)
	return e
}

// processorTime of this process so far.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// benchUnits are units as an API server sends them, small and with managed fields and a template of some length.
var benchUnits = map[string]func(number, version int, status string) string{
	"1.3KB": func(number, version int, status string) string {
		return strings.Replace(objectstest.Unit(number, version, status), objectstest.ManagedFields+",", "", 1)
	},
	"2.6KB": func(number, version int, status string) string {
		return strings.Replace(objectstest.Unit(number, version, status), `"command":["python","train.py"]`,
			`"command":["python","train.py"],"env":[`+strings.Repeat(`{"name":"NCCL_DEBUG","value":"INFO"},`, 10)+
				`{"name":"DATA","value":"s3://bucket/imagenet"}]`, 1)
	},
}

// BenchmarkWatchedUnits: what one watch event of a unit costs from the socket to the mailbox of the engine, through the
// informer. A unit comes, is admitted and ends.
func BenchmarkWatchedUnits(b *testing.B) {
	for _, size := range []string{"1.3KB", "2.6KB"} {
		b.Run(size, func(b *testing.B) {
			informer := func(e *Engine) cache.SharedIndexInformer { return e.sources.Units }
			benchWatch(b, v1alpha1.QueueUnitResource, endOfUnits, informer, func(i int) string {
				kind, status := "MODIFIED", objectstest.Admitted
				switch i % 3 {
				case 0:
					kind, status = "ADDED", objectstest.Waiting
				case 2:
					status = objectstest.Ended
				}
				return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, benchUnits[size](i/3, 100+i, status))
			})
		})
	}
}

// BenchmarkWatchedQueues: what one write of a queue's status costs when it comes back, by the number of units that it
// lists.
func BenchmarkWatchedQueues(b *testing.B) {
	for _, items := range []int{0, 100} {
		b.Run(fmt.Sprintf("items=%d", items), func(b *testing.B) {
			informer := func(e *Engine) cache.SharedIndexInformer { return e.sources.Owned[1] }
			benchWatch(b, v1alpha1.QueueResource, endOfQueues, informer, func(i int) string {
				return fmt.Sprintf(`{"type":"MODIFIED","object":%s}`+"\n", objectstest.Queue(100+i, objectstest.QueueStatus(items)))
			})
		})
	}
}

// benchWatch follows a watch that has nothing at first; the version of event i is 100+i.
func benchWatch(
	b *testing.B, resource schema.GroupVersionResource, synced string,
	informerOf func(*Engine) cache.SharedIndexInformer, event func(i int) string,
) {
	var events strings.Builder
	for i := range b.N {
		events.WriteString(event(i))
	}
	start := make(chan struct{})
	e := benchEngine(b, streamed(b, resource, func(w io.Writer) {
		_, _ = io.WriteString(w, synced)
		w.(http.Flusher).Flush()
		<-start
		_, _ = io.WriteString(w, events.String())
	}))
	informer := informerOf(e)
	go informer.RunWithContext(b.Context())
	poll := e.Clock.NewTicker(time.Millisecond)
	defer poll.Stop()
	for !informer.HasSynced() {
		<-poll.C()
	}
	b.ReportAllocs()
	b.ResetTimer()
	before := processorTime(b)
	close(start)
	for last := fmt.Sprint(100 + b.N - 1); informer.LastSyncResourceVersion() != last; {
		<-poll.C()
	}
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/1000, "cpu-µs/event")
	b.ReportMetric(float64(events.Len()/b.N), "bytes/event")
}

// BenchmarkListedUnits: the cost of one unit of a list, from the socket to its kept form.
func BenchmarkListedUnits(b *testing.B) {
	for _, size := range []string{"1.3KB", "2.6KB"} {
		b.Run(size, func(b *testing.B) {
			items := make([]string, intake.ListPage)
			for i := range items {
				items[i] = benchUnits[size](i, 100+i, []string{objectstest.Waiting, objectstest.Admitted, objectstest.Ended}[i%3])
			}
			client := served(b, `{"kind":"QueueUnitList","apiVersion":"scheduling.x-k8s.io/v1alpha1",`+
				`"metadata":{"resourceVersion":"9"},"items":[`+strings.Join(items, ",")+`]}`)
			e := benchEngine(b, client)
			b.ReportAllocs()
			b.ResetTimer()
			before, n := processorTime(b), 0
			for n < b.N {
				units, _, err := e.sources.ListUnits(b.Context())
				require.NoError(b, err)
				n += len(units)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(n)/1000, "cpu-µs/unit")
			b.ReportMetric(float64(n)/float64(b.N), "units/op")
		})
	}
}

// BenchmarkWrittenUnits: what the answer to one write costs, with the write.
func BenchmarkWrittenUnits(b *testing.B) {
	for _, size := range []string{"1.3KB", "2.6KB"} {
		b.Run(size, func(b *testing.B) {
			e := benchEngine(b, served(b, benchUnits[size](1, 2, objectstest.Admitted)))
			base := readUnit(b, benchUnits[size](1, 1, objectstest.Waiting))
			w := e.writers.Unit(base, statuswrite.Admit, map[string]any{"phase": "Dequeued"}, time.Time{})
			w.Attempt, w.Decision = 1, &transition.Admit{}
			b.ReportAllocs()
			b.ResetTimer()
			before := processorTime(b)
			for range b.N {
				r := w.Do(b.Context(), e.opts.Client)
				require.NoError(b, r.Err)
			}
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N)/1000, "cpu-µs/write")
		})
	}
}
