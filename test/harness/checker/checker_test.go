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

package checker

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

var epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }

func cpu(cores int64) Resources { return Resources{"cpu": cores * 1000} }

// history builds a Checker with two leaves of 4 cores under a parent of 6, and feeds it.
type history struct {
	*Checker
	version uint64
}

func newHistory() *history {
	h := &history{Checker: New(map[string]string{"block": "Block", "fifo": "FIFO"})}
	h.do(Quota{Name: "parent", Max: cpu(6)})
	h.do(Quota{Name: "a", Parent: "parent", Max: cpu(4)})
	h.do(Quota{Name: "b", Parent: "parent", Max: cpu(4)})
	return h
}

func (h *history) do(object any) {
	h.version++
	h.Apply(Event{Version: h.version, Object: object})
}

func (h *history) remove(object any) {
	h.version++
	h.Apply(Event{Version: h.version, Object: object, Deleted: true})
}

func unitOf(name string, cores int64) Unit {
	return Unit{Key: "ns/" + name, UID: "u-" + name, Queue: "block", Quota: "a", Created: at(0),
		Request: cpu(cores), Job: "j-" + name}
}

func (u Unit) admitted(second int) Unit {
	u.Admitted, u.AdmittedAt, u.Attempts = true, at(second), 1
	return u
}

func job(name string, pods int) Job { return Job{UID: "j-" + name, Name: name, Pods: pods} }

func pod(jobName string, i int, cores int64) Pod {
	name := fmt.Sprintf("%s-%d", jobName, i)
	return Pod{UID: "p-" + name, Name: name, Job: "j-" + jobName, Quota: "a", Request: cpu(cores)}
}

func (p Pod) bound() Pod { p.Bound = true; return p }

func (p Pod) succeeded() Pod { p.Bound, p.Terminal, p.Succeeded = true, true, true; return p }

func rules(violations []Violation) []Rule {
	var all []Rule
	for _, v := range violations {
		all = append(all, v.Rule)
	}
	return all
}

// runs plays a job of two pods of one core each from its submission to its end.
func (h *history) runs(name string) {
	j, u := job(name, 2), unitOf(name, 2)
	h.do(j)
	h.do(u)
	h.do(u.admitted(5))
	for i := range j.Pods {
		h.do(pod(name, i, 1))
	}
	for i := range j.Pods {
		h.do(pod(name, i, 1).bound())
	}
	for i := range j.Pods {
		h.do(pod(name, i, 1).succeeded())
	}
	j.Complete = true
	h.do(j)
	ended := u.admitted(5)
	ended.Admitted = false
	h.do(ended)
}

func TestAJobThatRunsOnceIsDone(t *testing.T) {
	h := newHistory()
	h.runs("x")
	h.runs("y")
	done, violations := h.Finish(map[string]string{"j-x": "x", "j-y": "y"})
	require.Empty(t, violations)
	require.Equal(t, 2, done)
	require.Equal(t, 2, h.PeakPods())
}

func TestBoundPodsBeyondMax(t *testing.T) {
	h := newHistory()
	h.do(unitOf("x", 5).admitted(1))
	for i := range 4 {
		h.do(pod("x", i, 1).bound())
	}
	require.NotContains(t, rules(h.Violations()), QuotaPassed)
	h.do(pod("x", 4, 1).bound())
	require.Contains(t, rules(h.Violations()), QuotaPassed)
	require.Contains(t, fmt.Sprint(h.Violations()), "QuotaPassed a: cpu 5 of max 4")
}

