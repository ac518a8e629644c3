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
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota"
	"github.com/koord-jobqueue/koord-jobqueue/internal/quota/quotatest"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/plugin/jobqueue"
)

const roleScheduler = "scheduler"

// decision is what a scheduler had seen of each kind when it decided on something: changes up to these versions, and
// its own. It is how the checks tell a decision on old news from a wrong one.
type decision struct {
	at      time.Time
	version int64 // of the API then
	seen    map[kind]int64
	// leader is the run of the process that decided; pending are units of which it was writing then.
	leader  *replica
	pending map[string]int
	// got are versions of units that were read outside of its watch.
	got map[string]int64
	// uncounted, of a pod that is bound: it is not in used yet.
	uncounted bool
}

// replica is one run of koord-scheduler: the engine, the gate and live quotas, its informers, and as much of a
// scheduler as lets pods run.
type replica struct {
	*process
	engine  *engine.Driver
	live    *quotatest.Live
	gate    *jobqueue.Gate
	streams []*stream
	seen    map[kind][]*stream // streams that a decision depends on
	listed  int64              // version of the list at Lead
	// turned is the version at which Koordinator heard that a quota was made or deleted, the last one of its name.
	turned map[string]int64
	// left are the pods on nodes that Koordinator did not list as its quota went, and which nobody was told of.
	left    map[types.UID]bool
	applied int64 // version of units that it had seen when the engine stepped last; the gate decides by that one

	jobsByUID  map[types.UID]jobqueue.Job
	namespaces *stream

	queue     map[types.UID]*corev1.Pod // pods without a node
	gated     map[types.UID]bool
	reserved  map[types.UID]bool
	scheduled bool // a scheduling cycle is asked for

	leading bool
	elector elector
	armed   bool
	wake    time.Time
	sending *decision
	flights map[string]int
	moved   bool // something was said about a unit since the places of units were checked last
	// nodesFor is when it was told that a unit finds nodes, noNodesFor that it does not.
	nodesFor, noNodesFor map[types.UID]time.Time
}

func (w *world) startScheduler(name string) *replica {
	r := &replica{
		process: w.newProcess(roleScheduler, name), seen: map[kind][]*stream{},
		jobsByUID: map[types.UID]jobqueue.Job{}, queue: map[types.UID]*corev1.Pod{}, gated: map[types.UID]bool{},
		reserved: map[types.UID]bool{}, flights: map[string]int{}, nodesFor: map[types.UID]time.Time{},
		noNodesFor: map[types.UID]time.Time{}, turned: map[string]int64{},
		left: map[types.UID]bool{},
	}
	w.schedulers[name] = r
	w.logf("start %s", name)
	r.build()
	r.follow()
	r.poke()
	r.later(r.dice.between(0, w.plan.Lease.RetryPeriod), r.elect)
	r.later(time.Second, r.everySecond)
	return r
}

func (r *replica) build() {
	w := r.world
	var err error
	if r.live, err = quotatest.New(w.runtime); err != nil {
		panic(err)
	}
	adapter := w.variants.quotas(r.live.Adapter())
	r.gate = &jobqueue.Gate{
		Snapshot:  func() jobqueue.Snapshot { return r.engine.Engine.Snapshot() },
		Predicate: func() *managedjobs.Predicate { return w.predicate },
		Job: func(uid types.UID) (jobqueue.Job, bool) {
			job, ok := r.jobsByUID[uid]
			return job, ok
		},
		NamespaceLabels: func(name string) (map[string]string, bool) {
			o := r.namespaces.store[name]
			if o == nil {
				return nil, false
			}
			return o.u.GetLabels(), true
		},
		Clock: r.clock, Grace: time.Minute,
	}
	e, err := engine.New(engine.Options{
		Config: engine.Config{WriteTimeout: w.plan.Deadline, PartialAdmission: true},
		Client: r.process.client(func() writer { return writer{roleScheduler, r.name, r.sending} }),
		Quotas: adapter, PodRequest: quota.PodRequest, Predicate: w.predicate, Clock: r.clock,
		Activate: r.activate, Ready: func() bool { return r.leading },
		Outstanding: w.variants.outstanding(r.live.Adapter().SetOutstanding),
		Submit:      r.submit,
		Witness:     &placer{r: r, dice: newDice(w.plan.Seed, fmt.Sprintf("%s/%d/placer", r.name, r.run))},
	})
	if err != nil {
		panic(err)
	}
	r.engine = engine.Drive(e)
	decisions := newDice(w.plan.Seed, fmt.Sprintf("%s/%d/decisions", r.name, r.run))
	r.engine.DecisionsTake(func() time.Duration { return decisions.between(0, w.plan.Decision) })
	w.extend(r)
	r.live.Adapter().Subscribe(r.engine.Engine.Sink())
	r.live.Adapter().Protect(quota.Guard{
		Admitted: r.gate.Admitted,
		TryAgain: func([]types.NamespacedName) { r.cycle() },
		Beyond:   func(string, quota.Cause, bool) {},
	})
}

