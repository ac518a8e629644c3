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
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tenant that evades preemption, or turns it on others. Its jobs cannot be written, leave pods behind, name owners,
// and take quota that they do not use. Its pods without jobs bind in the room of others. There are no policies here.

const (
	// mostAnnotations is how many bytes of annotations the API server takes, and annotationFiller takes what is left.
	mostAnnotations  = 256 << 10
	annotationFiller = "sim/filler"
	// decoy begins the names of jobs that others name as their owner, which made nothing.
	decoy = "decoy"
	// neverRuns is what is bad about a job of which no pod finds a node.
	neverRuns = "never-runs"
)

// evasions of a plan.
func (g *generator) evasions(d dice) {
	defer g.with(d)()
	few := func(s Step) bool { return s.Args["max-jobs"] != "" }
	of := g.borrowers(d)
	for i := range 1 + g.IntN(3) {
		evade := pick(g.dice, evasions)
		if !slices.ContainsFunc(g.plan.Steps, few) { // which may be fewer than a gang group has
			evade = pick(g.dice, append([]func(*generator, loans, string){mixed}, evasions...))
		}
		evade(g, of, "e"+strconv.Itoa(i))
	}
}

// evasions of a tenant that has some of the loans.
var evasions = []func(g *generator, of loans, name string){filled, forged, snatched, bare, stranded, churned, often}

// soon is a time while the owner takes back.
func (g *generator) soon(of loans) time.Duration {
	return of.at + g.between(2*time.Second, 14*time.Second)
}

// filled: jobs that run have no room for another annotation.
func filled(g *generator, of loans, _ string) {
	for range 1 + g.IntN(4) {
		g.add(g.soon(of), "fill", pick(g.dice, of.jobs))
	}
}

// forged: a job that runs names an owner, and is held or taken.
func forged(g *generator, of loans, _ string) {
	for range 1 + g.IntN(3) {
		at, job := g.soon(of), pick(g.dice, of.jobs)
		g.add(at, "forge-owner", job)
		if g.chance(60) {
			g.add(at+g.between(0, 5*time.Second), "hold", job)
		}
	}
}

// snatched: pods that wait for the moment in which somebody takes.
func snatched(g *generator, _ loans, name string) {
	for i := range 1 + g.IntN(2) {
		g.add(g.between(time.Second, 5*time.Second), "snatch", fmt.Sprintf("%s-%d", name, i), "quota", pick(g.dice, leaves),
			"cpu", g.cpu(), "count", strconv.Itoa(1+g.IntN(4)), "times", strconv.Itoa(1+g.IntN(5)), "run", g.run())
	}
}

// bare: pods without a job push a quota above its min, in which others are within theirs.
func bare(g *generator, of loans, name string) {
	quota := of.leaf[pick(g.dice, of.jobs)]
	for i := range 2 + g.IntN(6) {
		g.add(max(of.at-g.between(0, 3*time.Second), time.Second), "pod", fmt.Sprintf("%s-%d", name, i), "quota", quota,
			"cpu", "1000", "run", g.between(10*time.Second, 40*time.Second).Truncate(time.Millisecond).String())
	}
}

// stranded: jobs that hold what is taken go without their pods, or are kept from going.
func stranded(g *generator, of loans, _ string) {
	for range 1 + g.IntN(4) {
		g.add(g.soon(of), pick(g.dice, []string{"orphan", "orphan", "keep"}), pick(g.dice, of.jobs),
			"for", g.spell(30*time.Second))
	}
}

// churned: a job that can never run takes, goes, and comes again.
func churned(g *generator, of loans, name string) {
	g.plan.Length = max(g.plan.Length, 2*time.Minute)
	at := g.soon(of)
	for range 4 + g.IntN(12) {
		end := at + g.between(time.Second, 6*time.Second)
		if end >= g.plan.Length-2*time.Second {
			return
		}
		g.add(at, "never", name, "quota", of.owner, "cpu", "7500", "pods", "1", "priority", strconv.Itoa(g.IntN(3)))
		g.add(end, "delete-job", name)
		at = end + g.between(0, 3*time.Second)
	}
}