// ElasticQuota compares pods outside of the queue with their own quota only.
func TestAPodOutsideOfTheQueueAtAFullParent(t *testing.T) {
	outside := Pod{UID: "p-outside", Name: "outside", Quota: "b", Request: cpu(3), Bound: true}
	for name, tc := range map[string]struct {
		bound  int64 // of the 4 that a unit of the other child was admitted with
		max    int64
		broken []Rule
	}{
		"nothing is promised":    {4, 4, nil},
		"what is promised stays": {3, 4, []Rule{QuotaPromised}},
		"its own quota":          {4, 2, []Rule{QuotaPassed, QuotaPromised}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.do(Quota{Name: "b", Parent: "parent", Max: cpu(tc.max)})
			h.do(unitOf("x", 4).admitted(1))
			h.do(pod("x", 0, tc.bound).bound())
			h.do(outside)
			require.Equal(t, tc.broken, rules(h.Violations()))
			// The queue answers for what comes next.
			h.remove(outside)
			h.do(outside)
			h.remove(outside)
			next := unitOf("y", 3)
			next.Quota = "b"
			h.do(next.admitted(2))
			require.Contains(t, fmt.Sprint(h.Violations()), "QuotaPromised parent: cpu 7 of max 6")
		})
	}
}

// Bindings are written concurrently: a pod of a job may have been assumed before the foreign pod, and be bound after
// it.
func TestAPodOutsideOfTheQueueThatIsBoundFirst(t *testing.T) {
	h := newHistory()
	h.do(Quota{Name: "b", Parent: "parent", Max: cpu(4)})
	h.do(unitOf("x", 4).admitted(1))
	h.do(pod("x", 0, 3).bound())
	h.do(pod("x", 1, 1))
	h.do(Pod{UID: "p-outside", Name: "outside", Quota: "b", Request: cpu(3), Bound: true})
	h.do(pod("x", 1, 1).bound())
	require.Empty(t, h.Violations())
	next := unitOf("y", 1)
	next.Quota = "b"
	h.do(next.admitted(2))
	require.Contains(t, fmt.Sprint(h.Violations()), "QuotaPromised parent: cpu 8 of max 6", "the queue, again")
}

func TestAPodThatEndedTakesNothing(t *testing.T) {
	h := newHistory()
	h.do(unitOf("x", 4).admitted(1))
	h.do(pod("x", 0, 4).bound())
	h.do(pod("x", 0, 4).succeeded())
	// Admitted before the unit of x has been marked as ended: what its pods have taken up does not count twice.
	h.do(unitOf("y", 4).admitted(1))
	h.do(pod("y", 0, 4).bound())
	h.remove(pod("y", 0, 4).bound())
	h.do(unitOf("z", 4).admitted(2))
	require.Empty(t, h.Violations())
}

func TestParentBeyondMax(t *testing.T) {
	h := newHistory()
	other := unitOf("y", 3)
	other.Quota = "b"
	h.do(unitOf("x", 4).admitted(1))
	h.do(other.admitted(1))
	require.Equal(t, []Rule{QuotaPromised}, rules(h.Violations()), "4 and 3 of 6, though each is within 4")
	require.Equal(t, "parent", h.Violations()[0].Subject)
}

func TestALoweredMaxIsNoViolationButTheNextAdmissionIs(t *testing.T) {
	h := newHistory()
	h.do(unitOf("x", 3).admitted(1))
	h.do(Quota{Name: "a", Parent: "parent", Max: cpu(2)})
	require.Empty(t, h.Violations())
	h.do(Quota{Name: "a", Parent: "parent", Max: cpu(4)})
	h.do(unitOf("y", 2).admitted(2))
	require.Equal(t, []Rule{QuotaPromised}, rules(h.Violations()))
}

