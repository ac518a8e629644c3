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
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"pgregory.net/rapid"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var testContext = context.Background()

// TestDifferential plays one random history of quotas, jobs, pods and nodes twice: to our adapter with the core, and as
// objects to ElasticQuota itself. Whenever everything is quiet:
//
//   - Our amounts of the quotas equal those of ElasticQuota. So no event was missed, counted twice or lost.
//   - Every pod of an admitted job passes ElasticQuota's PreFilter, one after the other, or we also say that the quota
//     now exceeds its limit.
//   - All pods of all pending jobs are created. PreFilter refuses the pods that we hold back at their leaf. It passes
//     pods that we hold back for a reason unknown to it: a level above, or the order.
//
// A second plugin, just started with the same objects, gives the answers. If the first one, which lived through the
// history, answers differently, ElasticQuota disagrees with itself. Such cases are counted and are no failure.
//
// The number of histories is RAPID_CHECKS.
func TestDifferential(t *testing.T) {
	live, oracle := newRealPlugin(t), newRealPlugin(t)
	seen := map[string]int{}
	effort.Check(t, func(t *rapid.T) {
		d := &differential{T: t, oracle: oracle, seen: seen}
		live.args.EnableRuntimeQuota = !rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "limit by max")
		live.args.EnableMinQuotaScale = !rapid.SampledFrom([]bool{false, false, false, true}).Draw(t, "keep min")
		live.args.EnableCheckParentQuota = rapid.Bool().Draw(t, "check parents")
		*oracle.args = *live.args
		oracle.args.HookPlugins = nil
		d.world = newWorld(t, live)
		d.run()
	})
	for _, class := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%8d %s", seen[class], class)
	}
	if seen["quiet point"] < 20000 {
		return // too few to meet everything
	}
	for _, class := range everyClass {
		require.NotZero(t, seen[class], "no history led to: %s", class)
	}
}

// everyClass lists the cases that thousands of histories must have met: a case that never occurs is not compared.
var everyClass = []string{
	"held back at the leaf: ExceedsMax", "held back at the leaf: ExceedsMin", "held back at the leaf: MinExceeded",
	"held back at the leaf: QuotaExceeded", "held back by a parent, which ElasticQuota checks: QuotaExceeded",
	"held back by a parent, which ElasticQuota does not check: QuotaExceeded", "held back by the cluster total",
	"held back by the min of a parent: ExceedsMin", "held back: claimed by a job ahead",
	"held back: default quota: QuotaExceeded",
	"held back: its quota, or a parent of it, does not exist", "limit compared", "pod of an admitted job: passes",
	"pod of an admitted job: refused, the limits fell since", "pod placed by the live plugin",
	"pod refused by the live plugin",
}

type differential struct {
	*rapid.T
	*world
	oracle *realPlugin
	seen   map[string]int
	names  int
	// keys says what resources most quotas name.
	keys int64
}

// steps of a history; what stands more often comes more often.
var steps = map[string]func(*differential){
	"submit":        (*differential).drawJob,
	"submit again":  (*differential).drawJob,
	"submit more":   (*differential).drawJob,
	"submit much":   (*differential).drawJobs,
	"submit many":   (*differential).drawJobs,
	"end job":       (*differential).endJob,
	"end another":   (*differential).endJob,
	"plain pod":     (*differential).drawPlainPod,
	"end pod":       (*differential).endPlainPod,
	"schedule":      (*differential).scheduleAll,
	"schedule more": (*differential).scheduleAll,
	"node":          (*differential).drawNode,
	"spec":          (*differential).changeSpec,
	"another spec":  (*differential).changeSpec,
	"new quota":     (*differential).newQuota,
	"delete quota":  (*differential).dropQuota,
	"come back":     (*differential).comeBack,
	"rename":        (*differential).rename,
	"move":          (*differential).moveQuota,
}

func (d *differential) run() {
	d.keys = d.pick("usual keys", 0, 0, 1, 2)
	d.setNode("node-0", d.drawAllocatable(), false)
	for range d.pick("quotas", 2, 3, 4, 5, 6, 7) {
		d.newQuota()
	}
	d.check()
	names := slices.Sorted(maps.Keys(steps))
	for range d.pick("steps", 4, 6, 8, 12, 16) {
		name := rapid.SampledFrom(names).Draw(d.T, "step")
		d.now = d.now.Add(1e9)
		steps[name](d)
		if d.pick("report", 0, 0, 1) == 1 {
			d.report()
		}
		d.check()
	}
}

func (d *differential) adapterFirst() bool { return rapid.Bool().Draw(d.T, "adapter first") }

