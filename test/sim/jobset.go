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
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// A JobSet has several groups of pods, and owns Jobs that could be queued themselves. Its controller here does the same
// as that of JobSet v0.8. It creates the Jobs even while the JobSet is suspended, and suspends and resumes them. A
// resumed Job gets the labels and annotations of its template.

var byJobSetController = writer{role: "jobset-controller"}

// labelJobSet of pods is the name of their JobSet.
const labelJobSet = "jobset.sigs.k8s.io/jobset-name"

// setPrefix begins the names of JobSets; those of their Jobs have a dash more.
const setPrefix = "set"

func namesJobSet(name string) bool {
	return strings.HasPrefix(name, setPrefix) && !strings.Contains(name, "-")
}

// jobKindOf is the kind of the job that a step names.
func jobKindOf(name string) kind {
	if namesJobSet(name) {
		return jobSets
	}
	return jobKind
}

// hasJobSets says whether the plan has any. Nothing looks for them in one that has none.
func (p *Plan) hasJobSets() bool {
	for i := range p.Steps {
		if p.Steps[i].Verb == "job-set" {
			return true
		}
	}
	return false
}

// describes is the descriptor of a kind of jobs.
func (w *world) describes(k kind) *jobkind.Kind {
	if k == jobSets {
		return &w.setKind
	}
	return &w.kind
}

// jobOf is what an owner reference or a consumer names; nil if that is gone.
func (w *world) jobOf(namespace string, ref *metav1.OwnerReference) *object {
	k := jobKind
	if ref.Kind == groupKinds[jobSets].Kind {
		k = jobSets
	}
	o := w.api.get(k, keyOf(namespace, ref.Name))
	if o == nil || o.uid() != ref.UID {
		return nil
	}
	return o
}

// topOf is the job at the top of those that own an object; nil if one on the way is gone.
func (w *world) topOf(o *object) *object {
	for {
		ref := owner(o)
		if ref == nil {
			return o
		}
		if o = w.jobOf(o.u.GetNamespace(), ref); o == nil {
			return nil
		}
	}
}

// topJobs are those that nobody made.
func (w *world) topJobs() []*object {
	var all []*object
	for _, k := range []kind{jobKind, jobSets} {
		for _, o := range w.api.list(k) {
			if owner(o) == nil {
				all = append(all, o)
			}
		}
	}
	return all
}

// unitKeyOf is where the unit of a job is.
func (w *world) unitKeyOf(job *object) string {
	return keyOf(job.u.GetNamespace(), w.describes(job.kind).UnitName(job.u.GetName()))
}

func createJobSet(w *world, s Step) {
	label := map[string]any{v1alpha1.LabelQuotaName: s.Args["quota"]}
	labels := map[string]string{}
	annotations := map[string]any{annotationRun: s.duration("run", 10*time.Second).String()}
	metadata := map[string]any{"annotations": annotations}
	if s.Args["label"] != "templates" {
		labels[v1alpha1.LabelQuotaName] = s.Args["quota"]
	}
	if s.Args["label"] != "set" {
		metadata["labels"] = label
	}
	group := func(name string, replicas, pods int64) map[string]any {
		return map[string]any{"name": name, "replicas": replicas, "template": map[string]any{"spec": map[string]any{
			"parallelism": pods, "completions": pods, "backoffLimit": int64(6),
			"template": map[string]any{"metadata": metadata, "spec": map[string]any{
				"containers": []any{container(s.number("cpu", 500), s)}, "restartPolicy": "Never",
				"schedulerName": "koord-scheduler",
			}},
		}}}
	}
	of := graceArgs(s, nil, annotations)
	w.createObject(byUser, jobSets, team, s.On, labels, of, map[string]any{"spec": map[string]any{
		"suspend": s.Args["suspend"] != "false",
		"replicatedJobs": []any{
			group("leader", 1, 1), group("workers", s.number("replicas", 1), s.number("pods", 1)),
		},
	}})
}

// syncSet has the controller of JobSets look at one soon.
func (c *cluster) syncSet(key string) {
	if c.syncing["set "+key] {
		return
	}
	c.syncing["set "+key] = true
	c.world.loop.after(c.setDice.between(5*time.Millisecond, 200*time.Millisecond), func() {
		c.syncing["set "+key] = false
		if set := c.world.api.get(jobSets, key); set != nil && !ended(set) {
			c.syncJobSet(set)
		}
	})
}

// group is one of the replicatedJobs.
type group struct {
	name     string
	replicas int64
	template map[string]any
}

func groupsOf(set *object) []group {
	list, _ := nested(set, "spec")["replicatedJobs"].([]any)
	groups := make([]group, 0, len(list))
	for _, item := range list {
		fields, _ := item.(map[string]any)
		name, _ := fields["name"].(string)
		groups = append(groups, group{name, intOr(fields["replicas"], 1), mapAt(fields, "template")})
	}
	return groups
}

// syncJobSet is what the controller of JobSets does about one.
func (c *cluster) syncJobSet(set *object) {
	suspended, _ := nested(set, "spec")["suspend"].(bool)
	done, failed := true, false
	var statuses []any
	for _, g := range groupsOf(set) {
		n := map[string]any{"name": g.name, "ready": int64(0), "active": int64(0), "succeeded": int64(0), "failed": int64(0)}
		for i := range g.replicas {
			job := c.jobOfSet(set, &g, i, suspended)
			if job == nil {
				return // the change of what is in the way comes later
			}
			field := c.setSuspend(job, &g, suspended)
			if field != "" {
				n[field] = intOr(n[field], 0) + 1
			}
			done, failed = done && field == "succeeded", failed || field == "failed"
		}
		statuses = append(statuses, n)
	}
	c.world.api.edit(byJobSetController, jobSets, set.key, true, func(u *unstructured.Unstructured) {
		status, _ := u.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		status["replicatedJobsStatus"] = statuses
		setJobCondition(status, "Suspended", map[bool]string{true: "True", false: "False"}[suspended])
		switch {
		case failed:
			setJobCondition(status, "Failed", "True")
		case done:
			setJobCondition(status, "Completed", "True")
		}
		u.Object["status"] = status
	})
	if failed {
		c.deleteJobsOf(set, func(job *object) bool { return !ended(job) })
	}
}

