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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// Admission checks. Queues name some for a while, and somebody answers them: soon or late, well or not, once or in two
// minds, or never. When the world heals queues name none that does not exist, and all are ready soon.

const roleChecks = "checks"

// checkedLabel is what checks write into pods.
const checkedLabel = "checked"

var byChecks = writer{role: roleChecks}

// checks are of a step of a plan.
func (g *generator) checks(d dice) {
	defer g.with(d)()
	for range 1 + g.IntN(3) {
		g.add(g.when(), "checks", pick(g.dice, leaves), "names", pick(g.dice, []string{"slow", "budget", "slow,budget"}),
			"timeout", strconv.Itoa(pick(g.dice, []int{0, 2, 8})))
	}
	if g.chance(30) {
		g.add(g.when(), "checks", pick(g.dice, leaves), "names", "")
	}
	if g.chance(20) {
		g.add(g.when(), "lose-check", pick(g.dice, []string{"slow", "budget"}))
	}
}

func (p *Plan) hasChecks() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Verb == "checks" })
}

// setChecks of a queue, if there is one; the checks are made where they do not exist.
func setChecks(w *world, s Step) {
	key := keyOf(v1alpha1.DefaultQueueNamespace, s.On)
	if w.api.get(queues, key) == nil {
		return
	}
	w.countFault("checks")
	var list []any
	for _, name := range strings.FieldsFunc(s.Args["names"], func(r rune) bool { return r == ',' }) {
		w.makeCheck(name)
		list = append(list, map[string]any{"name": name, "timeoutSeconds": s.number("timeout", 0)})
	}
	w.api.edit(byAdmin, queues, key, false, func(u *unstructured.Unstructured) {
		if spec := mapAt(u.Object, "spec"); len(list) > 0 {
			spec["admissionChecks"] = list
		} else {
			delete(spec, "admissionChecks")
		}
	})
}

// makeCheck makes an AdmissionCheck that is active.
func (w *world) makeCheck(name string) {
	keys, controller := map[string]string{v1alpha1.AnnotationPodUpdateKeys: checkedLabel}, "example.com/"+name
	if name == nodesCheck {
		controller = v1alpha1.PlacementController
	}
	w.createObject(byAdmin, checks, "", name, nil, keys, map[string]any{
		"spec": map[string]any{"controllerName": controller},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Active", "status": "True", "reason": "Active", "message": "",
			"lastTransitionTime": start.Format(time.RFC3339),
		}}},
	})
}

// withoutUnknownChecks is a queue that names those checks alone that somebody answers when the world heals.
func withoutUnknownChecks(spec map[string]any) {
	list, _ := spec["admissionChecks"].([]any)
	known := slices.DeleteFunc(slices.Clone(list), func(of any) bool {
		check, _ := of.(map[string]any)
		return check["name"] == "never-answers"
	})
	if len(known) == 0 {
		delete(spec, "admissionChecks")
		return
	}
	spec["admissionChecks"] = known
}

func loseCheck(w *world, s Step) { _ = w.api.delete(byAdmin, checks, s.On, "") }

// answerer plays the controllers of all checks.
type answerer struct {
	w    *world
	dice dice
}

func newAnswerer(w *world) *answerer { return &answerer{w, newDice(w.plan.Seed, "answers")} }

// onChange answers about units that are reserved, after a time.
func (a *answerer) onChange(ch *change) {
	if ch.kind == units && ch.after != nil && phaseOf(ch.after) == unit.PhaseReserved {
		a.look(ch.after)
	}
}

// heal: every check exists, and missing answers are given.
func (a *answerer) heal() {
	for _, name := range []string{"slow", "budget", nodesCheck} {
		a.w.makeCheck(name)
	}
	for _, o := range a.w.api.list(units) {
		if phaseOf(o) == unit.PhaseReserved {
			a.look(o)
		}
	}
}

func (a *answerer) look(o *object) {
	states := unitOf(o).Status.AdmissionChecks
	if !slices.ContainsFunc(states, func(s v1alpha1.AdmissionCheckState) bool {
		return s.State == v1alpha1.CheckState(unit.CheckPending)
	}) {
		return
	}
	wait := a.dice.between(0, 5*time.Second)
	if a.w.healed {
		wait = time.Second
	} else if a.dice.chance(10) {
		return // never
	}
	a.w.loop.after(wait, func() { a.answer(o) })
}

// answer on the very state that was looked at: another one is looked at again.
func (a *answerer) answer(o *object) {
	if a.w.api.get(units, o.key) != o {
		return
	}
	a.w.api.edit(byChecks, units, o.key, true, func(u *unstructured.Unstructured) {
		states, _ := mapAt(u.Object, "status")["admissionChecks"].([]any)
		for _, of := range states {
			state, _ := of.(map[string]any)
			if a.w.api.get(checks, fmt.Sprint(state["name"])) == nil && !a.w.healed {
				continue // its controller went with it
			}
			a.decide(state, unitOf(o).Spec.PodSets)
		}
	})
}

