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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// annotationBad on a job or unit: nobody promises that it ever goes; it must not keep others from going (F14, F16).
const annotationBad = "sim/bad"

// flaws of units that somebody writes, by name; each changes the spec of a sound one.
var flaws = map[string]func(w *world, spec map[string]any){
	"negative": func(_ *world, spec map[string]any) { spec["request"] = map[string]any{"cpu": "-2"} },
	"huge":     func(_ *world, spec map[string]any) { spec["request"] = map[string]any{"cpu": "9E"} },
	"beyond":   func(_ *world, spec map[string]any) { spec["request"] = map[string]any{"cpu": "1e300"} },
	"zero":     func(_ *world, spec map[string]any) { spec["request"] = map[string]any{"cpu": "0"} },
	"resource": func(_ *world, spec map[string]any) { spec["request"] = map[string]any{"example.com/none": "3"} },
	"empty":    func(_ *world, spec map[string]any) { delete(spec, "request"); delete(spec, "podSet") },
	"nothing":  func(_ *world, spec map[string]any) { clear(spec) },
	"highest":  func(_ *world, spec map[string]any) { spec["priority"] = int64(1<<31 - 1) },
	"lowest":   func(_ *world, spec map[string]any) { spec["priority"] = int64(-1 << 31) },
	"first-of-all": func(_ *world, spec map[string]any) {
		spec["priority"], spec["request"] = int64(1<<31-1), map[string]any{"cpu": "9E"}
	},
	"queue":  func(_ *world, spec map[string]any) { spec["queue"] = "nowhere" },
	"no-job": func(_ *world, spec map[string]any) { spec["consumerRef"] = consumer("nobody", "nobody-1") },
	"other-tenant": func(_ *world, spec map[string]any) {
		spec["consumerRef"] = map[string]any{
			"kind": "Job", "apiVersion": "batch/v1", "namespace": "quotas", "name": "x", "uid": "x-1",
		}
	},
	"count": func(_ *world, spec map[string]any) {
		delete(spec, "request")
		spec["podSet"] = []any{podSet("main", -4, "500m")}
	},
	"counts": func(_ *world, spec map[string]any) {
		delete(spec, "request")
		spec["podSet"] = []any{podSet("main", 1<<31-1, "4E")}
	},
	"same-names": func(_ *world, spec map[string]any) {
		spec["podSet"] = []any{podSet("main", 1, "1"), podSet("main", 1, "1")}
	},
	"template": func(_ *world, spec map[string]any) {
		delete(spec, "request")
		spec["podSet"] = []any{map[string]any{"name": "main", "count": int64(1), "template": []any{"not", "one"}}}
	},
	"eight-sets": func(_ *world, spec map[string]any) {
		sets := make([]any, 8)
		for i := range sets {
			sets[i] = podSet(fmt.Sprintf("role-%d", i), 1, "100m")
		}
		delete(spec, "request")
		spec["podSet"] = sets
	},
	"twin": func(w *world, spec map[string]any) {
		for _, o := range w.api.list(jobKind) {
			spec["consumerRef"] = consumer(o.u.GetName(), string(o.uid()))
			return
		}
	},
}

func consumer(name, uid string) map[string]any {
	return map[string]any{"kind": "Job", "apiVersion": "batch/v1", "namespace": team, "name": name, "uid": uid}
}

func podSet(name string, count int64, cpu string) map[string]any {
	requests := map[string]any{"requests": map[string]any{"cpu": cpu}}
	return map[string]any{"name": name, "count": count, "template": map[string]any{
		"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "resources": requests}}},
	}}
}

// createUnits makes units that stand for something outside: who made them reports that they run and that they have
// ended. With a flaw it is a bad one.
func createUnits(w *world, s Step) {
	for i := range s.number("count", 1) {
		name := s.On
		if i > 0 {
			name = fmt.Sprintf("%s-%d", s.On, i)
		}
		sets := []any{
			podSet("driver", 1, milli(s.number("cpu", 1000)/2)), podSet("worker", 1, milli(s.number("cpu", 1000)/2)),
		}
		spec := map[string]any{
			"request": map[string]any{"cpu": milli(s.number("cpu", 1000))}, "podSet": sets, "priority": s.number("priority", 0),
		}
		annotations := map[string]string{annotationRun: s.duration("run", 0).String()}
		if flaw := s.Args["flaw"]; flaw != "" {
			annotations[annotationBad] = flaw
			flaws[flaw](w, spec)
			w.countFault("malformed unit")
		}
		w.createObject(byUser, units, team, name, map[string]string{v1alpha1.LabelQuotaName: s.Args["quota"]}, annotations,
			map[string]any{"spec": spec})
	}
}

