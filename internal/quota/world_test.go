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
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// world is a cluster: objects, ElasticQuota itself, and behind its hook the adapter and the core, which the world
// drives as the engine does. Writes are confirmed at once.
type world struct {
	t       testT
	live    *realPlugin
	adapter *Adapter
	state   *admission.State
	now     time.Time
	version int

	quotas map[string]*v1alpha1.ElasticQuota
	// parents remembers those of quotas that are gone, too.
	parents map[string]string
	nodes   map[string]*corev1.Node
	pods    map[string]*worldPod // by name
	jobs    map[string]*worldJob // by key

	// Reports to the sink since the last step.
	assigns  []assign
	dirty    map[string]bool
	allDirty bool
	// trail is what was dirty since the last quiet point: the engine observes it once more a little later.
	trail    map[string]bool
	trailAll bool

	known map[string]bool
	last  map[string]admission.Quota
	// examined counts the decisions, to find an endless loop.
	admitted int
}

// testT is what *testing.T and *rapid.T have in common.
type testT interface {
	require.TestingT
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	Helper()
}

type assign struct {
	quota    string
	pod      *corev1.Pod
	assigned bool
	letGo    bool
}

type worldJob struct {
	unit     unit.Unit
	size     corev1.ResourceList
	admitted bool
	// borrows: it was admitted beyond the runtime.
	borrows bool
	// pods that exist, by name.
	pods []string
}

type worldPod struct {
	pod *corev1.Pod
	// job is empty for a pod outside the queue.
	job string
	// charged is the quota that the hook named, "" while the pod does not count in used.
	charged string
	hooked  bool
	// letGo: its quota went, and the hook has not said since that it counts.
	letGo bool
}

func newWorld(t testT, live *realPlugin) *world {
	w := &world{
		t: t, live: live, now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		quotas: map[string]*v1alpha1.ElasticQuota{}, nodes: map[string]*corev1.Node{}, parents: map[string]string{},
		pods: map[string]*worldPod{}, jobs: map[string]*worldJob{},
		dirty: map[string]bool{}, trail: map[string]bool{}, known: map[string]bool{}, last: map[string]admission.Quota{},
	}
	w.adapter = live.hooked(t)
	w.adapter.OpenBuiltIn()
	w.adapter.Subscribe(w)
	w.adapter.Protect(Guard{
		Admitted: func(pod *corev1.Pod) bool {
			p := w.pods[pod.Name]
			return p != nil && p.job != ""
		},
		TryAgain: func([]types.NamespacedName) {}, Beyond: func(string, Cause, bool) {},
	})
	w.state = admission.New(admission.Config{})
	for _, q := range []queue.Spec{
		{Name: "priority", Policy: "Priority", MaxPending: -1, MaxAdmitted: -1},
		{Name: "block", Policy: "Block", MaxPending: -1, MaxAdmitted: -1},
	} {
		w.state.UpsertQueue(w.now, q)
	}
	w.allDirty = true
	return w
}

// PodAssigned is of Sink.
func (w *world) PodAssigned(quota string, pod *corev1.Pod, assigned bool) {
	w.assigns = append(w.assigns, assign{quota: quota, pod: pod, assigned: assigned})
	w.dirty[quota] = true
}

// PodLetGo is of Sink.
func (w *world) PodLetGo(quota string, pod *corev1.Pod) {
	w.assigns = append(w.assigns, assign{quota: quota, pod: pod, letGo: true})
	w.dirty[quota] = true
}

// QuotaChanged is of Sink.
func (w *world) QuotaChanged(names ...string) {
	for _, name := range names {
		w.dirty[name] = true
	}
}

// MoreRequested is of Sink.
func (w *world) MoreRequested(name string) { w.QuotaChanged(name) }

// TotalChanged is of Sink.
func (w *world) TotalChanged() { w.allDirty = true }

// MappingChanged is of Sink. Everything in a world says by label what it is charged to.
func (w *world) MappingChanged() {}

// step does what the engine does until there is nothing more to do.
func (w *world) step() {
	w.t.Helper()
	for range 50 {
		busy := len(w.assigns) > 0 || len(w.dirty) > 0 || w.allDirty
		for _, a := range w.assigns {
			w.applyAssign(a)
		}
		w.assigns = nil
		for _, quota := range w.state.Accounts().DirtyDemand() {
			if w.last[quota].Shared {
				w.dirty[quota] = true
			}
		}
		w.observe()
		plan := w.state.Decide(w.now)
		for _, d := range plan.Writes {
			a, admits := d.(*transition.Admit)
			if !admits {
				w.t.Fatalf("the core writes %v", d)
			}
			w.state.Settle(w.now, a.Unit.Key, a.Number, transition.Confirmed)
			w.jobs[a.Unit.Key].admitted, w.jobs[a.Unit.Key].borrows = true, a.Borrows
			w.t.Logf("admitted: %s", a.Unit.Key)
			w.admitted++
		}
		w.tellOutstanding()
		if len(plan.Writes) == 0 && !busy {
			return
		}
	}
	w.t.Fatalf("the engine never comes to rest")
}

