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
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kubemetrics "k8s.io/component-base/metrics"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/queuestatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// createQueue makes the object, so that its status can be written.
func (r *rig) createQueue(name string, spec map[string]any) {
	q := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "Queue",
		"metadata": map[string]any{"name": name, "namespace": v1alpha1.DefaultQueueNamespace,
			"uid": "queue-" + name, "resourceVersion": "1"},
		"spec": spec,
	}}
	require.NoError(r.t, r.api.client.Tracker().Create(v1alpha1.QueueResource, q, v1alpha1.DefaultQueueNamespace))
	r.drive.FeedQueue(q, false)
}

func (r *rig) readQueue(name string) *unstructured.Unstructured {
	obj, err := r.api.client.Tracker().Get(v1alpha1.QueueResource, v1alpha1.DefaultQueueNamespace, name)
	require.NoError(r.t, err)
	return obj.(*unstructured.Unstructured)
}

// sendQueues sends the writes of queue statuses and says how many there were.
func (r *rig) sendQueues() int {
	writes := r.of(statuswrite.QueueStatus)
	for _, w := range writes {
		r.engine.Settle(w.Do(r.t.Context(), r.api.rest))
		r.drop(w)
	}
	r.step()
	return len(writes)
}

func TestQueueStatusIsBoundedAndRefreshedWhenItChanged(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.engine.facts.statuses.Items = 2
	r.createQueue(testQuota, map[string]any{"queuePolicy": "Priority"})
	for i, name := range []string{"a", "b", "c", "d"} {
		r.unit(name, 4, func(u *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(u.Object, int64(10-i), "spec", "priority")
		})
	}
	r.lead()
	require.Equal(t, 1, r.sendQueues())
	r.send()
	require.Zero(t, r.sendQueues(), "not more often than the interval")
	r.advance(5 * time.Second)
	require.Equal(t, 1, r.sendQueues())
	q := queueFrom(r.readQueue(testQuota), "Priority")
	require.Contains(t, queuestatus.SaidOf(q), `"admitted":1`)
	require.Contains(t, queuestatus.SaidOf(q), `"pending":3`)
	items, _, err := unstructured.NestedSlice(r.readQueue(testQuota).Object, "status", "queueItemDetails", "active")
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, "b", items[0].(map[string]any)["name"])
	require.Equal(t, int64(1), items[0].(map[string]any)["position"])
	for range 10 {
		r.advance(5 * time.Second)
	}
	require.Zero(t, r.sendQueues(), "nothing changed")

	next := rigOn(t, r.api, r.quotas, clocktesting.NewFakeClock(r.clock.Now()))
	next.engine.facts.statuses.Items = 2
	next.drive.FeedQueue(r.readQueue(testQuota), false)
	next.lead()
	next.advance(5 * time.Second)
	require.Zero(t, next.sendQueues(), "a restart writes nothing that is there")
}

// TestStatusesOfManyQueuesArePaced: statuses of queues never exceed their share of the API server, however many queues
// change, and every queue has its turn.
func TestStatusesOfManyQueuesArePaced(t *testing.T) {
	const queues = 200
	names := make([]string, queues)
	for i := range names {
		names[i] = fmt.Sprintf("q%03d", i)
	}
	r := newRig(t, quotasOf(1, names...))
	for _, name := range names {
		r.createQueue(name, map[string]any{})
	}
	r.lead()
	total := 0
	written := func() int {
		n := 0
		for sent := r.sendQueues(); sent > 0; sent = r.sendQueues() {
			n += sent
		}
		total += n
		return n
	}
	require.Equal(t, queuestatus.RefreshBatch, written(), "as many as come together")
	for total < queues {
		require.True(t, r.wake.After(r.clock.Now()), "nothing to do before more may be written")
		r.advance(10 * queuestatus.RefreshSpacing)
		want := min(10, queues-total)
		require.Equal(t, want, written())
	}
	require.Equal(t, queues, total)
}