// leave notes pods of a deleted quota that Koordinator counts and does not list. That happens to quotas that were
// recreated while pods waited. See miscounted.
func (r *replica) leave(quota string) {
	info := r.live.GetGroupQuotaManagerForTree("").GetQuotaInfoByName(quota)
	if info == nil {
		return
	}
	var listed amounts
	for _, pod := range info.GetPodThatIsAssigned() {
		listed = listed.plus(requestsOf(&pod.Spec), 1)
	}
	if amountsOf(info.GetUsed(), amounts{}).within(listed) {
		return
	}
	for _, o := range r.world.api.list(pods) {
		if pod := podOf(o); quotaLabel(o) == quota && pod.Spec.NodeName != "" && !info.CheckPodIsAssigned(pod) {
			r.left[pod.UID] = true
		}
	}
}

// follow opens the watches: each handler of an informer is a watch of its own here, since each has a goroutine of its
// own.
func (r *replica) follow() {
	w, e, live := r.world, r.engine, r.live
	r.namespaces = r.open(namespaces, func(before, after *object, _ bool) {
		e.FeedNamespace(present(before, after), after == nil)
	})
	plugin := []*stream{
		r.open(nodes, func(before, after *object, _ bool) { live.OnNode(nodeOf(before), nodeOf(after)) }),
		r.open(quotas, func(before, after *object, initial bool) {
			if after == nil {
				r.leave(before.u.GetName())
			}
			live.OnQuota(quotaOf(before), quotaOf(after))
			if !initial && (before == nil || after == nil) {
				r.turned[cmp.Or(after, before).u.GetName()] = w.api.version
			}
		}),
		r.open(pods,
			func(before, after *object, _ bool) { live.OnPod(podOf(before), podOf(after)); r.forget(after, before) }),
	}
	live.Migrate()
	adapter := []*stream{
		r.open(nodes, func(before, after *object, _ bool) { handle(live.Nodes, nodeOf(before), nodeOf(after)) }),
		r.open(quotas, func(before, after *object, _ bool) { handle(live.Quotas, quotaOf(before), quotaOf(after)) }),
		r.open(pods, func(before, after *object, _ bool) { handle(live.Pods, podOf(before), podOf(after)) }),
	}
	r.open(classes, func(before, after *object, _ bool) { e.FeedClass(present(before, after), after == nil) })
	if w.plan.hasChecks() {
		d := newDice(w.plan.Seed, fmt.Sprintf("%s/%d/checks", r.name, r.run))
		r.seen[checks] = []*stream{r.openWith(d, checks, func(before, after *object, _ bool) {
			e.FeedCheck(present(before, after), after == nil)
		})}
	}
	job := r.open(jobKind, r.onJob(&w.kind))
	if w.plan.hasJobSets() {
		d := newDice(w.plan.Seed, fmt.Sprintf("%s/%d/job sets", r.name, r.run))
		r.seen[jobSets] = []*stream{r.openWith(d, jobSets, r.onJob(&w.setKind))}
	}
	queue := r.open(queues, func(before, after *object, _ bool) { e.FeedQueue(present(before, after), after == nil) })
	unit := r.open(units, func(before, after *object, _ bool) {
		r.moved = true
		if u := present(before, after); !w.variants.deaf(keyOf(u.GetNamespace(), u.GetName()), after == nil) {
			e.FeedUnit(u, after == nil)
		}
	})
	pod := r.open(pods, func(before, after *object, initial bool) {
		if after == nil {
			e.FeedPod(podOf(before), true, false)
		} else {
			e.FeedPod(podOf(after), false, initial)
		}
	})
	r.open(pods, r.onPod)
	maps.Copy(r.seen, map[kind][]*stream{
		nodes: {plugin[0], adapter[0]}, quotas: {plugin[1], adapter[1]}, pods: {plugin[2], adapter[2], pod},
		jobKind: {job}, queues: {queue}, units: {unit}, namespaces: {r.namespaces},
	})
}