// quiet lets the trailing observations come as well.
func (w *world) quiet() {
	w.t.Helper()
	w.step()
	maps.Copy(w.dirty, w.trail)
	w.allDirty = w.allDirty || w.trailAll
	w.step()
	w.trail, w.trailAll = map[string]bool{}, false
}

func (w *world) observe() {
	if len(w.dirty) == 0 && !w.allDirty {
		return
	}
	names := slices.Collect(maps.Keys(w.dirty))
	maps.Copy(w.trail, w.dirty)
	w.trailAll = w.trailAll || w.allDirty
	if w.allDirty {
		names = append(names, w.everyQuota()...)
	}
	w.dirty, w.allDirty = map[string]bool{}, false
	found, gone := w.adapter.Observe(names)
	changed := false
	for _, name := range gone {
		changed = changed || w.known[name]
		delete(w.known, name)
		delete(w.last, name)
		w.state.DeleteQuota(w.now, name)
	}
	for _, q := range found {
		changed = changed || !w.known[q.Name]
		w.known[q.Name] = true
		w.last[q.Name] = q
		w.state.SetQuota(w.now, q)
	}
	if !changed {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[name]; p.job != "" && p.charged == "" {
			w.tellPod(p)
		}
	}
}

func (w *world) everyQuota() []string {
	names := w.adapter.All()
	for name := range w.known {
		if w.last[name].Parent != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (w *world) applyAssign(a assign) {
	p := w.pods[a.pod.Name]
	if p == nil || p.pod.UID != a.pod.UID {
		return
	}
	switch {
	case a.assigned:
		p.hooked, p.charged, p.letGo = true, a.quota, false
	case !p.hooked || p.charged == a.quota:
		p.hooked, p.charged, p.letGo = true, "", a.letGo
	}
	w.tellPod(p)
}

func (w *world) tellPod(p *worldPod) {
	if p.job == "" {
		return
	}
	told := admission.Pod{
		UID: string(p.pod.UID), Quota: p.charged, Assigned: p.charged != "", Request: toList(requestOf(p.pod)),
		NonPreemptible: extension.IsPodNonPreemptible(p.pod),
	}
	if told.Quota == "" && (!p.letGo || p.pod.Spec.NodeName == "") {
		told.Quota = w.adapter.Resolve(p.pod.Namespace, p.pod.Labels)
		if !w.known[told.Quota] {
			told.Quota = extension.DefaultQuotaName
		}
	}
	w.state.SetPod(w.now, p.job, told)
}

func (w *world) tellOutstanding() {
	for _, j := range w.jobs {
		w.setOutstanding(j.unit.Quota)
	}
}

func (w *world) setOutstanding(quota string) {
	_, promised := w.state.Limits().LimitOf(quota)
	w.adapter.SetOutstanding(quota, w.state.Holdings().Read(quota).Outstanding().List(), promised)
}

// limitOf is what the core holds the quota to.
func (w *world) limitOf(quota string) resources.List {
	limit, _ := w.state.Limits().LimitOf(quota)
	return limit
}

func requestOf(pod *corev1.Pod) corev1.ResourceList { return pod.Spec.Containers[0].Resources.Requests }

func (w *world) nextVersion() string {
	w.version++
	return strconv.Itoa(w.version)
}

// setQuota makes the object and delivers it to ElasticQuota and to the adapter, in either order.
func (w *world) setQuota(q *v1alpha1.ElasticQuota, adapterFirst bool) {
	old := w.quotas[q.Name]
	q = q.DeepCopy()
	q.ResourceVersion = w.nextVersion()
	w.quotas[q.Name], w.parents[q.Name] = q, extension.GetParentQuotaName(q)
	w.t.Logf("quota %s: parent %s, min %v, max %v, weight %v, lent %v; the adapter first: %v",
		q.Name, extension.GetParentQuotaName(q),
		toList(q.Spec.Min), toList(q.Spec.Max), toList(extension.GetSharedWeight(q)),
		extension.IsAllowLentResource(q), adapterFirst)
	w.inOrder(adapterFirst, func() { w.live.setQuota(w.t, q) }, func() {
		if old == nil {
			w.adapter.onQuota(nil, q)
		} else {
			w.adapter.onQuota(old, q)
		}
	})
}

func (w *world) deleteQuota(name string, adapterFirst bool) {
	q := w.quotas[name]
	delete(w.quotas, name)
	w.t.Logf("quota %s is deleted; the adapter first: %v", name, adapterFirst)
	w.inOrder(adapterFirst, func() { w.live.deleteQuota(w.t, q) }, func() {
		w.adapter.onQuota(cache.DeletedFinalStateUnknown{Obj: q}, nil)
	})
}

// inOrder delivers an event to ElasticQuota and to the adapter, whose handlers run in goroutines of their own. Where
// the adapter comes first, the engine may look before ElasticQuota has heard.
func (w *world) inOrder(adapterFirst bool, live, adapter func()) {
	if !adapterFirst {
		live()
		adapter()
		return
	}
	adapter()
	w.step()
	live()
}

func (w *world) setNode(name string, allocatable corev1.ResourceList, adapterFirst bool) {
	old := w.nodes[name]
	w.t.Logf("node %s: %v; the adapter first: %v", name, toList(allocatable), adapterFirst)
	if allocatable == nil {
		delete(w.nodes, name)
		w.inOrder(adapterFirst, func() { w.live.OnNodeDelete(old) }, func() { w.adapter.onNode(old, nil) })
		return
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: w.nextVersion()},
		Status:     corev1.NodeStatus{Allocatable: allocatable},
	}
	w.nodes[name] = node
	if old == nil {
		w.inOrder(adapterFirst, func() { w.live.OnNodeAdd(node) }, func() { w.adapter.onNode(nil, node) })
		return
	}
	w.inOrder(adapterFirst, func() { w.live.OnNodeUpdate(old, node) }, func() { w.adapter.onNode(old, node) })
}

func (w *world) submit(j *worldJob) {
	w.t.Logf("job %s: %d x %v in %s, queue %s, priority %d, non-preemptible %v", j.unit.Key, j.unit.Pods, toList(j.size),
		j.unit.Quota, j.unit.Queue, j.unit.Priority, j.unit.NonPreemptible)
	w.jobs[j.unit.Key] = j
	w.state.UpsertUnit(w.now, j.unit)
}

// newPod makes a pod of a job, or one outside the queue.
func (w *world) newPod(name, quota, job string, request corev1.ResourceList, nonPreemptible bool) *worldPod {
	labels := map[string]string{}
	if quota != "" {
		labels[extension.LabelQuotaName] = quota
	}
	if nonPreemptible {
		labels[extension.LabelPreemptible] = "false"
	}
	return &worldPod{job: job, pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: w.nextVersion(), Labels: labels,
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: request}}}},
	}}
}