// A status stays small at any backlog, whatever the names are and however many units may be listed (I12).
func TestQueueStatusStaysBelow32KiB(t *testing.T) {
	const units, quotas, listed = 100_000, 500, 1000
	names := make([]string, quotas)
	for i := range names {
		names[i] = fmt.Sprintf("%0253d", i)
	}
	var statuses []*statuswrite.Write
	clock := clocktesting.NewFakeClock(testStart)
	engine := drive(t, Options{
		Config: Config{ItemsInStatus: listed},
		Client: newFakeAPI(t).rest, Quotas: quotasOf(0, names...), Clock: clock,
		Submit: func(w *statuswrite.Write) {
			if w.Kind == statuswrite.QueueStatus {
				statuses = append(statuses, w)
			}
		},
	})
	queue := strings.Repeat("q", 253)
	engine.FeedQueue(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": queue}}}, false)
	namespace := strings.Repeat("n", 63)
	priority := int32(math.MinInt32)
	for i := range units {
		name := fmt.Sprintf("%0253d", i)
		u := &objects.Unit{
			History: &objects.History{},
			Path:    namespace + "/" + name, Queue: queue, Quota: names[i%quotas], QuotaKey: v1alpha1.LabelQuotaName,
			Request: cpu(1), Pods: 1, Priority: &priority,
		}
		u.Namespace, u.Name, u.UID, u.ResourceVersion = namespace, name, types.UID(name), "1"
		engine.Engine.box.Unit(u)
	}
	engine.Step()
	require.NoError(t, engine.Lead(context.Background()))
	engine.Step()
	require.Len(t, statuses, 1)
	data, err := statuses[0].Data()
	require.NoError(t, err)
	require.Less(t, len(data), 32<<10)
	require.Contains(t, string(data), fmt.Sprintf(`"pending":%d`, units))
	require.Contains(t, string(data), `"position":60`)
}

func TestQueueStatusThatFailedIsWrittenAgain(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	r.createQueue(testQuota, map[string]any{"queuePolicy": "Priority", "stopPolicy": "Hold"})
	r.lead()
	w := r.of(statuswrite.QueueStatus)[0]
	r.drop(w)
	r.engine.Settle(statuswrite.Result{Write: w, Outcome: transition.Unknown})
	r.step()
	r.advance(5 * time.Second)
	require.Equal(t, 1, r.sendQueues())
	q := queueFrom(r.readQueue(testQuota), "Priority")
	require.Len(t, q.Conditions, 1)
	require.Equal(t, string(unit.ReasonQueueHeld), q.Conditions[0].Reason)
}

func TestQueuesAreDecodedOneByOne(t *testing.T) {
	decode := func(change func(*unstructured.Unstructured)) queue.Spec {
		q := &unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"name": "q"}, "spec": map[string]any{}},
		}
		change(q)
		return queueFrom(q, "FIFO").Spec
	}
	annotate := func(key, value string) func(*unstructured.Unstructured) {
		return func(q *unstructured.Unstructured) { q.SetAnnotations(map[string]string{key: value}) }
	}
	field := func(name string, value any) func(*unstructured.Unstructured) {
		return func(q *unstructured.Unstructured) { q.Object["spec"].(map[string]any)[name] = value }
	}
	plain := queue.Spec{Name: "q", Policy: "FIFO", Threshold: 4, MaxPending: -1, MaxAdmitted: -1,
		Preemption: queue.Preemption{MinRunTime: queue.DefaultMinRunTime}}
	require.Equal(t, plain, decode(func(*unstructured.Unstructured) {}))
	for _, tt := range []struct {
		long, short string
		want        []string
	}{
		{"b, a,,a", "", []string{"a", "b"}},
		{"a,*", "b", nil},
		{"", "b , a", []string{"a", "b"}},
		{" , ", "b", []string{"b"}},
		{"a", "*", []string{"a"}},
		{" ,", "*", nil},
		{",", "", nil},
	} {
		q := decode(func(q *unstructured.Unstructured) {
			q.SetAnnotations(map[string]string{
				v1alpha1.AnnotationAvailableQuota: tt.long, v1alpha1.AnnotationAvailableQuotaShort: tt.short,
			})
		})
		require.Equal(t, tt.want, q.Quotas, "%q, %q", tt.long, tt.short)
	}
	byDefault := func(annotations map[string]string) []string {
		return decode(func(q *unstructured.Unstructured) {
			q.SetLabels(map[string]string{v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController})
			q.SetAnnotations(annotations)
		}).Quotas
	}
	require.Equal(t, []string{"q"}, byDefault(nil), "the default queue of a quota is for that quota")
	require.Equal(t, []string{"q"}, byDefault(map[string]string{v1alpha1.AnnotationAvailableQuota: " ,"}))
	require.Equal(t, []string{"a", "q"}, byDefault(map[string]string{v1alpha1.AnnotationAvailableQuotaShort: "q,a"}))
	require.Nil(t, byDefault(map[string]string{v1alpha1.AnnotationAvailableQuota: "*"}))
	require.Equal(t, int32(7), decode(annotate(v1alpha1.AnnotationPriorityThreshold, "7")).Threshold)
	require.Equal(t, int32(4), decode(annotate(v1alpha1.AnnotationPriorityThreshold, "seven")).Threshold)
	require.Equal(t, int32(0), decode(field("maxAdmitted", int64(0))).MaxAdmitted)
	require.Equal(t, int32(3), decode(field("maxPending", int64(3))).MaxPending)
	require.Equal(t, int32(9), decode(annotate(v1alpha1.AnnotationMaxDepth, "9")).MaxPending)
	require.Equal(t, int32(-1), decode(annotate(v1alpha1.AnnotationMaxDepth, "0")).MaxPending)
	require.Equal(t, int32(3), decode(func(q *unstructured.Unstructured) {
		annotate(v1alpha1.AnnotationMaxDepth, "9")(q)
		field("maxPending", int64(3))(q)
	}).MaxPending, "the field counts before the annotation")
	require.Equal(t, &queue.NamespaceBounds{MaxPending: 3, MaxAdmitted: -1},
		decode(field("perNamespace", map[string]any{"maxPending": int64(3)})).PerNamespace)
	drained, held := decode(field("stopPolicy", "HoldAndDrain")), decode(field("stopPolicy", "Hold"))
	require.True(t, drained.Held && drained.Drains)
	require.True(t, held.Held && !held.Drains)
	require.True(t, decode(field("stopPolicy", "Perhaps")).Held, "what is not known holds")
	require.False(t, decode(field("stopPolicy", "None")).Held)
	require.Contains(t, decode(field("priority", "high")).Policy, "unreadable")
}