func (d *differential) drawAllocatable() corev1.ResourceList {
	return list3(500*d.pick("cpu", 8, 12, 16, 20, 24, 40), d.pick("memory", 16, 0, 24, 32, 64), d.pick("gpu", 8, 0, 2, 4))
}

// pick draws evenly: a range would be drawn from near its low end.
func (d *differential) pick(label string, of ...int64) int64 {
	return rapid.SampledFrom(of).Draw(d.T, label)
}

func (d *differential) drawNode() {
	name := rapid.SampledFrom([]string{"node-0", "node-1"}).Draw(d.T, "node")
	if d.nodes[name] != nil && d.pick("remove node", 0, 0, 0, 1) == 1 {
		d.setNode(name, nil, d.adapterFirst())
		return
	}
	d.setNode(name, d.drawAllocatable(), d.adapterFirst())
}

// parentNames and leafNames: in Koordinator a quota is one or the other, and pods are in leaves.
var (
	parentNames = []string{"p0", "p1", "p2", "p3"}
	leafNames   = []string{"a", "b", "c", "d", "e"}
)

func (d *differential) newQuota() {
	var free []string
	for _, name := range slices.Concat(leafNames, parentNames) {
		if d.quotas[name] == nil {
			free = append(free, name)
		}
	}
	if len(free) == 0 {
		return
	}
	name := rapid.SampledFrom(free).Draw(d.T, "name")
	q := d.drawSpec(name)
	d.reparent(q)
	d.setQuota(q, d.adapterFirst())
}

func (d *differential) drawSpec(name string) *v1alpha1.ElasticQuota {
	most := list3(500*d.pick("max cpu", 16, 6, 8, 10, 12, 20, 40, 3), d.pick("max memory", 32, 8, 16, 24, 64, 5),
		d.pick("max gpu", 8, 2, 3, 4, 1))
	// Most quotas of this world name these resources, and a few name others.
	keys := d.keys
	if d.pick("other keys", 0, 0, 0, 0, 0, 0, 0, 1) == 1 {
		keys = d.pick("keys", 0, 1, 2)
	}
	if keys >= 1 {
		delete(most, "nvidia.com/gpu")
	}
	if keys == 2 {
		delete(most, corev1.ResourceMemory)
	}
	least := corev1.ResourceList{}
	for _, key := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "nvidia.com/gpu"} {
		limit, ok := most[key]
		if !ok || d.pick("no min", 0, 0, 0, 0, 1) == 1 {
			continue
		}
		eighths := d.pick("min eighths", 4, 0, 1, 2, 3, 5, 8)
		limit.SetMilli(limit.MilliValue() / 8 * eighths)
		if key != corev1.ResourceCPU {
			limit.Set(limit.Value())
		}
		least[key] = limit
	}
	q := &v1alpha1.ElasticQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{},
			Annotations: map[string]string{}},
		Spec: v1alpha1.ElasticQuotaSpec{Min: least, Max: most},
	}
	if slices.Contains(parentNames, name) {
		q.Labels[extension.LabelQuotaIsParent] = "true"
	}
	if d.pick("kept", 0, 0, 0, 1) == 1 {
		q.Labels[extension.LabelAllowLentResource] = "false"
	}
	if d.pick("weight", 0, 0, 1) == 1 {
		weight := d.pick("shared weight", 1, 2, 3, 5)
		raw, err := json.Marshal(list3(weight*1000, weight, weight))
		require.NoError(d.T, err)
		q.Annotations[extension.AnnotationSharedWeight] = string(raw)
	}
	return q
}

// reparent draws a parent: the root, or a parent quota that is not below this one and has at most three above it.
func (d *differential) reparent(q *v1alpha1.ElasticQuota) {
	options := []string{""}
	for _, name := range parentNames {
		path, ok := d.pathOfSpecs(name)
		if d.quotas[name] != nil && ok && len(path) <= 4 && !slices.Contains(path, q.Name) {
			options = append(options, name)
		}
	}
	// The last one first: deep trees are rare enough.
	slices.Reverse(options)
	if parent := rapid.SampledFrom(options).Draw(d.T, "parent"); parent != "" {
		q.Labels[extension.LabelQuotaParent] = parent
	} else {
		delete(q.Labels, extension.LabelQuotaParent)
	}
}

