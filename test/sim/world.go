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
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const (
	// patience is how long after the world has healed all jobs must have ended (I6). A unit that lost its admission often
	// is in back-off for up to 33 minutes.
	patience = 45 * time.Minute
	// settling is what the last writes may take after that, and silence how long there must be none then (I12).
	settling, silence = 2 * time.Minute, 5 * time.Minute
	maxEvents         = 400_000
)

// Violation of an invariant.
type Violation struct {
	Invariant string
	At        time.Duration
	Message   string
	// check that found it, by the format of its message.
	check string
}

// String is one line.
func (v Violation) String() string { return fmt.Sprintf("%s at %s: %s", v.Invariant, v.At, v.Message) }

// Report of one run.
type Report struct {
	Events, Writes, Admissions, Failovers, Binds int
	Faults                                       map[string]int
	Violations                                   []Violation
	// Miscounts are quotas in which Koordinator counts more than there is, so that not all jobs could end.
	Miscounts []string
	// Hash of the log; Log is the log itself where it was asked for.
	Hash uint64
	Log  string
	// Final is how all jobs and units ended.
	Final string
	// WritesBy counts the writes that the processes under test sent, by role.
	WritesBy map[string]int
}

// Options of Run.
type Options struct {
	// Log keeps the log.
	Log bool
	// Crash has one write of one role meet a fault.
	Crash *Crash

	variants *variants
}

// Crash is the fault of the n-th write, from 1 on, of all processes of a role.
type Crash struct {
	Role  string
	Write int
	Fault string
}

// world is one run of a plan.
type world struct {
	plan      Plan
	actions   map[string]action // by verb
	loop      *loop
	api       *api
	cluster   *cluster
	check     *checker
	answerer  *answerer
	predicate *managedjobs.Predicate
	kind      jobkind.Kind // Job
	setKind   jobkind.Kind // JobSet
	variants  *variants
	options   Options

	schedulers map[string]*replica
	managers   map[string]*manager
	lease      lease
	runs       int
	failovers  int
	skews      map[string]time.Duration
	down       time.Time
	slowUntil  map[string]time.Time
	// runtime is enableRuntimeQuota as schedulers that start have it.
	runtime   bool
	leaseSlow map[string]time.Time
	placed    map[string]bool      // gang groups of which a pod was given a node
	noRenew   map[string]time.Time // renewals of the lease fail, and nothing else does
	errors    map[string][]fault
	bombs     map[string]string
	// unlabelled are the quotas of jobs that a tenant has taken out of their queues.
	unlabelled map[string]string
	madeFirm   map[string]bool // and jobs that it says may not be preempted
	snatchers  []snatcher
	told       map[string]bool // jobs whose owners have read that they cannot be resumed
	original   map[string]Step // quotas, queues and nodes as they were first
	askAgain   time.Time
	healed     bool
	// disturbed is until when something may keep the controllers from their work.
	disturbed time.Time
	dice      dice

	report *Report
	log    *strings.Builder
	sum    io.Writer
	hash   interface{ Sum64() uint64 }
}

var silenced sync.Once

// Run runs a plan to its end, or to the first violation.
func Run(p Plan, o Options) *Report {
	// The packages under test log; nobody reads that here.
	silenced.Do(func() { klog.SetLogger(logr.Discard()) })
	w := newWorld(p, o)
	w.run()
	w.report.Events = w.loop.steps
	w.report.Failovers = max(w.failovers-1, 0)
	w.report.Hash = w.hash.Sum64()
	if w.log != nil {
		w.report.Log = w.log.String()
	}
	return w.report
}

func newWorld(p Plan, o Options) *world {
	h := fnv.New64a()
	w := &world{
		plan: p, actions: actions, loop: &loop{now: start}, variants: o.variants, options: o,
		schedulers: map[string]*replica{}, managers: map[string]*manager{}, skews: map[string]time.Duration{},
		runtime: p.Runtime, slowUntil: map[string]time.Time{}, leaseSlow: map[string]time.Time{},
		placed: map[string]bool{}, noRenew: map[string]time.Time{}, errors: map[string][]fault{},
		original: map[string]Step{}, bombs: map[string]string{}, unlabelled: map[string]string{},
		madeFirm: map[string]bool{}, told: map[string]bool{}, dice: newDice(p.Seed, "world"),
		report: &Report{Faults: map[string]int{}, WritesBy: map[string]int{}}, sum: h, hash: h,
	}
	if o.Log {
		w.log = &strings.Builder{}
	}
	var err error
	managed := managedjobs.Jobs{Kinds: managedjobs.KindsNamed("Job.v1.batch", "JobSet.v1alpha2.jobset.x-k8s.io")}
	if w.predicate, err = managedjobs.NewPredicate(managed); err != nil {
		panic(err)
	}
	w.kind, w.setKind = w.predicate.Kinds()[0], w.predicate.Kinds()[1]
	w.plantBombs()
	w.api = newAPI(w.loop)
	w.api.careless = o.variants != nil && o.variants.NoPrecondition
	w.check = newChecker(w)
	w.answerer = newAnswerer(w)
	w.api.onChange = append(w.api.onChange, w.logChange, w.check.onChange, w.answerer.onChange,
		newAudience(w).onChange, w.onTaking)
	w.cluster = newCluster(w)
	return w
}