func TestOvertaking(t *testing.T) {
	type step func(h *history)
	do := func(u Unit) step { return func(h *history) { h.do(u) } }
	with := func(u Unit, change func(*Unit)) Unit { change(&u); return u }
	high := with(unitOf("high", 1), func(u *Unit) { u.Priority = 9 })
	low := unitOf("low", 1)
	older := with(unitOf("older", 1), func(u *Unit) { u.Created = at(-5) })
	other := with(unitOf("other", 1), func(u *Unit) { u.Queue = "other" })

	fifo := func(u Unit) Unit { return with(u, func(u *Unit) { u.Queue = "fifo" }) }

	for name, test := range map[string]struct {
		steps []step
		want  []Rule
	}{
		"in order": {[]step{do(high), do(low), do(high.admitted(10)), do(low.admitted(11))}, nil},
		"lower first": {[]step{do(high), do(low), do(low.admitted(10)), do(high.admitted(20))},
			[]Rule{Overtaken}},
		"higher is never admitted": {[]step{do(high), do(low), do(low.admitted(10))}, []Rule{Overtaken}},
		"younger first": {[]step{do(older), do(low), do(low.admitted(10)), do(older.admitted(20))},
			[]Rule{Overtaken}},
		"older first":                {[]step{do(older), do(low), do(older.admitted(10)), do(low.admitted(20))}, nil},
		"one decision, written late": {[]step{do(high), do(low), do(low.admitted(10)), do(high.admitted(10))}, nil},
		"higher came with decision": {[]step{do(low), do(with(high, func(u *Unit) { u.Created = at(9) })),
			do(low.admitted(10))}, nil},
		"fifo, lower and older first": {[]step{do(fifo(older)), do(fifo(high)), do(fifo(older).admitted(10)),
			do(fifo(high).admitted(20))}, nil},
		"fifo, higher first": {[]step{do(fifo(older)), do(fifo(high)), do(fifo(high).admitted(10)),
			do(fifo(older).admitted(20))}, []Rule{Overtaken}},
		"no time of admission": {[]step{do(with(low.admitted(1), func(u *Unit) { u.AdmittedAt = time.Time{} }))},
			[]Rule{Overtaken}},
		"higher came after it had chosen victims": {[]step{do(low), do(with(low, func(u *Unit) { u.Takes = true })),
			do(with(high, func(u *Unit) { u.Created = at(3) })), do(low.admitted(10))}, nil},
		"higher waited as it chose victims": {[]step{do(high), do(low), do(with(other, func(u *Unit) { u.Created = at(5) })),
			do(with(low, func(u *Unit) { u.Takes = true })), do(low.admitted(10))}, []Rule{Overtaken}},
		"it had given its victims up": {[]step{do(low), do(with(low, func(u *Unit) { u.Takes = true })), do(low),
			do(with(high, func(u *Unit) { u.Created = at(3) })), do(low.admitted(10))}, []Rule{Overtaken}},
		"another queue": {[]step{do(high), do(with(low, func(u *Unit) { u.Queue = "other" }).admitted(10))}, nil},
		"another quota": {[]step{do(high), do(with(low, func(u *Unit) { u.Quota = "b" }).admitted(10))}, nil},
		"parked":        {[]step{do(with(high, func(u *Unit) { u.Parked = true })), do(low.admitted(10))}, nil},
		"parked, said later": {[]step{do(high), do(low.admitted(10)),
			do(with(high, func(u *Unit) { u.Parked = true }))}, nil},
		"deleted while it waited": {[]step{do(high), do(low.admitted(10)), func(h *history) { h.remove(high) }}, nil},
		"ended units do not wait": {[]step{do(with(high, func(u *Unit) { u.Attempts = 1 })), do(low.admitted(10))}, nil},
		"both of one are counted once": {[]step{do(high), do(low.admitted(10)), do(low.admitted(10)), do(high.admitted(20))},
			[]Rule{Overtaken}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			for _, s := range test.steps {
				s(h)
			}
			_, violations := h.Finish(nil)
			require.Equal(t, test.want, rules(violations), "%v", violations)
		})
	}
}

func TestNothingIsSaidOfAnOrderThatCannotBeJudged(t *testing.T) {
	for _, unsaid := range []bool{false, true} {
		h := newHistory()
		h.Unsaid = func(passed, by Unit) bool {
			require.Equal(t, "ns/high", passed.Key)
			require.Equal(t, "ns/low", by.Key)
			return unsaid
		}
		high, low := unitOf("high", 1), unitOf("low", 1)
		high.Priority = 9
		h.do(high)
		h.do(low)
		h.do(low.admitted(10))
		h.do(high.admitted(20))
		require.Equal(t, unsaid, len(h.Violations()) == 0)
	}
}

