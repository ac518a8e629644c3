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
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

const (
	team           = "team"
	quotaNamespace = "quotas"
	root           = "koordinator-root-quota"
	labelIsParent  = "quota.scheduling.koordinator.sh/is-parent"
)

func (w *world) act(s Step) {
	if w.over() {
		return
	}
	w.logf("step %s", s)
	switch s.Verb {
	case "quota", "queue", "node":
		if name := s.Verb + "/" + s.On; s.At == 0 && !w.healed {
			w.original[name] = s
		}
	default:
	}
	if !strings.HasPrefix(s.On, "scheduler") && disturbing[s.Verb] {
		w.disturb(s.duration("for", 2*time.Second))
	}
	w.actions[s.Verb](w, s)
}

func (w *world) processNames() []string {
	var names []string
	for i := range w.plan.Schedulers {
		names = append(names, fmt.Sprintf("scheduler-%d", i))
	}
	for i := range w.plan.Controllers {
		names = append(names, fmt.Sprintf("controller-%d", i))
	}
	return names
}

func (w *world) createObject(
	by writer, k kind, namespace, name string, labels, annotations map[string]string, fields map[string]any,
) *object {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range fields {
		u.Object[key] = value
	}
	u.SetGroupVersionKind(groupKinds[k])
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	o, err := w.api.create(by, k, u)
	if err != nil {
		return nil // the object exists
	}
	return o
}

func (w *world) editJob(s Step, change func(spec map[string]any)) {
	w.api.edit(byUser, jobKindOf(s.On), keyOf(team, s.On), false,
		func(u *unstructured.Unstructured) { change(mapAt(u.Object, "spec")) })
}

// annotate writes an annotation, or takes it away if the value is empty.
func (w *world) annotate(k kind, key, annotation, value string) {
	w.api.edit(byUser, k, key, false, func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotation] = value
		if value == "" {
			delete(annotations, annotation)
		}
		u.SetAnnotations(annotations)
	})
}

func (w *world) label(k kind, key, label, value string) {
	w.api.edit(byUser, k, key, false, func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[label] = value
		u.SetLabels(labels)
	})
}

func touchLabels(version int64) func(u *unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["sim/touched"] = fmt.Sprint(version)
		u.SetLabels(labels)
	}
}

func activate(u *unstructured.Unstructured) {
	if spec := mapAt(u.Object, "spec"); spec != nil && u.GetAnnotations()[v1alpha1.AnnotationParkedReason] == "" {
		delete(spec, "active")
	}
}

// container of cpu in thousandths, memory in Mi and devices.
func container(cpu int64, s Step) map[string]any {
	return map[string]any{
		"name": "c", "resources": map[string]any{"requests": s.more(map[string]any{"cpu": milli(cpu)}, "memory", "gpu")},
	}
}

func (s Step) more(list map[string]any, memory, gpu string) map[string]any {
	if n := s.number(memory, 0); n != 0 {
		list["memory"] = fmt.Sprintf("%dMi", n)
	}
	if n := s.number(gpu, 0); n != 0 {
		list[string(resourceNames[2])] = fmt.Sprint(n)
	}
	return list
}

// switchRuntime turns enableRuntimeQuota on or off: the schedulers are restarted with it, one after the other, as a
// Deployment does it. In between some have it and some have not.
func switchRuntime(w *world, s Step) {
	w.runtime = s.Args["on"] == "true"
	w.countFault("runtime switched")
	for i, name := range slices.Sorted(maps.Keys(w.schedulers)) {
		w.loop.after(time.Duration(i)*s.duration("every", time.Second), func() {
			if r := w.schedulers[name]; r.alive {
				r.crash()
				w.restartLater(name)
			}
		})
	}
}

