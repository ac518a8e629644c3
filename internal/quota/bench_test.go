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

package quota

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	queueapi "github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/transport"
)

// benchShape is a cluster with many quotas. Every leaf has min 4, max 16 and a share of 8 of the total, in cpu, so max
// is never enough for all. Jobs ask for 1 to 8.
type benchShape struct {
	leaves, depth, waiting int
	runtime                bool
}

func (s benchShape) String() string {
	limit := "runtime"
	if !s.runtime {
		limit = "max"
	}
	return fmt.Sprintf("limit=%s/depth=%d/quotas=%d/waiting=%d", limit, s.depth, s.leaves, s.waiting)
}

// benchShapes: depth counts the root. Parents have 20 children.
func benchShapes() []benchShape {
	var shapes []benchShape
	for _, byRuntime := range []bool{true, false} {
		for _, leaves := range []int{10, 100, 1000, 5000} {
			for _, waiting := range []int{1000, 100_000} {
				shapes = append(shapes, benchShape{leaves: leaves, depth: 2, waiting: waiting, runtime: byRuntime})
			}
		}
		for _, depth := range []int{3, 4} {
			shapes = append(shapes, benchShape{leaves: 1000, depth: depth, waiting: 1000, runtime: byRuntime})
			shapes = append(shapes, benchShape{leaves: 1000, depth: depth, waiting: 100_000, runtime: byRuntime})
		}
	}
	return shapes
}

const benchFan = 20

// benchTrail is the step of the clock: some hundred jobs begin and end in a second, in which counters are exported
// once.
const benchTrail = time.Millisecond

func amounts(cpus int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cpus, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(cpus<<30, resource.BinarySI),
	}
}

func benchQuota(name, parent string, leaves int64, options ...quotaOption) *v1alpha1.ElasticQuota {
	q := elasticQuota(name, "0", "0", append(options, under(parent))...)
	q.Spec.Min, q.Spec.Max = amounts(4*leaves), amounts(16*leaves)
	return q
}

// tree lists the quotas, parents first.
func (s benchShape) tree() []*v1alpha1.ElasticQuota {
	var quotas []*v1alpha1.ElasticQuota
	names := []string{""}
	for above := s.depth - 2; above > 0; above-- {
		width := s.leaves
		for range above {
			width = (width + benchFan - 1) / benchFan
		}
		next := make([]string, width)
		for i := range next {
			next[i] = fmt.Sprintf("p%d-%04d", above, i)
			quotas = append(quotas, benchQuota(next[i], names[i*len(names)/width], int64(s.leaves/width), isParent))
		}
		names = next
	}
	for i := range s.leaves {
		quotas = append(quotas, benchQuota(benchLeaf(i), names[i*len(names)/s.leaves], 1))
	}
	return append(quotas, benchQuota(benchIdle, names[0], 1))
}

// benchIdle is a further leaf that nobody uses.
const benchIdle = "idle"

func benchLeaf(i int) string { return fmt.Sprintf("leaf-%04d", i) }

// setAll sets quotas as ElasticQuota does when it starts.
func (l *liveQuotas) setAll(quotas []*v1alpha1.ElasticQuota) {
	for _, q := range quotas {
		l.specs[q.Name] = q
		l.mgr.UpdateQuotaInfo(q)
	}
	l.mgr.ResetQuota()
	for _, q := range quotas {
		l.adapter.onQuota(nil, q)
	}
}

// benchWorld is the engine on the adapter on a live manager, driven step by step. The work of informers and writers is
// done between the steps. stepTime is that of the engine.
type benchWorld struct {
	b        *testing.B
	shape    benchShape
	live     *liveQuotas
	client   *dynamicfake.FakeDynamicClient
	rest     rest.Interface // to the same objects
	engine   *engine.Driver
	clock    *clocktesting.FakeClock
	units    map[string]*unstructured.Unstructured
	pods     map[string]*corev1.Pod
	writes   []*statuswrite.Write
	running  []string
	next     int
	version  int
	stepTime time.Duration
}

var benchStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newBenchWorld(b *testing.B, shape benchShape) *benchWorld {
	b.Helper()
	w := newEmptyWorld(b, shape)
	for range shape.waiting + 2*shape.leaves {
		w.submit()
	}
	w.step()
	w.carryOut()
	require.Greater(b, len(w.running), shape.leaves)
	require.Empty(b, w.writes)
	return w
}