func TestAPodBoundWithoutAdmission(t *testing.T) {
	h := newHistory()
	h.do(job("x", 1))
	h.do(pod("x", 0, 1).bound())
	require.Equal(t, []Rule{NotAdmitted}, rules(h.Violations()), "without a unit")

	h = newHistory()
	h.do(job("x", 1))
	h.remove(job("x", 1))
	h.do(pod("x", 0, 1).bound())
	require.Empty(t, h.Violations(), "its job was deleted, and the unit with it")

	h = newHistory()
	h.do(unitOf("x", 1))
	h.do(pod("x", 0, 1).bound())
	h.do(unitOf("x", 1).admitted(1))
	require.Equal(t, []Rule{NotAdmitted}, rules(h.Violations()), "admitted only afterwards")
}

// A job that is suspended and resumed has new pods for those that it lost, and asks for all of its request again.
func TestRunningAgain(t *testing.T) {
	for name, again := range map[string]bool{"may lose its admission": true, "may not": false} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.Again = func(Unit) bool { return again }
			u, second := unitOf("x", 4), unitOf("x", 4).admitted(9)
			second.Attempts = 2
			h.do(job("x", 1))
			h.do(u.admitted(1))
			h.do(pod("x", 0, 4).bound())
			h.do(u)
			h.remove(pod("x", 0, 4).bound())
			h.do(second)
			h.do(unitOf("y", 1).admitted(9)) // 5 of 4
			require.Equal(t, again, slices.Contains(rules(h.Violations()), QuotaPromised))
			h.do(pod("x", 1, 4).bound())
			require.Equal(t, !again, slices.Contains(rules(h.Violations()), RanTwice))

			h.do(pod("x", 2, 4).bound())
			require.Contains(t, fmt.Sprint(h.Violations()), "RanTwice x: ")
		})
	}
}

func TestRunningTwice(t *testing.T) {
	h := newHistory()
	h.runs("x")
	h.do(unitOf("x", 2).admitted(9))
	h.do(pod("x", 7, 1).bound())
	require.Equal(t, []Rule{RanTwice}, rules(h.Violations()))

	h = newHistory()
	h.Again = func(u Unit) bool { return u.UID == "u-x" }
	for _, name := range []string{"x", "y"} {
		u := unitOf(name, 1).admitted(9)
		u.Attempts = 2
		h.do(u)
	}
	violations := h.Violations()
	require.Equal(t, []Rule{RanTwice}, rules(violations))
	require.Equal(t, "ns/y", violations[0].Subject)

	h = newHistory()
	h.Unanswered = func(created time.Time) bool { return created.Equal(at(1)) }
	j := job("x", 1)
	h.do(j)
	h.do(unitOf("x", 1).admitted(5))
	for i := range 2 {
		p := pod("x", i, 1)
		p.Created = at(i)
		h.do(p)
		h.do(p.bound())
		h.do(p.succeeded())
	}
	j.Complete = true
	h.do(j)
	done, violations := h.Finish(map[string]string{"j-x": "x"})
	require.Empty(t, violations, "the job controller may not have known of it")
	require.Equal(t, 1, done)
	h.do(pod("x", 8, 1).bound())
	require.Equal(t, []Rule{RanTwice}, rules(h.Violations()))

	h = newHistory()
	again := unitOf("x", 2).admitted(9)
	again.Attempts = 2
	h.do(unitOf("x", 2).admitted(5))
	h.do(again)
	h.do(again)
	require.Equal(t, []Rule{RanTwice}, rules(h.Violations()))
}