func (w *world) createPod(p *worldPod, adapterFirst bool) {
	w.t.Logf("pod %s: %v labelled %s; the adapter first: %v", p.pod.Name, toList(requestOf(p.pod)),
		p.pod.Labels[extension.LabelQuotaName], adapterFirst)
	w.pods[p.pod.Name] = p
	if p.job != "" {
		w.jobs[p.job].pods = append(w.jobs[p.job].pods, p.pod.Name)
	}
	w.tellPod(p)
	w.inOrder(adapterFirst, func() { w.live.OnPodAdd(p.pod) }, func() { w.adapter.onPod(nil, p.pod) })
}

func (w *world) deletePod(name string, adapterFirst bool) {
	p := w.pods[name]
	delete(w.pods, name)
	w.t.Logf("pod %s ends; the adapter first: %v", name, adapterFirst)
	if j := w.jobs[p.job]; j != nil {
		j.pods = slices.DeleteFunc(j.pods, func(n string) bool { return n == name })
	}
	w.inOrder(adapterFirst, func() { w.live.OnPodDelete(p.pod) }, func() { w.adapter.onPod(p.pod, nil) })
	if p.job != "" {
		w.state.DeletePod(w.now, p.job, string(p.pod.UID))
	}
}

// createPods makes the pods of an admitted job that do not exist yet.
func (w *world) createPods(j *worldJob, adapterFirst bool) {
	for _, p := range w.missingPods(j) {
		w.createPod(p, adapterFirst)
	}
}

func (w *world) missingPods(j *worldJob) []*worldPod {
	var missing []*worldPod
	for i := range j.unit.Pods {
		name := fmt.Sprintf("%s-%d", strings.TrimPrefix(j.unit.Key, "default/"), i)
		if w.pods[name] == nil {
			missing = append(missing, w.newPod(name, j.unit.Quota, j.unit.Key, j.size, j.unit.NonPreemptible))
		}
	}
	return missing
}