func (a *answerer) decide(state map[string]any, sets []v1alpha1.PodSet) {
	roll := a.dice.IntN(100)
	answer := unit.CheckReady
	switch {
	case a.w.healed:
	case roll < 10:
		answer = unit.CheckPending
	case roll < 25:
		answer = unit.CheckRetry
	case roll < 30:
		answer = unit.CheckRejected
	}
	state["state"] = string(answer)
	delete(state, "requeueAfterSeconds")
	delete(state, "podSetUpdates")
	if answer == unit.CheckRetry && a.dice.chance(70) {
		state["requeueAfterSeconds"] = int64(1 + a.dice.IntN(5))
	}
	if answer == unit.CheckReady && a.dice.chance(50) && len(sets) > 0 {
		value := fmt.Sprint(a.dice.IntN(2)) // two checks may contradict each other
		if a.w.healed {
			value = "0"
		}
		state["podSetUpdates"] = []any{map[string]any{
			"name": sets[0].Name, "labels": map[string]any{checkedLabel: value},
		}}
	}
}

// owners read the events of their jobs. After the faults have ended, an owner who learns that a template contradicts a
// check removes the contradiction. Somebody may have deleted the unit or its status, and then the updates of a check
// stay. Otherwise the controller has to know its own updates.
type owners struct{ w *world }

func (o owners) Eventf(regarding, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	job, ok := regarding.(*unstructured.Unstructured)
	switch {
	case reason != "CannotResume" || !ok || !o.w.plan.losesAnswersOf(job.GetName()):
	case !o.w.healed:
		o.w.told[job.GetName()] = true
	default:
		o.w.correctTemplate(job.GetName())
	}
}

// correctTemplate is what the owner of a job does who has read that.
func (w *world) correctTemplate(job string) {
	w.loop.after(time.Second, func() {
		w.api.edit(byUser, jobKindOf(job), keyOf(team, job), false, func(u *unstructured.Unstructured) {
			takeOut(u.Object["spec"], checkedLabel)
		})
	})
}

// losesAnswersOf says that somebody deletes the unit of a job, its status, or the answers in it.
func (p *Plan) losesAnswersOf(job string) bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.On == job && (s.Verb == "delete-unit" || s.Args["owner"] == "deletes" ||
			s.Verb == "edit-unit" && (s.Args["drop"] == "all" || s.Args["check"] != ""))
	})
}

// takeOut removes a key wherever it is.
func takeOut(from any, key string) {
	switch from := from.(type) {
	case map[string]any:
		delete(from, key)
		for _, of := range from {
			takeOut(of, key)
		}
	case []any:
		for _, of := range from {
			takeOut(of, key)
		}
	}
}

// onChecks judges how a scheduler treats answers. A reservation resets all of them (I9). A unit is released only if all
// checks are ready that its queue asks for, and that it asked for at the decision (I3).
func (c *statusCheck) onChecks(before *object, ch *change) {
	if ch.by.role != roleScheduler || c.facts.tainted[ch.after.uid()] {
		return
	}
	was, is := phaseOf(before), phaseOf(ch.after)
	if is == unit.PhaseReserved && !rulebook.Holds(was) {
		for _, s := range unitOf(ch.after).Status.AdmissionChecks {
			if s.State != v1alpha1.CheckState(unit.CheckPending) {
				c.w.violate("I9", "quota was reserved for unit %s, and check %s was %s already", ch.key, s.Name, s.State)
			}
		}
	}
	if !rulebook.Releases(is) || rulebook.Releases(was) {
		return
	}
	for _, name := range c.facts.asked(ch) {
		ready := before != nil && slices.ContainsFunc(unitOf(before).Status.AdmissionChecks,
			func(s v1alpha1.AdmissionCheckState) bool {
				return s.Name == name && s.State == v1alpha1.CheckState(unit.CheckReady)
			})
		if !ready || was != unit.PhaseReserved {
			c.w.violate("I3", "unit %s was let go, and had not passed check %s", ch.key, name)
		}
	}
}

// asked are the checks that the queue of a unit names, and has named since the scheduler saw it.
func (f *facts) asked(ch *change) (names []string) {
	key := keyOf(v1alpha1.DefaultQueueNamespace, unitOf(ch.after).Spec.Queue)
	o := f.w.api.get(queues, key)
	if o == nil || ch.by.decision != nil && !f.unchanged(queues, key, ch.by.decision.seen[queues], 0) {
		return nil
	}
	list, _ := nested(o, "spec")["admissionChecks"].([]any)
	for _, of := range list {
		if check, ok := of.(map[string]any); ok {
			names = append(names, fmt.Sprint(check["name"]))
		}
	}
	return names
}
