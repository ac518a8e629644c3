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

package jobqueue

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// waitingUnit is a QueueUnit as the API server sends it, made by the controller for a Job. Its verbs: number, quota,
// cpu.
const waitingUnit = `{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"QueueUnit","metadata":{
"annotations":{"koord-queue/submitted-by":"alice@example.com"},"creationTimestamp":"2026-01-01T%[4]s","generation":1,
"labels":{"app.kubernetes.io/name":"resnet","koord-queue/created-by":"jobqueue-controller",` +
	`"quota.scheduling.koordinator.sh/name":"team-%02[2]d"},
"managedFields":[{"apiVersion":"scheduling.x-k8s.io/v1alpha1","fieldsType":"FieldsV1",` +
	`"fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:koord-queue/submitted-by":{}},"f:labels":{".":{},` +
	`"f:app.kubernetes.io/name":{},"f:koord-queue/created-by":{},"f:quota.scheduling.koordinator.sh/name":{}},` +
	`"f:ownerReferences":{".":{},"k:{\"uid\":\"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d\"}":{}}},"f:spec":{".":{},` +
	`"f:consumerRef":{},"f:podSet":{".":{},"k:{\"name\":\"main\"}":{".":{},"f:count":{},"f:name":{},"f:template":{}}},` +
	`"f:priority":{},"f:queue":{},"f:request":{".":{},"f:cpu":{},"f:memory":{}}}},"manager":"jobqueue-controller",` +
	`"operation":"Update","time":"2026-01-01T00:00:00Z"}],
"name":"job-train-resnet-%08[1]d","namespace":"team-%02[2]d",
"ownerReferences":[{"apiVersion":"batch/v1","blockOwnerDeletion":true,"controller":true,"kind":"Job",` +
	`"name":"train-resnet-%08[1]d","uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"}],
"resourceVersion":"%[1]d","uid":"a1b2c3d4-1111-4222-8333-%012[1]d"},
"spec":{"consumerRef":{"apiVersion":"batch/v1","kind":"Job","name":"train-resnet-%08[1]d","namespace":"team-%02[2]d",` +
	`"uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"},
"podSet":[{"count":1,"name":"main","template":{"metadata":{"labels":{"app.kubernetes.io/name":"resnet",` +
	`"quota.scheduling.koordinator.sh/name":"team-%02[2]d"}},"spec":{"containers":[{"args":["--epochs=90","--lr=0.1"],` +
	`"command":["python","train.py"],"env":[{"name":"NCCL_DEBUG","value":"INFO"},{"name":"DATA",` +
	`"value":"s3://bucket/imagenet"}],"image":"registry.example.com/ml/resnet:1.4.2","name":"main",` +
	`"resources":{"limits":{"cpu":"%[3]d","memory":"4Gi"},"requests":{"cpu":"%[3]d","memory":"4Gi"}},` +
	`"volumeMounts":[{"mountPath":"/data","name":"data"}]}],"restartPolicy":"Never","schedulerName":"koord-scheduler",` +
	`"volumes":[{"emptyDir":{},"name":"data"}]}}}],
"priority":%[5]d,"queue":"team-%02[2]d","request":{"cpu":"%[3]d","memory":"4Gi"}},
"status":{"phase":"Enqueued"}}`

