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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	kubetesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/apis/kueue/v1beta1"
	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/intake"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/quotawatch"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/transport"
)

const (
	testNamespace = "team"
	testQuota     = "team-quota"
	root          = "koordinator-root-quota"
)

var testStart = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fault is what becomes of one status patch.
type fault int

const (
	none       fault = iota
	conflict         // somebody changed the object just before
	lost             // the request times out and was not applied
	lostAnswer       // the request times out and was applied
	refused          // 422
	forbidden        // 403
	deleted          // the object goes just before
	overloaded       // 429
	broken           // 500, not applied
	recreated        // the object goes and another of that name comes just before
)

// fakeAPI has the semantics of the API server that the write protocol depends on: versions, conflicts, lost answers.
type fakeAPI struct {
	t       *testing.T
	client  *dynamicfake.FakeDynamicClient
	rest    rest.Interface // to the same objects
	version atomic.Int64
	mu      sync.Mutex // guards what follows where an engine runs in goroutines of its own
	// faults of the next status patches of units, in their order; then none.
	faults []fault
	// patches that were applied, and those that were asked for, by unit.
	applied, asked map[string]int
}

func newFakeAPI(t *testing.T) *fakeAPI {
	scheme := runtime.NewScheme()
	api := &fakeAPI{t: t, applied: map[string]int{}, asked: map[string]int{}}
	api.client = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
		v1alpha1.QueueUnitResource: "QueueUnitList",
		v1alpha1.QueueResource:     "QueueList",
		intake.PriorityClasses:     "PriorityClassList",

		v1beta1.AdmissionCheckResources[0]: "AdmissionCheckList",
		v1beta1.AdmissionCheckResources[1]: "AdmissionCheckList",
	})
	api.client.PrependReactor("patch", "queueunits", api.patchUnit)
	api.rest = restOf(api.client)
	return api
}

// restOf is the client of an engine to these objects.
func restOf(api dynamic.Interface) rest.Interface {
	client, err := objects.NewClient(transport.Config(api))
	utilruntime.Must(err)
	return client
}

// unitFrom and queueFrom are the objects as an engine reads them.
func unitFrom(obj json.Marshaler) *objects.Unit {
	return objects.DecodeUnit(sent[objects.WireUnit](obj))
}

func queueFrom(obj json.Marshaler, policy string) *objects.Queue {
	return objects.DecodeQueue(sent[objects.WireQueue](obj), policy, queue.Timeouts{})
}

func (a *fakeAPI) count(counts map[string]int, key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts[key]++
}

func (a *fakeAPI) next() fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.faults) == 0 {
		return none
	}
	f := a.faults[0]
	a.faults = a.faults[1:]
	return f
}

var timeout = apierrors.NewTimeoutError("the request timed out", 0)

func (a *fakeAPI) patchUnit(action kubetesting.Action) (bool, runtime.Object, error) {
	patch := action.(kubetesting.PatchAction)
	key := patch.GetNamespace() + "/" + patch.GetName()
	gr := v1alpha1.QueueUnitResource.GroupResource()
	require.Equal(a.t, "status", patch.GetSubresource())
	require.Equal(a.t, types.MergePatchType, patch.GetPatchType())
	a.count(a.asked, key)
	f := a.next()
	switch f {
	case lost:
		return true, nil, timeout
	case overloaded:
		return true, nil, apierrors.NewTooManyRequests("slow down", 0)
	case broken:
		return true, nil, apierrors.NewInternalError(fmt.Errorf("etcd has no leader"))
	case refused:
		return true, nil, apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: "QueueUnit"}, patch.GetName(), nil)
	case forbidden:
		return true, nil, apierrors.NewForbidden(gr, patch.GetName(), fmt.Errorf("not yours"))
	case conflict:
		a.edit(key, func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"edited": "yes"}) })
	case deleted:
		a.delete(key)
	case recreated:
		u := a.get(key)
		a.delete(key)
		u.SetUID(u.GetUID() + "-2")
		unstructured.RemoveNestedField(u.Object, "status")
		a.create(u)
	case none, lostAnswer: // the patch is applied below
	}
	u := a.get(key)
	if u == nil {
		return true, nil, apierrors.NewNotFound(gr, patch.GetName())
	}
	var sent struct {
		Metadata struct{ ResourceVersion, UID string }
		Status   map[string]any
	}
	require.NoError(a.t, json.Unmarshal(patch.GetPatch(), &sent))
	if sent.Metadata.ResourceVersion != u.GetResourceVersion() || sent.Metadata.UID != string(u.GetUID()) {
		return true, nil, apierrors.NewConflict(gr, patch.GetName(), fmt.Errorf("the object has been modified"))
	}
	a.count(a.applied, key)
	a.edit(key, func(u *unstructured.Unstructured) {
		status, _ := u.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		maps.Copy(status, sent.Status)
		u.Object["status"] = runtime.DeepCopyJSON(asJSON(a.t, status))
	})
	if f == lostAnswer {
		return true, nil, timeout
	}
	return true, a.get(key), nil
}

