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

package admission

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/life"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/shares"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// TestStories plays testdata/*.txt. The name of a directive is free; each line of its input is one event or
// question, and the output is complete. Run with -rewrite to regenerate, and commit a changed expectation only
// when you understand what changed it.
func TestStories(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			st := newStory(t)
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				st.t, st.out = t, &strings.Builder{}
				for _, line := range strings.Split(d.Input, "\n") {
					st.line(line)
				}
				if st.out.Len() == 0 {
					return "ok\n"
				}
				return st.out.String()
			})
		})
	}
}

// story keeps the objects like an API server, and feeds the state with them.
type story struct {
	t      testing.TB
	out    *strings.Builder
	now    time.Time
	cfg    Config
	s      *State
	units  map[string]unit.Unit
	quotas map[string]Quota
	queues map[string]queue.Spec
	pods   map[string]map[string]Pod
	jobs   map[string]unit.Consumer
	asked  map[string][]transition.Foresee // by units, the questions about them
}

func newStory(t testing.TB) *story {
	st := &story{
		t: t, now: epoch,
		cfg: Config{ExplainAfter: 5 * time.Second, ExplainEvery: 30 * time.Second, RefusedBackoff: 10 * time.Second,
			Rules:            life.Config{Timeouts: queue.Timeouts{Idle: 10 * time.Minute, Unbound: 30 * time.Minute}},
			PartialAdmission: true},
		units: map[string]unit.Unit{}, quotas: map[string]Quota{}, queues: map[string]queue.Spec{},
		pods: map[string]map[string]Pod{}, jobs: map[string]unit.Consumer{}, asked: map[string][]transition.Foresee{},
	}
	st.cfg.Checks = []queue.Check{labelCheck{}}
	st.cfg.Rules.Selects = strings.EqualFold
	st.cfg.Order = fragileOrder{}
	st.cfg.Policies = map[string]queue.Factory{
		"Fragile":   func(int32) queue.Policy { return fragilePolicy{queue.Builtin()["Priority"](0)} },
		"Unmakable": func(int32) queue.Policy { panic("the policy cannot be made") },
	}
	st.s = New(st.cfg)
	return st
}

// labelCheck is an extension's filter for the stories: it looks at the name of the unit.
type labelCheck struct{}

func (labelCheck) Key(u unit.Unit) string {
	switch {
	case strings.Contains(u.Key, "keyless"):
		panic("the check has no key for it")
	case strings.Contains(u.Key, "panics"):
		return u.Key
	case strings.Contains(u.Key, "licence"):
		return "licence"
	}
	return ""
}

func (c labelCheck) Check(u unit.Unit) (unit.Reason, string) {
	switch c.Key(u) {
	case "":
		return "", ""
	case "licence":
		return "NoLicence", "no licence is free"
	}
	panic("the check cannot cope")
}

// fragilePolicy cannot put units of this name in order.
type fragilePolicy struct{ queue.Policy }

func (p fragilePolicy) Compare(a, b queue.Item) int {
	if strings.Contains(a.Key+b.Key, "fragile") {
		panic("the policy cannot cope")
	}
	return p.Policy.Compare(a, b)
}

// fragileOrder cannot cope with a queue that a unit of this name is first in. Nothing recovers that.
type fragileOrder struct{ queue.FairOrder }

func (o fragileOrder) Compare(a, b queue.Rank) int {
	if strings.Contains(a.Head.Key+b.Head.Key, "stumbles") {
		panic("the order cannot cope")
	}
	return o.FairOrder.Compare(a, b)
}

func (st *story) printf(format string, args ...any) { fmt.Fprintf(st.out, format+"\n", args...) }