// waitingJob is what the API server sends of its Job when metadata alone is asked for.
const waitingJob = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{
"annotations":{"koord-queue/submitted-by":"alice@example.com","koord-queue/suspended-by":"jobqueue-controller"},` +
	`"creationTimestamp":"2026-01-01T%[4]s","generation":1,
"labels":{"app.kubernetes.io/name":"resnet","quota.scheduling.koordinator.sh/name":"team-%02[2]d"},
"managedFields":[{"apiVersion":"batch/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},` +
	`"f:app.kubernetes.io/name":{},"f:quota.scheduling.koordinator.sh/name":{}}},"f:spec":{"f:backoffLimit":{},` +
	`"f:completionMode":{},"f:completions":{},"f:manualSelector":{},"f:parallelism":{},"f:podReplacementPolicy":{},` +
	`"f:suspend":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:args":{},"f:command":{},` +
	`"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},` +
	`"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}},"manager":"kubectl-create",` +
	`"operation":"Update","time":"2026-01-01T00:00:00Z"}],
"name":"train-resnet-%08[1]d","namespace":"team-%02[2]d","resourceVersion":"%[1]d",` +
	`"uid":"7d3b2c1e-5f4a-4b6d-8c9e-%012[1]d"}}`

// memoryQuotas is how many quotas, queues and namespaces there are; eight requests occur.
const memoryQuotas = 30

func waitingText(format string, i int) string {
	at := time.Date(2026, 1, 1, 0, 0, i/20, 0, time.UTC).Format("15:04:05Z")
	return strings.ReplaceAll(fmt.Sprintf(format, i, i%memoryQuotas, 1+i/memoryQuotas%8, at, i%5), "\n", "")
}

// stream is a watch that sends n objects, the bookmark that ends the list, and nothing more.
func stream(
	ctx context.Context, n int, object func(i int) apiruntime.Object, bookmark apiruntime.Object,
) watch.Interface {
	events := make(chan watch.Event)
	w := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		send := func(e watch.Event) bool {
			select {
			case events <- e:
				return true
			case <-w.StopChan():
			case <-ctx.Done():
			}
			return false
		}
		for i := range n {
			if !send(watch.Event{Type: watch.Added, Object: object(i)}) {
				return
			}
		}
		if send(watch.Event{Type: watch.Bookmark, Object: bookmark}) {
			select {
			case <-w.StopChan():
			case <-ctx.Done():
			}
		}
	}()
	return w
}

// memoryAPI answers requests for n units and a queue per quota, as an API server does.
type memoryAPI struct{ n int }

const memoryGroup = `"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":`

// RoundTrip implements http.RoundTripper.
func (a memoryAPI) RoundTrip(request *http.Request) (*http.Response, error) {
	kind, count, object := "PriorityClass", 0, func(int) string { return "" }
	switch path.Base(request.URL.Path) {
	case v1alpha1.QueueUnitResource.Resource:
		kind, count, object = "QueueUnit", a.n, func(i int) string { return waitingText(waitingUnit, i) }
	case v1alpha1.QueueResource.Resource:
		kind, count, object = "Queue", memoryQuotas, func(i int) string {
			return fmt.Sprintf(`{%s"Queue","metadata":{"name":"team-%02d","namespace":%q,"resourceVersion":"%d"}}`, memoryGroup,
				i, v1alpha1.DefaultQueueNamespace, i+1)
		}
	}
	out, in := io.Pipe()
	query := request.URL.Query()
	from, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	go func() {
		if query.Get("watch") != "" {
			watched(in, kind, count, object)
			<-request.Context().Done()
		} else {
			listed(in, kind, count, from, limit, object)
		}
		_ = in.Close()
	}()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: out, Request: request,
	}, nil
}

// watched writes all objects and the bookmark that ends them, and nothing more.
func watched(w io.Writer, kind string, count int, object func(i int) string) {
	for i := range count {
		if _, err := fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", object(i)); err != nil {
			return
		}
	}
	group := memoryGroup
	if kind == "PriorityClass" {
		group = `"apiVersion":"scheduling.k8s.io/v1","kind":`
	}
	_, _ = fmt.Fprintf(w,
		`{"type":"BOOKMARK","object":{%s%q,"metadata":{"resourceVersion":"999999999","annotations":{%q:"true"}}}}`+"\n",
		group, kind, metav1.InitialEventsAnnotationKey)
}

// listed is how a new leader reads all units.
func listed(w io.Writer, kind string, count, from, limit int, object func(i int) string) {
	to, next := count, ""
	if limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	_, _ = fmt.Fprintf(w, `{%s"%sList","metadata":{"resourceVersion":"999999999","continue":%q},"items":[`,
		memoryGroup, kind, next)
	for i := from; i < to; i++ {
		if i > from {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = io.WriteString(w, object(i))
	}
	_, _ = io.WriteString(w, "]}")
}

type memoryMetadata struct {
	metadata.Getter
	b     *testing.B
	count int
}

func (m *memoryMetadata) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	if gvr.Resource == "jobs" && gvr.Group == "batch" {
		return m
	}
	return &memoryMetadata{b: m.b}
}