func (d *differential) someQuota(filter func(string) bool) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.quotas)) {
		if filter == nil || filter(name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return rapid.SampledFrom(names).Draw(d.T, "quota")
}

// changeSpec draws new numbers, keys, weight and lending: a quota grows, or shrinks below what is used.
func (d *differential) changeSpec() {
	name := d.someQuota(nil)
	if name == "" {
		return
	}
	q := d.drawSpec(name)
	if parent, ok := d.quotas[name].Labels[extension.LabelQuotaParent]; ok {
		q.Labels[extension.LabelQuotaParent] = parent
	}
	d.setQuota(q, d.adapterFirst())
}

func (d *differential) moveQuota() {
	name := d.someQuota(nil)
	if name == "" {
		return
	}
	q := d.quotas[name].DeepCopy()
	d.reparent(q)
	d.setQuota(q, d.adapterFirst())
}

func (d *differential) childless(name string) bool {
	for _, q := range d.quotas {
		if extension.GetParentQuotaName(q) == name {
			return false
		}
	}
	return true
}

// dropQuota deletes a quota without children; Koordinator's webhook refuses to delete others.
func (d *differential) dropQuota() {
	if name := d.someQuota(d.childless); name != "" {
		d.deleteQuota(name, d.adapterFirst())
	}
}

// comeBack deletes a quota and makes it again, with or without anything in between.
func (d *differential) comeBack() {
	name := d.someQuota(d.childless)
	if name == "" {
		return
	}
	q := d.quotas[name]
	d.deleteQuota(name, d.adapterFirst())
	if rapid.Bool().Draw(d.T, "step between") {
		d.step()
	}
	if rapid.Bool().Draw(d.T, "report between") {
		d.report()
	}
	d.setQuota(q, d.adapterFirst())
}

// rename makes the same quota under another name; nobody renames the labels of what is there.
func (d *differential) rename() {
	name := d.someQuota(d.childless)
	if name == "" {
		return
	}
	group := leafNames
	if slices.Contains(parentNames, name) {
		group = parentNames
	}
	next := rapid.SampledFrom(group).Draw(d.T, "new name")
	if d.quotas[next] != nil {
		return
	}
	q := d.quotas[name].DeepCopy()
	q.Name = next
	d.deleteQuota(name, d.adapterFirst())
	d.setQuota(q, d.adapterFirst())
}

func (d *differential) drawRequest() corev1.ResourceList {
	request := list3(500*d.pick("pod cpu", 1, 2, 3, 4), d.pick("pod memory", -1, -1, 0, 1, 2, 4),
		d.pick("pod gpu", -1, -1, -1, -1, 1, 2))
	return request
}

func (d *differential) drawLeaf() string {
	names := []string{extension.DefaultQuotaName}
	for range 4 {
		names = append(names, leafNames...)
	}
	var existing []string
	for _, name := range names {
		if d.quotas[name] != nil || name == extension.DefaultQuotaName {
			existing = append(existing, name)
		}
	}
	if d.pick("any name", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1) == 0 {
		names = existing
	}
	slices.Reverse(names)
	return rapid.SampledFrom(names).Draw(d.T, "leaf")
}

func (d *differential) drawJob() {
	d.names++
	name := fmt.Sprintf("j%d", d.names)
	j := &worldJob{size: d.drawRequest()}
	pods := d.pick("pods", 1, 2, 3)
	j.unit = unit.Unit{
		Key: "default/" + name, UID: name, Quota: d.drawLeaf(), Created: d.now, Active: true,
		Queue:          rapid.SampledFrom([]string{"priority", "priority", "block"}).Draw(d.T, "queue"),
		Priority:       int32(rapid.IntRange(0, 2).Draw(d.T, "priority")),
		NonPreemptible: d.pick("non-preemptible", 0, 0, 0, 1) == 1,
		Request:        timesList(j.size, pods), Pods: pods,
	}
	d.submit(j)
}

func (d *differential) drawJobs() {
	for range 3 {
		d.drawJob()
	}
}

func (d *differential) endJob() {
	if len(d.jobs) == 0 {
		return
	}
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(d.jobs))).Draw(d.T, "job")
	d.finish(d.jobs[key])
}

func (d *differential) drawPlainPod() {
	d.names++
	p := d.newPod(fmt.Sprintf("x%d", d.names), d.drawLeaf(), "", d.drawRequest(),
		d.pick("non-preemptible", 0, 0, 0, 1) == 1)
	d.createPod(p, d.adapterFirst())
	if rapid.Bool().Draw(d.T, "schedule it") {
		d.quiet()
		d.schedule(p)
	}
}

func (d *differential) endPlainPod() {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		if d.pods[name].job == "" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		d.deletePod(rapid.SampledFrom(names).Draw(d.T, "pod"), d.adapterFirst())
	}
}