// asJSON gives numbers the types that unstructured objects have.
func asJSON(t *testing.T, fields map[string]any) map[string]any {
	raw, err := json.Marshal(fields)
	require.NoError(t, err)
	var u unstructured.Unstructured
	raw = []byte(`{"kind":"X","apiVersion":"v1","status":` + string(raw) + `}`)
	require.NoError(t, u.UnmarshalJSON(raw))
	return u.Object["status"].(map[string]any)
}

func split(key string) (namespace, name string) {
	for i := range key {
		if key[i] == '/' {
			return key[:i], key[i+1:]
		}
	}
	return "", key
}

func (a *fakeAPI) get(key string) *unstructured.Unstructured {
	namespace, name := split(key)
	obj, err := a.client.Tracker().Get(v1alpha1.QueueUnitResource, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(a.t, err)
	return obj.(*unstructured.Unstructured).DeepCopy()
}

func (a *fakeAPI) edit(key string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := a.get(key)
	change(u)
	u.SetResourceVersion(strconv.FormatInt(1000+a.version.Add(1), 10))
	require.NoError(a.t, a.client.Tracker().Update(v1alpha1.QueueUnitResource, u, u.GetNamespace()))
	return u
}

func (a *fakeAPI) create(u *unstructured.Unstructured) {
	u.SetResourceVersion(strconv.FormatInt(1000+a.version.Add(1), 10))
	require.NoError(a.t, a.client.Tracker().Create(v1alpha1.QueueUnitResource, u, u.GetNamespace()))
}

func (a *fakeAPI) delete(key string) {
	namespace, name := split(key)
	require.NoError(a.t, a.client.Tracker().Delete(v1alpha1.QueueUnitResource, namespace, name))
}

// setStatus is somebody else writing fields of a status.
func (a *fakeAPI) setStatus(key string, fields map[string]any) *unstructured.Unstructured {
	return a.edit(key, func(u *unstructured.Unstructured) {
		status, _ := u.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		maps.Copy(status, asJSON(a.t, fields))
		u.Object["status"] = status
	})
}

// fakeQuotas is a tree of quotas in memory.
type fakeQuotas struct {
	levels    map[string]admission.Quota
	byNS      map[string]string
	panicking bool
	observed  int
	onObserve func()
	// total that was observed last.
	total resources.List
}

func (q *fakeQuotas) Resolve(namespace string, labels map[string]string) string {
	if q.panicking {
		panic("quotas are broken")
	}
	for _, value := range labels {
		return value
	}
	if name := q.byNS[namespace]; name != "" {
		return name
	}
	return quotawatch.DefaultQuota
}

func (q *fakeQuotas) Observe(names []string) (found []admission.Quota, gone []string) {
	if q.panicking {
		panic("quotas are broken")
	}
	q.observed++
	if q.onObserve != nil {
		q.onObserve()
	}
	seen := map[string]bool{}
	for _, name := range names {
		if _, ok := q.levels[name]; !ok {
			gone = append(gone, name)
		}
		for at := name; at != ""; at = q.levels[at].Parent {
			if level, ok := q.levels[at]; ok && !seen[at] {
				if at == root {
					q.total = level.Max
				}
				seen[at] = true
				found = append(found, level)
			}
		}
	}
	return found, gone
}

func (q *fakeQuotas) TotalMoved() bool {
	if q.panicking {
		panic("quotas are broken")
	}
	return q.observed > 0 && !q.levels[root].Max.Same(q.total)
}

func (q *fakeQuotas) All() []string {
	names := slices.Sorted(maps.Keys(q.levels))
	return slices.DeleteFunc(names, func(name string) bool { return name == root })
}

func (q *fakeQuotas) set(name string, change func(*admission.Quota)) {
	level := q.levels[name]
	change(&level)
	q.levels[name] = level
}

func cpu(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n * 1000}) }

func quotasOf(limit int64, names ...string) *fakeQuotas {
	q := &fakeQuotas{levels: map[string]admission.Quota{}, byNS: map[string]string{}}
	q.levels[root] = admission.Quota{Name: root, Limit: cpu(1000), Max: cpu(1000)}
	for _, name := range append(names, quotawatch.DefaultQuota) {
		q.levels[name] = admission.Quota{Name: name, Parent: root, Limit: cpu(limit), Max: cpu(limit), Min: cpu(limit)}
	}
	return q
}