func gathered(t *testing.T, registry kubemetrics.KubeRegistry, name string) map[string]float64 {
	families, err := registry.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "scheduler_jobqueue_"+name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			out[strings.Join(labels, "/")] = value
		}
	}
	return out
}

func TestMetricsFollowTheUnits(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	values := func(name string) map[string]float64 { return gathered(t, registry, name) }
	r.queue(testQuota).lead()
	a, b := r.unit("a", 4), r.unit("b", 4)
	r.step()
	r.send()
	r.advance(2 * time.Second)
	pair := testQuota + "/" + testQuota
	require.Equal(t, map[string]float64{pair: 1}, values("pending_units"))
	require.Equal(t, map[string]float64{pair: 1}, values("admitted_units"))
	require.Equal(t, map[string]float64{pair: 1}, values("admissions_total"))
	require.Equal(t, map[string]float64{testQuota + "/cpu": 4000, root + "/cpu": 4000}, values("ledger_outstanding"))
	require.Equal(t, map[string]float64{testNamespace + "/" + testQuota: 1}, values("admission_wait_seconds"))
	require.Empty(t, values("admitted_to_running_seconds"))
	r.api.setStatus(a, map[string]any{"phase": "Running"})
	r.feed(a).step()
	require.Equal(t, map[string]float64{testQuota: 1}, values("admitted_to_running_seconds"))
	for _, key := range []string{a, b} {
		r.drive.FeedUnit(r.api.get(key), true)
	}
	r.advance(2 * time.Second)
	for _, name := range []string{"pending_units", "admitted_units", "parked_units"} {
		for labels, value := range values(name) {
			require.Zero(t, value, "%s of %s", name, labels)
		}
	}
	require.Empty(t, values("ledger_outstanding"), "labels of what is gone are deleted")

	r.unit("c", 4)
	r.unit("d", 4, func(u *unstructured.Unstructured) { u.Object["spec"].(map[string]any)["queue"] = "other" })
	r.advance(2 * time.Second)
	require.Equal(t, map[string]float64{pair: 1, "/": 0}, values("pending_units"), "made up names are no labels")
	require.Equal(t, map[string]float64{pair: 0, "/": 1}, values("parked_units"))
	r.engine.core.Discard(recovery.Difference)
	r.engine.units.Remove(r.engine.units.Get("team/d")) // of which the next state does not know
	r.advance(2 * time.Second)
	require.Equal(t, map[string]float64{pair: 0}, values("pending_units"))
	require.Equal(t, map[string]float64{pair: 1}, values("admitted_units"), "what is in flight counts as held")
}

