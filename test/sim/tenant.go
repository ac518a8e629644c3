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
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A tenant does everything to its own jobs, pods and units that no policy refuses. It wants to run more than its
// admission, or for longer, or to take quota of others. Its jobs end as all do. There are no policies here.

// annotationAlone on a pod: no node takes it while another pod of its job is on one.
const annotationAlone = "sim/alone"

// foreignKind is that of consumers that nobody watches.
const foreignKind = "PyTorchJob"

// heartbeat is how often the units of such consumers have to give one; nothing else runs for so long.
const heartbeat = 20 * time.Second

// tenant of a plan.
func (g *generator) tenant(d dice) {
	defer g.with(d)()
	for i := range 1 + g.IntN(3) {
		pick(g.dice, attacks)(g, "t"+strconv.Itoa(i), pick(g.dice, leaves))
	}
}

// attacks of a tenant with a job of a name in a quota.
var attacks = []func(g *generator, job, quota string){
	recharged, lingering, firm, ofOneUID, orphaned, begunAnew, alone, foreign,
}

// attacker is a job that runs while the tenant is at it. It returns when it comes.
func (g *generator) attacker(job, quota string, pairs ...string) time.Duration {
	at := g.when()
	g.add(at, "job", job, append([]string{
		"quota", quota, "cpu", pick(g.dice, []string{"500", "1000"}), "pods", strconv.Itoa(2 + g.IntN(3)),
		"completions", "8", "priority", strconv.Itoa(g.IntN(3)), "run", g.run(), "suspend", "true",
	}, pairs...)...)
	return at
}

// recharged: pods that run are charged to another quota or to none, and the job asks for more of them, again and again.
func recharged(g *generator, job, quota string) {
	at := g.attacker(job, quota, "run", "20s")
	for range 1 + g.IntN(4) {
		at += g.between(time.Second, 6*time.Second)
		g.add(at, "charge-pods", job, "quota", pick(g.dice, []string{"", "", "a", "b", "c"}))
		g.add(at+g.between(0, time.Second), "resize", job, "pods", strconv.Itoa(2+g.IntN(7)))
	}
}

// lingering: pods that run are deleted, and stay for long; so are their successors.
func lingering(g *generator, job, quota string) {
	const long = 4 * time.Minute // more than one generation of successors has
	at := g.attacker(job, quota, "run", "30s")
	g.plan.Length = long
	for range 2 + g.IntN(6) {
		at += g.between(2*time.Second, 40*time.Second)
		if at >= long {
			return
		}
		g.add(at, "linger", job, "for", pick(g.dice, []string{"20s", "1m40s", "2m40s", "10m"}))
	}
}

// firm: a job that has borrowed says that it may not be preempted, and so do its pods.
func firm(g *generator, job, quota string) {
	at := g.attacker(job, quota, "run", "15s") + g.between(time.Second, 8*time.Second)
	g.add(at, "firm", job, "pods", strconv.FormatBool(g.chance(50)))
	if g.chance(50) {
		g.add(at+g.between(0, 5*time.Second), "resize", job, "pods", strconv.Itoa(2+g.IntN(7)))
	}
}

// ofOneUID: many units name the job, before it is admitted or after.
func ofOneUID(g *generator, job, quota string) {
	at := g.attacker(job, quota)
	g.add(at+g.between(0, 8*time.Second), "same-uid", job, "count", strconv.Itoa(5+g.IntN(30)),
		"quota", pick(g.dice, leaves), "cpu", g.cpu())
}

// orphaned: in a queue that admits few, a job goes without its pods, or is kept from going, and the next one comes.
func orphaned(g *generator, job, quota string) {
	most := strconv.Itoa(1 + g.IntN(2))
	g.add(g.between(time.Second, 3*time.Second), "bound", quota, pick(g.dice, []string{"most", "each"}), most)
	verb := pick(g.dice, []string{"orphan", "orphan", "keep"})
	for i := range 2 + g.IntN(2) {
		name := fmt.Sprintf("%s%c", job, 'a'+i)
		if i > 0 && g.chance(40) {
			name = job + "a" // again under the same name
		}
		at := g.attacker(name, quota, "run", "15s") + g.between(time.Second, 8*time.Second)
		g.add(at, verb, name, "for", g.spell(30*time.Second))
	}
}