// rig drives an engine step by step: only the calls of a test have an effect.
type rig struct {
	t         *testing.T
	api       *fakeAPI
	quotas    *fakeQuotas
	clock     *clocktesting.FakeClock
	engine    *Engine
	drive     *Driver
	submitted []*statuswrite.Write
	activated []string
	metrics   *metrics.Set
	wake      time.Time
}

func newRig(t *testing.T, quotas *fakeQuotas) *rig {
	return rigOn(t, newFakeAPI(t), quotas, clocktesting.NewFakeClock(testStart))
}

// rigOn is another process on the same API, perhaps with another configuration.
func rigOn(
	t *testing.T, api *fakeAPI, quotas *fakeQuotas, clock *clocktesting.FakeClock, configure ...func(*Config),
) *rig {
	t.Helper()
	predicate, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	r := &rig{t: t, api: api, quotas: quotas, clock: clock, metrics: metrics.New(metrics.Scheduler)}
	config := Config{PartialAdmission: true}
	for _, f := range configure {
		f(&config)
	}
	r.drive = drive(t, Options{
		Config: config,
		Client: api.rest, Metadata: metadataOf{api.client}, Quotas: quotas, Clock: clock,
		Predicate: predicate, Metrics: r.metrics,
		Submit: func(w *statuswrite.Write) { r.submitted = append(r.submitted, w) },
		Activate: func(pods map[string]*corev1.Pod) {
			r.activated = append(r.activated, slices.Sorted(maps.Keys(pods))...)
		},
	})
	r.engine = r.drive.Engine
	r.engine.Log = logr.Discard()
	return r
}

// drive makes an engine of which the test makes every step.
func drive(t testing.TB, o Options) *Driver {
	t.Helper()
	e, err := New(o)
	require.NoError(t, err)
	return Drive(e)
}

func (r *rig) step() { r.wake = r.drive.Step() }

func (r *rig) lead() *rig {
	r.t.Helper()
	require.NoError(r.t, r.drive.Lead(context.Background()))
	r.step()
	return r
}

// feed gives the engine the unit as the API has it now.
func (r *rig) feed(key string) *rig {
	u := r.api.get(key)
	require.NotNil(r.t, u)
	r.drive.FeedUnit(u, false)
	return r
}

// send sends the oldest decision that was handed to the writers, once.
func (r *rig) send(faults ...fault) statuswrite.Result {
	r.t.Helper()
	w := r.decision()
	r.api.faults = faults
	result := w.Do(context.Background(), r.api.rest)
	if result.Outcome == transition.Confirmed && result.Fresh != nil {
		r.says(w, result.Fresh)
	}
	r.engine.Settle(result)
	if result.Outcome != transition.Unknown {
		r.drop(w)
	}
	r.step()
	return result
}

// says compares the object after a patch with the core's expectation of the write.
func (r *rig) says(w *statuswrite.Write, fresh *objects.Unit) {
	r.t.Helper()
	want, got := *w.Decision.Of(), r.engine.facts.resolve(fresh)
	if w.Decision.Apply(w.Decided, &want); got.Phase == unit.PhaseRunning {
		want.Phase = got.Phase // the object was read after the controller's write
	}
	said := func(u *unit.Unit) map[string]any {
		var checks []string
		if u.Checks != nil {
			for _, a := range u.Checks.Answers {
				checks = append(checks, a.Name+" "+string(a.State))
			}
		}
		return map[string]any{
			"phase": u.Phase, "attempts": u.Attempts, "held": u.Wants().String(), "for": max(u.HeldPods, 1),
			"recorded": u.Recorded, "takes": u.Preempts, "requeue at": u.RequeueAt.Unix(), "requeues": u.Requeues,
			"kept": u.Kept, "quota": u.Quota, "chosen": u.Chosen, "request": u.Request.String(), "pods": u.Pods,
			"checks": checks, "executed": u.Executed.Round(time.Second), "deactivated": u.Deactivate != nil,
			"ready": u.Ready, "resize": u.ResizePending != 0, "moves to": u.MovesTo, "admitted": u.Admitted.Unix(),
		}
	}
	require.Equal(r.t, said(&want), said(&got), "a write of kind %s", w.Kind)
}

func (r *rig) drop(w *statuswrite.Write) {
	r.submitted = slices.DeleteFunc(r.submitted, func(x *statuswrite.Write) bool { return x == w })
}