func (st *story) line(line string) {
	cmd, args, err := datadriven.ParseLine(line)
	require.NoError(st.t, err)
	a := argsOf(args)
	commands := map[string]func(arguments){
		"quota": st.quota, "delete-quota": st.deleteQuota, "queue": st.queue, "delete-queue": st.deleteQueue,
		"unit": st.unit, "answer": st.answer, "delete-unit": st.deleteUnit, "pod": st.pod, "delete-pod": st.deletePod,
		"job": st.job, "settle": st.settle, "decide": st.decide, "tick": st.tick, "restart": st.restart,
		"why": st.why, "list": st.list, "counts": st.counts, "outstanding": st.outstanding, "demand": st.demand,
		"status": st.status, "explain": st.explain, "pods": st.listPods, "claim-timeout": st.claimTimeout,
		"claim-after":       st.claimAfter,
		"partial-admission": st.partialAdmission, "foresee": st.foresee, "dry-runs": st.dryRuns,
	}
	run, ok := commands[cmd]
	require.True(st.t, ok, "unknown command %q", cmd)
	run(a)
	require.Empty(st.t, st.s.Audit().Ledger(), "after %q", line)
	require.Empty(st.t, st.s.Audit().Places(), "after %q", line)
}

// arguments are the words of a line: those without value, and the others by name; order is their order.
type arguments struct {
	words []string
	order []string
	named map[string]string
}

func argsOf(args []datadriven.CmdArg) arguments {
	a := arguments{named: map[string]string{}}
	for _, arg := range args {
		if len(arg.Vals) == 0 {
			a.words = append(a.words, arg.Key)
		} else {
			a.order = append(a.order, arg.Key)
			a.named[arg.Key] = strings.Join(arg.Vals, ",")
		}
	}
	return a
}

func (a arguments) has(word string) bool { return slices.Contains(a.words, word) }

// claimTimeout is a change of the configuration, which a scheduler reads when it starts.
func (st *story) claimTimeout(a arguments) {
	st.cfg.ClaimTimeout = time.Duration(st.number(a.words[0])) * time.Second
	st.s.pass.watch.Timeout = st.cfg.ClaimTimeout
}

// claimAfter is a change of the configuration as well.
func (st *story) claimAfter(a arguments) {
	st.cfg.ClaimAfter = time.Duration(st.number(a.words[0])) * time.Second
	st.s.pass.watch.After = st.cfg.ClaimAfter
}

// partialAdmission is switched off or on, as by a scheduler that starts.
func (st *story) partialAdmission(a arguments) { st.cfg.PartialAdmission = a.has("on") }

func (st *story) resources(text string) resources.List {
	if text == "" || text == "none" {
		return resources.List{}
	}
	quantities := map[string]resource.Quantity{}
	negative := map[string]int64{}
	for _, part := range strings.Split(text, ",") {
		name, amount, _ := strings.Cut(part, ":")
		if strings.HasPrefix(amount, "-") {
			n, err := strconv.ParseInt(amount, 10, 64)
			require.NoError(st.t, err)
			negative[name] = n
			continue
		}
		quantities[name] = resource.MustParse(amount)
	}
	list, err := resources.FromQuantities(quantities)
	require.NoError(st.t, err)
	return list.Add(resources.FromMap(negative))
}

func (st *story) number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(st.t, err)
	return n
}

func (st *story) quota(a arguments) {
	q := st.quotas[a.words[0]]
	q.Name = a.words[0]
	for _, name := range a.order {
		value := a.named[name]
		switch name {
		case "parent":
			q.Parent = value
		case "limit":
			q.Limit = st.resources(value)
		case "max":
			q.Max = st.resources(value)
			q.Limit = q.Max
		case "min":
			q.Min = st.resources(value)
		case "used":
			q.Used = st.resources(value)
		case "used-of-min":
			q.NonPreemptibleUsed = st.resources(value)
		case "runtime":
			q.Limit, q.Shared = st.resources(value), true
		case "total": // the runtimes of the quotas below that have a weight are computed
			q.Limit, q.Max, q.Terms.Part = st.resources(value), st.resources(value), shares.Top
		case "usable": // after total: the part of it that pods can use
			q.Limit = st.resources(value)
		case "weight":
			q.Shared, q.Terms.Part, q.Terms.Weight, q.Limit = true, shares.Sharing, st.resources(value), resources.List{}
		case "requested":
			q.Requested = st.resources(value)
		case "lends":
			q.KeepsMin = value == "false"
		case "closed":
			q.Closed = value == "true"
		default:
			require.Fail(st.t, "unknown argument "+name)
		}
	}
	st.quotas[q.Name] = q
	st.s.SetQuota(st.now, q)
}