// newEmptyWorld has quotas and queues, and no unit.
func newEmptyWorld(b *testing.B, shape benchShape) *benchWorld {
	b.Helper()
	w := &benchWorld{
		b: b, shape: shape, clock: clocktesting.NewFakeClock(benchStart),
		units: map[string]*unstructured.Unstructured{}, pods: map[string]*corev1.Pod{},
	}
	w.live = newLive(b, shape.runtime, "")
	total := amounts(8 * int64(shape.leaves))
	w.live.setNodes(total)
	w.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(apiruntime.NewScheme(),
		map[schema.GroupVersionResource]string{
			queueapi.QueueUnitResource: "QueueUnitList",
		})
	w.client.PrependReactor("patch", "*", w.patch)
	var err error
	w.rest, err = objects.NewClient(transport.Config(w.client))
	require.NoError(b, err)
	e, err := engine.New(engine.Options{
		Client: w.rest, Quotas: w.live.adapter, Clock: w.clock, Outstanding: w.live.adapter.SetOutstanding,
		Submit: func(write *statuswrite.Write) { w.writes = append(w.writes, write) },
		// Reasons and the statuses of queues are written on a clock of their own.
		Config: engine.Config{ReportAfter: time.Hour, ResyncInterval: time.Hour, TrailingCheck: benchTrail},
	})
	require.NoError(b, err)
	w.engine = engine.Drive(e)
	w.live.adapter.Subscribe(w.engine.Engine.Sink())
	w.live.setAll(shape.tree())
	for i := range shape.leaves {
		w.engine.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": benchLeaf(i), "namespace": queueapi.DefaultQueueNamespace,
				"uid": benchLeaf(i), "resourceVersion": "1"},
			"spec": map[string]any{"queuePolicy": "Priority"},
		}}, false)
	}
	require.NoError(b, w.engine.Lead(b.Context()))
	w.step()
	return w
}

// ready builds the world once for all runs of a benchmark: they leave it as they found it.
func (w *benchWorld) ready(b *testing.B, shape benchShape) *benchWorld {
	if w == nil {
		return newBenchWorld(b, shape)
	}
	w.b = b
	return w
}

func (w *benchWorld) step() {
	before := threadTime(w.b)
	w.engine.Step()
	w.stepTime += threadTime(w.b) - before
}

// threadTime is the processor time that this thread has had: what else runs on the machine is not in it.
func threadTime(b *testing.B) time.Duration {
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent); err != nil {
		b.Fatal(err)
	}
	return time.Duration(spent.Nano())
}

// allocated is how many bytes this process has asked for.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// trail has what changed observed once more.
func (w *benchWorld) trail() {
	w.clock.Step(benchTrail)
	w.step()
}

// carryOut does what the engine asks for until it asks for nothing more: writes are confirmed, and pods start.
func (w *benchWorld) carryOut() {
	for {
		running := len(w.running)
		w.settle()
		w.step()
		for _, key := range w.running[running:] {
			w.start(key)
		}
		w.trail()
		if len(w.writes) == 0 {
			return
		}
	}
}

func (w *benchWorld) submit() {
	i := w.next
	w.next++
	cpus := int64(1 + (i+3*(i/w.shape.leaves))%8)
	quota, name := benchLeaf(i%w.shape.leaves), fmt.Sprintf("unit-%08d", i)
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"name": name, "namespace": "team", "uid": name, "resourceVersion": "1",
			"creationTimestamp": benchStart.Add(time.Duration(i) * time.Millisecond).Format(time.RFC3339),
			"labels":            map[string]any{extension.LabelQuotaName: quota},
		},
		"spec": map[string]any{
			"request": map[string]any{"cpu": strconv.FormatInt(cpus, 10), "memory": strconv.FormatInt(cpus, 10) + "Gi"},
			"podSet":  []any{map[string]any{"name": "main", "count": int64(1)}},
		},
	}}
	w.units["team/"+name] = u
	pod := w.live.pod(name, quota, "0")
	pod.Namespace = "team"
	pod.Annotations = map[string]string{queueapi.AnnotationRelatedQueueUnit: "team/" + name}
	pod.Spec.Containers[0].Resources.Requests = amounts(cpus)
	w.pods["team/"+name] = pod
	w.engine.FeedUnit(u, false)
}

// settle carries out the writes; the API server says yes.
func (w *benchWorld) settle() {
	writes := w.writes
	w.writes = nil
	for _, write := range writes {
		w.engine.Engine.Settle(write.Do(w.b.Context(), w.rest))
	}
	w.client.ClearActions()
}

