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
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// deadline of tests that run an engine in its own goroutines; it is never waited for when all is well.
const deadline = 60 * time.Second

// live is an engine with informers and writers, on fakes.
type live struct {
	t      *testing.T
	api    *fakeAPI
	engine *Engine
	stop   context.CancelFunc
	done   chan struct{}

	mu        sync.Mutex
	activated map[string]bool
}

func newLive(
	t *testing.T, api *fakeAPI, quotas *fakeQuotas, podObjects []runtime.Object,
	jobObjects ...*metav1.PartialObjectMetadata,
) *live {
	predicate, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme)
	for _, job := range jobObjects {
		job.TypeMeta = metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
		require.NoError(t, client.Tracker().Add(job))
	}
	o := Options{Predicate: predicate, Metrics: metrics.New(metrics.Scheduler)}
	return liveOn(t, api, quotas, podObjects, o, client)
}

// liveOn is newLive with this predicate, these metrics and the jobs of this client.
func liveOn(
	t *testing.T, api *fakeAPI, quotas *fakeQuotas, podObjects []runtime.Object, o Options,
	client *metadatafake.FakeMetadataClient,
) *live {
	var err error
	l := &live{t: t, api: api, done: make(chan struct{}), activated: map[string]bool{}}
	jobInformers := metadatainformer.NewSharedInformerFactory(client, 0)
	shared := informers.NewSharedInformerFactory(kubefake.NewClientset(podObjects...), 0)
	l.engine, err = New(Options{
		Client: api.rest, Metadata: metadataOf{api.client}, Jobs: jobInformers, Pods: shared.Core().V1().Pods().Informer(),
		Namespaces: shared.Core().V1().Namespaces().Informer(),
		Quotas:     quotas, Clock: clock.RealClock{}, Predicate: o.Predicate, Metrics: o.Metrics,
		Config: Config{WriteConcurrency: 8, AuditInterval: 5 * time.Millisecond, ResyncInterval: o.Config.ResyncInterval},
		Activate: func(chunk map[string]*corev1.Pod) {
			l.mu.Lock()
			defer l.mu.Unlock()
			for key := range chunk {
				l.activated[key] = true
			}
		},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	l.stop = cancel
	jobInformers.Start(ctx.Done())
	shared.Start(ctx.Done())
	go func() {
		defer close(l.done)
		l.engine.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-l.done
		if last := l.engine.LastAudit(); last != nil {
			require.Empty(t, last.Differences, "what the last audit found")
		}
	})
	return l
}

// await follows the units until as many are in this phase.
func (l *live) await(phase string, want int) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	units := l.api.client.Resource(v1alpha1.QueueUnitResource)
	watcher, err := units.Watch(ctx, metav1.ListOptions{})
	require.NoError(l.t, err)
	defer watcher.Stop()
	seen := map[string]bool{}
	note := func(u *unstructured.Unstructured) {
		p, _, _ := unstructured.NestedString(u.Object, "status", "phase")
		seen[u.GetName()] = p == phase
	}
	list, err := units.List(ctx, metav1.ListOptions{})
	require.NoError(l.t, err)
	for i := range list.Items {
		note(&list.Items[i])
	}
	for count(seen) < want {
		select {
		case event := <-watcher.ResultChan():
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				note(u)
			}
		case <-ctx.Done():
			require.FailNow(l.t, "timed out", "%d of %d units are %s", count(seen), want, phase)
		}
	}
}

func count(set map[string]bool) int {
	n := 0
	for _, in := range set {
		if in {
			n++
		}
	}
	return n
}

// ask waits for a turn of the engine's goroutine.
func (l *live) ask(f func(questions.View)) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	require.NoError(l.t, l.engine.Ask(ctx, f))
}

// until asks the engine again and again.
func (l *live) until(what string, holds func() bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	for !holds() {
		require.NoError(l.t, ctx.Err(), what)
		l.ask(func(questions.View) {})
	}
}