// A unit that was evicted has waited since then, also for the metrics.
func TestWaitsAreMeasuredSinceTheLastEviction(t *testing.T) {
	r := newRig(t, quotasOf(4, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	r.queueWith(testQuota, map[string]any{"waitObjectiveSeconds": int64(60)}).lead()
	evicted := r.engine.Clock.Now().Truncate(time.Second)
	created := evicted.Add(-time.Hour)
	since := func(at time.Time) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { u.SetCreationTimestamp(metav1.NewTime(at)) }
	}
	r.unit("first", 4, since(created.Add(-time.Second)))
	r.unit("evicted", 3, since(created), withStatus(map[string]any{"phase": "Enqueued", "conditions": []any{map[string]any{
		"type": "Evicted", "status": "True", "reason": "Reclaimed", "message": "",
		"lastTransitionTime": evicted.UTC().Format(time.RFC3339),
	}}}))
	r.advance(2 * time.Second)
	r.send()
	r.advance(2 * time.Second)
	longest := map[string]float64{testQuota: float64(evicted.Unix())}
	require.Equal(t, longest, gathered(t, registry, "longest_wait_start_seconds"))
	require.Equal(t, map[string]float64{testQuota: 60}, gathered(t, registry, "wait_objective_seconds"))
	of := testNamespace + "/" + testQuota
	require.Equal(t, map[string]float64{of: 1}, gathered(t, registry, "admission_wait_seconds"))
	r.drive.FeedNamespace(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": testNamespace},
	}}, true)
	r.advance(2 * time.Second)
	require.Empty(t, gathered(t, registry, "admission_wait_seconds"))
	require.Equal(t, longest, gathered(t, registry, "longest_wait_start_seconds"))
	r.engine.box.Queue(testQuota, nil)
	r.advance(2 * time.Second)
	require.Empty(t, gathered(t, registry, "longest_wait_start_seconds"))
	require.Empty(t, gathered(t, registry, "wait_objective_seconds"))
}

// The victims of a dry run are a metric as long as the queue has dryRun.
func TestVictimsOfDryRunsAreAMetric(t *testing.T) {
	r := newRig(t, quotasOf(2, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	queue := func(dryRun bool) {
		r.queueWith(testQuota, map[string]any{
			"preemption": map[string]any{"withinQueue": "LowerPriority", "dryRun": dryRun, "minRunTimeSeconds": int64(0)},
		})
	}
	queue(true)
	r.allows(testNamespace, "7").lead()
	r.job("low", "job-low").job("high", "job-high")
	r.unit("low", 2, withConsumer("job-low"), withStatus(map[string]any{
		"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
			map[string]any{"name": "main", "replicas": int64(2), "resources": map[string]any{"cpu": "2"}},
		},
	}))
	r.advance(2 * time.Second)
	require.Equal(t, map[string]float64{testQuota: 0}, gathered(t, registry, "dry_run_victims"))
	high := r.unit("high", 2, withConsumer("job-high"), func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "priority")
	})
	r.advance(2 * time.Second)
	require.Empty(t, r.of(statuswrite.Take))
	require.Equal(t, map[string]float64{testQuota: 1}, gathered(t, registry, "dry_run_victims"))
	info, _ := r.engine.asked.View().Unit(high)
	require.Equal(t, []string{"unit-low/1"}, info.DryRun.Holds)

	queue(false)
	r.advance(2 * time.Second)
	require.Len(t, r.of(statuswrite.Take), 1)
	require.Empty(t, gathered(t, registry, "dry_run_victims"))
}

// A unit that gives back what it has taken before a pod of it is on a node has taken that in vain.
func TestWhatIsTakenInVainIsCounted(t *testing.T) {
	r := newRig(t, quotasOf(2, testQuota))
	registry := kubemetrics.NewKubeRegistry()
	r.metrics.MustRegister(registry.MustRegister)
	inVain := func() float64 { return gathered(t, registry, "taken_in_vain_total")[""] }
	r.queueWith(testQuota, map[string]any{
		"preemption": map[string]any{"withinQueue": "LowerPriority", "minRunTimeSeconds": int64(0)},
	})
	r.allows(testNamespace, "7").lead()
	r.job("low", "job-low").job("high", "job-high")
	r.unit("low", 2, withConsumer("job-low"), withStatus(map[string]any{
		"phase": "Dequeued", "attempts": int64(1), "admissions": []any{
			map[string]any{"name": "main", "replicas": int64(2), "resources": map[string]any{"cpu": "2"}},
		},
	}))
	high := r.unit("high", 2, withConsumer("job-high"), withPriority(7))
	r.step()
	require.Len(t, r.of(statuswrite.Take), 1)
	w := r.of(statuswrite.Take)[0]
	r.engine.Settle(w.Do(t.Context(), r.api.rest))
	r.drop(w)
	r.step()
	r.send() // the other one loses it
	r.send()
	require.Equal(t, "Dequeued", r.phase(high))
	require.Zero(t, inVain(), "its pods may come yet")

	r.api.edit(high, func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, false, "spec", "active")
	})
	r.feed(high).step()
	r.send()
	require.Equal(t, "Enqueued", r.phase(high))
	require.Equal(t, 1.0, inVain())
}