func (w *benchWorld) patch(action kubetesting.Action) (bool, apiruntime.Object, error) {
	patch := action.(kubetesting.PatchAction)
	if patch.GetResource().Resource != "queueunits" {
		return true, &unstructured.Unstructured{Object: map[string]any{}}, nil
	}
	var sent struct{ Status map[string]any }
	if err := json.Unmarshal(patch.GetPatch(), &sent); err != nil {
		return true, nil, err
	}
	key := patch.GetNamespace() + "/" + patch.GetName()
	u := w.units[key].DeepCopy()
	w.version++
	u.SetResourceVersion(strconv.Itoa(1 + w.version))
	u.Object["status"] = sent.Status
	w.units[key] = u
	w.running = append(w.running, key)
	return true, u, nil
}

// start makes the pod of an admitted unit and reserves it.
func (w *benchWorld) start(key string) {
	pod := w.pods[key]
	w.live.addPod(pod)
	w.engine.FeedPod(pod, false, false)
	w.live.mgr.ReservePod(w.live.GetQuotaName(pod), pod)
}

// finish ends the oldest running unit: its pod goes, and then its unit.
func (w *benchWorld) finish() {
	key := w.running[0]
	w.running = w.running[1:]
	w.endPod(key)
	w.engine.FeedUnit(w.units[key], true)
	delete(w.units, key)
	delete(w.pods, key)
}

func (w *benchWorld) endPod(key string) {
	pod := w.pods[key]
	w.live.mgr.OnPodDelete(w.live.GetQuotaName(pod), pod)
	w.live.adapter.onPod(pod, nil)
	w.engine.FeedPod(pod, true, false)
}

// reset starts the measurement. The thread is kept so that its time is the benchmark's.
func (w *benchWorld) reset() {
	runtime.LockOSThread()
	w.b.Cleanup(runtime.UnlockOSThread)
	w.b.ReportAllocs()
	w.b.ResetTimer()
	w.stepTime = 0
}

// BenchmarkAdmission ends a job and submits another. The jobs that now fit are admitted, and their pods start. cycle-ns
// is the step that frees and admits. steps-ns is all work of the engine for one such life. Both are processor time.
// ns/op is wall time, with the live manager, the informers and the API server in memory.
func BenchmarkAdmission(b *testing.B) {
	for _, shape := range benchShapes() {
		var w *benchWorld
		b.Run(shape.String(), func(b *testing.B) {
			w = w.ready(b, shape)
			var cycle time.Duration
			admitted := 0
			w.reset()
			for range b.N {
				w.finish()
				w.submit()
				before, running := w.stepTime, len(w.running)
				w.step()
				cycle += w.stepTime - before
				w.carryOut()
				admitted += len(w.running) - running
			}
			b.StopTimer()
			b.ReportMetric(float64(cycle.Nanoseconds())/float64(b.N), "cycle-ns/op")
			b.ReportMetric(float64(w.stepTime.Nanoseconds())/float64(b.N), "steps-ns/op")
			b.ReportMetric(float64(admitted)/float64(b.N), "admitted/op")
		})
	}
}

// BenchmarkUsage reserves a pod without a job, and ends it in the next operation. In a busy leaf, demand exceeds the
// total, so the limits of others stay. In an idle leaf, the pod moves the limit of every quota on its level whose
// demand exceeds its limit.
func BenchmarkUsage(b *testing.B) {
	for _, shape := range benchShapes() {
		var w *benchWorld
		for _, leaf := range []string{benchLeaf(shape.leaves / 2), benchIdle} {
			name := map[bool]string{true: "idle", false: "busy"}[leaf == benchIdle]
			b.Run(shape.String()+"/leaf="+name, func(b *testing.B) {
				w = w.ready(b, shape)
				pod := w.live.pod("plain", leaf, "0")
				pod.Spec.Containers[0].Resources.Requests = amounts(1)
				end := func() {
					w.live.mgr.OnPodDelete(leaf, pod)
					w.live.adapter.onPod(pod, nil)
				}
				w.reset()
				for i := range b.N {
					if i%2 == 0 {
						w.live.addPod(pod)
						w.live.mgr.ReservePod(leaf, pod)
					} else {
						end()
					}
					w.trail()
				}
				b.StopTimer()
				b.ReportMetric(float64(w.stepTime.Nanoseconds())/float64(b.N), "steps-ns/op")
				end()
				w.trail()
			})
		}
	}
}