func liveUnit(name string, cpus string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{
			"name": name, "namespace": testNamespace, "uid": "unit-" + name, "creationTimestamp": testStart.Format(time.RFC3339),
			"labels": map[string]any{v1alpha1.LabelQuotaName: testQuota},
		},
		"spec": map[string]any{"request": map[string]any{"cpu": cpus},
			"podSet": []any{map[string]any{"name": "main", "count": int64(1)}}},
		"status": map[string]any{"phase": "Enqueued"},
	}}
	withConsumer("job-" + name)(u)
	return u
}

func liveJob(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: testNamespace, Name: name, UID: types.UID("job-" + name), ResourceVersion: "1",
	}}
}

func liveQueue(t *testing.T, api *fakeAPI) {
	q := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "Queue",
		"metadata": map[string]any{"name": testQuota, "namespace": v1alpha1.DefaultQueueNamespace,
			"uid": "q", "resourceVersion": "1"},
		"spec": map[string]any{"queuePolicy": "Priority"},
	}}
	require.NoError(t, api.client.Tracker().Create(v1alpha1.QueueResource, q, v1alpha1.DefaultQueueNamespace))
}

// Every unit is admitted exactly once, whatever becomes of the requests.
func TestRunUnderFaults(t *testing.T) {
	api := newFakeAPI(t)
	liveQueue(t, api)
	const n = 60
	var jobObjects []*metav1.PartialObjectMetadata
	for i := range n {
		name := fmt.Sprintf("u%02d", i)
		api.create(liveUnit(name, "1"))
		jobObjects = append(jobObjects, liveJob(name))
		api.faults = append(api.faults, []fault{none, lost, lostAnswer, conflict, overloaded, broken, none}[i%7])
	}
	var podObjects []runtime.Object
	for i := range n {
		podObjects = append(podObjects, podFor(fmt.Sprintf("u%02d-0", i), fmt.Sprintf("job-u%02d", i), "1"))
	}
	l := newLive(t, api, quotasOf(n, testQuota), podObjects, jobObjects...)
	l.engine.Lead()
	l.await("Dequeued", n)
	l.until("all are published", func() bool {
		for i := range n {
			if !l.engine.Snapshot().AdmittedConsumer(types.UID(fmt.Sprintf("job-u%02d", i))) {
				return false
			}
		}
		return true
	})
	l.until("all pods are activated", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.activated) == n
	})
	l.ask(func(v questions.View) {
		require.Empty(t, l.engine.core.Read().Audit().Ledger())
		require.Equal(t, "cpu: 60", l.engine.core.Read().Holdings().Read(testQuota).Outstanding().List().String())
		queues, _ := v.QueuesOf(testNamespace, "", 10)
		require.Len(t, queues, 1)
	})
	l.stop()
	<-l.done
	for key, times := range api.applied {
		require.Equal(t, 1, times, "%s was admitted more than once (I3)", key)
	}
	require.Zero(t, l.engine.writers.Unsettled(), "nothing is remembered of writes that are settled (I12)")
}

// A new leader reads the units from the API server itself. Its watch may be behind the writes of the last leader, and
// quota of those admissions would be given away a second time (I1, I8).
func TestANewLeaderDoesNotTrustItsWatch(t *testing.T) {
	api := newFakeAPI(t)
	liveQueue(t, api)
	api.create(liveUnit("a", "4"))
	// b goes first. Its own version is no protection: nobody has written to it.
	b := liveUnit("b", "4")
	require.NoError(t, unstructured.SetNestedField(b.Object, int64(9), "spec", "priority"))
	api.create(b)
	api.client.PrependWatchReactor("queueunits", func(kubetesting.Action) (bool, watch.Interface, error) {
		return true, watch.NewFake(), nil // says nothing
	})
	l := newLive(t, api, quotasOf(4, testQuota), nil, liveJob("a"), liveJob("b"))
	l.until("the snapshot is loaded", func() bool { return l.engine.Snapshot().Loaded() })
	api.setStatus("team/a", map[string]any{
		"phase": "Dequeued", "attempts": 1,
		"admissions": []any{map[string]any{"name": "main", "resources": map[string]any{"cpu": "4"}}},
	})
	l.engine.Lead()
	l.until("it leads", func() (leads bool) {
		l.ask(func(v questions.View) { leads = v.Leading() })
		return leads
	})
	l.ask(func(v questions.View) {
		a, _ := v.Unit("team/a")
		require.Equal(t, unit.PhaseDequeued, a.Phase)
		b, _ := v.Unit("team/b")
		require.Equal(t, unit.ReasonQuotaExceeded, b.Reason)
	})
}