func present(before, after *object) *unstructured.Unstructured {
	if after == nil {
		return before.u
	}
	return after.u
}

// handle calls a handler as an informer does.
func handle[T any](h quotatest.Handler, before, after *T) {
	switch {
	case before == nil:
		h.OnAdd(after, false)
	case after == nil:
		h.OnDelete(before)
	default:
		h.OnUpdate(before, after)
	}
}

func (r *replica) open(k kind, on func(before, after *object, initial bool)) *stream {
	return r.openWith(newDice(r.dice.Uint64(), string(k)), k, on)
}

func (r *replica) openWith(d dice, k kind, on func(before, after *object, initial bool)) *stream {
	w := r.world
	s := &stream{kind: k, alive: r.isAlive, lag: func() time.Duration { return d.between(0, w.plan.Lag) }}
	if k == pods { // the scheduler watches those only that have not ended
		s.passes = func(o *object) bool { return !terminated(podOf(o)) }
	}
	s.on = func(before, after *object, initial bool) {
		// The handlers of a paused process catch up when it goes on; nothing reads what they wrote before that.
		r.tick()
		r.survive(func() { on(before, after, initial) })
		r.poke()
	}
	w.api.open(s, w.staleness(d))
	r.streams = append(r.streams, s)
	return s
}

// onJob is the handler for jobs of a kind.
func (r *replica) onJob(of *jobkind.Kind) func(before, after *object, initial bool) {
	name := of.String()
	return func(before, after *object, _ bool) {
		if before != nil && (after == nil || before.uid() != after.uid()) {
			delete(r.jobsByUID, before.uid())
		}
		if after == nil {
			r.engine.FeedJob(name, before.u.GetNamespace(), before.u.GetName(), "", nil, false)
			return
		}
		job := jobqueue.Job{
			Labels: after.u.GetLabels(), Annotations: after.u.GetAnnotations(), Owner: r.world.variants.owner(after),
		}
		r.jobsByUID[after.uid()] = job
		r.engine.FeedJob(name, after.u.GetNamespace(), after.u.GetName(), after.uid(), job.Owner,
			after.u.GetAnnotations()[v1alpha1.AnnotationSuspendedBy] != "")
	}
}

// poke asks for a step of the engine.
func (r *replica) poke() {
	if !r.armed {
		r.armed = true
		r.later(r.dice.between(0, 3*time.Millisecond), r.step)
	}
}

func (r *replica) step() {
	r.armed = false
	wake := r.engine.Step()
	r.applied = r.seenOf(units)
	if r.moved {
		r.moved = false
		r.world.check.rest.places(r)
	}
	if wake.IsZero() {
		return
	}
	wake = wake.Add(-r.skew)
	if soonest := r.world.loop.now.Add(time.Millisecond); wake.Before(soonest) {
		wake = soonest
	}
	if r.wake.After(r.world.loop.now) && !wake.Before(r.wake) {
		return // an event is on its way that is early enough
	}
	r.wake = wake
	r.world.loop.at(wake, func() { r.do(r.poke) })
}

