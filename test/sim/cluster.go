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

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// annotationRun on a pod is how long it runs, and annotationFails that it fails then.
const (
	annotationRun   = "sim/run"
	annotationFails = "sim/fails"
)

var (
	byJobController = writer{role: "job-controller"}
	byKubelet       = writer{role: "kubelet"}
	byGarbage       = writer{role: "garbage-collector"}
	byUser          = writer{role: "user"}
	byAdmin         = writer{role: "admin"}
)

// cluster is what of Kubernetes is not under test: the controller of jobs, the kubelets and the garbage collector. They
// work on the newest state, some time after it changed.
type cluster struct {
	world   *world
	dice    dice
	setDice dice
	syncing map[string]bool
	podsOf  map[types.UID]map[string]*object
	pods    int
}

func newCluster(w *world) *cluster {
	c := &cluster{
		world: w, dice: newDice(w.plan.Seed, "cluster"), setDice: newDice(w.plan.Seed, "job set controller"),
		syncing: map[string]bool{}, podsOf: map[types.UID]map[string]*object{},
	}
	w.api.onChange = append(w.api.onChange, c.onChange)
	return c
}

func (c *cluster) onChange(ch *change) {
	switch ch.kind {
	case jobKind, jobSets:
		c.onJob(ch)
	case pods:
		c.onPod(ch)
	case units:
		if ch.after != nil && phaseOf(ch.before) != phaseOf(ch.after) {
			c.outside(ch.after)
		}
		if o := ch.after; o != nil && ch.before == nil {
			// Created for a job that is gone already.
			if ref := owner(o); ref != nil {
				c.world.loop.after(c.dice.between(time.Second, 5*time.Second), func() { c.orphan(units, ch.key, o.uid(), ref) })
			}
		}
	default:
	}
}

func (c *cluster) onJob(ch *change) {
	sync := c.sync
	if ch.kind == jobSets {
		sync = c.syncSet
	}
	if ch.after == nil || ch.before != nil && ch.before.uid() != ch.after.uid() {
		c.collect(ch.before)
	}
	if ch.after != nil {
		sync(ch.key)
	}
	if ref := owner(cmp.Or(ch.after, ch.before)); ref != nil {
		c.syncSet(keyOf(team, ref.Name))
	}
}

func (c *cluster) onPod(ch *change) {
	c.ofOwner(ch)
	if ch.after == nil {
		return
	}
	now, was := podOf(ch.after), &corev1.Pod{}
	if ch.before != nil {
		was = podOf(ch.before)
	}
	switch {
	case now.DeletionTimestamp != nil && was.DeletionTimestamp == nil:
		end := c.dice.between(100*time.Millisecond, 3*time.Second) + graceOf(now)
		c.world.loop.after(end, func() { c.remove(ch.key, now.UID) })
	case now.Spec.NodeName != "" && was.Spec.NodeName == "":
		c.world.loop.after(c.dice.between(200*time.Millisecond, 2*time.Second),
			func() { c.setPhase(ch.key, now.UID, corev1.PodRunning) })
	case now.Status.Phase == corev1.PodRunning && was.Status.Phase != corev1.PodRunning:
		run, _ := time.ParseDuration(now.Annotations[annotationRun]) // zero ends at once
		end := corev1.PodSucceeded
		if now.Annotations[annotationFails] != "" && c.dice.chance(50) {
			end = corev1.PodFailed
		}
		c.world.loop.after(run, func() { c.setPhase(ch.key, now.UID, end) })
	}
}

// ofOwner has the pod among those of its owner, and the owner looks at them.
func (c *cluster) ofOwner(ch *change) {
	if ch.before != nil {
		if ref := owner(ch.before); ref != nil {
			delete(c.podsOf[ref.UID], ch.key)
		}
	}
	o := cmp.Or(ch.after, ch.before)
	ref := owner(o)
	if ref == nil {
		return
	}
	if c.podsOf[ref.UID] == nil {
		c.podsOf[ref.UID] = map[string]*object{}
	}
	if ch.after != nil {
		c.podsOf[ref.UID][ch.key] = ch.after
	}
	c.sync(keyOf(o.u.GetNamespace(), ref.Name))
}

func (c *cluster) remove(key string, uid types.UID) {
	_ = c.world.api.delete(byKubelet, pods, key, uid) // the pod may be gone
}