func (r *rig) decision() *statuswrite.Write {
	r.t.Helper()
	decisions := r.decisions()
	require.NotEmpty(r.t, decisions, "no decision was made")
	return decisions[0]
}

func (r *rig) decisions() []*statuswrite.Write {
	return r.of(statuswrite.Admit, statuswrite.Dequeue, statuswrite.Evict)
}

func (r *rig) of(kinds ...statuswrite.Kind) []*statuswrite.Write {
	var out []*statuswrite.Write
	for _, w := range r.submitted {
		if slices.Contains(kinds, w.Kind) && !w.Dropped() {
			out = append(out, w)
		}
	}
	return out
}

// keysOf names the units of writes.
func keysOf(writes []*statuswrite.Write) []string {
	var out []string
	for _, w := range writes {
		out = append(out, w.Key.Name)
	}
	return out
}

func (r *rig) advance(d time.Duration) {
	r.clock.Step(d)
	r.step()
}

func (r *rig) phase(key string) string {
	u := r.api.get(key)
	require.NotNil(r.t, u)
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	return phase
}

func (r *rig) outstanding(quota string) string {
	return r.engine.core.Read().Holdings().Read(quota).Outstanding().List().String()
}

func (r *rig) sound() {
	r.t.Helper()
	require.Empty(r.t, r.engine.core.Read().Audit().Ledger(), "the ledger differs from its rebuild")
}

func (r *rig) queue(name string) *rig {
	return r.queueWith(name, map[string]any{"queuePolicy": "Priority"})
}

func (r *rig) queueWith(name string, spec map[string]any) *rig {
	r.drive.FeedQueue(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "Queue",
		"metadata": map[string]any{"name": name, "namespace": v1alpha1.DefaultQueueNamespace,
			"uid": "queue-" + name, "resourceVersion": "1"},
		"spec": spec,
	}}, false)
	return r
}

// unit creates a unit that asks for cpu and feeds it.
func (r *rig) unit(name string, cpus int, change ...func(*unstructured.Unstructured)) string {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "QueueUnit",
		"metadata": map[string]any{
			"name": name, "namespace": testNamespace, "uid": "unit-" + name,
			"creationTimestamp": testStart.Format(time.RFC3339),
			"labels":            map[string]any{v1alpha1.LabelQuotaName: testQuota},
		},
		"spec": map[string]any{
			"priority": int64(0),
			"request":  map[string]any{"cpu": strconv.Itoa(cpus)},
			"podSet":   []any{map[string]any{"name": "main", "count": int64(max(cpus, 1))}}, // of one cpu each
		},
		"status": map[string]any{"phase": "Enqueued"},
	}}
	for _, f := range change {
		f(u)
	}
	r.api.create(u)
	key := testNamespace + "/" + name
	r.feed(key)
	return key
}

func withConsumer(uid string) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedMap(u.Object, map[string]any{
			"apiVersion": "batch/v1", "kind": "Job", "name": u.GetName(), "namespace": u.GetNamespace(), "uid": uid,
		}, "spec", "consumerRef")
	}
}

func withStatus(fields map[string]any) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) { u.Object["status"] = fields }
}

func (r *rig) job(name, uid string) *rig {
	r.drive.FeedJob("Job.v1.batch", testNamespace, name, types.UID(uid), nil, false)
	return r
}

func podFor(name, owner string, cpus string) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testNamespace, Name: name, UID: types.UID("pod-" + name),
			Labels: map[string]string{v1alpha1.LabelQuotaName: testQuota},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpus)},
		}}}},
	}
	if owner != "" {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "batch/v1", Kind: "Job", UID: types.UID(owner), Controller: &yes},
		}
	}
	return pod
}

// ready is a leading rig with one queue and one quota.
func ready(t *testing.T, limit int64) *rig {
	r := newRig(t, quotasOf(limit, testQuota))
	r.queue(testQuota)
	return r.lead()
}

// readUnit reads the text of a unit.
func readUnit(t testing.TB, text string) *objects.Unit {
	t.Helper()
	w := &objects.WireUnit{}
	require.NoError(t, utiljson.Unmarshal([]byte(text), w))
	return objects.DecodeUnit(w)
}

// unitOf a pod, as the engine has it.
func unitOf(r *rig, pod types.UID) string {
	key, _ := r.engine.pods.ToldOf(pod)
	return key
}

// toldOf a pod is what the core was told.
func toldOf(r *rig, pod types.UID) admission.Pod {
	_, as := r.engine.pods.ToldOf(pod)
	return as
}
