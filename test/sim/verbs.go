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
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// action is what a step does.
type action func(w *world, s Step)

// actions are what a step may do, by verb.
var actions = map[string]action{
	// Users and their jobs and pods.
	"job":        createJob,
	"unit":       createUnits,
	"bad-job":    createBadJob,
	"bomb":       createBomb,
	"delete-job": func(w *world, s Step) { _ = w.api.delete(byUser, jobKindOf(s.On), keyOf(team, s.On), "") },
	"job-set":    createJobSet,
	"recreate":   recreateJob,
	"suspend":    editing(func(spec map[string]any, _ Step) { spec["suspend"] = true }),
	"resume":     editing(func(spec map[string]any, _ Step) { spec["suspend"] = false }),
	"hold": func(w *world, s Step) {
		w.annotate(jobKindOf(s.On), keyOf(team, s.On), v1alpha1.AnnotationHold, "true")
	},
	"let-go": func(w *world, s Step) {
		w.annotate(jobKindOf(s.On), keyOf(team, s.On), v1alpha1.AnnotationHold, "false")
	},
	"unhold":     func(w *world, s Step) { w.annotate(jobKindOf(s.On), keyOf(team, s.On), v1alpha1.AnnotationHold, "") },
	"resize":     editing(resize),
	"allow":      allow,
	"relabel":    func(w *world, s Step) { w.label(jobKind, keyOf(team, s.On), v1alpha1.LabelQuotaName, s.Args["quota"]) },
	"prioritise": prioritise,
	"pod":        createPlainPod,
	"delete-pod": deletePodOf,

	// Objects of administrators, and nodes.
	"quota":        setQuota,
	"delete-quota": func(w *world, s Step) { _ = w.api.delete(byAdmin, quotas, keyOf(quotaNamespace, s.On), "") },
	"queue":        setQueue,
	"delete-queue": func(w *world, s Step) {
		_ = w.api.delete(byAdmin, queues, keyOf(v1alpha1.DefaultQueueNamespace, s.On), "")
	},
	"node":         setNode,
	"lose-node":    loseNode,
	"runtime":      switchRuntime,
	"max-priority": setMaxPriority,

	// People who change what is not for them.
	"edit-unit":   editUnit,
	"delete-unit": deleteUnit,

	"checks":     setChecks,
	"reclaim":    setReclaim,
	"grace":      setGrace,
	"lose-check": loseCheck,

	// A tenant that wants more than it was admitted with.
	"charge-pods": chargePods,
	"linger":      linger,
	"firm":        makeFirm,
	"same-uid":    createUnitsOfOneUID,
	"orphan":      orphan,
	"keep":        keep,
	"unlabel":     unlabel,
	"foreign":     createForeignUnit,
	"bound":       setBound,
	"heartbeat":   setHeartbeat,

	// The same tenant, that wants to keep what is taken back, or to have it taken from others for nothing.
	"fill":        fill,
	"forge-owner": forgeOwner,
	"snatch":      snatch,
	"never":       createNever,

	"times": setTimes,
	"limit": limitJob,

	// Processes, and their clocks and leases.
	"crash":      crashProcess,
	"pause":      lasting(func(_ *world, p *process, t time.Time) { p.paused = t }),
	"cut":        lasting(func(_ *world, p *process, t time.Time) { p.cut = t }),
	"slow":       lasting(func(w *world, p *process, t time.Time) { w.slowUntil[p.name] = t }),
	"slow-lease": lasting(func(w *world, p *process, t time.Time) { w.leaseSlow[p.name] = t }),
	"no-renew":   lasting(func(w *world, p *process, t time.Time) { w.noRenew[p.name] = t }),
	"skew":       skewClock,

	// The API server and its watches.
	"down":       takeDown,
	"errors":     failCalls,
	"stall":      stall,
	"disconnect": disconnect,
	"storm":      storm,
	"compact":    compact,
}

// disturbing are the verbs that may keep a process from its work for a while.
var disturbing = map[string]bool{
	"crash": true, "pause": true, "cut": true, "skew": true,
	"down": true, "errors": true, "stall": true, "disconnect": true, "storm": true, "compact": true,
}

// disturb the controllers for so long. A request that failed is retried within the same time again, and a process
// that starts lists from caches that are behind.
func (w *world) disturb(d time.Duration) {
	if until := w.loop.now.Add(2*d + 3*time.Second); w.disturbed.Before(until) {
		w.disturbed = until
	}
}

// editing changes the spec of a job.
func editing(change func(spec map[string]any, s Step)) action {
	return func(w *world, s Step) { w.editJob(s, func(spec map[string]any) { change(spec, s) }) }
}

// lasting does something to a process up to a time.
func lasting(set func(w *world, p *process, t time.Time)) action {
	return func(w *world, s Step) {
		if p := w.process(s.On); p != nil {
			set(w, p, w.loop.now.Add(s.duration("for", time.Second)))
			w.countFault(s.Verb)
		}
	}
}

func createBomb(w *world, s Step) {
	w.countFault("bomb")
	createJob(w, s)
}

func loseNode(w *world, s Step) {
	w.cluster.loseNode(s.On)
	w.countFault("node lost")
}

func deleteUnit(w *world, s Step) {
	_ = w.api.delete(byUser, units, w.unitKey(s.On), "")
	w.countFault("unit deleted")
}

func crashProcess(w *world, s Step) {
	if p := w.process(s.On); p != nil && p.alive {
		p.crash()
		w.countFault("crash")
		w.loop.after(s.duration("for", 2*time.Second), func() { w.restart(p.name) })
	}
}

func skewClock(w *world, s Step) {
	w.skews[s.On] = s.duration("by", 0)
	if p := w.process(s.On); p != nil {
		p.skew = w.skews[s.On]
		w.countFault("skew")
	}
}

func takeDown(w *world, s Step) {
	w.down = w.loop.now.Add(s.duration("for", time.Second))
	w.countFault("down")
}

func failCalls(w *world, s Step) {
	for range s.number("count", 1) {
		w.errors[s.On] = append(w.errors[s.On], fault(s.Args["fault"]))
	}
}

// stall holds up watches; disconnect breaks them.
func stall(w *world, s Step) {
	for _, stream := range w.streamsOf(s.On, kind(s.Args["kind"])) {
		stream.blocked = w.loop.now.Add(s.duration("for", time.Second))
	}
	w.countFault("stall")
}

func disconnect(w *world, s Step) {
	w.breakStreams(s, s.On, kind(s.Args["kind"]))
	w.countFault("disconnect")
}

func (w *world) breakStreams(s Step, name string, k kind) {
	for _, stream := range w.streamsOf(name, k) {
		stream.blocked, stream.lost = w.loop.now.Add(s.duration("for", time.Second)), true
	}
}

// storm: all watches of all processes break, and none may resume from where it was (F20).
func storm(w *world, s Step) {
	for _, name := range w.processNames() {
		w.breakStreams(s, name, "")
	}
	w.loop.after(s.duration("for", time.Second), func() { w.api.compacted = w.api.version })
	w.countFault("storm")
}

// compact forgets the versions that no unbroken watch needs.
func compact(w *world, _ Step) {
	for _, name := range w.processNames() {
		for _, stream := range w.streamsOf(name, "") {
			if !stream.lost {
				stream.bookmark()
			}
		}
	}
	w.api.compacted = w.api.version
	w.countFault("compact")
}