func (st *story) deleteQuota(a arguments) {
	delete(st.quotas, a.words[0])
	st.s.DeleteQuota(st.now, a.words[0])
}

func (st *story) queue(a arguments) {
	q, ok := st.queues[a.words[0]]
	if !ok {
		q = queue.Spec{Name: a.words[0], Policy: "Priority", MaxPending: -1, MaxAdmitted: -1}
	}
	for _, name := range a.order {
		value := a.named[name]
		switch name {
		case "policy":
			q.Policy = value
		case "priority":
			q.Priority = int32(st.number(value))
		case "threshold":
			q.Threshold = int32(st.number(value))
		case "quotas":
			if q.Quotas = strings.Split(value, ","); value == "*" {
				q.Quotas = nil
			}
		case "lists":
			q.Lists = strings.Split(value, ",")
		case "max-pending":
			q.MaxPending = int32(st.number(value))
		case "max-admitted":
			q.MaxAdmitted = int32(st.number(value))
		case "namespace-max-pending", "namespace-max-admitted":
			bounds := queue.NamespaceBounds{MaxPending: -1, MaxAdmitted: -1}
			if q.PerNamespace != nil {
				bounds = *q.PerNamespace
			}
			if name == "namespace-max-pending" {
				bounds.MaxPending = int32(st.number(value))
			} else {
				bounds.MaxAdmitted = int32(st.number(value))
			}
			q.PerNamespace = &bounds
		case "heartbeat":
			q.HeartbeatTimeout = time.Duration(st.number(value)) * time.Second
		case "idle", "unbound", "pods-ready", "recovery":
			q.Timeouts = st.timeouts(q.Timeouts, name, time.Duration(st.number(value))*time.Second)
		case "execution":
			q.Execution.Default = time.Duration(st.number(value)) * time.Second
		case "longest-execution":
			q.Execution.Most = time.Duration(st.number(value)) * time.Second
		case "checks":
			q.AdmissionChecks = st.admissionChecks(value)
		case "fault":
			if q.Fault = nil; value != "" {
				q.Fault = &queue.Fault{Reason: unit.Reason(value), Message: "somebody has to see to the check"}
			}
		case "most-evictions":
			q.MostEvictions = st.number(value)
		case "reclaim":
			q.Preemption.Reclaim = st.victims(value)
		case "within":
			q.Preemption.WithinQueue = st.victims(value)
		case "dry-run":
			q.Preemption.DryRun = value == "true"
		case "min-run":
			q.Preemption.MinRunTime = time.Duration(st.number(value)) * time.Second
		case "protected":
			q.Preemption.Protected = value == "true"
		case "keeps":
			q.Preemption.Keeps = value == "true"
		case "drains":
			q.Held, q.Drains = value == "true", value == "true"
		case "held":
			q.Held = value == "true"
		default:
			require.Fail(st.t, "unknown argument "+name)
		}
	}
	st.queues[q.Name] = q
	st.s.UpsertQueue(st.now, q)
}

func (st *story) victims(value string) queue.Victims {
	v, known := map[string]queue.Victims{"": 0, "lower": queue.VictimsOfLowerPriority, "any": queue.VictimsAny}[value]
	require.True(st.t, known, "nobody takes from %q", value)
	return v
}

// foresee answers what was asked last about a unit, or the question before that: it finds nodes, or does not.
func (st *story) foresee(a arguments) {
	asked := st.asked[a.words[0]]
	if a.has("before") {
		asked = asked[:len(asked)-1]
	}
	st.s.Foreseen(st.now, &asked[len(asked)-1], a.has("yes"), "0/4 nodes are available")
}

// admissionChecks are name/seconds/selector/foreseen; what follows the name may be left out.
func (st *story) admissionChecks(text string) (checks []queue.AdmissionCheck) {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		parts := append(strings.Split(one, "/"), "", "", "")
		c := queue.AdmissionCheck{Name: parts[0], Selector: parts[2], Foreseen: parts[3] != ""}
		if parts[1] != "" {
			c.Timeout = time.Duration(st.number(parts[1])) * time.Second
		}
		checks = append(checks, c)
	}
	return checks
}