// begunAnew: a job that loses its admission has its unit deleted, or is not in the queue for a moment.
func begunAnew(g *generator, job, quota string) {
	g.add(g.between(time.Second, 3*time.Second), "times", quota, "pods-ready", strconv.Itoa(1+g.IntN(3)),
		"unbound", "3", "execution", pick(g.dice, []string{"0", "6"}))
	at := g.attacker(job, quota, "alone", "yes")
	for range 1 + g.IntN(5) {
		at += g.between(time.Second, 8*time.Second)
		if at >= g.plan.Length-2*time.Second {
			return
		}
		if g.chance(50) {
			g.add(at, "delete-unit", job)
			continue
		}
		g.add(at, "unlabel", job, "quota", quota)
		g.add(at+g.between(0, 2*time.Second), "relabel", job, "quota", quota)
	}
}

// alone: one pod runs, and the others wait for a node for as long as it does.
func alone(g *generator, job, quota string) { g.attacker(job, quota, "alone", "yes", "run", "25s") }

// foreign: units stand for consumers that nobody watches, or for a single pod that waits forever.
func foreign(g *generator, job, quota string) {
	g.add(g.between(time.Second, 3*time.Second), "heartbeat", quota)
	g.add(g.when(), "foreign", job, "quota", quota, "cpu", g.cpu(), "pod", strconv.FormatBool(g.chance(50)))
}

// runningPods of the job that a step names.
func (w *world) runningPods(s Step) (list []*object) {
	job := w.api.get(jobKind, keyOf(team, s.On))
	if job == nil {
		return nil
	}
	for _, o := range sorted(w.cluster.podsOf[job.uid()]) {
		if pod := podOf(o); pod.Spec.NodeName != "" && !terminated(pod) {
			list = append(list, o)
		}
	}
	return list
}

// setLabel writes a label, or takes it off if the value is empty.
func setLabel(label, value string) func(u *unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		if labels[label] = value; value == "" {
			delete(labels, label)
		}
		u.SetLabels(labels)
	}
}

func chargePods(w *world, s Step) {
	for _, o := range w.runningPods(s) {
		w.api.edit(byUser, pods, o.key, false, setLabel(v1alpha1.LabelQuotaName, s.Args["quota"]))
		w.countFault("pod charged elsewhere")
	}
}

// linger deletes the pods that run with a grace period of their own.
func linger(w *world, s Step) {
	grace := s.duration("for", time.Minute).Truncate(time.Second)
	for _, o := range w.runningPods(s) {
		if podOf(o).DeletionTimestamp != nil {
			continue
		}
		w.api.edit(byUser, pods, o.key, false, func(u *unstructured.Unstructured) {
			at := metav1.NewTime(w.loop.now.Add(grace))
			u.SetDeletionTimestamp(&at)
			u.SetDeletionGracePeriodSeconds(ptr.To(int64(grace / time.Second)))
		})
		w.countFault("pod that lingers")
	}
}

// graceOf a pod that is being deleted.
func graceOf(pod *corev1.Pod) time.Duration {
	return time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
}

func makeFirm(w *world, s Step) {
	w.countFault("made non-preemptible")
	w.madeFirm[s.On] = true
	w.api.edit(byUser, jobKind, keyOf(team, s.On), false, setLabel(v1alpha1.LabelPreemptible, "false"))
	if s.Args["pods"] == "true" {
		for _, o := range w.runningPods(s) {
			w.api.edit(byUser, pods, o.key, false, setLabel(v1alpha1.LabelPreemptible, "false"))
		}
	}
}

func createUnitsOfOneUID(w *world, s Step) {
	job := w.api.get(jobKind, keyOf(team, s.On))
	if job == nil {
		return
	}
	for i := range s.number("count", 1) {
		w.countFault("unit of one UID")
		w.createObject(byUser, units, team, fmt.Sprintf("%s-twin%d", s.On, i),
			map[string]string{v1alpha1.LabelQuotaName: s.Args["quota"]}, map[string]string{annotationBad: "same-uid"},
			map[string]any{"spec": map[string]any{
				"request": map[string]any{"cpu": milli(s.number("cpu", 500))}, "consumerRef": consumer(s.On, string(job.uid())),
			}})
	}
}