func (r *replica) decide() *decision {
	d := &decision{at: r.world.loop.now, version: r.world.api.version, seen: map[kind]int64{}, leader: r,
		pending: maps.Clone(r.flights), got: maps.Clone(r.got)}
	for k := range r.seen {
		d.seen[k] = r.seenOf(k)
	}
	return d
}

// seenOf is the version of a kind up to which all its streams have brought the changes.
func (r *replica) seenOf(k kind) int64 {
	streams := r.seen[k]
	version := streams[0].seen
	for _, s := range streams[1:] {
		version = min(version, s.seen)
	}
	if k == units {
		version = max(version, r.listed)
	}
	return version
}

// submit takes a write of the engine and sends it.
func (r *replica) submit(w *statuswrite.Write) {
	key, _ := w.Object()
	if w.Decides() {
		r.flights[key.String()]++
	}
	r.send(w, r.decide(), 0)
}

// send is one attempt. The request arrives some time later, even if its process is gone by then, and its answer after
// that.
func (r *replica) send(w *statuswrite.Write, d *decision, attempts int) {
	if w.Dropped() {
		return
	}
	wo := r.world
	there, back := r.dice.between(0, 10*time.Millisecond), r.dice.between(0, 10*time.Millisecond)
	if wo.slow(r.process) {
		there = r.dice.between(0, wo.plan.Deadline)
		back = r.dice.between(0, wo.plan.Deadline)
		wo.countFault("slow")
	}
	sent := r.read() == nil
	ctx := context.WithValue(context.Background(), lateAnswer{}, nil)
	late := there+back > wo.plan.Deadline
	if late {
		ctx = context.WithValue(ctx, lateAnswer{}, true)
		back = wo.plan.Deadline - there
	}
	wo.loop.after(there, func() {
		var result statuswrite.Result
		answered := false
		r.survive(func() {
			r.sending = d
			cut := r.cut
			if sent {
				r.cut = time.Time{} // the request was already sent
			}
			defer func() { r.sending = nil }()
			if !r.alive {
				wo.countFault("late write")
			}
			result = w.Do(ctx, r.process.client(func() writer { return writer{roleScheduler, r.name, d} }))
			r.cut, answered = cut, true
		})
		if answered {
			r.later(back, func() { r.answered(w, d, result, attempts) })
		}
	})
}

func (r *replica) answered(w *statuswrite.Write, d *decision, result statuswrite.Result, attempts int) {
	key, _ := w.Object()
	r.moved = true
	if result.Definite() || !w.Decides() {
		if w.Decides() {
			if r.flights[key.String()]--; r.flights[key.String()] == 0 {
				delete(r.flights, key.String())
			}
		}
		r.engine.Engine.Settle(result)
		r.poke()
		return
	}
	if attempts == 0 {
		r.engine.Engine.Settle(result)
		r.poke()
	}
	if r.world.variants != nil && r.world.variants.NoBackoff {
		r.send(w, d, attempts+1)
		return
	}
	backoff := min(100*time.Millisecond<<min(attempts, 10), 5*time.Second)
	r.later(r.dice.between(backoff/2, backoff), func() { r.send(w, d, attempts+1) })
}

// everySecond is what Koordinator and the scheduling queue do now and then.
func (r *replica) everySecond() {
	r.live.Migrate()
	r.cycle()
	r.later(time.Second, r.everySecond)
}

// onPod is the handler of the scheduling queue.
func (r *replica) onPod(before, after *object, _ bool) {
	if after == nil || podOf(after).Spec.NodeName != "" || terminated(podOf(after)) {
		uid := present(before, after).GetUID()
		delete(r.queue, uid)
		delete(r.gated, uid)
		return
	}
	pod := podOf(after)
	r.queue[pod.UID] = pod
	r.enter(pod)
}