func TestLostJobs(t *testing.T) {
	h := newHistory()
	h.runs("x")
	h.do(job("waiting", 1))
	h.do(Job{UID: "j-failed", Name: "failed", Pods: 1, Failed: true})
	h.do(Job{UID: "j-short", Name: "short", Pods: 2, Complete: true})
	done, violations := h.Finish(map[string]string{
		"j-x": "x", "j-waiting": "waiting", "j-failed": "failed", "j-short": "short", "j-unseen": "unseen",
	})
	require.Equal(t, 1, done)
	require.Equal(t, []Rule{Lost, Lost, Lost, Lost}, rules(violations))
}

func TestPodsThatDecide(t *testing.T) {
	h := newHistory()
	h.do(unitOf("x", 2).admitted(5))
	j := Job{UID: "j-x", Name: "x", Pods: 2, Deciding: 1}
	h.do(j)
	h.do(pod("x", 0, 1).bound())
	h.do(pod("x", 1, 1).bound())
	j.Complete = true
	h.do(j)
	_, violations := h.Finish(map[string]string{"j-x": "x"})
	require.Equal(t, []Rule{Lost}, rules(violations), "none has succeeded")
	h.do(pod("x", 0, 1).succeeded())
	h.remove(pod("x", 1, 1).bound())
	done, violations := h.Finish(map[string]string{"j-x": "x"})
	require.Empty(t, violations, "the other was taken away")
	require.Equal(t, 1, done)
	h.do(pod("x", 2, 1).bound())
	require.Equal(t, []Rule{RanTwice}, rules(h.Violations()), "it has two pods")
}

func TestJobsOfOtherKinds(t *testing.T) {
	for text, want := range map[string]Job{
		`{}`: {},
		`{conditions: [{type: Running, status: "True"}]}`:                                     {},
		`{conditions: [{type: Succeeded, status: "False"}]}`:                                  {},
		`{conditions: [{type: Running, status: "False"}, {type: Succeeded, status: "True"}]}`: {Complete: true},
		`{conditions: [{type: Completed, status: "True"}]}`:                                   {Complete: true},
		`{conditions: [{type: Failed, status: "True"}]}`:                                      {Failed: true},
		`{jobDeploymentStatus: Running}`:                                                      {},
		`{jobDeploymentStatus: Complete, jobStatus: SUCCEEDED}`:                               {Complete: true},
		`{applicationState: {state: COMPLETED}}`:                                              {Complete: true},
		`{applicationState: {state: FAILED}}`:                                                 {Failed: true},
		`{phase: Error}`:                                                                      {Failed: true},
	} {
		t.Run(text, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{}}
			text = "metadata: {namespace: ns, name: x, uid: u}\nstatus: " + text
			require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
			want.UID, want.Name, want.Pods, want.Deciding = "u", "ns/x", 3, 1
			require.Equal(t, want, JobOfKind(object, 3, 1))
		})
	}
}

// A unit that was admitted in part holds exactly that part.
func TestAUnitInPart(t *testing.T) {
	qu := &v1alpha1.QueueUnit{}
	qu.Spec.Request = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6")}
	qu.Spec.PodSets = []v1alpha1.PodSet{{Name: "main", Count: 6}}
	qu.Status.Phase = v1alpha1.PhaseDequeued
	qu.Status.Admissions = []v1alpha1.Admission{{
		Name: "main", Replicas: 4, Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}}
	require.Equal(t, Resources{"cpu": 6000}, UnitOf(qu).Request)
	least := int32(2)
	qu.Spec.PodSets[0].MinCount = &least
	require.Equal(t, Resources{"cpu": 4000}, UnitOf(qu).Request)
	qu.Status.Phase, qu.Status.Admissions = v1alpha1.PhaseEnqueued, nil
	require.Equal(t, Resources{"cpu": 6000}, UnitOf(qu).Request)
}

// in is the unit in a phase.
func (u Unit) in(phase unit.Phase, attempts int64) Unit {
	u.Phase, u.Attempts, u.Admitted, u.AdmittedAt = phase, attempts, rulebook.Holds(phase), at(5)
	return u
}

