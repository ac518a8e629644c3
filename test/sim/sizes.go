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
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Jobs that can do with fewer pods than they ask for, and sizes that change while jobs wait, are resumed, run, and lose
// their admission.

const indexed = "Indexed"

// sizes of a plan.
func (g *generator) sizes(d dice) {
	defer g.with(d)()
	for i := range 1 + g.IntN(3) {
		name := "s" + strconv.Itoa(i)
		at := g.when()
		g.add(at, "job", name, g.sizeArgs()...)
		for range g.IntN(5) {
			at = min(at+g.between(0, 8*time.Second), g.plan.Length-time.Second) // nobody does any of it after the faults
			pick(g.dice, changesOfSize)(g, at, name)
		}
	}
}

func (g *generator) sizeArgs() []string {
	n := 2 + g.IntN(5)
	pairs := []string{
		"quota", pick(g.dice, leaves), "cpu", pick(g.dice, []string{"500", "1000", "1300"}), "pods", strconv.Itoa(n),
		"least", strconv.Itoa(1 + g.IntN(n-1)), "priority", strconv.Itoa(g.IntN(3)), "run", g.run(),
		"suspend", strconv.FormatBool(g.chance(70)),
	}
	if g.chance(40) {
		return append(pairs, "indexed", "yes")
	}
	return append(pairs, "completions", strconv.Itoa(n+g.IntN(3)))
}

// changesOfSize are what may happen to a job with more sizes than one.
var changesOfSize = []func(g *generator, at time.Duration, job string){
	func(g *generator, at time.Duration, job string) {
		g.add(at, "resize", job, "pods", strconv.Itoa(1+g.IntN(6)))
	},
	func(g *generator, at time.Duration, job string) {
		g.add(at, "resize", job, "pods", strconv.Itoa(1+g.IntN(6)))
		g.add(at+g.between(0, time.Second), "resize", job, "pods", strconv.Itoa(1+g.IntN(6)))
	},
	func(g *generator, at time.Duration, job string) {
		g.add(at, "allow", job, "least", pick(g.dice, []string{"", "1", "3"}))
	},
	func(g *generator, at time.Duration, job string) {
		g.add(at, "hold", job)
		g.add(at+g.between(0, 5*time.Second), "unhold", job)
	},
	func(g *generator, at time.Duration, job string) { g.add(at, "suspend", job) },
	func(g *generator, at time.Duration, job string) {
		g.add(at, "recreate", job, append(g.sizeArgs(), "gap", g.spell(time.Second))...)
	},
	func(g *generator, at time.Duration, job string) {
		g.add(at, "relabel", job, "quota", pick(g.dice, leaves))
	},
	func(g *generator, at time.Duration, job string) { g.add(at, "delete-unit", job) },
	func(g *generator, at time.Duration, job string) { g.add(at, "delete-pod", job) },
}

// sizesOf a job that a step makes: what it says in its annotations and in its spec.
func sizesOf(s Step, spec map[string]any) map[string]string {
	if s.Args["indexed"] != "" {
		spec["completionMode"], spec["completions"] = indexed, spec["parallelism"]
	}
	if s.Args["least"] == "" {
		return nil
	}
	return map[string]string{v1alpha1.AnnotationMinParallelism: s.Args["least"]}
}

// resize gives a job another number of pods, and as many completions if it is Indexed, as its users do.
func resize(spec map[string]any, s Step) {
	spec["parallelism"] = s.number("pods", 1)
	if spec["completionMode"] == indexed {
		spec["completions"] = spec["parallelism"]
	}
}

// allow says with how few pods a job can do; with none, that it needs all.
func allow(w *world, s Step) {
	w.annotate(jobKind, keyOf(team, s.On), v1alpha1.AnnotationMinParallelism, s.Args["least"])
}

// hasSizes says whether a pod set may be admitted with fewer pods: a job of a gang group is admitted whole.
func hasSizes(u *v1alpha1.QueueUnit, set *v1alpha1.PodSet) bool {
	return set.MinCount != nil && u.Annotations[v1alpha1.AnnotationGangGroup] == ""
}

// asksInSize is what a unit asks for in the size that it was admitted in (I10). A pod set that can be smaller has
// between its least and all of its pods.
func (c *admissionCheck) asksInSize(o *object) amounts {
	u := unitOf(o)
	return askedWith(u, func(set *v1alpha1.PodSet) int64 {
		if !hasSizes(u, set) {
			return int64(set.Count)
		}
		i := slices.IndexFunc(u.Status.Admissions, func(a v1alpha1.Admission) bool { return a.Name == set.Name })
		if i < 0 {
			return int64(set.Count)
		}
		n := u.Status.Admissions[i].Replicas
		if n < int64(*set.MinCount) || n > int64(set.Count) {
			c.w.violate("I10", "unit %s was admitted with %d pods of %s, and asks for %d to %d", o.key, n, set.Name,
				*set.MinCount, set.Count)
		}
		return n
	})
}

// leastOf a unit is what it has to get.
func leastOf(u *v1alpha1.QueueUnit) amounts {
	return askedWith(u, func(set *v1alpha1.PodSet) int64 {
		if !hasSizes(u, set) {
			return int64(set.Count)
		}
		return int64(*set.MinCount)
	})
}

// asksFor is what the pods of a Job ask for that it may have at a time. Of a JobSet nothing is known here.
func (c *jobCheck) asksFor(job *object) amounts {
	if job.kind != jobKind {
		return amounts{}
	}
	spec := nested(job, "spec")
	left := max(intOr(spec["completions"], 1)-intOr(nested(job, "status")["succeeded"], 0), 0)
	pod := podOf(&object{u: &unstructured.Unstructured{Object: nested(job, "spec", "template")}})
	return amounts{}.plus(requestsOf(&pod.Spec), min(intOr(spec["parallelism"], 1), left))
}

// onSize: a job that waits again has the number of pods that its owner gave it last, whatever it was resumed with (I8).
func (c *jobCheck) onSize(ch *change) {
	if ch.after == nil || ch.kind != jobKind {
		return
	}
	uid, size := ch.after.uid(), intOr(nested(ch.after, "spec")["parallelism"], 1)
	resumedWith := func(o *object) bool {
		return o != nil && o.u.GetAnnotations()[v1alpha1.AnnotationWholeCounts] != ""
	}
	before := ch.before
	if before != nil && before.uid() != uid {
		before = nil
	}
	switch {
	case before == nil:
		c.wholes[uid] = size
	case ch.by.role != roleController && intOr(nested(before, "spec")["parallelism"], 1) != size:
		// A number that is the one it was resumed with says nothing of what the owner wants.
		if delete(c.wholes, uid); !resumedWith(before) {
			c.wholes[uid] = size
		}
	case ch.by.role == roleController && !resumedWith(ch.after):
		if whole, known := c.wholes[uid]; known && whole != size {
			c.w.violate("I8", "%s left job %s with %d pods, and its owner had given it %d", ch.by.process, ch.key, size, whole)
		}
	}
}