// answer has checks answer about a unit that holds quota: check=State, or check=Retry/seconds.
func (st *story) answer(a arguments) {
	u := st.units[a.words[0]]
	if !u.Phase.Holds() || u.Checks == nil {
		st.printf("%s is %s", a.words[0], u.Phase)
		return
	}
	answers := &unit.CheckAnswers{Conflict: u.Checks.Conflict, Answers: slices.Clone(u.Checks.Answers)}
	for _, name := range a.order {
		state, after, _ := strings.Cut(a.named[name], "/")
		if name == "conflict" {
			answers.Conflict = state
			continue
		}
		i := slices.IndexFunc(answers.Answers, func(of unit.CheckAnswer) bool { return of.Name == name })
		require.GreaterOrEqual(st.t, i, 0, "%s was not asked", name)
		answers.Answers[i].State, answers.Answers[i].Message = unit.CheckState(state), "it said "+state
		if after != "" {
			answers.Answers[i].RetryAfter = time.Duration(st.number(after)) * time.Second
		}
	}
	u.Checks = answers
	st.units[a.words[0]] = u
	st.s.UpsertUnit(st.now, u)
}

// timeouts of a queue with another one; those that it does not name are those of the configuration.
func (st *story) timeouts(of *queue.Timeouts, name string, value time.Duration) *queue.Timeouts {
	changed := st.cfg.Rules.Timeouts
	if of != nil {
		changed = *of
	}
	switch name {
	case "idle":
		changed.Idle = value
	case "unbound":
		changed.Unbound = value
	case "pods-ready":
		changed.PodsReady = value
	case "recovery":
		changed.Recovery = value
	}
	return &changed
}

func (st *story) deleteQueue(a arguments) {
	delete(st.queues, a.words[0])
	st.s.DeleteQueue(st.now, a.words[0])
}

func (st *story) unit(a arguments) {
	name := a.words[0]
	u, ok := st.units[name]
	if !ok {
		u = unit.Unit{
			Key: unitNamed(name), UID: "uid-" + name, Created: st.now, Pods: 1, Active: true, Phase: unit.PhaseEnqueued,
			MaxPriority: math.MaxInt32,
		}
	}
	for _, key := range a.order {
		st.setUnit(&u, key, a.named[key])
	}
	if !u.Phase.Holds() {
		u.SetNothingHeld()
	}
	st.units[name] = u
	st.s.UpsertUnit(st.now, u)
}