// schedule places a pod if ElasticQuota lets it: reserve, then the binding comes back through the informers.
func (w *world) schedule(p *worldPod) (refused string) {
	if refused = w.live.refuses(testContext, p.pod); refused != "" {
		w.t.Logf("pod %s is refused: %s", p.pod.Name, refused)
		return refused
	}
	w.place(p)
	return ""
}

func (w *world) place(p *worldPod) {
	w.t.Logf("pod %s is placed", p.pod.Name)
	w.live.reserve(testContext, p.pod)
	w.step()
	bound := p.pod.DeepCopy()
	bound.ResourceVersion = w.nextVersion()
	bound.Spec.NodeName = "node"
	w.updatePod(p, bound)
}

func (w *world) updatePod(p *worldPod, next *corev1.Pod) {
	old := p.pod
	p.pod = next
	w.live.OnPodUpdate(old, next)
	w.adapter.onPod(old, next)
	w.tellPod(p)
}

// report sends a status update of every pod, as the kubelets do. Only then does ElasticQuota find the pods of a quota
// that was deleted and created again. Pods that were charged to the default quota in between are moved by ElasticQuota
// itself, every second.
func (w *world) report() {
	w.t.Logf("every pod reports its status")
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		w.touch(name)
	}
	w.migrate()
	// Pods that are not placed are asked for elsewhere from now on, where their quota went or came back. Nobody says so:
	// the engine finds it when it looks for another reason, at the latest at its next resync, and here it does.
	w.allDirty = true
	w.step()
}

// touch has a pod report its status.
func (w *world) touch(name string) {
	p := w.pods[name]
	next := p.pod.DeepCopy()
	next.ResourceVersion = w.nextVersion()
	w.updatePod(p, next)
}

// migrate is migrateDefaultQuotaGroupsPod of ElasticQuota, which runs every second and is not exported.
func (w *world) migrate() {
	mgr := w.live.GetGroupQuotaManagerForTree("")
	pods := mgr.GetQuotaInfoByName(extension.DefaultQuotaName).GetPodCache()
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		pod := pods[name]
		quota := w.live.GetQuotaName(pod)
		if quota != extension.DefaultQuotaName && mgr.GetQuotaInfoByName(quota) != nil {
			mgr.MigratePod(pod, extension.DefaultQuotaName, quota)
		}
	}
}

// finish ends a job: its pods go, and its unit is over.
func (w *world) finish(j *worldJob) {
	for _, name := range slices.Clone(j.pods) {
		w.deletePod(name, false)
	}
	delete(w.jobs, j.unit.Key)
	w.state.DeleteUnit(w.now, j.unit.Key)
	w.setOutstanding(j.unit.Quota)
}

// restarted fills a plugin with the objects of the world, as a scheduler does that starts now.
func (w *world) restarted(r *realPlugin) {
	r.reset(w.t, slices.Collect(maps.Values(w.quotas))...)
	for _, node := range w.nodes {
		r.OnNodeAdd(node)
	}
	// A total that has fallen to nothing and one that never was differ for the manager: it scales min by what it names.
	gone := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "gone"}, Status: corev1.NodeStatus{Allocatable: list3(1, 1, 1)},
	}
	r.OnNodeAdd(gone)
	r.OnNodeDelete(gone)
	for _, p := range w.pods {
		r.OnPodAdd(p.pod)
	}
	// Reservations without a binding are repeated.
	for _, p := range w.pods {
		if p.charged != "" && p.pod.Spec.NodeName == "" {
			r.reserve(testContext, p.pod)
		}
	}
	r.refreshAll()
}

// pathOfSpecs lists a quota and its ancestors without the root as the objects say; not ok if one is missing.
func (w *world) pathOfSpecs(name string) (path []string, ok bool) {
	for at := name; at != extension.RootQuotaName; at = extension.GetParentQuotaName(w.quotas[at]) {
		if w.quotas[at] == nil || slices.Contains(path, at) {
			return path, false
		}
		path = append(path, at)
	}
	return path, true
}

func list3(cpuMilli, memory, gpu int64) corev1.ResourceList {
	rl := corev1.ResourceList{}
	if cpuMilli >= 0 {
		rl[corev1.ResourceCPU] = *resource.NewMilliQuantity(cpuMilli, resource.DecimalSI)
	}
	if memory >= 0 {
		rl[corev1.ResourceMemory] = *resource.NewQuantity(memory, resource.BinarySI)
	}
	if gpu >= 0 {
		rl["nvidia.com/gpu"] = *resource.NewQuantity(gpu, resource.DecimalSI)
	}
	return rl
}

func timesList(rl corev1.ResourceList, n int64) resources.List {
	sum := resources.List{}
	for range n {
		sum = sum.Add(toList(rl))
	}
	return sum
}

func sortedKeysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