// orphan deletes a job and leaves what it owns.
func orphan(w *world, s Step) {
	job := w.api.get(jobKind, keyOf(team, s.On))
	if job == nil {
		return
	}
	w.countFault("job deleted without its pods")
	for _, k := range []kind{pods, units} {
		for _, o := range w.api.list(k) {
			if ref := owner(o); ref != nil && ref.UID == job.uid() {
				w.api.edit(byGarbage, k, o.key, false, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
			}
		}
	}
	_ = w.api.delete(byUser, jobKind, job.key, job.uid()) // the job exists
}

// keep deletes a job that a finalizer keeps for a while.
func keep(w *world, s Step) {
	job := w.api.get(jobKind, keyOf(team, s.On))
	if job == nil {
		return
	}
	w.countFault("deleted job that is kept")
	w.api.edit(byUser, jobKind, job.key, false, func(u *unstructured.Unstructured) {
		at := metav1.NewTime(w.loop.now)
		u.SetDeletionTimestamp(&at)
	})
	w.loop.after(s.duration("for", time.Second), func() { _ = w.api.delete(byUser, jobKind, job.key, job.uid()) })
}

// beingDeleted says of a job that it is not there any more, though it is.
func beingDeleted(job *object) bool { return job.u.GetDeletionTimestamp() != nil }

// unlabel takes a job out of its queue. It is put back when the world heals.
func unlabel(w *world, s Step) {
	w.countFault("job without its label")
	w.unlabelled[s.On] = s.Args["quota"]
	w.api.edit(byUser, jobKind, keyOf(team, s.On), false, setLabel(v1alpha1.LabelQuotaName, ""))
}

// setBound of how many units of a queue are admitted at once, of all or of each namespace.
func setBound(w *world, s Step) {
	w.countFault("bound")
	w.api.edit(byAdmin, queues, keyOf(v1alpha1.DefaultQueueNamespace, s.On), false, func(u *unstructured.Unstructured) {
		spec := mapAt(u.Object, "spec")
		if n := s.number("most", 0); n > 0 {
			spec["maxAdmitted"] = n
		}
		if n := s.number("each", 0); n > 0 {
			spec["perNamespace"] = map[string]any{"maxAdmitted": n}
		}
	})
}

func setHeartbeat(w *world, s Step) {
	w.api.edit(byAdmin, queues, keyOf(v1alpha1.DefaultQueueNamespace, s.On), false, func(u *unstructured.Unstructured) {
		mapAt(u.Object, "spec")["heartbeatTimeoutSeconds"] = int64(heartbeat / time.Second)
	})
}

func createForeignUnit(w *world, s Step) {
	w.countFault("foreign unit")
	spec := map[string]any{"request": map[string]any{"cpu": milli(s.number("cpu", 1000))}}
	if s.Args["pod"] == "true" {
		w.createObject(byUser, pods, team, s.On+"-waits", map[string]string{v1alpha1.LabelQuotaName: s.Args["quota"]},
			map[string]string{v1alpha1.AnnotationRelatedQueueUnit: keyOf(team, s.On), annotationBad: "waits"}, map[string]any{
				"spec":   map[string]any{"containers": []any{container(1<<40, s)}},
				"status": map[string]any{"phase": "Pending"},
			})
	} else {
		spec["consumerRef"] = map[string]any{
			"kind": foreignKind, "apiVersion": "kubeflow.org/v1", "namespace": team, "name": "p", "uid": "p-" + s.On,
		}
	}
	w.createObject(byUser, units, team, s.On, map[string]string{v1alpha1.LabelQuotaName: s.Args["quota"]},
		map[string]string{annotationBad: "foreign"}, map[string]any{"spec": spec})
}

// crowded says that a pod that has to be alone is not.
func (w *world) crowded(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	if pod.Annotations[annotationAlone] == "" || ref == nil {
		return false
	}
	for _, o := range w.cluster.podsOf[ref.UID] {
		if other := podOf(o); other.Spec.NodeName != "" && !terminated(other) {
			return true
		}
	}
	return false
}

// tenantLeaves when the world heals. Its jobs get their queues back. Its units are deleted after it was seen which of
// them still hold quota.
func (w *world) tenantLeaves() {
	for _, job := range w.topJobs() {
		if quota := w.unlabelled[job.u.GetName()]; quota != "" && quotaLabel(job) == "" {
			w.api.edit(byUser, jobKind, job.key, false, setLabel(v1alpha1.LabelQuotaName, quota))
		}
		if w.madeFirm[job.u.GetName()] { // the request may exceed min and would wait forever
			w.api.edit(byUser, jobKind, job.key, false, setLabel(v1alpha1.LabelPreemptible, ""))
		}
	}
	bad := func(what string) func(o *object) bool {
		return func(o *object) bool { return o.u.GetAnnotations()[annotationBad] == what }
	}
	for _, o := range w.api.list(pods) {
		if bad("waits")(o) { // Koordinator gives its quota room for it, which the other quotas lack
			_ = w.api.delete(byUser, pods, o.key, o.uid()) // the pod exists
		}
	}
	foreign := bad("foreign")
	if !slices.ContainsFunc(w.api.list(units), foreign) {
		return
	}
	w.loop.after(3*heartbeat, func() {
		for _, o := range w.api.list(units) {
			if foreign(o) {
				w.check.rest.heartbeat(o)
				_ = w.api.delete(byUser, units, o.key, o.uid()) // the unit exists
			}
		}
	})
}