func (st *story) setUnit(u *unit.Unit, key, value string) {
	switch key {
	case "uid":
		u.UID = value
	case "queue":
		u.Queue = value
	case "quota":
		u.Quota = value
	case "quotas": // that it lists
		u.Quotas = value
	case "moves-to":
		u.MovesTo = value
	case "priority":
		u.Priority = int32(st.number(value))
	case "max-priority":
		u.MaxPriority = int32(st.number(value))
	case "created":
		u.Created = epoch.Add(time.Duration(st.number(value)) * time.Second)
	case "request":
		u.Request = st.resources(value)
	case "pods":
		u.Pods = st.number(value)
	case "each":
		u.Expected = unit.Expected{Pods: u.Pods, Each: st.resources(value)}
	case "sets": // of least-count/request, in place of pods and request
		u.Sizes = st.sizes(value)
		u.Become(u.Sizes.At(0))
	case "sizes":
		u.Sizes = nil
	case "labels":
		u.Labels = value
	case "gangs": // all of the group, and its own
		u.GangGroup, u.Gangs, _ = strings.Cut(value, "/")
	case "preemptible":
		u.NonPreemptible = value == "false"
	case "preemptable":
		u.Unpreemptable = value == "false"
	case "observed":
		u.Observed = value == "true"
	case "active":
		u.Active = value == "true"
	case "heartbeat": // seconds after the beginning
		u.Heartbeat = epoch.Add(time.Duration(st.number(value)) * time.Second)
	case "ready":
		u.Ready = value == "true"
	case "not-ready-since": // seconds after the beginning
		u.NotReadySince = epoch.Add(time.Duration(st.number(value)) * time.Second)
	case "ran-since": // seconds after the beginning
		u.RanSince = epoch.Add(time.Duration(st.number(value)) * time.Second)
	case "maximum-execution":
		u.MaximumExecution = time.Duration(st.number(value)) * time.Second
	case "resize-pending": // seconds after the beginning
		u.ResizePending = ordered.MomentOf(epoch.Add(time.Duration(st.number(value)) * time.Second))
	case "deactivate":
		u.Deactivate = nil
		if value != "" {
			u.Deactivate = &unit.Deactivation{Reason: unit.Reason(value), Message: "somebody wants it to be made inactive"}
		}
	case "unsuspendable":
		u.Unsuspendable = value == "true"
	case "adopting":
		u.Adopting = value == "true"
	case "templates-written":
		u.TemplatesWritten = value == "true"
	case "phase":
		u.Phase = unit.Phase(value)
	case "held":
		u.Held = st.resources(value)
	case "held-pods":
		u.HeldPods = st.number(value)
	case "adopted":
		u.Adopted = value == "true"
	case "attempts":
		u.Attempts = st.number(value)
	case "requeue-at":
		u.RequeueAt = epoch.Add(time.Duration(st.number(value)) * time.Second)
	case "job":
		name, uid, _ := strings.Cut(value, ":")
		u.Consumer = unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: name, UID: uid}
		u.ConsumerManaged = true
	case "job-namespace":
		u.Consumer.Namespace = value
	case "owned":
		u.OwnedByConsumer = value == "true"
	case "kind":
		u.Consumer.Kind, u.ConsumerManaged = value, false
	case "misnamed":
		u.Misnamed = value == "true"
	case "unreadable":
		u.Invalid, u.InvalidMessage = unit.ReasonInternalError, "the object cannot be read: "+value
	case "quarantined":
		u.Quarantined, u.Invalid, u.InvalidMessage = value == "true", "", ""
		if u.Quarantined {
			u.Invalid, u.InvalidMessage = unit.ReasonInternalError, "the admission of this unit panicked"
		}
	case "invalid":
		u.Invalid, u.InvalidMessage = unit.ReasonInvalidRequest, value
	default:
		require.Fail(st.t, "unknown argument "+key)
	}
}

func (st *story) sizes(text string) *unit.Sizes {
	var sets []unit.PodSetSize
	for _, one := range strings.Split(text, ";") {
		counts, request, _ := strings.Cut(one, "/")
		least, count, _ := strings.Cut(counts, "-")
		sets = append(sets, unit.PodSetSize{
			Count: st.number(count), Least: st.number(least), Request: st.resources(request),
		})
	}
	return unit.NewSizes(sets)
}

func (st *story) deleteUnit(a arguments) {
	delete(st.units, a.words[0])
	st.s.DeleteUnit(st.now, unitNamed(a.words[0]))
}

func (st *story) pod(a arguments) {
	key := unitNamed(a.words[0])
	if st.pods[key] == nil {
		st.pods[key] = map[string]Pod{}
	}
	p := st.pods[key][a.words[1]]
	if a.has("leaving") && !p.Leaving {
		p.LeavingSince = st.now
	}
	p.UID, p.Assigned, p.Leaving = a.words[1], a.has("assigned"), a.has("leaving")
	if p.Quota == "" {
		p.Quota = st.units[a.words[0]].Quota
	}
	if value, ok := a.named["quota"]; ok {
		p.Quota = value
	}
	if value, ok := a.named["request"]; ok {
		p.Request = st.resources(value)
	}
	if value, ok := a.named["grace"]; ok { // seconds
		p.GoneBy = p.LeavingSince.Add(time.Duration(st.number(value)) * time.Second)
	}
	p.NonPreemptible, p.Held = a.has("non-preemptible"), a.has("held")
	st.pods[key][p.UID] = p
	st.s.SetPod(st.now, key, p)
}

func (st *story) deletePod(a arguments) {
	key := unitNamed(a.words[0])
	delete(st.pods[key], a.words[1])
	st.s.DeletePod(st.now, key, a.words[1])
}

func (st *story) job(a arguments) {
	c := unit.Consumer{Kind: "Job.v1.batch", Namespace: "ns", Name: a.words[0], UID: a.named["uid"]}
	if a.has("gone") {
		delete(st.jobs, c.UID)
	} else {
		st.jobs[c.UID] = c
	}
	st.s.SetConsumer(st.now, c, !a.has("gone"))
}

