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
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// Grace. Queues bound the grace of jobs, jobs ask for one, and the pods of evicted jobs get a notice. Programs in pods
// and owners of jobs answer it, each in its own way.

// annotationAnswer on a pod names the answer of its program to a notice, annotationOwner on a job that of its owner.
const (
	annotationAnswer = "sim/answer"
	annotationOwner  = "sim/owner"
)

// graces of a plan.
func (g *generator) graces(d dice) {
	defer g.with(d)()
	g.borrowers(d)
	for _, leaf := range leaves {
		g.add(g.between(g.plan.Length/20, g.plan.Length/8), "grace", leaf, "most", pick(g.dice, []string{"5", "20", "60"}))
	}
	for range g.IntN(3) {
		g.add(g.when(), "grace", pick(g.dice, leaves), "most", pick(g.dice, []string{"0", "3", "20"}))
	}
	for range g.IntN(4) {
		at, leaf := g.when(), pick(g.dice, leaves)
		g.add(at, "queue", leaf, "stop", "HoldAndDrain")
		g.add(at+g.between(0, 8*time.Second), "queue", leaf)
	}
	for range g.IntN(3) { // a new leader, or a controller that knows nothing, often within a grace
		name := pick(g.dice, []string{"leader", g.controller()})
		g.add(g.when(), "crash", name, "for", g.spell(6*time.Second))
	}
	for i := range g.plan.Steps {
		if s := &g.plan.Steps[i]; slices.Contains([]string{"job", "recreate", "job-set"}, s.Verb) && g.chance(85) {
			s.Args["grace"] = pick(g.dice, []string{"2", "6", "6", "15", "15", "600", "soon"})
			s.Args["answer"] = pick(g.dice, slices.Sorted(maps.Keys(answers)))
			if g.chance(60) {
				s.Args["owner"] = pick(g.dice, slices.Sorted(maps.Keys(ownersDo)))
			}
		}
	}
}

// setGrace of a queue, if there is one.
func setGrace(w *world, s Step) {
	key := keyOf(v1alpha1.DefaultQueueNamespace, s.On)
	if w.api.get(queues, key) == nil {
		return
	}
	w.countFault("grace")
	w.api.edit(byAdmin, queues, key, false, func(u *unstructured.Unstructured) {
		spec := mapAt(u.Object, "spec")
		if spec["preemption"] == nil {
			spec["preemption"] = map[string]any{}
		}
		mapAt(spec, "preemption")["maxGraceSeconds"] = s.number("most", 0)
	})
}

// keepGrace copies to the new spec of a queue for how long its jobs have a grace, and are not taken.
func keepGrace(before, after map[string]any) {
	for _, field := range []string{"maxGraceSeconds", "minRunTimeSeconds"} {
		most := mapAt(before, "preemption")[field]
		if most == nil {
			continue
		}
		if after["preemption"] == nil {
			after["preemption"] = map[string]any{}
		}
		mapAt(after, "preemption")[field] = most
	}
}

// graceArgs are what a step says about the grace of a job: annotations of the job, and those of its pods.
func graceArgs(s Step, job map[string]string, pod map[string]any) map[string]string {
	if s.Args["grace"] == "" {
		return job
	}
	if job == nil {
		job = map[string]string{}
	}
	job[v1alpha1.AnnotationGrace] = s.Args["grace"]
	if s.Args["owner"] != "" {
		job[annotationOwner] = s.Args["owner"]
	}
	pod[annotationAnswer] = s.Args["answer"]
	return job
}

// audience plays the programs and owners that answer notices.
type audience struct {
	w    *world
	dice dice
}

func newAudience(w *world) *audience { return &audience{w, newDice(w.plan.Seed, "audience")} }

func noticeIn(o *object) string {
	if o == nil {
		return ""
	}
	return o.u.GetAnnotations()[v1alpha1.AnnotationSuspendAt]
}