func createJob(w *world, s Step) {
	labels := map[string]string{}
	if q := s.Args["quota"]; q != "" {
		labels[v1alpha1.LabelQuotaName] = q
	}
	if s.Args["preemptible"] == "false" {
		labels[v1alpha1.LabelPreemptible] = "false"
	}
	annotations := map[string]any{annotationRun: s.duration("run", 10*time.Second).String()}
	if s.Args["fails"] != "" {
		annotations[annotationFails] = "yes"
	}
	joinGang(s, annotations)
	if s.Args["alone"] != "" {
		annotations[annotationAlone] = "yes"
	}
	spec := map[string]any{
		"parallelism": s.number("pods", 1),
		"completions": s.number("completions", s.number("pods", 1)), "backoffLimit": int64(6),
		"suspend": s.Args["suspend"] != "false",
		"template": map[string]any{
			"metadata": map[string]any{"annotations": annotations},
			"spec": map[string]any{
				"containers": []any{container(s.number("cpu", 1000), s)}, "priority": s.number("priority", 0),
				"restartPolicy": "Never", "schedulerName": "koord-scheduler",
			},
		},
	}
	of := graceArgs(s, sizesOf(s, spec), annotations)
	w.createObject(byUser, jobKind, team, s.On, labels, of, map[string]any{"spec": spec})
}

// recreateJob deletes a job and creates another under its name.
func recreateJob(w *world, s Step) {
	_ = w.api.delete(byUser, jobKind, keyOf(team, s.On), "") // the job may be gone
	w.countFault("job re-created")
	w.loop.after(s.duration("gap", 0), func() { createJob(w, s) })
}

func prioritise(w *world, s Step) {
	w.api.edit(byUser, jobKindOf(s.On), keyOf(team, s.On), false, func(u *unstructured.Unstructured) {
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[v1alpha1.AnnotationPriority] = s.Args["priority"]
		u.SetAnnotations(annotations)
	})
}

func createPlainPod(w *world, s Step) {
	labels := map[string]string{v1alpha1.LabelQuotaName: s.Args["quota"]}
	annotations := map[string]string{annotationRun: s.duration("run", 10*time.Second).String()}
	w.createObject(byUser, pods, team, s.On, labels, annotations, map[string]any{
		"spec":   map[string]any{"containers": []any{container(s.number("cpu", 1000), s)}},
		"status": map[string]any{"phase": "Pending"},
	})
}

func deletePodOf(w *world, s Step) {
	for _, o := range w.api.list(pods) {
		if strings.HasPrefix(o.u.GetName(), s.On+"-") && !terminated(podOf(o)) {
			w.cluster.deletePod(byUser, o)
			w.countFault("pod deleted")
			return
		}
	}
}

func setQuota(w *world, s Step) {
	labels := map[string]string{v1alpha1.LabelQuotaParent: root, labelIsParent: "false"}
	if parent := s.Args["parent"]; parent != "" {
		labels[v1alpha1.LabelQuotaParent] = parent
	}
	if s.Args["leaf"] == "false" {
		labels[labelIsParent] = "true"
	}
	if policy := s.Args["policy"]; policy != "" {
		labels[v1alpha1.LabelQueuePolicy] = policy
	}
	spec := map[string]any{
		"min": s.more(map[string]any{"cpu": milli(s.number("min", 0))}, "min-memory", "min-gpu"),
		"max": s.more(map[string]any{"cpu": milli(s.number("max", 0))}, "max-memory", "max-gpu"),
	}
	annotations := map[string]string{}
	if n := s.Args["max-jobs"]; n != "" {
		annotations[v1alpha1.AnnotationMaxJobs] = n
	}
	key := keyOf(quotaNamespace, s.On)
	if w.api.get(quotas, key) == nil {
		w.createObject(byAdmin, quotas, quotaNamespace, s.On, labels, annotations, map[string]any{"spec": spec})
		return
	}
	w.api.edit(byAdmin, quotas, key, false, func(u *unstructured.Unstructured) {
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
		u.Object["spec"] = spec
	})
}