// BenchmarkPlainPods creates, reserves and binds 200 pods outside of jobs per second, in all quotas in turn. Either no
// unit exists, or many are pending and one of each quota holds a reservation. All figures are processor time:
// handlers-ns of informers and hook for one pod, steps-ns and steps-B of the engine's steps. ns/op also has the live
// manager, which works without the plugin as well.
func BenchmarkPlainPods(b *testing.B) {
	const apart = time.Second / 200
	shape := benchShape{leaves: 100, depth: 3, runtime: true}
	for _, waiting := range []int{0, 10_000} {
		var w *benchWorld
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			if w == nil {
				w = newPlainWorld(b, shape, waiting)
			}
			w.b = b
			pods := make([]*corev1.Pod, b.N)
			bound := make([]*corev1.Pod, b.N)
			for i := range pods {
				pods[i] = w.live.pod(fmt.Sprintf("plain-%d", i), benchLeaf(i%shape.leaves), "0")
				pods[i].UID = types.UID(pods[i].Name)
				pods[i].Spec.Containers[0].Resources.Requests = amounts(1)
				bound[i] = pods[i].DeepCopy()
				bound[i].Spec.NodeName = "n"
			}
			var handlers time.Duration
			var news, wake time.Time
			steps, bytes, hook := 0, uint64(0), &hook{shared: w.live.adapter}
			quotas := w.live.adapter
			// happens is what is the plugin's when a pod is heard of.
			happens := func(f func()) {
				before := threadTime(b)
				f()
				handlers += threadTime(b) - before
				if news.IsZero() {
					news = w.clock.Now()
				}
			}
			w.reset()
			for i, pod := range pods {
				leaf := benchLeaf(i % shape.leaves)
				w.live.mgr.OnPodAdd(leaf, pod)
				happens(func() {
					quotas.onPod(nil, pod)
					w.engine.FeedPod(pod, false, false)
				})
				w.live.mgr.ReservePod(leaf, pod)
				w.live.mgr.OnPodUpdate(leaf, leaf, bound[i], pod)
				happens(func() {
					hook.OnPodUpdated(leaf, pod, bound[i])
					quotas.onPod(pod, bound[i])
					w.engine.FeedPod(bound[i], false, false)
				})
				for next := w.clock.Now().Add(apart); ; steps++ {
					at := news.Add(w.engine.Gather())
					if news.IsZero() || (!wake.IsZero() && wake.Before(at)) {
						at = wake
					}
					if at.IsZero() || at.After(next) {
						w.clock.SetTime(next)
						break
					}
					w.clock.SetTime(at)
					before, garbage := threadTime(b), allocated()
					wake, news = w.engine.Step(), time.Time{}
					w.stepTime += threadTime(b) - before
					bytes += allocated() - garbage
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(handlers.Nanoseconds())/float64(b.N), "handlers-ns/op")
			b.ReportMetric(float64(w.stepTime.Nanoseconds())/float64(b.N), "steps-ns/op")
			b.ReportMetric(float64(bytes)/float64(b.N), "steps-B/op")
			b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
			for i, pod := range bound {
				w.live.mgr.OnPodDelete(benchLeaf(i%shape.leaves), pod)
				quotas.onPod(pod, nil)
			}
			w.trail()
		})
	}
}

// newPlainWorld has units that wait, and some that are admitted and whose pods do not come.
func newPlainWorld(b *testing.B, shape benchShape, waiting int) *benchWorld {
	b.Helper()
	w := newEmptyWorld(b, shape)
	for range waiting {
		w.submit()
	}
	w.step()
	w.settle()
	w.step()
	return w
}

// BenchmarkRefreshRuntime: what one call of Koordinator's own calculation costs after the request of one quota changed.
func BenchmarkRefreshRuntime(b *testing.B) {
	for _, depth := range []int{2, 3, 4} {
		for _, leaves := range []int{10, 100, 1000, 5000} {
			shape := benchShape{leaves: leaves, depth: depth, runtime: true}
			b.Run(fmt.Sprintf("depth=%d/quotas=%d", depth, leaves), func(b *testing.B) {
				live := newLive(b, true, "")
				live.setNodes(amounts(8 * int64(leaves)))
				live.setAll(shape.tree())
				pods := make([]*corev1.Pod, leaves)
				for i := range pods {
					pods[i] = live.pod(fmt.Sprintf("p%d", i), benchLeaf(i), "0")
					pods[i].UID = types.UID(pods[i].Name)
					pods[i].Spec.Containers[0].Resources.Requests = amounts(int64(10 + i%4))
					live.mgr.OnPodAdd(benchLeaf(i), pods[i])
				}
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					leaf := i % leaves
					b.StopTimer()
					next := pods[leaf].DeepCopy()
					next.Spec.Containers[0].Resources.Requests = amounts(int64(10 + (i/leaves+leaf+1)%4))
					live.mgr.OnPodUpdate(benchLeaf(leaf), benchLeaf(leaf), next, pods[leaf])
					pods[leaf] = next
					b.StartTimer()
					live.mgr.RefreshRuntime(benchLeaf(leaf))
				}
			})
		}
	}
}