func TestTheLifeOfAUnit(t *testing.T) {
	const enqueued, dequeued, running = unit.PhaseEnqueued, unit.PhaseDequeued, unit.PhaseRunning
	x := unitOf("x", 1)
	type states []Unit
	for name, test := range map[string]struct {
		states states
		again  bool
		want   []Rule
	}{
		"once": {states{x.in("", 0), x.in(enqueued, 0), x.in(dequeued, 1), x.in(running, 1), x.in(unit.PhaseSucceed, 1)},
			false, nil},
		"twice where it may be": {states{x.in(enqueued, 0), x.in(dequeued, 1), x.in(running, 1), x.in(enqueued, 1),
			x.in(dequeued, 2)}, true, nil},
		"lost":       {states{x.in(dequeued, 1), x.in(enqueued, 1)}, false, []Rule{AdmissionLost}},
		"illegal":    {states{x.in(enqueued, 0), x.in(unit.PhaseSchedSucceed, 0)}, false, []Rule{IllegalPhase}},
		"fewer":      {states{x.in(enqueued, 2), x.in(enqueued, 1)}, true, []Rule{Attempts}},
		"while held": {states{x.in(dequeued, 1), x.in(running, 2)}, true, []Rule{Attempts}},
		"adopted":    {states{x.in(enqueued, 0), x.in(running, 0), x.in(running, 1)}, false, nil},
		"one attempt": {
			states{x.in(enqueued, 1), x.in(dequeued, 2), x.in(enqueued, 2), x.in(dequeued, 2)}, true, []Rule{DequeuedTwice},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.Again = func(Unit) bool { return test.again }
			h.do(job("x", 1))
			for _, state := range test.states {
				h.do(state)
			}
			require.Equal(t, test.want, rules(h.Violations()), "%v", h.Violations())
		})
	}
}

func TestAUnitWithoutAJobIsDeletedWhileItHoldsQuota(t *testing.T) {
	h := newHistory()
	x, y := unitOf("x", 1), unitOf("y", 1)
	x.Job, y.Job = "", ""
	h.do(x.in(unit.PhaseRunning, 1))
	h.remove(x.in(unit.PhaseRunning, 1))
	h.do(y.in(unit.PhaseEnqueued, 0))
	h.remove(y.in(unit.PhaseEnqueued, 0))
	require.Equal(t, []Rule{AdmissionLost}, rules(h.Violations()))
}

func TestTheLifeOfAJob(t *testing.T) {
	const enqueued, dequeued = unit.PhaseEnqueued, unit.PhaseDequeued
	suspended := func(suspended bool) Job { return Job{UID: "j-x", Name: "x", Pods: 1, Suspended: suspended} }
	x, second := unitOf("x", 1), unitOf("x", 1)
	second.UID = "second"
	begin := func() *history {
		h := newHistory()
		h.do(suspended(false))
		h.do(suspended(true))
		h.do(x.in(enqueued, 0))
		return h
	}
	for name, test := range map[string]struct {
		then func(h *history)
		want []Rule
	}{
		"in order": {func(h *history) { h.do(x.in(dequeued, 1)); h.do(suspended(false)) }, nil},
		"suspended while it runs": {func(h *history) {
			h.do(x.in(dequeued, 1))
			h.do(suspended(false))
			h.do(suspended(true))
		}, []Rule{SuspendedAdmitted}},
		"resumed while it waits": {func(h *history) { h.do(suspended(false)) }, []Rule{ResumedUnadmitted}},
		"a part follows its whole": {func(h *history) {
			h.do(Job{UID: "j-part", Part: true, Suspended: true})
			h.do(Job{UID: "j-part", Part: true})
		}, nil},
		"its unit is deleted":  {func(h *history) { h.remove(x.in(enqueued, 0)) }, []Rule{UnitLost}},
		"it gets another unit": {func(h *history) { h.do(second.in(enqueued, 0)) }, []Rule{SecondUnit}},
		"it goes, and a unit is made on old news of it": {func(h *history) {
			h.remove(suspended(true))
			h.remove(x.in(enqueued, 0))
			h.do(second.in(enqueued, 0))
		}, nil},
		"it is being deleted, and its unit goes first": {func(h *history) {
			h.do(Job{UID: "j-x", Name: "x", Pods: 1, Suspended: true, Deleting: true})
			h.remove(x.in(enqueued, 0))
		}, nil},
		"it goes, and its unit is taken out": {func(h *history) {
			h.do(x.in(dequeued, 1))
			h.remove(suspended(false))
			h.do(x.in(enqueued, 1))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			h := begin()
			test.then(h)
			require.Equal(t, test.want, rules(h.Violations()), "%v", h.Violations())
		})
	}
}