func TestStandbyAndLostLeadership(t *testing.T) {
	api := newFakeAPI(t)
	liveQueue(t, api)
	api.create(liveUnit("a", "1"))
	api.create(liveUnit("b", "1"))
	l := newLive(t, api, quotasOf(10, testQuota), nil, liveJob("a"), liveJob("b"))
	l.until("the snapshot is loaded", func() bool { return l.engine.Snapshot().Loaded() })
	require.Empty(t, api.asked, "a standby writes nothing")
	require.False(t, l.engine.Snapshot().AdmittedConsumer("job-a"))
	require.True(t, l.engine.Snapshot().UnitOfConsumer("job-a"))

	for range 1000 { // the API server does not answer any more
		api.faults = append(api.faults, lost)
	}
	l.engine.Lead()
	l.until("a write is under way", func() bool {
		api.mu.Lock()
		defer api.mu.Unlock()
		return len(api.asked) == 2
	})
	l.stop()
	<-l.done
	asked := len(api.faults)
	require.Empty(t, api.applied)
	// Nothing of the old leader is left that could write.
	others := statuswrite.New(statuswrite.Options{Clock: clock.RealClock{}, Submit: func(*statuswrite.Write) {}}, nil)
	w := others.Unit(&objects.Unit{}, statuswrite.Admit, nil, time.Time{}) // its context does not end with the leader
	w.Decision = &transition.Admit{}
	l.engine.writers.Submit(w)
	require.Len(t, api.faults, asked)
}

func TestOneUnreadableObjectDoesNotBreakTheList(t *testing.T) {
	api := newFakeAPI(t)
	liveQueue(t, api)
	bad := liveUnit("bad", "1")
	bad.Object["spec"] = map[string]any{"request": "everything"}
	api.create(bad)
	api.create(liveUnit("good", "1"))
	l := newLive(t, api, quotasOf(10, testQuota), nil, liveJob("good"))
	l.engine.Lead()
	l.await("Dequeued", 1)
	l.ask(func(v questions.View) {
		unit, ok := v.Unit(testNamespace + "/bad")
		require.True(t, ok)
		require.Equal(t, "InvalidRequest", string(unit.Reason))
	})
}

func TestDeletionReachesTheEngine(t *testing.T) {
	api := newFakeAPI(t)
	liveQueue(t, api)
	api.create(liveUnit("a", "8"))
	api.create(liveUnit("b", "8"))
	l := newLive(t, api, quotasOf(10, testQuota), nil, liveJob("a"), liveJob("b"))
	l.engine.Lead()
	l.await("Dequeued", 1)
	first := "a"
	if l.engine.Snapshot().AdmittedConsumer("job-b") {
		first = "b"
	}
	api.delete(testNamespace + "/" + first)
	l.await("Dequeued", 1)
	l.until("the other one is admitted", func() bool {
		return l.engine.Snapshot().AdmittedConsumer("job-a") != l.engine.Snapshot().AdmittedConsumer("job-b") &&
			!l.engine.Snapshot().UnitOfConsumer(types.UID("job-"+first))
	})
}

// A reader of a snapshot during a step finds it loaded only with all units in it.
func TestASnapshotIsLoadedWithItsUnits(t *testing.T) {
	r := newRig(t, quotasOf(10, testQuota)).queue(testQuota)
	r.unit("a", 1, withConsumer("job-a"))
	r.engine.box.Call(func() {
		r.engine.load()
		require.False(t, r.engine.Snapshot().Loaded())
	})
	r.step()
	require.True(t, r.engine.Snapshot().Loaded())
	require.True(t, r.engine.Snapshot().UnitOfConsumer("job-a"))
}