// scheduleAll makes the pods of some admitted jobs and lets the scheduler have a try at all that are pending.
func (d *differential) scheduleAll() {
	for _, key := range slices.Sorted(maps.Keys(d.jobs)) {
		if j := d.jobs[key]; j.admitted && rapid.Bool().Draw(d.T, "create pods") {
			d.createPods(j, d.adapterFirst())
		}
	}
	d.quiet()
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		p := d.pods[name]
		if p.pod.Spec.NodeName != "" {
			continue
		}
		if d.schedule(p) != "" {
			d.seen["pod refused by the live plugin"]++
		} else {
			d.seen["pod placed by the live plugin"]++
		}
		d.quiet()
	}
}

func (d *differential) count(class string) { d.seen[class]++ }

func (d *differential) check() {
	d.quiet()
	d.live.refreshAll()
	d.checkViewIsFresh()
	if differences := d.state.Audit().Ledger(); len(differences) > 0 {
		d.Fatalf("the ledger is wrong: %v", differences)
	}
	d.restarted(d.oracle)
	if drift := d.drift(); drift != "" {
		d.count("quiet point: ElasticQuota disagrees with its own restart: " + drift)
		return
	}
	d.count("quiet point")
	d.checkLedger()
	d.checkAdmitted()
	d.checkWaiting()
}

// checkViewIsFresh: to observe everything again says nothing new of a quota in which a job waits, or has something
// outstanding, and admits nothing.
func (d *differential) checkViewIsFresh() {
	matters := map[string]bool{}
	for key, j := range d.jobs {
		reason, _, _ := d.state.Why(key)
		if j.admitted && d.state.Holdings().Read(j.unit.Quota).Outstanding().IsZero() || neverFits(reason) {
			continue
		}
		for at := j.unit.Quota; at != ""; at = d.last[at].Parent {
			matters[at] = true
		}
	}
	had := map[string]resources.List{}
	for name := range d.known {
		had[name] = d.limitOf(name)
	}
	found, gone := d.adapter.Observe(d.everyQuota())
	for _, name := range gone {
		if d.known[name] {
			d.Fatalf("quota %s is gone and nobody said so", name)
		}
	}
	for _, q := range found {
		if !d.known[q.Name] {
			d.Fatalf("quota %s is there and nobody said so", q.Name)
		}
		d.state.SetQuota(d.now, q)
	}
	for _, q := range found {
		last, now := d.last[q.Name], d.limitOf(q.Name)
		same := last.Parent == q.Parent && now.Same(had[q.Name]) && last.Max.Same(q.Max) && last.Min.Same(q.Min) &&
			last.Used.Equal(q.Used) && last.NonPreemptibleUsed.Equal(q.NonPreemptibleUsed)
		if matters[q.Name] && !same {
			d.Fatalf("quota %s has changed and nobody said so:\nhad %v, limit %v\nnow %v, limit %v\n%s", q.Name, last,
				had[q.Name], q, now, d.describe())
		}
	}
	if len(d.dirty) > 0 || d.allDirty {
		d.Fatalf("to observe is a change: %v", d.dirty)
	}
	d.state.Recheck(d.now)
	if plan := d.state.Decide(d.now); len(plan.Writes) > 0 {
		d.Fatalf("%s fits and nobody looked", plan.Writes[0].Of().Key)
	}
}

// checkLedger: outstanding, on every level, is held quota of admitted jobs less those of their pods that ElasticQuota
// counts there.
func (d *differential) checkLedger() {
	want := map[string]resources.List{}
	for _, key := range slices.Sorted(maps.Keys(d.jobs)) {
		j := d.jobs[key]
		if !j.admitted {
			continue
		}
		// Held quota of a deleted quota counts on its former path.
		for at := j.unit.Quota; at != extension.RootQuotaName && at != ""; at = d.parents[at] {
			want[at] = want[at].Add(d.outstandingOf(j))
		}
	}
	for name := range d.quotas {
		is := d.state.Holdings().Read(name).Outstanding().List()
		if _, ok := d.pathOfSpecs(name); ok && !want[name].Equal(is) {
			d.Fatalf("quota %s: outstanding is %v, and should be %v", name, is, want[name])
		}
	}
}

// outstandingOf is what an admitted job holds beyond those of its pods that ElasticQuota counts in its quota.
func (d *differential) outstandingOf(j *worldJob) resources.List {
	info := d.live.GetGroupQuotaManagerForTree("").GetQuotaInfoByName(j.unit.Quota)
	counted := resources.List{}
	for _, name := range j.pods {
		if pod := d.pods[name].pod; info != nil && info.CheckPodIsAssigned(pod) {
			counted = counted.Add(toList(requestOf(pod)))
		}
	}
	return j.unit.Request.Sub(counted).Floor0()
}