// onChange has a pod and its owner answer a notice that is new.
func (a *audience) onChange(ch *change) {
	if ch.kind != pods || ch.after == nil || noticeIn(ch.after) == "" || noticeIn(ch.before) == noticeIn(ch.after) {
		return
	}
	pod := ch.after
	if answer := answers[pod.u.GetAnnotations()[annotationAnswer]]; answer != nil {
		a.w.loop.after(a.dice.between(200*time.Millisecond, 8*time.Second), func() {
			if o := a.w.api.get(pods, pod.key); o != nil && o.uid() == pod.uid() && podOf(o).DeletionTimestamp == nil {
				answer(a, o)
			}
		})
	}
	job := a.w.topOf(pod)
	if job == nil {
		return
	}
	if do := ownersDo[job.u.GetAnnotations()[annotationOwner]]; do != nil {
		a.w.loop.after(a.dice.between(200*time.Millisecond, 8*time.Second), func() {
			if o := a.w.api.get(job.kind, job.key); o != nil && o.uid() == job.uid() && !a.w.healed {
				do(a, o)
			}
		})
	}
}

func (w *world) stamp(ago time.Duration) string {
	return w.loop.now.Add(-ago).UTC().Format(time.RFC3339)
}

// answers of programs, by name.
var answers = map[string]func(a *audience, pod *object){
	"ignore": nil,
	"checkpoint": func(a *audience, pod *object) {
		a.w.annotate(pods, pod.key, v1alpha1.AnnotationCheckpointed, a.w.stamp(0))
	},
	"some": func(a *audience, pod *object) {
		if a.dice.chance(70) {
			a.w.annotate(pods, pod.key, v1alpha1.AnnotationCheckpointed, a.w.stamp(0))
		}
	},
	// Its clock is behind.
	"early": func(a *audience, pod *object) {
		a.w.annotate(pods, pod.key, v1alpha1.AnnotationCheckpointed, a.w.stamp(time.Minute))
	},
	"succeed": func(a *audience, pod *object) {
		a.w.cluster.setPhase(pod.key, pod.uid(), corev1.PodSucceeded)
	},
	"fail": func(a *audience, pod *object) { a.w.cluster.setPhase(pod.key, pod.uid(), corev1.PodFailed) },
}

// ownersDo are answers of owners to the notice of a pod of their job, by name. The last ones try to keep the quota.
var ownersDo = map[string]func(a *audience, job *object){
	"acknowledges": func(a *audience, job *object) {
		a.w.annotate(job.kind, job.key, v1alpha1.AnnotationCheckpointed, a.w.stamp(0))
	},
	"raises": func(a *audience, job *object) {
		a.w.annotate(job.kind, job.key, v1alpha1.AnnotationGrace, strconv.Itoa(1+a.dice.IntN(600)))
	},
	"removes": func(a *audience, job *object) { a.w.annotate(job.kind, job.key, v1alpha1.AnnotationGrace, "") },
	"holds":   func(a *audience, job *object) { a.w.annotate(job.kind, job.key, v1alpha1.AnnotationHold, "true") },
	"unnotices": func(a *audience, job *object) {
		for _, pod := range a.w.runningPodsOf(job.uid()) {
			a.w.annotate(pods, pod.key, v1alpha1.AnnotationSuspendAt, "")
		}
	},
	"resumes": func(a *audience, job *object) { a.resume(job) },
	"forges": func(a *audience, job *object) {
		a.w.annotate(job.kind, job.key, v1alpha1.AnnotationSuspendedBy, "")
		a.resume(job)
	},
	"deletes": func(a *audience, job *object) {
		_ = a.w.api.delete(byUser, units, a.w.unitKeyOf(job), "") // the unit may be gone
	},
	"unlabels": func(a *audience, job *object) {
		if quota := quotaLabel(job); quota != "" && job.kind == jobKind {
			unlabel(a.w, Step{On: job.u.GetName(), Args: map[string]string{"quota": quota}})
		}
	},
}

func (a *audience) resume(job *object) {
	a.w.api.edit(byUser, job.kind, job.key, false, func(u *unstructured.Unstructured) {
		mapAt(u.Object, "spec")["suspend"] = false
	})
}

// runningPodsOf a job, those of its parts among them, that nobody has deleted.
func (w *world) runningPodsOf(job types.UID) []*object {
	var running []*object
	for _, o := range w.api.list(pods) {
		if p := podOf(o); p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		if top := w.topOf(o); top != nil && top != o && top.uid() == job {
			running = append(running, o)
		}
	}
	return running
}