func (st *story) settle(a arguments) {
	name := a.words[0]
	u := st.units[name]
	outcome := map[string]transition.Outcome{
		"confirmed": transition.Confirmed, "refuted": transition.Refuted, "refused": transition.Refused,
		"unknown": transition.Unknown,
	}[a.words[1]]
	attempt := st.number(a.named["attempt"])
	record, ok := st.s.roster.units[unitNamed(name)]
	if ok && outcome == transition.Confirmed && record.inFlight() {
		record.flight.Apply(st.now, &u)
		if e, is := record.flight.(*transition.Evict); is {
			u.Said = unit.Say(cmp.Or(e.Deactivate, e.Reason), e.Message)
		}
	}
	if _, ok := st.units[name]; ok {
		st.units[name] = u
	}
	st.s.Settle(st.now, unitNamed(name), attempt, outcome)
}

func (st *story) plan() (plan sorted, cause any) {
	defer func() { cause = recover() }()
	return byKind(st.s.Decide(st.now)), nil
}

// decide prints the plan; with the word confirm every write of it succeeds and comes back as an object.
func (st *story) decide(a arguments) {
	plan, cause := st.plan()
	if cause != nil {
		st.printf("panic: %v; looked at %s", cause, name(st.s.Suspect()))
		return
	}
	if plan.Panics > 0 {
		st.printf("panics: %d", plan.Panics)
	}
	for _, e := range plan.Evict {
		after := ""
		if e.Deactivate != "" {
			after = " (to be made inactive: " + string(e.Deactivate) + ")"
		}
		if !e.RequeueAt.IsZero() {
			after += fmt.Sprintf(" (again at %s)", e.RequeueAt.Sub(epoch).Round(time.Second))
		}
		if e.Executed > 0 {
			after += fmt.Sprintf(" (has run for %s)", e.Executed)
		}
		st.printf("evict %s attempt %d: %s: %s%s", name(e.Unit.Key), e.Unit.Attempts, e.Reason, e.Message, after)
	}
	for _, ad := range plan.Admit {
		borrows := ""
		if ad.Borrows {
			borrows = " (borrows)"
		}
		if len(ad.Checks) > 0 {
			borrows += " (asks " + strings.Join(ad.Checks, ", ") + ")"
		}
		if ad.Unit.Chosen {
			borrows += " (in " + ad.Unit.Quota + ")"
		}
		if ad.Counts != nil {
			borrows += fmt.Sprintf(" (in part: %d pods)", ad.Counts)
		}
		st.printf("admit %s attempt %d: %s%s", name(ad.Unit.Key), ad.Attempt(), orNothing(ad.Request), borrows)
	}
	for _, d := range plan.Dequeue {
		st.printf("dequeue %s attempt %d", name(d.Unit.Key), d.Unit.Attempts)
	}
	for _, r := range plan.Resize {
		how := ""
		if r.Asked {
			how = ", asked for"
		}
		if r.Borrows {
			how += " (borrows)"
		}
		st.printf("resize %s to %s%s", name(r.Unit.Key), orNothing(r.Held), how)
	}
	for _, t := range plan.Preempt {
		st.printf("take for %s: %s", name(t.Unit.Key), strings.Join(t.Holds, ", "))
	}
	for _, f := range plan.Foresee {
		st.asked[name(f.Unit.Key)] = append(st.asked[name(f.Unit.Key)], f)
		st.printf("would %s find nodes without %s", name(f.Unit.Key), strings.Join(f.Victims, ", "))
	}
	told, again := st.tell(a)
	if len(plan.Evict)+len(plan.Preempt)+len(plan.Foresee)+len(plan.Admit)+len(plan.Dequeue)+len(plan.Resize)+told == 0 {
		st.printf("nothing to do")
	}
	if again = ordered.Earlier(again, plan.WakeAt); !again.IsZero() {
		st.printf("wake at %s", again.Sub(epoch))
	}
	if !a.has("confirm") {
		return
	}
	for _, e := range plan.Evict {
		st.confirm(name(e.Unit.Key), e.Unit.Attempts)
	}
	for _, ad := range plan.Admit {
		st.confirm(name(ad.Unit.Key), ad.Attempt())
	}
	for _, d := range plan.Dequeue {
		st.confirm(name(d.Unit.Key), d.Unit.Attempts)
	}
	for _, t := range plan.Preempt {
		st.confirm(name(t.Unit.Key), t.Unit.Attempts)
	}
	for _, r := range plan.Resize {
		st.confirm(name(r.Unit.Key), r.Attempt())
	}
}