// drift says where the plugin that lived through the history differs from the one that has just started.
func (d *differential) drift() string {
	live, fresh := d.live.GetGroupQuotaManagerForTree(""), d.oracle.GetGroupQuotaManagerForTree("")
	names := slices.Sorted(maps.Keys(d.quotas))
	names = append(names, extension.DefaultQuotaName)
	for _, name := range names {
		a, b := live.GetQuotaInfoByName(name), fresh.GetQuotaInfoByName(name)
		switch {
		case a == nil || b == nil:
			return "existence"
		case !equalAmounts(a.GetUsed(), b.GetUsed()):
			return "used"
		case !equalAmounts(a.GetSelfRequest(), b.GetSelfRequest()):
			return "self request"
		case !equalAmounts(a.GetRequest(), b.GetRequest()):
			return "request"
		case !equalAmounts(a.GetNonPreemptibleUsed(), b.GetNonPreemptibleUsed()):
			return "non-preemptible used"
		case d.live.args.EnableRuntimeQuota && !equalAmounts(a.GetRuntime(), b.GetRuntime()):
			return "runtime"
		}
	}
	if !equalAmounts(live.GetClusterTotalResource(), fresh.GetClusterTotalResource()) {
		return "total"
	}
	return ""
}

// equalAmounts compares by amount: a resource that is not named is none.
func equalAmounts(a, b corev1.ResourceList) bool { return quotav1.IsZero(quotav1.Subtract(a, b)) }

// checkAdmitted makes all pods of what is admitted in the oracle and asks its PreFilter for each of them.
func (d *differential) checkAdmitted() {
	var pending []*worldPod
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		if p := d.pods[name]; p.job != "" && p.charged == "" {
			pending = append(pending, p)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.jobs)) {
		if d.jobs[key].admitted {
			for _, p := range d.missingPods(d.jobs[key]) {
				d.oracle.OnPodAdd(p.pod)
				pending = append(pending, p)
			}
		}
	}
	over, overMin := d.overLimit()
	for _, p := range pending {
		quota := d.jobs[p.job].unit.Quota
		if !d.known[quota] {
			d.count("pod of an admitted job: its quota is gone")
			continue
		}
		refusal := d.oracle.refuses(testContext, p.pod)
		if refusal != "" {
			// Pods of the default quota leave less to scale min to. ElasticQuota scales the min of a quota when the quota is
			// refreshed, and its controller refreshes all every ten seconds.
			d.oracle.refreshAll()
			refusal = d.oracle.refuses(testContext, p.pod)
		}
		if refusal != "" && d.live.args.EnableCheckParentQuota && d.unnamedAbove(quota, p) {
			d.count("pod of an admitted job: refused by a parent, for a resource that it does not name")
			d.oracle.reserve(testContext, p.pod)
			continue
		}
		if refusal != "" && d.roundingLoses(quota) {
			d.count("pod of an admitted job: refused, ElasticQuota's rounding loses what is there")
			d.oracle.reserve(testContext, p.pod)
			continue
		}
		if refusal != "" && !over[quota] && !(d.jobs[p.job].unit.NonPreemptible && overMin[quota]) {
			d.Fatalf("%s was admitted, is within the limits of %s, and its pod %s is refused: %s\n%s",
				p.job, quota, p.pod.Name, refusal, d.describe())
		}
		if refusal == "" {
			d.count("pod of an admitted job: passes")
		} else {
			d.count("pod of an admitted job: refused, the limits fell since")
		}
		// An admitted unit holds its quota, even if it could not use it now.
		d.oracle.reserve(testContext, p.pod)
	}
}

// roundingLoses reports a loss by rounding on the path to a quota. Siblings get less together than their parent has,
// and the quota on the path gets less than its demand. ElasticQuota means to share out everything. But v1.8.0 rounds
// every share, and the loss depends on the demand of others. A reservation stands nevertheless.
func (d *differential) roundingLoses(quota string) bool {
	if !d.live.args.EnableRuntimeQuota {
		return false
	}
	mgr := d.oracle.GetGroupQuotaManagerForTree("")
	path, _ := d.pathOfSpecs(quota)
	for _, at := range path {
		parent := extension.GetParentQuotaName(d.quotas[at])
		has := mgr.RefreshRuntime(extension.RootQuotaName)
		if parent != extension.RootQuotaName {
			has = mgr.GetQuotaInfoByName(parent).GetRuntime()
		}
		var given corev1.ResourceList
		for name, q := range d.quotas {
			if extension.GetParentQuotaName(q) == parent {
				given = quotav1.Add(given, mgr.GetQuotaInfoByName(name).GetRuntime())
			}
		}
		info := mgr.GetQuotaInfoByName(at)
		runtime, asked := info.GetRuntime(), capped(info.GetMax(), info.GetRequest())
		for name, want := range asked {
			got, all, sum := runtime[name], has[name], given[name]
			if got.Cmp(want) < 0 && sum.Cmp(all) < 0 {
				return true
			}
		}
	}
	return false
}