// often: a job loses what it holds again and again, by its owner.
func often(g *generator, of loans, _ string) {
	at, job := of.at+g.between(time.Second, 3*time.Second), pick(g.dice, of.jobs)
	for range 2 + g.IntN(4) {
		g.add(at, "hold", job)
		g.add(at+time.Second, "unhold", job)
		at += g.between(2*time.Second, 4*time.Second)
	}
}

// mixed: one tiny job of a gang group that borrows is non-preemptible.
func mixed(g *generator, of loans, name string) {
	quota, group := of.leaf[pick(g.dice, of.jobs)], name+"x,"+name+"y"
	for i, job := range strings.Split(group, ",") {
		pairs := []string{"quota", quota, "cpu", "500", "run", "20s", "gang", job, "group", group, "suspend", "true"}
		if i == 0 {
			pairs = append(pairs, "preemptible", "false")
		} else {
			pairs = append(pairs, "pods", strconv.Itoa(2+g.IntN(6)))
		}
		g.add(max(of.at-time.Second, time.Second), "job", job, pairs...)
	}
}

// lengthOf annotations is what the API server counts of them.
func lengthOf(annotations map[string]string) (sum int) {
	for key, value := range annotations {
		sum += len(key) + len(value)
	}
	return sum
}

func fill(w *world, s Step) {
	job := w.api.get(jobKind, keyOf(team, s.On))
	if job == nil {
		return
	}
	if left := mostAnnotations - lengthOf(job.u.GetAnnotations()) - len(annotationFiller); left > 0 {
		w.countFault("full annotations")
		w.annotate(jobKind, job.key, annotationFiller, strings.Repeat("x", left))
	}
}

func forgeOwner(w *world, s Step) {
	job := w.api.get(jobKind, keyOf(team, s.On))
	if job == nil || owner(job) != nil {
		return
	}
	w.countFault("forged owner")
	name := decoy + "-" + s.On
	createJob(w, Step{On: name})
	w.annotate(jobKind, keyOf(team, name), annotationBad, decoy)
	of := w.api.get(jobKind, keyOf(team, name))
	w.api.edit(byUser, jobKind, job.key, false, func(u *unstructured.Unstructured) {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(of.u, groupKinds[jobKind])})
	})
}

func createNever(w *world, s Step) {
	w.countFault("job that never runs")
	createJob(w, s)
	w.annotate(jobKind, keyOf(team, s.On), annotationBad, neverRuns)
}

// snatcher makes pods each time that somebody begins to take, or loses what it held.
type snatcher struct {
	step        Step
	times, made int64
}

func snatch(w *world, s Step) {
	w.snatchers = append(w.snatchers, snatcher{step: s, times: s.number("times", 1)})
}

func (w *world) onTaking(ch *change) {
	if ch.kind != units || ch.after == nil || w.healed ||
		!(takes(ch.after) && !takes(ch.before)) && w.check.takings.lostFor(ch) == "" {
		return
	}
	for i := range w.snatchers {
		of := &w.snatchers[i]
		if of.times == 0 {
			continue
		}
		of.times--
		w.countFault("pods that snatch")
		for range of.step.number("count", 1) {
			of.made++
			pod := of.step
			pod.On = fmt.Sprintf("%s-%d", of.step.On, of.made)
			w.loop.after(w.dice.between(0, 300*time.Millisecond), func() { createPlainPod(w, pod) })
		}
	}
}

// evadersLeave when the world heals: their jobs can be written again, and those that never run go.
func (w *world) evadersLeave() {
	for _, job := range w.api.list(jobKind) {
		if job.u.GetAnnotations()[annotationBad] == neverRuns {
			_ = w.api.delete(byUser, jobKind, job.key, job.uid()) // the job exists
			continue
		}
		w.annotate(jobKind, job.key, annotationFiller, "")
		if ref := metav1.GetControllerOfNoCopy(job.u); ref != nil && owner(job) == nil {
			w.api.edit(byUser, jobKind, job.key, false, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
		}
	}
}