// outside reports what became of a unit that stands for something outside, once it is admitted.
func (c *cluster) outside(o *object) {
	if phaseOf(o) != unit.PhaseDequeued || o.u.GetAnnotations()[annotationRun] == "" {
		return
	}
	report := func(phase string, change func(status map[string]any)) func() {
		return func() {
			if now := c.world.api.get(units, o.key); now == nil || now.uid() != o.uid() || !holds(now) {
				return
			}
			c.world.api.edit(byUser, units, o.key, true, func(u *unstructured.Unstructured) {
				status := mapAt(u.Object, "status")
				status["phase"] = phase
				change(status)
			})
		}
	}
	run := Step{Args: o.u.GetAnnotations()}.duration(annotationRun, 0)
	c.world.loop.after(run/2, report("Running", func(map[string]any) {}))
	c.world.loop.after(run, report("Succeed", func(status map[string]any) {
		delete(status, "admissions")
		status["conditions"] = []any{map[string]any{
			"type": v1alpha1.ConditionFinished, "status": "True", "reason": "Done", "message": "",
			"lastTransitionTime": c.world.loop.now.UTC().Format("2006-01-02T15:04:05Z"),
		}}
	}))
}

// createBadJob makes a job that may never go.
func createBadJob(w *world, s Step) {
	w.countFault("malformed job")
	createJob(w, s)
	w.api.edit(byUser, jobKind, keyOf(team, s.On), false, func(u *unstructured.Unstructured) {
		annotations := map[string]string{annotationBad: s.Args["flaw"]}
		labels := u.GetLabels()
		switch s.Args["flaw"] {
		case "unknown-queue":
			annotations[v1alpha1.QueueNameKey] = "nowhere"
		case "unknown-quota":
			labels[v1alpha1.LabelQuotaName] = "nowhere"
		case "mismatch":
			_ = unstructured.SetNestedStringMap(u.Object, map[string]string{v1alpha1.LabelQuotaName: "elsewhere"}, "spec",
				"template", "metadata", "labels")
		case "priority":
			annotations[v1alpha1.AnnotationPriority] = "not a number"
		case "preemptible":
			labels[v1alpha1.LabelPreemptible] = "perhaps"
		case "huge":
			_ = unstructured.SetNestedSlice(u.Object, []any{container(1<<50, s)}, "spec", "template", "spec", "containers")
		}
		u.SetLabels(labels)
		u.SetAnnotations(annotations)
	})
}

var badJobs = []string{"unknown-queue", "unknown-quota", "mismatch", "priority", "preemptible", "huge"}

// bad says whether nobody promises that a job or unit ever goes.
func (w *world) bad(o *object) bool {
	if o == nil {
		return false
	}
	if o.u.GetAnnotations()[annotationBad] != "" || w.bombs[o.key] != "" {
		return true
	}
	if o.kind != units || unitOf(o).Spec.ConsumerRef == nil {
		return false
	}
	return w.bad(w.api.get(jobKind, keyOf(team, unitOf(o).Spec.ConsumerRef.Name)))
}

// bombs are units, by key, at which something panics in the schedulers: check or policy (F18).
func (w *world) plantBombs() {
	for _, s := range w.plan.Steps {
		if s.Verb == "bomb" {
			w.bombs[w.unitKey(s.On)] = s.Args["in"]
		}
	}
}

// extend gives the core what panics.
func (w *world) extend(r *replica) {
	var all map[string]queue.Factory
	var checks []queue.Check
	if w.variants != nil {
		all = w.variants.Policies
	}
	if len(w.bombs) > 0 {
		checks = append(checks, bombCheck{w.bombs})
		all = map[string]queue.Factory{}
		for name, factory := range queue.Builtin() {
			all[name] = func(threshold int32) queue.Policy { return bombPolicy{factory(threshold), w.bombs} }
		}
	}
	if all != nil || checks != nil {
		r.engine.Extend(all, checks)
	}
}

type bombCheck struct{ bombs map[string]string }

// Key has what panics looked at on its own.
func (c bombCheck) Key(u unit.Unit) string {
	if c.bombs[u.Key] == "check" {
		return u.Key
	}
	return ""
}

// Check lets all others go.
func (c bombCheck) Check(u unit.Unit) (unit.Reason, string) {
	if c.bombs[u.Key] == "check" {
		panic("a bomb in a check")
	}
	return "", ""
}

type bombPolicy struct {
	queue.Policy
	bombs map[string]string
}

// Compare panics over some.
func (p bombPolicy) Compare(a, b queue.Item) int {
	if p.bombs[a.Key] == "policy" || p.bombs[b.Key] == "policy" {
		panic("a bomb in a policy")
	}
	return p.Policy.Compare(a, b)
}

// checkThatIsNot has a queue name an admission check that does not exist (F19).
func checkThatIsNot(spec map[string]any) {
	spec["admissionChecks"] = []any{map[string]any{"name": "never-answers"}}
}