// unnamedAbove says whether a pod asks for something that its leaf names and a level above it does not. Koordinator's
// webhook refuses such trees. Where ElasticQuota checks parents, it takes such a resource for none there; a reservation
// stands nevertheless.
func (d *differential) unnamedAbove(quota string, p *worldPod) bool {
	path, _ := d.pathOfSpecs(quota)
	for resource := range requestOf(p.pod) {
		for _, level := range path[1:] {
			if d.namesResource(quota, string(resource)) && !d.namesResource(level, string(resource)) {
				return true
			}
		}
	}
	return false
}

// isOver says whether more is held at a level than its limit allows, in our own view.
func (d *differential) isOver(level string) bool {
	q := d.last[level]
	inUse := q.Used.Add(d.state.Holdings().Read(level).Outstanding().List())
	for _, it := range d.limitOf(level).Items() {
		if amount, _ := inUse.Get(it.Name); amount > it.Amount {
			return true
		}
	}
	return false
}

// overLimit lists quotas below which held quota exceeds the limits in our own view, and those where non-preemptible
// held quota exceeds min.
func (d *differential) overLimit() (over, overMin map[string]bool) {
	over, overMin = map[string]bool{}, map[string]bool{}
	tainted := map[string]bool{}
	for name := range d.known {
		if d.isOver(name) {
			for at := name; at != "" && at != extension.RootQuotaName; at = d.last[at].Parent {
				tainted[at] = true
			}
		}
	}
	for name := range d.known {
		for at := name; at != ""; at = d.last[at].Parent {
			// A quota over its limit can use more of a parent than ElasticQuota's demand of it.
			over[name] = over[name] || d.isOver(at) || tainted[at] && d.live.args.EnableCheckParentQuota
		}
		guaranteed := d.last[name].NonPreemptibleUsed
		for _, j := range d.jobs {
			if j.admitted && j.unit.NonPreemptible && j.unit.Quota == name {
				guaranteed = guaranteed.Add(d.outstandingOf(j))
			}
		}
		for _, it := range d.last[name].Min.Items() {
			if amount, _ := guaranteed.Get(it.Name); amount > it.Amount {
				overMin[name] = true
			}
		}
	}
	return over, overMin
}

// checkWaiting creates the pods of all pending jobs, because our runtime counts them. It then asks for each job whether
// its pods would pass one after the other.
func (d *differential) checkWaiting() {
	waiting := map[string][]*worldPod{}
	for _, key := range slices.Sorted(maps.Keys(d.jobs)) {
		j := d.jobs[key]
		reason, _, _ := d.state.Why(key)
		if j.admitted || j.unit.Quota == extension.DefaultQuotaName || reason == unit.ReasonUnknownQuota {
			continue
		}
		waiting[key] = d.missingPods(j)
		if neverFits(reason) {
			continue
		}
		for _, p := range waiting[key] {
			d.oracle.OnPodAdd(p.pod)
		}
	}
	d.oracle.refreshAll()
	d.checkLimits()
	for _, key := range slices.Sorted(maps.Keys(d.jobs)) {
		if !d.jobs[key].admitted {
			d.checkHeldBack(key, waiting[key])
		}
	}
}

// checkLimits: with all pods there, the runtime is the limit that we had without them.
func (d *differential) checkLimits() {
	if !d.live.args.EnableRuntimeQuota {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(d.quotas)) {
		info := d.oracle.GetGroupQuotaManagerForTree("").GetQuotaInfoByName(name)
		if info == nil || !d.known[name] {
			continue
		}
		runtime := toList(info.GetRuntime())
		for _, it := range d.limitOf(name).Items() {
			if amount, ok := runtime.Get(it.Name); ok && amount != it.Amount && d.hasRuntime(name, it.Name) {
				d.Fatalf("quota %s: %s: with all pods the runtime is %d, and without them the limit was %d\n%s",
					name, it.Name, amount, it.Amount, d.describe())
			}
		}
		d.count("limit compared")
	}
}