func (c *cluster) setPhase(key string, uid types.UID, phase corev1.PodPhase) {
	o := c.world.api.get(pods, key)
	if o == nil || o.uid() != uid || podOf(o).DeletionTimestamp != nil || terminated(podOf(o)) {
		return
	}
	c.world.api.edit(byKubelet, pods, key, true, func(u *unstructured.Unstructured) {
		u.Object["status"] = map[string]any{"phase": string(phase)}
	})
}

// deletePod takes a pod away: at once if it is on no node or has ended, else the kubelet ends it first.
func (c *cluster) deletePod(by writer, o *object) {
	pod := podOf(o)
	if pod.Spec.NodeName == "" || terminated(pod) {
		_ = c.world.api.delete(by, pods, o.key, o.uid())
		return
	}
	if pod.DeletionTimestamp == nil {
		c.world.api.edit(by, pods, o.key, false, func(u *unstructured.Unstructured) {
			now := metav1.NewTime(c.world.loop.now)
			u.SetDeletionTimestamp(&now)
		})
	}
}

// collect removes what a job owned.
func (c *cluster) collect(job *object) {
	uid := job.uid()
	c.world.loop.after(c.dice.between(50*time.Millisecond, 3*time.Second), func() {
		for _, o := range sorted(c.podsOf[uid]) {
			c.deletePod(byGarbage, o)
		}
		c.deleteJobsOf(job, func(*object) bool { return true })
		if c.world.variants != nil && c.world.variants.NoCollector {
			return
		}
		for _, o := range c.world.api.list(units) {
			if ref := owner(o); ref != nil && ref.UID == uid {
				_ = c.world.api.delete(byGarbage, units, o.key, o.uid())
			}
		}
	})
}

func (c *cluster) orphan(k kind, key string, uid types.UID, ref *metav1.OwnerReference) {
	o := c.world.api.get(k, key)
	if o == nil || o.uid() != uid {
		return
	}
	if c.world.jobOf(o.u.GetNamespace(), ref) == nil {
		_ = c.world.api.delete(byGarbage, k, key, uid)
	}
}

// sync has the job controller look at a job soon.
func (c *cluster) sync(key string) {
	if c.syncing[key] {
		return
	}
	c.syncing[key] = true
	c.world.loop.after(c.dice.between(5*time.Millisecond, 200*time.Millisecond), func() {
		c.syncing[key] = false
		if job := c.world.api.get(jobKind, key); job != nil {
			c.syncJob(job)
		}
	})
}

// counts of the pods of a job.
type counts struct{ active, ready, succeeded, failed int64 }

func (c *cluster) count(job *object) (n counts, active []*object) {
	for _, o := range sorted(c.podsOf[job.uid()]) {
		pod := podOf(o)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			n.succeeded++
		case pod.Status.Phase == corev1.PodFailed:
			n.failed++
		case pod.DeletionTimestamp == nil:
			n.active++
			active = append(active, o)
			if pod.Status.Phase == corev1.PodRunning {
				n.ready++
			}
		}
	}
	return n, active
}

// syncJob is what the job controller does about one job.
func (c *cluster) syncJob(job *object) {
	if ended(job) || beingDeleted(job) {
		return
	}
	spec := nested(job, "spec")
	suspended, _ := spec["suspend"].(bool)
	n, active := c.count(job)
	want := min(intOr(spec["parallelism"], 1), max(intOr(spec["completions"], 1)-n.succeeded, 0))
	done := n.succeeded >= intOr(spec["completions"], 1)
	dead := n.failed > intOr(spec["backoffLimit"], 6)
	if suspended || done || dead {
		want = 0
	}
	slices.SortFunc(active, func(a, b *object) int { // pods without a node go first
		return strings.Compare(podOf(a).Spec.NodeName+"/"+a.key, podOf(b).Spec.NodeName+"/"+b.key)
	})
	for int64(len(active)) > want {
		c.deletePod(byJobController, active[0])
		active = active[1:]
	}
	for i := int64(len(active)); i < want; i++ {
		c.createPod(job)
	}
	n, _ = c.count(job)
	c.world.api.edit(byJobController, jobKind, job.key, true, func(u *unstructured.Unstructured) {
		c.setStatus(u, suspended, n, done && n.active == 0, dead && n.active == 0)
	})
}