// jobOfSet is the i-th Job of a group, which is made if it is not there.
func (c *cluster) jobOfSet(set *object, g *group, i int64, suspended bool) *object {
	name := fmt.Sprintf("%s-%s-%d", set.u.GetName(), g.name, i)
	if job := c.world.api.get(jobKind, keyOf(set.u.GetNamespace(), name)); job != nil {
		if ref := owner(job); ref == nil || ref.UID != set.uid() {
			return nil // that of a JobSet of this name before
		}
		return job
	}
	u := (&unstructured.Unstructured{Object: map[string]any{"spec": mapAt(g.template, "spec")}}).DeepCopy()
	u.SetNamespace(set.u.GetNamespace())
	u.SetName(name)
	u.SetLabels(textMap(mapAt(g.template, "metadata")["labels"]))
	mapAt(u.Object, "spec")["suspend"] = suspended
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(set.u, groupKinds[jobSets])})
	job, err := c.world.api.create(byJobSetController, jobKind, u)
	if err != nil {
		panic(err) // the name is free
	}
	return job
}

// setSuspend makes a Job suspended or not, and returns the field of the status that counts it.
func (c *cluster) setSuspend(job *object, g *group, suspend bool) string {
	status := nested(job, "status")
	switch {
	case conditionIs(status, "Complete", "True"):
		return "succeeded"
	case conditionIs(status, "Failed", "True"):
		return "failed"
	}
	if is, _ := nested(job, "spec")["suspend"].(bool); is != suspend {
		if !suspend && status["startTime"] != nil {
			c.world.api.edit(byJobSetController, jobKind, job.key, true, func(u *unstructured.Unstructured) {
				delete(mapAt(u.Object, "status"), "startTime")
			})
		}
		c.world.api.edit(byJobSetController, jobKind, job.key, false, func(u *unstructured.Unstructured) {
			spec := mapAt(u.Object, "spec")
			if !suspend {
				mergeMetadata(mapAt(spec, "template"), mapAt(g.template, "spec", "template"))
			}
			spec["suspend"] = suspend
		})
	}
	switch ready := intOr(status["ready"], 0) + intOr(status["succeeded"], 0); {
	case ready >= intOr(mapAt(g.template, "spec")["parallelism"], 1):
		return "ready"
	case intOr(status["active"], 0) > 0:
		return "active"
	default:
		return ""
	}
}

// mergeMetadata adds labels and annotations, and takes none away.
func mergeMetadata(into, from map[string]any) {
	metadata := mapAt(into, "metadata")
	if metadata == nil {
		metadata = map[string]any{}
		into["metadata"] = metadata
	}
	for _, key := range []string{"labels", "annotations"} {
		have := mapAt(metadata, key)
		if have == nil {
			have = map[string]any{}
		}
		for name, value := range mapAt(from, "metadata", key) {
			have[name] = value
		}
		metadata[key] = have
	}
}

func (c *cluster) deleteJobsOf(set *object, which func(*object) bool) {
	for _, job := range c.world.api.list(jobKind) {
		if ref := owner(job); ref != nil && ref.UID == set.uid() && which(job) {
			_ = c.world.api.delete(byGarbage, jobKind, job.key, job.uid())
		}
	}
}

// jobSets adds some to a plan, and what may happen to them.
func (g *generator) jobSets(d dice) {
	defer g.with(d)()
	for i := range 1 + g.IntN(3) {
		name := setPrefix + strconv.Itoa(i)
		g.add(g.when(), "job-set", name, "quota", pick(g.dice, leaves), "cpu", "500",
			"replicas", strconv.Itoa(1+g.IntN(2)), "pods", strconv.Itoa(1+g.IntN(2)), "run", g.run(),
			"suspend", strconv.FormatBool(g.chance(50)),
			"label", pick(g.dice, []string{"set", "templates", "both"}))
		for range g.IntN(3) {
			pick(g.dice, setMischief)(g, name)
		}
	}
}

// setMischief is what may happen to a JobSet.
var setMischief = []func(g *generator, set string){
	func(g *generator, set string) { g.add(g.when(), "delete-job", set) },
	func(g *generator, set string) { g.add(g.when(), "suspend", set) },
	func(g *generator, set string) { g.add(g.when(), "resume", set) },
	func(g *generator, set string) {
		g.add(g.when(), "prioritise", set, "priority", strconv.Itoa(g.IntN(5)))
	},
	func(g *generator, set string) { g.add(g.when(), "delete-pod", set) },
	func(g *generator, set string) { g.add(g.when(), "delete-unit", set) },
	func(g *generator, set string) {
		at := g.when()
		g.add(at, "edit-unit", set, "active", "false")
		g.add(at+g.between(0, 5*time.Second), "edit-unit", set, "active", "true")
	},
	func(g *generator, set string) {
		g.add(g.when(), "stall", g.anyone(), "kind", string(jobSets), "for", g.spell(20*time.Second))
	},
}