func TestWhatThereIs(t *testing.T) {
	h := newHistory()
	h.do(job("x", 2))
	h.do(job("gone", 1))
	h.remove(job("gone", 1))
	ended := job("ended", 1)
	ended.Failed = true
	h.do(ended)
	h.do(pod("x", 0, 1))
	h.do(pod("x", 1, 1).bound())
	h.do(pod("ended", 0, 1).succeeded())
	h.do(pod("gone", 0, 1).bound())
	h.remove(pod("gone", 0, 1).bound())
	require.Equal(t, Standing{Ended: 1, Open: 1, Waiting: 1, Running: 1}, h.Standing())
	again := job("gone", 1)
	again.UID = "j-again"
	h.do(again)
	require.Equal(t, []string{"j-again", "j-gone"}, h.Named("gone"))
}

func TestWhatIsLeftBehind(t *testing.T) {
	h := newHistory()
	h.runs("x")
	x := unitOf("x", 2).in(unit.PhaseSucceed, 1)
	h.do(x)
	h.do(Job{UID: "j-part", Name: "part", Part: true})
	require.Empty(t, h.Left())
	for name, test := range map[string]struct {
		object any
		want   string
	}{
		"a job without a unit": {Job{UID: "j-y", Name: "y", Complete: true}, "LeftBehind job y: has no unit"},
		"a job that runs":      {job("x", 2), "LeftBehind job x: is not complete"},
		"a unit without a job": {unitOf("y", 1).in(unit.PhaseSucceed, 1), "LeftBehind unit ns/y: has no job"},
		"a unit that waits": {
			x.in(unit.PhaseEnqueued, 1), `LeftBehind unit ns/x: is "Enqueued"; admitted: false`,
		},
		"a pod without a node": {pod("x", 7, 1), "LeftBehind pod x-7: has not ended; on a node: false"},
		"what Koordinator counts": {
			Quota{Name: "a", Parent: "parent", Used: cpu(2)}, "LeftBehind quota a: cpu used: 2",
		},
		"what Koordinator counts as no": {Quota{Name: "a", Parent: "parent", Used: cpu(0)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			h.runs("x")
			h.do(x)
			h.do(test.object)
			var left []string
			for _, v := range h.Left() {
				left = append(left, v.String())
			}
			require.Equal(t, test.want, strings.Join(left, "\n"))
		})
	}
}

// An author of units can name any job in them. A unit of another namespace does not belong to the job.
func TestAUnitOfAnotherNamespaceIsNoneOfTheJob(t *testing.T) {
	h := newHistory()
	h.do(Job{UID: "j-x", Name: "ns/x", Complete: true})
	x := unitOf("x", 2).in(unit.PhaseSucceed, 1)
	h.do(x)
	foreign := unitOf("x", 1)
	foreign.Key, foreign.UID = "elsewhere/x", "u-foreign"
	h.do(foreign)
	require.Equal(t, x.UID, h.UnitFor("j-x").UID)
	h.remove(foreign)
	require.Empty(t, h.Left())
}

func TestWhatIsWrittenAfterTheEnd(t *testing.T) {
	events := []Event{
		{Object: Quota{Name: "a"}}, {Object: unitOf("x", 1)}, {Object: pod("x", 0, 1)}, {Object: job("x", 1)},
	}
	require.Equal(t, []Rule{Restless, Restless, Restless}, rules(Written(events)))
}