func TestOutstandingIsToldAtOnce(t *testing.T) {
	r := ready(t, 10)
	told := map[string]string{}
	r.engine.gauges.OutstandingAt = func(quota string, list, limit resources.List) {
		told[quota] = list.String() + " of " + limit.String()
	}
	key := r.unit("a", 4)
	r.step()
	require.Equal(t, "cpu: 4 of cpu: 10", told[testQuota])
	r.quotas.set(testQuota, func(q *admission.Quota) { q.Limit = cpu(7) })
	r.engine.Sink().QuotaChanged(testQuota)
	r.step()
	require.Equal(t, "cpu: 4 of cpu: 7", told[testQuota])
	r.send(deleted)
	require.Equal(t, " of cpu: 7", told[testQuota])
	require.Nil(t, r.engine.units.Get(key))
}

// Nobody observes a quota for what others ask for: its runtime is computed from it.
func TestRuntimesFollowDemand(t *testing.T) {
	quotas := quotasOf(10, testQuota, "other")
	quotas.set(root, func(q *admission.Quota) { q.Terms.Part, q.Limit, q.Max = shares.Top, cpu(10), cpu(10) })
	for _, name := range []string{testQuota, "other"} {
		quotas.set(name, func(q *admission.Quota) {
			q.Limit, q.Min, q.Shared = resources.List{}, resources.List{}, true
			q.Terms = capacity.Terms{Part: shares.Sharing, Weight: cpu(1)}
		})
	}
	r := newRig(t, quotas)
	r.queue(testQuota).queue("other").lead()
	limit := func() string {
		info, _ := r.engine.asked.View().Quota(testQuota)
		return info.Limit.String()
	}
	r.unit("a", 8)
	r.step()
	require.Equal(t, "cpu: 8", limit())
	r.unit("b", 8, func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{v1alpha1.LabelQuotaName: "other"})
	})
	r.step()
	require.Equal(t, "cpu: 5", limit())
}

func TestAskAnswersAndSurvivesAPanic(t *testing.T) {
	r := ready(t, 4)
	r.unit("a", 4)
	r.unit("b", 3)
	r.step()
	r.send()
	ask := func(f func(questions.View)) error {
		errs := make(chan error, 1)
		go func() { errs <- r.engine.Ask(context.Background(), f) }()
		for {
			select {
			case err := <-errs:
				return err
			case <-r.engine.box.Signal:
				r.step()
			}
		}
	}
	require.NoError(t, ask(func(v questions.View) {
		require.True(t, v.Leading())
		queue, exists := v.Queue(testQuota)
		require.True(t, exists)
		require.Equal(t, 1, queue.Pending)
		page, waiting := v.Line(testQuota, 0, 10)
		require.Len(t, page, 1)
		require.Equal(t, 1, waiting)
		qu, ok := v.Unit(testNamespace + "/b")
		require.True(t, ok)
		require.Equal(t, 1, qu.Explanation.Position)
		require.Equal(t, unit.ReasonQuotaExceeded, qu.Reason)
		_, ok = v.Unit("no/where")
		require.False(t, ok)
	}))
	require.ErrorIs(t, ask(func(questions.View) { panic("a question") }), ErrPanicked)

	gone, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, r.engine.Ask(gone, func(questions.View) {}), context.Canceled)
}