func (d *differential) checkHeldBack(key string, pods []*worldPod) {
	j := d.jobs[key]
	leaf := j.unit.Quota
	explanation, _ := d.state.Explain(key)
	reason, message := explanation.Reason, explanation.Message
	var short decide.Shortage
	for _, sh := range explanation.Shortages {
		if sh.Binds {
			short = sh
			break
		}
	}
	byMin := reason == unit.ReasonMinExceeded || reason == unit.ReasonExceedsMin
	switch reason {
	case unit.ReasonUnknownQuota:
		if _, ok := d.pathOfSpecs(leaf); ok && d.quotas[leaf] != nil {
			d.Fatalf("%s: quota %s is there: %s", key, leaf, message)
		}
		d.count("held back: its quota, or a parent of it, does not exist")
		return
	case unit.ReasonQuotaExceeded, unit.ReasonExceedsMax, unit.ReasonMinExceeded,
		unit.ReasonExceedsMin, unit.ReasonExceedsGuaranteedShare,
		unit.ReasonBlockedByHead:
	default:
		d.Fatalf("%s: held back for %s: %s", key, reason, message)
	}
	if leaf == extension.DefaultQuotaName {
		d.count("held back: default quota: " + string(reason))
		return
	}
	if neverFits(reason) {
		// Its request is no demand, so it takes nothing from others. Its pods exist only here.
		for _, p := range pods {
			d.oracle.OnPodAdd(p.pod)
			defer d.oracle.OnPodDelete(p.pod)
		}
	}
	refusal := d.oracleRefuses(pods)
	class, refused := "", true
	switch {
	case reason == unit.ReasonBlockedByHead:
		class, refused = "held back: claimed by a job ahead", false
	case short.Level == leaf && !byMin && !d.hasRuntime(leaf, short.Resource):
		// Koordinator's webhook refuses such trees too. Max is what we hold it to; ElasticQuota knows no limit.
		class, refused = "held back at the leaf, for a resource that its parent does not name", false
	case short.Level == leaf:
		class = "held back at the leaf: " + string(reason)
	case byMin:
		class, refused = "held back by the min of a parent: "+string(reason), false
	case short.Level == extension.RootQuotaName:
		class, refused = "held back by the cluster total", false
	case !d.namesResource(leaf, short.Resource) || d.countedUnnamed(short.Level, short.Resource):
		// Koordinator's webhook refuses such trees. We hold the parent to what it says; ElasticQuota counts nothing there.
		class, refused = "held back by a parent, for a resource that the leaf does not name", false
	case d.heldByGone(short.Level):
		// ElasticQuota forgets what was in a quota that went; the ledger does not, and the job may run yet.
		class, refused = "held back by a parent, where the job of a deleted quota still counts", false
	case d.live.args.EnableCheckParentQuota:
		class = "held back by a parent, which ElasticQuota checks: " + string(reason)
	default:
		class, refused = "held back by a parent, which ElasticQuota does not check: "+string(reason), false
	}
	d.count(class)
	if refused && refusal == "" {
		d.Fatalf("%s would be let through, and is held back: %s: %s\n%s", key, reason, message, d.describe())
	}
	// If parents are checked, both can be short of a resource that only one of them counts. A unit that may go beyond its
	// share waits for other limits than its runtime.
	beyond := slices.ContainsFunc(explanation.Shortages, func(sh decide.Shortage) bool { return sh.Beyond })
	// A unit that is too large for a parent gets that reason, even if its leaf is also short.
	tooLarge := reason == unit.ReasonExceedsGuaranteedShare && d.eachExceeded(refusal, func(resource string) bool {
		return slices.ContainsFunc(explanation.Shortages, func(sh decide.Shortage) bool {
			return !sh.Binds && sh.Level == leaf && sh.Resource == resource && sh.Request > sh.Free
		})
	})
	// A unit that the min of a parent holds back can go beyond a runtime that its leaf has not used up.
	beyond = beyond || byMin && d.live.args.EnableRuntimeQuota && d.eachExceeded(refusal, func(resource string) bool {
		limit, _ := d.limitOf(leaf).Get(resource)
		used, _ := d.last[leaf].Used.Get(resource)
		outstanding, _ := d.state.Holdings().Read(leaf).Outstanding().List().Get(resource)
		return used+outstanding < limit
	})
	either := beyond || tooLarge || d.alsoRefused(leaf, explanation.Shortages) || d.live.args.EnableCheckParentQuota &&
		(d.unnamedAbove(leaf, pods[0]) || d.heldByGone(short.Level) || d.countedUnnamed(short.Level, short.Resource))
	if !refused && refusal != "" && !neverFits(reason) && !either {
		d.Fatalf("%s would be refused (%s), and is held back for another reason: %s: %s\n%s", key, refusal,
			reason, message, d.describe())
	}
}

// exceeded finds the resources in a refusal of ElasticQuota.
var exceeded = regexp.MustCompile(`exceedDimensions: \[([^\]]+)\]`)