func parentOf(o *object) string { return o.u.GetLabels()[v1alpha1.LabelQuotaParent] }

func setNode(w *world, s Step) {
	status := map[string]any{"allocatable": map[string]any{
		"cpu": milli(s.number("cpu", 0)), "memory": "24Gi", string(resourceNames[2]): fmt.Sprint(s.number("gpu", 6)),
	}}
	if w.api.get(nodes, s.On) == nil {
		w.createObject(byAdmin, nodes, "", s.On, nil, nil, map[string]any{"status": status})
		return
	}
	w.api.edit(byAdmin, nodes, s.On, true, func(u *unstructured.Unstructured) { u.Object["status"] = status })
}

func setQueue(w *world, s Step) {
	spec := map[string]any{"queuePolicy": "Priority", "priority": s.number("priority", 0)}
	if policy := s.Args["policy"]; policy != "" {
		spec["queuePolicy"] = policy
	}
	if s.Args["checks"] != "" {
		checkThatIsNot(spec)
	}
	if stop := s.Args["stop"]; stop != "" {
		spec["stopPolicy"] = stop
	}
	if s.Args["hold"] == "true" {
		spec["stopPolicy"] = string(v1alpha1.StopHold)
	}
	key := keyOf(v1alpha1.DefaultQueueNamespace, s.On)
	if w.api.get(queues, key) == nil {
		w.createObject(byAdmin, queues, v1alpha1.DefaultQueueNamespace, s.On, nil, nil, map[string]any{"spec": spec})
		return
	}
	w.api.edit(byAdmin, queues, key, false, func(u *unstructured.Unstructured) {
		keepGrace(mapAt(u.Object, "spec"), spec)
		u.Object["spec"] = spec
	})
}

// release lets a queue go that somebody has stopped, or given a policy that there is none of.
func release(u *unstructured.Unstructured) {
	spec := mapAt(u.Object, "spec")
	delete(spec, "stopPolicy")
	withoutTimes(spec)
	withoutUnknownChecks(spec)
	if policy, _ := spec["queuePolicy"].(string); queue.Builtin()[policy] == nil {
		delete(spec, "queuePolicy")
	}
}

// unitKey is where the unit of the job is that a step names.
func (w *world) unitKey(job string) string {
	return keyOf(team, w.describes(jobKindOf(job)).UnitName(job))
}

// letGoByHand says that a unit may let its pods go, no scheduler has said so, and none can go as its checks contradict.
func letGoByHand(o *object) bool {
	u := unitOf(o)
	admitted := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionAdmitted)
	if !rulebook.Releases(phaseOf(o)) || admitted == nil || admitted.Reason != string(unit.ReasonWaitingForChecks) {
		return false
	}
	asked := podupdate.Read(podupdate.Of(u), nil)
	anyKey := func(string) (podupdate.Keys, bool) { return nil, false } // the checks list what they write
	return asked.Onto(&unit.CheckAnswers{}, anyKey).Conflict != ""
}

// editUnit is a person writing into a unit what is not for people to write (F17).
func editUnit(w *world, s Step) {
	w.countFault("hand edit")
	if active := s.Args["active"]; active != "" {
		w.api.edit(byUser, units, w.unitKey(s.On), false, func(u *unstructured.Unstructured) {
			mapAt(u.Object, "spec")["active"] = active == "true"
		})
		return
	}
	w.api.edit(byUser, units, w.unitKey(s.On), true, func(u *unstructured.Unstructured) {
		status, _ := u.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		if phase := s.Args["phase"]; phase != "" {
			status["phase"] = phase
		}
		if state := s.Args["check"]; state != "" {
			status["admissionChecks"] = []any{map[string]any{"name": "never-answers", "state": state}}
		}
		switch s.Args["drop"] {
		case "admissions", "conditions":
			delete(status, s.Args["drop"])
		case "all":
			status = map[string]any{"attempts": status["attempts"]}
		}
		u.Object["status"] = status
	})
}