func (w *world) run() {
	for _, name := range []string{"koord-queue", "team", "quotas"} {
		w.createObject(byAdmin, namespaces, "", name, nil,
			map[string]string{v1alpha1.AnnotationMaxPriority: "1000"}, nil)
	}
	for i := range w.plan.Steps {
		s := w.plan.Steps[i]
		if s.At == 0 {
			w.act(s)
			continue
		}
		w.loop.at(start.Add(s.At), func() { w.act(s) })
	}
	for i := range w.plan.Schedulers {
		w.startScheduler(fmt.Sprintf("scheduler-%d", i))
	}
	for i := range w.plan.Controllers {
		w.startController(fmt.Sprintf("controller-%d", i))
	}
	w.loop.run(start.Add(w.plan.Length), w.over)
	if w.over() {
		return
	}
	w.heal()
	w.loop.run(w.loop.now.Add(patience), func() bool { return w.over() || w.rests() })
	if w.over() {
		return
	}
	w.check.rest.liveness()
	if w.over() || len(w.report.Miscounts) > 0 {
		return
	}
	w.loop.run(w.loop.now.Add(settling), w.over)
	before := w.report.Writes
	w.loop.run(w.loop.now.Add(silence), w.over)
	if w.report.Writes != before {
		w.violate("I12", "%d writes after everything had come to rest", w.report.Writes-before)
	}
	w.check.rest.atRest()
	w.report.Final = w.final()
}

// final says how jobs and units ended; how often a job was admitted may depend on when it was.
func (w *world) final() string {
	var b strings.Builder
	for _, o := range w.topJobs() {
		fmt.Fprintf(&b, "job %s complete=%t\n", o.key, succeeded(nested(o, "status")))
	}
	for _, o := range w.api.list(units) {
		fmt.Fprintf(&b, "unit %s %s\n", o.key, phaseOf(o))
	}
	return b.String()
}

func (w *world) over() bool {
	if w.loop.steps > maxEvents {
		w.violate("I12", "more than %d events", maxEvents)
	}
	return len(w.report.Violations) > 0
}

// rests is idle, asked once a second: there may be many objects.
func (w *world) rests() bool {
	if w.loop.now.Before(w.askAgain) {
		return false
	}
	w.askAgain = w.loop.now.Add(time.Second)
	return w.idle()
}

// idle says whether every job has ended, and its unit says so. The controller may have to wait for the end of a long
// back-off for that. Hostile jobs and units need not end, but what is in back-off is retried.
func (w *world) idle() bool {
	for _, k := range []kind{jobKind, jobSets} {
		for _, o := range w.api.objects[k] {
			if owner(o) == nil && !ended(o) && !w.bad(o) {
				return false
			}
		}
	}
	for _, o := range w.api.objects[units] {
		if !rulebook.Over(phaseOf(o)) && (!w.bad(o) || w.loop.now.Before(requeueAt(o))) {
			return false
		}
	}
	return true
}

func (w *world) violate(invariant, format string, args ...any) {
	v := Violation{Invariant: invariant, At: w.loop.now.Sub(start), Message: fmt.Sprintf(format, args...), check: format}
	w.logf("VIOLATION %s: %s", invariant, v.Message)
	w.report.Violations = append(w.report.Violations, v)
}

func (w *world) logf(format string, args ...any) {
	line := fmt.Sprintf("%s ", w.loop.now.Sub(start)) + fmt.Sprintf(format, args...) + "\n"
	_, _ = io.WriteString(w.sum, line)
	if w.log != nil {
		w.log.WriteString(line)
	}
}

// logChange writes what a person would want to know about a change.
func (w *world) logChange(c *change) {
	by := c.by.role
	if c.by.process != "" {
		by = c.by.process
	}
	verb, o := "change", c.after
	switch {
	case c.before == nil:
		verb = "create"
	case c.after == nil:
		verb, o = "delete", c.before
	}
	w.logf("%s %s %s v%d by %s: %s", verb, c.kind, c.key, c.rv, by, summary(o))
}

func summary(o *object) string {
	switch o.kind {
	case units:
		u := unitOf(o)
		line := fmt.Sprintf("uid=%s phase=%s attempts=%d asks=%s holds=%s", u.UID, u.Status.Phase, u.Status.Attempts,
			askedBy(u), heldOf(o))
		if takes(o) {
			line += fmt.Sprintf(" takes=%v", u.Status.Preemption.Holds)
		}
		return line
	case jobKind:
		spec, status := nested(o, "spec"), nested(o, "status")
		return fmt.Sprintf("uid=%s suspend=%v active=%v ready=%v succeeded=%v ended=%t", o.uid(), spec["suspend"],
			status["active"], status["ready"], status["succeeded"], ended(o))
	case jobSets:
		return fmt.Sprintf("uid=%s suspend=%v status=%v", o.uid(), nested(o, "spec")["suspend"], nested(o, "status"))
	case pods:
		p := podOf(o)
		return fmt.Sprintf("uid=%s node=%s phase=%s deleting=%t", p.UID, p.Spec.NodeName, p.Status.Phase,
			p.DeletionTimestamp != nil)
	case quotas:
		q := quotaOf(o)
		return fmt.Sprintf("min=%s max=%s parent=%s", q.Spec.Min.Cpu(), q.Spec.Max.Cpu(), parentOf(o))
	default:
		return ""
	}
}