// eachExceeded says whether something holds of each resource that a refusal names.
func (d *differential) eachExceeded(refusal string, holds func(resource string) bool) bool {
	if refusal == "" {
		return false
	}
	found := exceeded.FindStringSubmatch(refusal)
	if found == nil {
		d.Fatalf("a refusal that names no resource: %s", refusal)
	}
	for _, resource := range strings.Fields(found[1]) {
		if !holds(resource) {
			return false
		}
	}
	return true
}

// alsoRefused says whether any shortage is of a limit that ElasticQuota checks at parents: a level above, for a
// resource that the leaf names.
func (d *differential) alsoRefused(leaf string, shortages []decide.Shortage) bool {
	return d.live.args.EnableCheckParentQuota && slices.ContainsFunc(shortages, func(sh decide.Shortage) bool {
		return !sh.Binds && sh.Kind != decide.LimitMin && sh.Request > sh.Free &&
			sh.Level != leaf && sh.Level != extension.RootQuotaName && d.namesResource(leaf, sh.Resource)
	})
}

// countedUnnamed says whether an admitted job below a level holds a resource that its leaf does not name.
func (d *differential) countedUnnamed(level, resource string) bool {
	for _, j := range d.jobs {
		path, _ := d.pathOfSpecs(j.unit.Quota)
		if _, asks := j.unit.Request.Get(resource); asks && j.admitted && slices.Contains(path, level) &&
			!d.namesResource(j.unit.Quota, resource) {
			return true
		}
	}
	return false
}

// heldByGone says whether an admitted job, whose quota or a parent of it went, counts at a level.
func (d *differential) heldByGone(level string) bool {
	for _, j := range d.jobs {
		if _, ok := d.pathOfSpecs(j.unit.Quota); ok || !j.admitted {
			continue
		}
		for at := j.unit.Quota; at != extension.RootQuotaName && at != ""; at = d.parents[at] {
			if at == level {
				return true
			}
		}
	}
	return false
}

// neverFits says whether a job is parked for what it asks for: then it is no demand.
func neverFits(reason unit.Reason) bool {
	return reason == unit.ReasonExceedsMax || reason == unit.ReasonExceedsMin
}

// hasRuntime says whether ElasticQuota has a limit for a resource of a quota: by runtime, only if the parent names it.
func (d *differential) hasRuntime(leaf, resource string) bool {
	parent := extension.GetParentQuotaName(d.quotas[leaf])
	return !d.live.args.EnableRuntimeQuota || parent == extension.RootQuotaName || d.namesResource(parent, resource)
}

func (d *differential) namesResource(leaf, resource string) bool {
	_, ok := d.quotas[leaf].Spec.Max[corev1.ResourceName(resource)]
	return ok
}

// oracleRefuses tries to place the pods of one job in the oracle, and takes them back.
func (d *differential) oracleRefuses(pods []*worldPod) (refusal string) {
	for i, p := range pods {
		if refusal = d.oracle.refuses(testContext, p.pod); refusal != "" {
			pods = pods[:i]
			break
		}
		d.oracle.reserve(testContext, p.pod)
	}
	for _, p := range pods {
		d.oracle.unreserve(testContext, p.pod)
	}
	return refusal
}

// describe shows the world in a failure.
func (d *differential) describe() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		fmt.Fprintf(&b, "node %s: %v\n", name, toList(d.nodes[name].Status.Allocatable))
	}
	for _, name := range slices.Sorted(maps.Keys(d.quotas)) {
		q := d.quotas[name]
		fmt.Fprintf(&b, "quota %s: parent %s, min %v, max %v, weight %v, lent %v; limit %v, used %v, outstanding %v\n",
			name, extension.GetParentQuotaName(q), toList(q.Spec.Min), toList(q.Spec.Max), toList(extension.GetSharedWeight(q)),
			extension.IsAllowLentResource(q), d.limitOf(name), d.last[name].Used,
			d.state.Holdings().Read(name).Outstanding().List())
	}
	for _, key := range slices.Sorted(maps.Keys(d.jobs)) {
		j := d.jobs[key]
		fmt.Fprintf(&b, "job %s in %s: %d x %v, admitted %v, pods %v\n", key, j.unit.Quota, j.unit.Pods,
			toList(j.size), j.admitted, j.pods)
	}
	for _, name := range slices.Sorted(maps.Keys(d.pods)) {
		p := d.pods[name]
		fmt.Fprintf(&b, "pod %s labelled %s: %v, counted in %q\n", name, p.pod.Labels[extension.LabelQuotaName],
			toList(requestOf(p.pod)), p.charged)
	}
	return b.String()
}