// tell prints the reasons of the next units, as many as tell= says, and writes them at once.
func (st *story) tell(a arguments) (told int, again time.Time) {
	most := 64
	if text, ok := a.named["tell"]; ok {
		most = int(st.number(text))
	}
	list, again := st.s.Telling().Next(st.now, most)
	for _, e := range list {
		st.printf("explain %s: %s: %s", name(e.Unit.Key), e.Reason, e.Message)
		if u, ok := st.units[name(e.Unit.Key)]; ok {
			if u.Said = &e.Saying; e.Reason == "" {
				u.Said = nil
			}
			st.units[name(e.Unit.Key)] = u
			st.s.UpsertUnit(st.now, u)
		}
	}
	return len(list), again
}

func (st *story) confirm(name string, attempt int64) {
	st.settle(arguments{words: []string{name, "confirmed"}, named: map[string]string{"attempt": fmt.Sprint(attempt)}})
	st.s.UpsertUnit(st.now, st.units[name])
}

// unitNamed is the key of a unit of a story: it is in namespace ns, unless the story says otherwise.
func unitNamed(name string) string {
	if strings.Contains(name, "/") {
		return name
	}
	return "ns/" + name
}

func name(key string) string { return strings.TrimPrefix(key, "ns/") }

func (st *story) tick(a arguments) {
	d, err := time.ParseDuration(a.words[0])
	require.NoError(st.t, err)
	st.now = st.now.Add(d)
}

// restart forgets the state and feeds a new one with the objects, kind by kind in the given order.
func (st *story) restart(a arguments) {
	st.s = New(st.cfg)
	for _, kind := range a.words {
		switch kind {
		case "quotas", "quotas-reversed":
			st.feedQuotas(kind == "quotas-reversed")
		case "queues":
			for _, key := range keysOf(st.queues) {
				st.s.UpsertQueue(st.now, st.queues[key])
			}
		case "units":
			for _, key := range keysOf(st.units) {
				st.s.UpsertUnit(st.now, st.units[key])
			}
		case "pods":
			for _, key := range keysOf(st.pods) {
				for _, uid := range keysOf(st.pods[key]) {
					st.s.SetPod(st.now, key, st.pods[key][uid])
				}
			}
		case "jobs":
			for _, key := range keysOf(st.jobs) {
				st.s.SetConsumer(st.now, st.jobs[key], true)
			}
		default:
			require.Fail(st.t, "unknown kind "+kind)
		}
	}
}

func (st *story) feedQuotas(reversed bool) {
	names := keysOf(st.quotas)
	if reversed {
		slices.Reverse(names)
	}
	for _, key := range names {
		st.s.SetQuota(st.now, st.quotas[key])
	}
}