func (w *world) countFault(f string) { w.report.Faults[f]++ }

func (w *world) countWrite(p *process) {
	w.report.Writes++
	w.report.WritesBy[p.role]++
}

// nextFault of a process: what the enumeration asks for, else the next of those that a step has ordered.
func (w *world) nextFault(p *process) fault {
	if c := w.options.Crash; c != nil && c.Role == p.role && w.report.WritesBy[p.role] == c.Write {
		if f := fault(c.Fault); f == faultCrashAfter || f == faultCrashBefore {
			w.restartLater(p.name)
			return f
		}
		return fault(c.Fault)
	}
	list := w.errors[p.name]
	if len(list) == 0 || w.healed {
		return faultNone
	}
	w.errors[p.name] = list[1:]
	if list[0] == faultCrashAfter || list[0] == faultCrashBefore {
		w.restartLater(p.name)
	}
	return list[0]
}

// touch is somebody else changing an object just before a write.
func (w *world) touch(k kind, key string) {
	w.api.edit(writer{role: "somebody"}, k, key, false, touchLabels(w.api.version))
}

func (w *world) slow(p *process) bool {
	return !w.healed && w.loop.now.Before(w.slowUntil[p.name])
}

func (w *world) slowLease(p *process) bool {
	return !w.healed && w.loop.now.Before(w.leaseSlow[p.name])
}

// staleness of the cache that a starting client lists from.
func (w *world) staleness(d dice) time.Duration {
	if w.healed || w.loop.now.Equal(start) {
		return 0
	}
	return d.between(0, 2*time.Second)
}

func (w *world) restartLater(name string) {
	w.loop.after(w.dice.between(time.Second, 5*time.Second), func() { w.restart(name) })
}

// restart starts a process that is not alive.
func (w *world) restart(name string) {
	if r := w.schedulers[name]; r != nil && !r.alive {
		w.startScheduler(name)
	}
	if m := w.managers[name]; m != nil && !m.alive {
		w.startController(name)
	}
}

func (w *world) process(name string) *process {
	if name == "leader" {
		if w.lease.holder == nil {
			return nil
		}
		return w.lease.holder.process
	}
	if r := w.schedulers[name]; r != nil {
		return r.process
	}
	if m := w.managers[name]; m != nil {
		return m.process
	}
	return nil
}

func (w *world) streamsOf(name string, k kind) []*stream {
	var all []*stream
	if r := w.schedulers[name]; r != nil {
		all = r.streams
	}
	if m := w.managers[name]; m != nil {
		for _, key := range slices.Sorted(maps.Keys(m.caches)) {
			all = append(all, m.caches[key])
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s *stream) bool { return k != "" && s.kind != k })
}

// heal ends all faults and gives the world back what it had at first.
func (w *world) heal() {
	w.healed = true
	w.down = w.loop.now
	w.logf("heal")
	w.evadersLeave()
	w.variants.afterHealing(w)
	for _, name := range slices.Sorted(maps.Keys(w.original)) {
		w.act(w.original[name])
	}
	for _, o := range w.api.list(queues) {
		w.api.edit(byAdmin, queues, o.key, false, release)
	}
	if w.plan.hasChecks() {
		w.answerer.heal()
	}
	for _, job := range w.topJobs() { // a step may recreate a job that was to be resumed
		w.annotate(job.kind, job.key, v1alpha1.AnnotationHold, "false")
		w.annotate(job.kind, job.key, v1alpha1.AnnotationMaxExecutionTime, "")
	}
	for _, job := range slices.Sorted(maps.Keys(w.told)) {
		w.correctTemplate(job)
	}
	w.tenantLeaves()
	w.activateAll()
	w.loop.after(time.Minute, w.activateAll) // for writes in flight
	for _, o := range w.api.list(units) {
		// A phase that nobody knows waits for a person (F16), as does a unit that one let go while its checks contradict.
		if phaseOf(o) == "Weird" || letGoByHand(o) {
			editUnit(w, Step{On: o.u.GetName(), Args: map[string]string{"phase": "Enqueued"}})
		}
	}
	for _, name := range append(slices.Sorted(maps.Keys(w.schedulers)), slices.Sorted(maps.Keys(w.managers))...) {
		p := w.process(name)
		p.cut, p.paused = w.loop.now, w.loop.now
		for _, s := range w.streamsOf(name, "") {
			s.blocked = w.loop.now
		}
		w.restart(name)
	}
}