func (m *memoryMetadata) Namespace(string) metadata.ResourceInterface { return m }

func (m *memoryMetadata) Watch(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
	end := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "999999999", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	return stream(ctx, m.count, func(i int) apiruntime.Object {
		job := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal([]byte(waitingText(waitingJob, i)), job); err != nil {
			m.b.Error(err)
		}
		return job
	}, end), nil
}

// fullQuotas have nothing left.
type fullQuotas struct{}

func (fullQuotas) Resolve(_ string, labels map[string]string) string {
	return labels[v1alpha1.LabelQuotaName]
}
func (fullQuotas) SetDemand(string, resources.List) bool { return false }
func (fullQuotas) TotalMoved() bool                      { return false }

func (fullQuotas) All() (names []string) {
	for i := range memoryQuotas {
		names = append(names, fmt.Sprintf("team-%02d", i))
	}
	return append(names, "root")
}

func (fullQuotas) Observe(names []string) (found []admission.Quota, gone []string) {
	amounts := func(cpu int64) resources.List {
		return resources.FromMap(map[string]int64{"cpu": cpu, "memory": cpu << 30})
	}
	for _, name := range names {
		if name != "root" {
			found = append(found, admission.Quota{
				Name: name, Parent: "root", Limit: amounts(16_000), Max: amounts(16_000), Used: amounts(16_000),
			})
		}
	}
	return append(found, admission.Quota{Name: "root", Limit: amounts(1 << 30)}), nil
}

// BenchmarkMemory measures the heap of the scheduler's process for one pending unit: the cache of the informer, the
// record of the engine, and the core. jobs=true adds the metadata of its Job and the index of it.
func BenchmarkMemory(b *testing.B) {
	for _, withJobs := range []bool{false, true} {
		for _, n := range []int{1_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("jobs=%t/waiting=%d", withJobs, n), func(b *testing.B) {
				for range b.N {
					few, some := heapOf(b, n/10, withJobs), heapOf(b, n, withJobs)
					b.ReportMetric((some-few)/float64(n-n/10), "B/unit")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// heapOf a leader with n units in line.
func heapOf(b *testing.B, n int, withJobs bool) float64 {
	b.StopTimer()
	defer b.StartTimer()
	before := liveHeap()
	client, err := objects.NewClient(&rest.Config{Host: "http://in-this-process", QPS: -1, Transport: memoryAPI{n}})
	require.NoError(b, err)
	options := engine.Options{
		Client: client, Quotas: fullQuotas{}, Clock: clock.RealClock{}, Submit: func(*statuswrite.Write) {},
	}
	var index *JobIndex
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	if withJobs {
		predicate, err := managedjobs.NewPredicate(managedjobs.Jobs{})
		require.NoError(b, err)
		factory := metadatainformer.NewSharedInformerFactory(&memoryMetadata{b: b, count: n}, 0)
		index, err = NewJobIndex(factory, predicate, func(types.UID) {})
		require.NoError(b, err)
		options.Predicate, options.Jobs = predicate, factory
		defer factory.Shutdown()
		defer cancel()
	}
	e, err := engine.New(options)
	require.NoError(b, err)
	if options.Jobs != nil {
		options.Jobs.Start(ctx.Done())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	e.Lead()
	poll := options.Clock.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for pending, leading := 0, false; pending < n || !leading; {
		<-poll.C()
		require.NoError(b, e.Ask(ctx, func(v questions.View) {
			pending, leading = 0, v.Leading()
			queues, _ := v.Queues("", memoryQuotas)
			for _, q := range queues {
				pending += q.Pending
			}
		}))
	}
	after := liveHeap()
	runtime.KeepAlive(index)
	cancel()
	<-ended
	return after - before
}

// liveHeap is what is on the heap after all garbage is gone.
func liveHeap() float64 {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