func keysOf[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func (st *story) why(a arguments) {
	for _, word := range a.words {
		reason, message, ok := st.s.Why(unitNamed(word))
		switch {
		case !ok:
			st.printf("%s: not known", word)
		case reason == "":
			st.printf("%s: %s", word, message)
		default:
			st.printf("%s: %s: %s", word, reason, message)
		}
	}
}

// dryRuns prints what units would take without dryRun in their queues.
func (st *story) dryRuns(a arguments) {
	for _, word := range a.words {
		row := st.s.Rows([]string{unitNamed(word)})[unitNamed(word)]
		st.printf("%s would take %d: [%s]", word, row.DryRun.Units, strings.Join(row.DryRun.Holds, ", "))
	}
	counts := Victims(st.s)
	for _, queue := range keysOf(counts) {
		st.printf("queue %s: %d units would lose what they hold", queue, counts[queue])
	}
}

// explain prints all that a unit lacks; an asterisk marks what binds.
func (st *story) explain(a arguments) {
	for _, word := range a.words {
		e, ok := st.s.Explain(unitNamed(word))
		require.True(st.t, ok)
		line := fmt.Sprintf("%s: %s", word, e.Reason)
		if e.Position > 0 {
			line += fmt.Sprintf(", %d. of %d", e.Position, e.Waiting)
		}
		if e.First != "" {
			line += ", first is " + name(e.First)
		}
		if !e.Until.IsZero() {
			line += fmt.Sprintf(", until %s", e.Until.Sub(epoch))
		}
		st.printf("%s", line)
		for _, sh := range e.Shortages {
			st.printf("%s", describeShortage(sh))
		}
	}
}

func describeShortage(sh decide.Shortage) string {
	format := func(amount int64) string { return resources.Format(sh.Resource, amount) }
	var b strings.Builder
	mark := "-"
	if sh.Binds {
		mark = "*"
	}
	fmt.Fprintf(&b, "  %s %s %s: %s %s", mark, sh.Level, sh.Resource, sh.Kind, format(sh.Limit))
	if sh.HasMax {
		fmt.Fprintf(&b, " (max %s)", format(sh.Max))
	}
	fmt.Fprintf(&b, ", used %s (others %s), reserved %s, free %s, request %s", format(sh.Used), format(sh.UsedByOthers),
		format(sh.Outstanding), format(sh.Free), format(sh.Request))
	if sh.Claimed > 0 {
		fmt.Fprintf(&b, ", claimed ahead %s by %s", format(sh.Claimed), name(sh.ClaimedBy))
	}
	fmt.Fprintf(&b, ", missing %s", format(sh.Missing))
	if sh.Never {
		b.WriteString(", never fits")
	}
	return b.String()
}

func (st *story) list(a arguments) {
	for _, queue := range a.words {
		for _, wt := range st.s.First(queue, 100) {
			position, ok := st.s.Position(wt.Unit.Key)
			require.True(st.t, ok)
			require.Equal(st.t, wt.Position, position)
			st.printf("%s %d. %s: %s", queue, wt.Position, name(wt.Unit.Key), wt.Reason)
		}
	}
}

// listPods prints which pods of a unit may go, and for how long.
func (st *story) listPods(a arguments) {
	for _, word := range a.words {
		line := word + ":"
		for _, uid := range keysOf(st.pods[unitNamed(word)]) {
			answer, until := "waits", Of(st.s, unitNamed(word), time.Time{}, life.RunsUntil)
			switch p := st.pods[unitNamed(word)][uid]; {
			case p.Leaving:
				answer = "leaves"
			case p.Assigned:
				answer = "runs"
			case st.s.Holdings().Granted(unitNamed(word), uid):
				answer = "may go"
				if !until.IsZero() {
					answer += " for " + until.Sub(st.now).String()
				}
			}
			line += fmt.Sprintf(" %s %s,", uid, answer)
		}
		st.printf("%s", strings.TrimSuffix(line, ","))
	}
}

func (st *story) counts(arguments) {
	for _, c := range st.s.Accounts().Counts() {
		st.printf("queue %s quota %s: pending %d, admitted %d, parked %d", c.Queue, c.Quota, c.Pending, c.Admitted, c.Parked)
	}
}

func (st *story) outstanding(a arguments) {
	for _, level := range a.words {
		st.printf("%s: outstanding %s", level, orNothing(st.s.Holdings().Read(level).Outstanding().List()))
	}
}

func (st *story) demand(a arguments) {
	for _, quota := range a.words {
		st.printf("%s: demand %s", quota, orNothing(st.s.Accounts().Demand(quota)))
	}
}

func orNothing(l resources.List) string {
	if l.IsZero() {
		return "nothing"
	}
	return l.String()
}

// status prints everything.
func (st *story) status(arguments) {
	st.counts(arguments{})
	st.list(arguments{words: keysOf(st.queues)})
	for _, key := range keysOf(st.units) {
		if st.s.Admitted(unitNamed(key)) {
			st.why(arguments{words: []string{key}})
		}
	}
	st.outstanding(arguments{words: keysOf(st.quotas)})
}