func TestMailboxKeepsTheNewestState(t *testing.T) {
	box := mail.New()
	qu := func(version, uid string) *objects.Unit {
		u := &objects.Unit{Path: "ns/a", History: &objects.History{}}
		u.Namespace, u.Name, u.ResourceVersion, u.UID = "ns", "a", version, types.UID("uid-"+uid)
		return u
	}
	box.Unit(qu("10", "1"))
	box.Unit(qu("9", "1"))
	b := box.Drain()
	require.Len(t, b.Units.Items, 1)
	require.Equal(t, "10", b.Units.Items[0].Value.State.ResourceVersion)
	require.True(t, func() bool { d := box.Drain(); return d.Empty() }())

	box.Unit(qu("10", "1"))
	box.UnitGone(qu("11", "1"))
	box.Unit(qu("12", "2"))
	b = box.Drain()
	require.Len(t, b.Units.Items, 1)
	require.Equal(t, "uid-2", string(b.Units.Items[0].Value.State.UID))
}

// BenchmarkStep measures the cost of one event with many pending units.
func BenchmarkStep(b *testing.B) {
	for _, waiting := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			quotas := quotasOf(4, testQuota)
			clock := clocktesting.NewFakeClock(testStart)
			engine := drive(b, Options{
				Client: newFakeAPI(&testing.T{}).rest, Quotas: quotas, Clock: clock, Submit: func(*statuswrite.Write) {},
			})
			engine.FeedQueue(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": testQuota}}},
				false)
			object := func(i, version int) *objects.Unit {
				u := &objects.Unit{History: &objects.History{}, Quota: testQuota, QuotaKey: v1alpha1.LabelQuotaName,
					Path: fmt.Sprintf("%s/u%d", testNamespace, i), Request: cpu(int64(5 + i%8)), Pods: 1}
				u.Namespace, u.Name, u.UID, u.ResourceVersion = testNamespace, fmt.Sprintf("u%d", i), types.UID(fmt.Sprint("u", i)),
					fmt.Sprint(version)
				priority := int32(i % 10)
				u.Priority = &priority
				return u
			}
			for i := range waiting {
				engine.Engine.box.Unit(object(i, 1))
			}
			engine.Step()
			require.NoError(b, engine.Lead(context.Background()))
			event := func(n int) {
				engine.Engine.box.Unit(object(n%waiting, n+2))
				engine.Engine.Sink().QuotaChanged(testQuota)
				clock.Step(time.Microsecond)
				engine.Step()
			}
			for engine.Engine.due(clock.Now()) {
				engine.Step()
			}
			runtime.GC() // of what the making of the units left
			n := 0
			for b.Loop() {
				event(n)
				n++
			}
		})
	}
}

// Conditions that contradict each other never coexist, through admission, eviction and admission again (I9).
func TestConditionsAgree(t *testing.T) {
	r := ready(t, 10)
	key := r.unit("a", 4)
	setActive := func(active bool) {
		r.api.edit(key, func(u *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(u.Object, active, "spec", "active"))
		})
		r.feed(key).step()
	}
	conditions := func() map[string]metav1.ConditionStatus {
		u := unitFrom(r.api.get(key))
		require.Equal(t, u.Phase.Holds(), !u.Held.IsZero())
		found := map[string]metav1.ConditionStatus{}
		for _, c := range u.Conditions {
			found[c.Type] = c.Status
		}
		return found
	}
	r.step()
	r.send()
	require.Equal(t, map[string]metav1.ConditionStatus{
		v1alpha1.ConditionQuotaReserved: metav1.ConditionTrue, v1alpha1.ConditionAdmitted: metav1.ConditionTrue,
	}, conditions())
	r.api.edit(key, func(u *unstructured.Unstructured) {
		list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		ready := map[string]any{"type": v1alpha1.ConditionPodsReady, "status": "True", "reason": "PodsRunning"}
		require.NoError(t, unstructured.SetNestedSlice(u.Object, append(list, ready), "status", "conditions"))
	})
	setActive(false)
	r.send()
	require.Equal(t, map[string]metav1.ConditionStatus{
		v1alpha1.ConditionQuotaReserved: metav1.ConditionFalse, v1alpha1.ConditionAdmitted: metav1.ConditionFalse,
		v1alpha1.ConditionEvicted: metav1.ConditionTrue, v1alpha1.ConditionPodsReady: metav1.ConditionFalse,
	}, conditions())
	setActive(true)
	r.send()
	require.Equal(t, map[string]metav1.ConditionStatus{
		v1alpha1.ConditionQuotaReserved: metav1.ConditionTrue, v1alpha1.ConditionAdmitted: metav1.ConditionTrue,
		v1alpha1.ConditionEvicted: metav1.ConditionFalse, v1alpha1.ConditionPodsReady: metav1.ConditionFalse,
	}, conditions())
}