func (c *cluster) setStatus(u *unstructured.Unstructured, suspended bool, n counts, done, dead bool) {
	status, _ := u.Object["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
	}
	now := c.world.loop.now.UTC().Format(time.RFC3339)
	for field, value := range map[string]int64{
		"active": n.active, "ready": n.ready, "succeeded": n.succeeded, "failed": n.failed,
	} {
		status[field] = value
	}
	if suspended {
		setJobCondition(status, "Suspended", "True")
	} else {
		if status["startTime"] == nil || conditionIs(status, "Suspended", "True") {
			status["startTime"] = now
		}
		if conditionIs(status, "Suspended", "True") {
			setJobCondition(status, "Suspended", "False")
		}
	}
	switch {
	case dead:
		setJobCondition(status, "Failed", "True")
	case done:
		setJobCondition(status, "Complete", "True")
		status["completionTime"] = now
	}
	u.Object["status"] = status
}

func conditionIs(status map[string]any, kind, value string) bool {
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c["type"] == kind {
			return c["status"] == value
		}
	}
	return false
}

func setJobCondition(status map[string]any, kind, value string) {
	list, _ := status["conditions"].([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == kind
	})
	status["conditions"] = append(list, map[string]any{"type": kind, "status": value})
}

func ended(job *object) bool {
	status := nested(job, "status")
	return succeeded(status) || conditionIs(status, "Failed", "True")
}

// succeeded: Jobs and JobSets have a word of their own for it.
func succeeded(status map[string]any) bool {
	return conditionIs(status, "Complete", "True") || conditionIs(status, "Completed", "True")
}

func intOr(value any, otherwise int64) int64 {
	if n, ok := value.(int64); ok {
		return n
	}
	return otherwise
}

func (c *cluster) createPod(job *object) {
	c.pods++
	template := nested(job, "spec", "template")
	meta := mapAt(template, "metadata")
	pod := &unstructured.Unstructured{
		Object: map[string]any{"spec": template["spec"], "status": map[string]any{"phase": "Pending"}},
	}
	pod = pod.DeepCopy()
	pod.SetNamespace(job.u.GetNamespace())
	pod.SetName(fmt.Sprintf("%s-%d", job.u.GetName(), c.pods))
	labels := textMap(meta["labels"])
	labels["batch.kubernetes.io/controller-uid"] = string(job.uid())
	if ref := owner(job); ref != nil {
		labels[labelJobSet] = ref.Name
	}
	pod.SetLabels(labels)
	pod.SetAnnotations(textMap(meta["annotations"]))
	pod.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(job.u, groupKinds[jobKind])})
	if _, err := c.world.api.create(byJobController, pods, pod); err != nil {
		panic(err) // names are new
	}
}

func textMap(value any) map[string]string {
	out := map[string]string{}
	fields, _ := value.(map[string]any)
	for k, v := range fields {
		out[k], _ = v.(string)
	}
	return out
}

// nodeFor is the first node with room for a further pod.
func (w *world) nodeFor(pod *corev1.Pod) string {
	if w.crowded(pod) {
		return ""
	}
	free := map[string]amounts{}
	for _, o := range w.api.objects[nodes] {
		free[o.u.GetName()] = amountsOf(nodeOf(o).Status.Allocatable, amounts{})
	}
	for _, o := range w.api.objects[pods] {
		if p := podOf(o); p.Spec.NodeName != "" && !terminated(p) {
			free[p.Spec.NodeName] = free[p.Spec.NodeName].plus(requestsOf(&p.Spec), -1)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(free)) {
		if w.api.get(nodes, name) != nil && requestsOf(&pod.Spec).within(free[name]) {
			return name
		}
	}
	return ""
}

// loseNode takes a node away with the pods on it.
func (c *cluster) loseNode(name string) {
	if c.world.api.delete(byAdmin, nodes, name, "") != nil {
		return
	}
	c.world.loop.after(c.dice.between(100*time.Millisecond, 5*time.Second), func() {
		if c.world.api.get(nodes, name) != nil {
			return
		}
		for _, o := range c.world.api.list(pods) {
			if podOf(o).Spec.NodeName == name {
				_ = c.world.api.delete(byGarbage, pods, o.key, o.uid())
			}
		}
	})
}

func milli(n int64) string { return strconv.FormatInt(n, 10) + "m" }