// enter is PreEnqueue. A pod that it holds back is asked about again when it changes, or is activated, and never else.
func (r *replica) enter(pod *corev1.Pod) {
	r.gated[pod.UID] = !r.passes(pod)
	if !r.gated[pod.UID] {
		r.cycle()
	}
}

func (r *replica) passes(pod *corev1.Pod) bool {
	return r.gate.Check(pod) == nil || r.world.variants != nil && r.world.variants.OpenGate
}

func (r *replica) activate(chunk map[string]*corev1.Pod) {
	for _, key := range slices.Sorted(maps.Keys(chunk)) {
		if pod := r.queue[chunk[key].UID]; pod != nil && r.gated[pod.UID] {
			r.enter(pod)
		}
	}
	r.cycle()
}

func (r *replica) cycle() {
	if !r.scheduled && r.leading {
		r.scheduled = true
		r.later(r.dice.between(0, 5*time.Millisecond), r.schedule)
	}
}

// schedule gives each pod that may go a node, as far as quotas and nodes allow.
func (r *replica) schedule() {
	r.scheduled = false
	var list []*corev1.Pod
	for _, pod := range r.queue {
		if !r.gated[pod.UID] && !r.reserved[pod.UID] {
			list = append(list, pod)
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return cmp.Compare(a.UID, b.UID) })
	for _, pod := range list {
		if pod.DeletionTimestamp == nil && r.passes(pod) && r.gangsThere(pod) && r.fitsQuota(pod) {
			if node := r.world.nodeFor(pod); node != "" {
				r.bind(pod, node)
			}
		}
	}
}

func (r *replica) fitsQuota(pod *corev1.Pod) bool {
	err, overrulable := r.live.PreFilter(pod)
	if err == nil {
		return true
	}
	return overrulable && r.gate.Admitted(pod) && r.live.Adapter().Admits(r.live.GetQuotaName(pod), pod) == nil
}

// bind reserves and asks the API to bind. The request may arrive late; the API refuses a pod that is gone or bound.
func (r *replica) bind(pod *corev1.Pod, node string) {
	w := r.world
	counted := r.live.Reserve(pod)
	r.reserved[pod.UID] = true
	d := r.decide()
	d.seen[units] = min(d.seen[units], r.applied)
	d.uncounted = !counted
	if r.read() != nil {
		r.later(time.Second, func() { r.unreserve(pod) })
		return
	}
	there := r.dice.between(0, 20*time.Millisecond)
	if w.slow(r.process) {
		there = r.dice.between(0, w.plan.Deadline)
	}
	w.loop.after(there, func() {
		key := keyOf(pod.Namespace, pod.Name)
		o := w.api.get(pods, key)
		if o == nil || o.uid() != pod.UID || podOf(o).Spec.NodeName != "" || podOf(o).DeletionTimestamp != nil {
			r.do(func() { r.unreserve(pod) })
			return
		}
		w.check.beforeBind(o, d)
		w.api.edit(writer{roleScheduler, r.name, d}, pods, key, false, func(u *unstructured.Unstructured) {
			mapAt(u.Object, "spec")["nodeName"] = node
		})
		w.placed[pod.Annotations[extension.AnnotationGangGroups]] = true
		r.later(0, func() { delete(r.reserved, pod.UID); delete(r.queue, pod.UID) })
	})
}

func (r *replica) unreserve(pod *corev1.Pod) {
	if r.reserved[pod.UID] {
		delete(r.reserved, pod.UID)
		r.live.Unreserve(pod)
		r.cycle()
	}
}

// forget ends the reservation of a pod that is bound or gone as far as the informer says.
func (r *replica) forget(after, before *object) {
	if after == nil {
		delete(r.reserved, before.uid())
	}
	r.cycle()
}

// lead lists the units and decides from then on. Until the list succeeds it is tried again.
func (r *replica) lead() {
	if err := r.engine.Lead(context.Background()); err != nil {
		r.later(time.Second, r.lead)
		return
	}
	r.listed = r.world.api.version
	r.world.logf("lead %s", r.name)
	r.poke()
	r.cycle()
}

func terminated(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
