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

package jobplan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobask"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

var epoch = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func batchJob(t testing.TB) *jobkind.Kind {
	t.Helper()
	kind, ok := jobkind.Find("Job.v1.batch")
	require.True(t, ok)
	return kind
}

// scene is one observation that is built up by edits.
type scene struct {
	t testing.TB
	Situation
}

// queued is a suspended managed job of quota a with its unit, as the controller wrote it.
func queued(t testing.TB) *scene {
	s := unqueued(t)
	s.Unit = jobunit.Of(s.Job, demanded(s.Job, &podrequest.Creation{}), nil)
	s.Unit.UID = "unit-1"
	s.Unit.ResourceVersion = "10"
	s.Unit.Status.Phase = v1alpha1.PhaseEnqueued
	s.FreshUnit = true
	return s
}

// unqueued is the same job before it has a unit.
func unqueued(t testing.TB) *scene {
	s := &scene{t: t, Situation: Situation{Now: epoch, Kind: batchJob(t), Managed: true,
		Terms: jobask.Terms{Creation: &podrequest.Creation{}}}}
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  namespace: team
  uid: job-1
  resourceVersion: "1"
  labels: {quota.scheduling.koordinator.sh/name: a}
spec:
  suspend: true
  parallelism: 2
  completions: 4
  template:
    spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
`), &object.Object))
	s.Job = jobs.Open(s.Kind, object)
	return s
}

func (s *scene) job(value any, fields ...string) *scene {
	require.NoError(s.t, unstructured.SetNestedField(s.Job.Object.Object, value, fields...))
	return s.reopened()
}

// reopened after the object of the job was edited.
func (s *scene) reopened() *scene {
	if s.Job != nil {
		s.Job = jobs.Open(s.Kind, s.Job.Object)
	}
	return s
}

func (s *scene) decide() Decision { return Decide(s.Situation) }

// A unit that vanishes at once tells that the cached job may be outdated, and so does a correction that does not last.
func TestNothingIsRepeatedForAnOutdatedJob(t *testing.T) {
	lately := func(o *Situation) { o.CreatedLately, o.PatchedLately, o.FreshJob = true, true, false }
	other := func(u *v1alpha1.QueueUnit) { u.Spec.Queue = "other" }
	for name, s := range map[string]*scene{"create": unqueued(t), "correct": queued(t).unit(other)} {
		t.Run(name, func(t *testing.T) {
			once := s.decide()
			require.Equal(t, LookNowhere, once.Look)
			require.NotEmpty(t, once.Do)
			require.Equal(t, look(LookAtJob), s.with(lately).decide())
		})
	}
}

// demanded is what a job requests before the controller changes it.
func demanded(job *jobs.Job, creation *podrequest.Creation) jobunit.Demand {
	return jobunit.DemandOf(job.Plain(nil), creation, false)
}

func (s *scene) resumedByHand() *scene { return s.job(false, "spec", "suspend") }

func (s *scene) started() *scene { return s.job("2026-01-01T00:00:00Z", "status", "startTime") }

func (s *scene) ready(n int64) *scene { return s.job(n, "status", "ready").job(n, "status", "active") }

// waiting pods are on no node.
func (s *scene) waiting(n int64) *scene {
	return s.job(int64(0), "status", "ready").job(n, "status", "active")
}

func (s *scene) runsFor(d time.Duration) *scene {
	since := metav1.NewTime(s.Now.Add(-d))
	s.RunningSince = &since
	return s
}

func (s *scene) condition(kind string) *scene {
	return s.job([]any{map[string]any{"type": kind, "status": "True", "message": "said so"}}, "status", "conditions")
}

func (s *scene) unit(edit func(u *v1alpha1.QueueUnit)) *scene {
	edit(s.Unit)
	return s
}

func (s *scene) phase(p v1alpha1.QueueUnitPhase) *scene {
	s.Unit.Status.Phase = p
	if stageOf(p) == released {
		s.Unit.Status.Admissions = []v1alpha1.Admission{{Name: "j", Replicas: 2, Resources: s.Unit.Spec.Request.DeepCopy()}}
	}
	if p == v1alpha1.PhaseRunning {
		counted(true, 2).SayIn(s.Unit, s.Now)
	}
	return s
}

func (s *scene) with(edit func(o *Situation)) *scene {
	edit(&s.Situation)
	return s.reopened()
}

// describe writes a decision as one short line for each step.
func describe(d Decision) string {
	lines := make([]string, 0, len(d.Do))
	if d.Look != LookNowhere {
		return map[Look]string{LookAtPods: "look at pods", LookAtRefusals: "look at refusals", LookAtUnit: "read unit",
			LookAtJob: "read job", LookAtRunning: "look at running pods", LookAtLeft: "look at left pods",
			LookAtStall: "look at stall"}[d.Look]
	}
	for _, action := range d.Do {
		switch a := action.(type) {
		case CreateUnit:
			adopted := ""
			if a.Unit.Annotations[v1alpha1.AnnotationAdopted] != "" {
				adopted = " adopted"
			}
			lines = append(lines, "create unit"+adopted+reason(a.Event))
		case PatchUnit:
			lines = append(lines, "patch unit"+reason(a.Event))
		case PatchUnitStatus:
			lines = append(lines, fmt.Sprintf("status %s%s", a.After.Status.Phase, reason(a.Event)))
		case Report:
			lines = append(lines, "report")
		case DeleteUnit:
			lines = append(lines, "delete unit"+reason(a.Event))
		case PatchJob:
			suspend, _, _ := unstructured.NestedBool(a.After.Object.Object, "spec", "suspend")
			lines = append(lines, fmt.Sprintf("job suspend=%t%s", suspend, reason(a.Event)))
		case ResetStart:
			lines = append(lines, "reset start")
		case Tell:
			lines = append(lines, "tell"+reason(a.Event))
		case EndPods:
			lines = append(lines, fmt.Sprintf("end %d pods", len(a.Pods)))
		case Notify:
			verb := map[bool]string{true: "notify", false: "withdraw"}[a.Notice != nil]
			for _, pod := range a.Pods {
				verb += " " + pod.Name
			}
			lines = append(lines, verb)
		default:
			lines = append(lines, fmt.Sprintf("%T", action))
		}
	}
	if d.After > 0 {
		lines = append(lines, "later")
	}
	return strings.Join(lines, "; ")
}

func reason(e *event.Event) string {
	if e == nil {
		return ""
	}
	return " [" + e.Reason + "]"
}

// foreign is a scene whose unit the stand-alone Koord-Queue made.
func foreign(s *scene) *scene {
	return s.unit(func(u *v1alpha1.QueueUnit) {
		u.Labels = map[string]string{v1alpha1.LabelQuotaNameFallback1: "a", v1alpha1.LabelPreemptibleFallback: "false"}
		u.OwnerReferences[0].Controller, u.OwnerReferences[0].BlockOwnerDeletion = nil, nil
		u.Spec.ConsumerRef.UID, u.Spec.PodSets[0].Template.Raw = "", []byte(`{"metadata":{}}`)
		u.Spec.Queue = "former"
	})
}

// A unit of Koord-Queue keeps the quota of its admission: the API server refuses other templates.
func TestAUnitThatIsTakenOver(t *testing.T) {
	for name, phase := range map[string]v1alpha1.QueueUnitPhase{
		"dequeued": v1alpha1.PhaseDequeued, "reserved": v1alpha1.PhaseReserved, "waits": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := foreign(queued(t)).phase(phase)
			after := s.decide().Do[0].(PatchUnit).After
			require.True(t, metav1.IsControlledBy(after, s.Job.Object))
			require.Equal(t, s.Job.Object.GetUID(), after.Spec.ConsumerRef.UID)
			require.True(t, jobunit.CreatedByUs(after))
			require.Equal(t, "a", after.Labels[v1alpha1.LabelQuotaName])
			require.NotContains(t, after.Labels, v1alpha1.LabelQuotaNameFallback1)
			same := string(after.Spec.PodSets[0].Template.Raw) == string(s.Unit.Spec.PodSets[0].Template.Raw)
			require.Equal(t, phase != "", same)
			require.Equal(t, map[bool]string{true: "former", false: "a"}[phase != ""], after.Spec.Queue)
			if phase != "" {
				require.Equal(t, "false", after.Labels[v1alpha1.LabelPreemptible])
				require.Equal(t, "EstimateChanged", after.Annotations[v1alpha1.AnnotationParkedReason],
					"the job is preemptible now, so the unit waits again at its position")
				s.Unit.Labels[v1alpha1.LabelPreemptibleFallback] = "true"
				require.Nil(t, s.decide().Do[0].(PatchUnit).After.Spec.Active, "what it holds is what the job asks for")
			}
		})
	}
}

func TestPlan(t *testing.T) {
	inactive, active := false, true
	evictedCondition := []metav1.Condition{{Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionTrue}}
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		// Jobs that are not managed.
		"unmanaged: left alone": {unqueued(t).resumedByHand().with(unmanage), ""},
		"unmanaged with a unit of somebody": {queued(t).with(unmanage).
			unit(func(u *v1alpha1.QueueUnit) { u.Labels = nil }), ""},
		"no longer managed: our unit goes": {queued(t).with(unmanage), "delete unit"},
		"no longer managed: what we suspended runs": {queued(t).with(unmanage).with(marked),
			"job suspend=false [Released]; delete unit"},
		"a job without labels is told": {unqueued(t).with(unmanage).with(unmanagedAs(managedjobs.UnmanagedWarn)),
			"tell [Unmanaged]"},
		"a job without labels whose pods are held is told": {unqueued(t).with(unmanage).resumedByHand().
			with(unmanagedAs(managedjobs.UnmanagedGate)), "tell [Unmanaged]"},
		"a suspended job without labels is told": {unqueued(t).with(unmanage).with(asleep), "tell [Unmanaged]"},
		"a job without labels may be so": {unqueued(t).with(unmanage).with(unmanagedAs(managedjobs.UnmanagedPass)),
			""},
		"a job without labels that has ended": {unqueued(t).with(unmanage).resumedByHand().
			with(unmanagedAs(managedjobs.UnmanagedWarn)).condition("Complete"), ""},
		"taken by another queue: stays suspended": {queued(t).with(unmanage).with(marked).
			with(func(o *Situation) { o.Elsewhere = true }), "job suspend=true [Released]; delete unit"},
		"no longer managed but running: seen through": {queued(t).with(unmanage).resumedByHand().ready(1).
			phase(v1alpha1.PhaseDequeued).runsFor(RunningDelay), "status Running"},
		"deleted: goes with its owner": {queued(t).
			with(func(o *Situation) { now := epoch; o.Job.Object.SetDeletionTimestamp(&now) }), ""},

		// Entering.
		"suspended by its user":   {unqueued(t), "create unit [Queued]"},
		"created unsuspended":     {unqueued(t).resumedByHand(), "job suspend=true [Suspended]; create unit [Queued]"},
		"may have pods":           {unqueued(t).resumedByHand().started(), "look at pods"},
		"may have pods, by count": {unqueued(t).resumedByHand().ready(1), "look at pods"},
		"its unit may be news":    {unqueued(t).resumedByHand().started().with(podsAre(BoundNone)), "read unit"},
		"has no bound pods": {unqueued(t).resumedByHand().started().with(podsAre(BoundNone)).with(unitRead),
			"job suspend=true [Suspended]; create unit [Queued]"},
		"has bound pods": {unqueued(t).resumedByHand().started().with(podsAre(BoundSome)), "create unit adopted [Adopted]"},
		"mismatch with bound pods": {mismatch(unqueued(t)).resumedByHand().started().with(podsAre(BoundSome)),
			"create unit adopted [Adopted]"},
		"ended before it was ever seen": {unqueued(t).resumedByHand().condition("Complete"), ""},

		// Adopting.
		"adoption begun, not looked": {adoption(t), "look at pods"},
		"adoption begun":             {adoption(t).with(podsAre(BoundSome)), "status Running"},
		"adoption of what cannot be counted": {adoption(t).job("9e18", "spec", "template", "spec", "overhead", "cpu").
			with(podsAre(BoundSome)), "status Enqueued"},
		"adoption forged": {adoption(t).with(podsAre(BoundNone)), "job suspend=true [Suspended]"},
		"adopted unit evicted": {adoption(t).
			unit(func(u *v1alpha1.QueueUnit) { u.Status.Conditions = evictedCondition }), "job suspend=true [Evicted]"},
		"adopted unit made inactive": {adoption(t).unit(func(u *v1alpha1.QueueUnit) { u.Spec.Active = &inactive }),
			"job suspend=true [Suspended]"},
		"suspended: annotation dropped": {queued(t).unit(annotated(v1alpha1.AnnotationAdopted, "true")), "patch unit"},

		// Waiting.
		"waits":                            {queued(t), ""},
		"waits, phase not defaulted":       {queued(t).phase(""), ""},
		"waits, phase unknown":             {queued(t).phase("Preempted"), ""},
		"waits, made inactive by a person": {queued(t).unit(func(u *v1alpha1.QueueUnit) { u.Spec.Active = &inactive }), ""},
		"waits, made active by a person":   {queued(t).unit(func(u *v1alpha1.QueueUnit) { u.Spec.Active = &active }), ""},
		"resumed, by an outdated unit": {queued(t).resumedByHand().with(func(o *Situation) { o.FreshUnit = false }),
			"read unit"},
		// Held by its owner.
		"held while it waits":     {heldByOwner(queued(t)), "patch unit"},
		"held, and says so":       {heldByOwner(queued(t)).unit(parkedFor("HeldByOwner")), "status Enqueued"},
		"held no more":            {queued(t).unit(parkedFor("HeldByOwner")), "patch unit"},
		"held from the beginning": {heldByOwner(unqueued(t)), "create unit [Queued]"},
		"held, not suspended":     {heldByOwner(queued(t).resumedByHand()), "job suspend=true [Suspended]"},
		"held with something else": {queued(t).job("yes", "metadata", "annotations", v1alpha1.AnnotationHold),
			"patch unit"},
		"held as it is admitted":    {heldByOwner(queued(t)).phase(v1alpha1.PhaseDequeued), "patch unit [Held]"},
		"held while it runs":        {heldByOwner(running(t)), "patch unit [Held]"},
		"held, has its quota still": {heldByOwner(running(t)).unit(parkedFor("HeldByOwner")), ""},
		"held, has given quota back": {heldByOwner(running(t)).phase(v1alpha1.PhaseEnqueued).
			unit(parkedFor("HeldByOwner")),
			"job suspend=true [Suspended]"},
		"held, runs inactive by a person": {heldByOwner(running(t)).
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.Active = &inactive }),
			""},
		"held, has ended":        {heldByOwner(running(t).condition("Complete")), "status Succeed"},
		"hand-resumed":           {queued(t).resumedByHand(), "job suspend=true [Suspended]"},
		"hand-resumed with pods": {queued(t).resumedByHand().started().ready(2), "job suspend=true [Suspended]"},
		"evicted": {queued(t).resumedByHand().
			unit(func(u *v1alpha1.QueueUnit) { u.Status.Conditions = evictedCondition }), "job suspend=true [Evicted]"},
		"timed out": {queued(t).resumedByHand().phase(v1alpha1.PhaseTimeoutBackoff),
			"job suspend=true [Evicted]"},
		"resized while it waits": {queued(t).job(int64(1), "spec", "parallelism"), "patch unit"},
		"priority changed": {queued(t).job("7", "metadata", "annotations", v1alpha1.AnnotationPriority),
			"patch unit"},
		"quota changed":                   {queued(t).job("b", "metadata", "labels", v1alpha1.LabelQuotaName), "patch unit"},
		"resized while quota is reserved": {queued(t).job(int64(1), "spec", "parallelism").phase(v1alpha1.PhaseReserved), ""},
		"tampered request":                {queued(t).unit(request1), "patch unit"},
		"hand-written with a false request": {queued(t).unit(request1).unit(func(u *v1alpha1.QueueUnit) {
			u.Labels, u.OwnerReferences = nil, nil
			u.Spec.ConsumerRef.UID = ""
		}), "patch unit [UnitCorrected]"},
		// Units of the stand-alone Koord-Queue.
		"taken over, waits":     {foreign(queued(t)), "patch unit [TakenOver]"},
		"taken over, dequeued":  {foreign(queued(t)).phase(v1alpha1.PhaseDequeued), "patch unit [TakenOver]"},
		"taken over, runs":      {foreign(running(t)), "patch unit [TakenOver]"},
		"taken over, has ended": {foreign(running(t).condition("Complete")).phase(v1alpha1.PhaseSucceed), ""},
		"of an earlier job of the name": {foreign(queued(t)).unit(func(u *v1alpha1.QueueUnit) {
			u.OwnerReferences[0].UID = "job-0"
		}), "patch unit [UnitCorrected]"},
		"waits for its Reservations":  {queued(t).phase(v1alpha1.PhaseSchedReady), "patch unit [NotPlaced]"},
		"gives back what it reserved": {queued(t).phase(v1alpha1.PhaseSchedReady).unit(parkedFor("NotPlaced")), ""},
		"waits in line again":         {queued(t).unit(parkedFor("NotPlaced")), "patch unit"},

		"mismatch is said":          {mismatch(queued(t)), "patch unit"},
		"additions are taken back":  {queued(t).with(added), "job suspend=true"},
		"additions that must stay":  {queued(t).started().with(added), ""},
		"start reset for the quota": {queued(t).started().condition("Suspended"), "reset start"},
		"start reset, pods remain":  {queued(t).started().condition("Suspended").job(int64(1), "status", "active"), ""},
		"start reset, not settled":  {queued(t).started(), ""},

		// Admitted.
		"admitted":                           {queued(t).phase(v1alpha1.PhaseDequeued), "job suspend=false [Admitted]"},
		"placed":                             {queued(t).phase(v1alpha1.PhaseSchedSucceed), "job suspend=false [Admitted]"},
		"admitted, earlier pods may be left": {queued(t).with(marked).phase(v1alpha1.PhaseDequeued), ""},
		"admitted, earlier pods are left": {queued(t).with(marked).condition("Suspended").
			job(int64(1), "status", "active").phase(v1alpha1.PhaseDequeued), ""},
		"admitted, earlier pods are gone": {queued(t).with(marked).condition("Suspended").phase(v1alpha1.PhaseDequeued),
			"job suspend=false [Admitted]"},
		"admitted, suspension not noted yet": {queued(t).with(marked).with(added).phase(v1alpha1.PhaseDequeued), ""},
		"admitted, label on the template": {queued(t).with(marked).with(added).condition("Suspended").
			phase(v1alpha1.PhaseDequeued), "job suspend=false [Admitted]"},
		"admitted, ran before": {queued(t).started().condition("Suspended").phase(v1alpha1.PhaseDequeued), "reset start"},
		"admitted, ran before, has all": {queued(t).started().with(added).phase(v1alpha1.PhaseDequeued),
			"job suspend=false [Admitted]"},
		"admitted, ran before, its queue preempts now": {queued(t).started().with(added).condition("Suspended").
			with(queuePreempts).phase(v1alpha1.PhaseDequeued), "reset start"},
		"admitted, resized since": {queued(t).job(int64(3), "spec", "parallelism").phase(v1alpha1.PhaseDequeued),
			"delete unit [UnitReplaced]"},
		"admitted, shrunk since": {queued(t).job(int64(1), "spec", "parallelism").phase(v1alpha1.PhaseDequeued),
			"job suspend=false [Admitted]"},
		"admitted on a false request": {queued(t).unit(request1).phase(v1alpha1.PhaseDequeued),
			"patch unit [EstimateChanged]"},
		"admitted on another quota": {queued(t).unit(func(u *v1alpha1.QueueUnit) { u.Labels[v1alpha1.LabelQuotaName] = "b" }).
			phase(v1alpha1.PhaseDequeued), "patch unit [QuotaChanged]"},
		"admitted, made non-preemptible since": {queued(t).job("false", "metadata", "labels", v1alpha1.LabelPreemptible).
			phase(v1alpha1.PhaseDequeued), "patch unit [EstimateChanged]"},
		"admitted with less": {queued(t).phase(v1alpha1.PhaseDequeued).unit(func(u *v1alpha1.QueueUnit) {
			u.Status.Admissions[0].Resources = corev1.ResourceList{"cpu": *u.Spec.Request.Cpu()}
			u.Status.Admissions[0].Resources.Cpu().Sub(*u.Spec.Request.Cpu())
			u.Status.Admissions[0].Resources["cpu"] = *u.Spec.Request.Memory()
		}), "delete unit [UnitReplaced]"},
		"admitted, UID not named": {queued(t).unit(func(u *v1alpha1.QueueUnit) {
			u.Spec.ConsumerRef.UID, u.OwnerReferences = "", nil
		}).phase(v1alpha1.PhaseDequeued), "delete unit [UnitReplaced]"},
		"resumed by hand, marked": {queued(t).resumedByHand().with(marked).phase(v1alpha1.PhaseDequeued),
			"job suspend=true [Suspended]"},
		"resumed by hand, has pods": {queued(t).resumedByHand().started().waiting(2).phase(v1alpha1.PhaseDequeued),
			"look at pods"},
		"resumed by hand, has no bound pods": {queued(t).resumedByHand().started().waiting(2).
			phase(v1alpha1.PhaseDequeued).with(podsAre(BoundNone)), "job suspend=true [Suspended]"},
		"resumed by hand, has bound pods": {queued(t).resumedByHand().started().waiting(2).
			phase(v1alpha1.PhaseDequeued).with(podsAre(BoundSome)), ""},
		"resumed by us, has pods": {queued(t).with(added).resumedByHand().started().waiting(2).
			phase(v1alpha1.PhaseDequeued), ""},
		"runs, marked": {queued(t).resumedByHand().started().ready(1).with(marked).phase(v1alpha1.PhaseRunning),
			"job suspend=false"},
		"resumed": {queued(t).resumedByHand().phase(v1alpha1.PhaseDequeued), ""},
		"runs": {queued(t).resumedByHand().started().ready(1).phase(v1alpha1.PhaseDequeued).
			runsFor(RunningDelay), "status Running"},
		"runs for a second": {queued(t).resumedByHand().started().ready(1).phase(v1alpha1.PhaseDequeued).
			runsFor(time.Second), "later"},
		"pods of an earlier run": {queued(t).resumedByHand().started().ready(1).condition("Suspended").
			phase(v1alpha1.PhaseDequeued), ""},
		"runs, and asks for more": {queued(t).resumedByHand().started().ready(2).phase(v1alpha1.PhaseRunning).
			job(int64(3), "spec", "parallelism"), "patch unit [Grows]"},
		"released, and asks for more": {queued(t).resumedByHand().phase(v1alpha1.PhaseDequeued).
			job(int64(4), "spec", "parallelism"), "patch unit [Grows]"},
		"runs, and asks for less": {queued(t).resumedByHand().started().ready(2).phase(v1alpha1.PhaseRunning).
			job(int64(1), "spec", "parallelism"), "patch unit [Shrinks]"},
		"runs, its unit's quota was edited": {queued(t).with(added).unit(inQuota("b")).resumedByHand().started().ready(2).
			phase(v1alpha1.PhaseRunning), "patch unit"},
		"runs, its own quota was edited": {queued(t).with(added).resumedByHand().started().ready(2).
			job("b", "metadata", "labels", v1alpha1.LabelQuotaName).phase(v1alpha1.PhaseRunning), "tell [QuotaChanged]"},
		"runs, made non-preemptible": {queued(t).with(added).resumedByHand().started().ready(2).
			job("false", "metadata", "labels", v1alpha1.LabelPreemptible).phase(v1alpha1.PhaseRunning), ""},
		"runs, its request was edited": {queued(t).unit(request1).resumedByHand().started().ready(2).
			phase(v1alpha1.PhaseRunning), "patch unit"},
		"goes on running": {queued(t).resumedByHand().started().ready(2).phase(v1alpha1.PhaseRunning), ""},
		"between two pods": {queued(t).resumedByHand().started().ready(0).phase(v1alpha1.PhaseRunning),
			"status Running"},
		"suspended while running": {queued(t).phase(v1alpha1.PhaseRunning), "job suspend=false [Admitted]"},

		// Ended.
		"succeeded": {queued(t).resumedByHand().condition("Complete").phase(v1alpha1.PhaseRunning),
			"status Succeed"},
		"failed": {queued(t).resumedByHand().condition("Failed").phase(v1alpha1.PhaseRunning),
			"status Failed"},
		"ended before it ran": {queued(t).condition("Failed"), "status Failed"},
		"ended, too short to be run": {queued(t).resumedByHand().condition("Complete").phase(v1alpha1.PhaseDequeued),
			"status Succeed"},
		"ended, mirrored": {queued(t).resumedByHand().condition("Complete").phase(v1alpha1.PhaseSucceed), ""},
		"said to be over": {queued(t).phase(v1alpha1.PhaseSucceed), "read job"},
		"said to be over, and not": {queued(t).phase(v1alpha1.PhaseSucceed).with(func(o *Situation) { o.FreshJob = true }),
			"delete unit [UnitReplaced]"},

		// Units that are not this job's.
		"job created anew under its name": {queued(t).unit(func(u *v1alpha1.QueueUnit) {
			u.Spec.ConsumerRef.UID = "job-0"
		}).phase(v1alpha1.PhaseDequeued), "delete unit [UnitReplaced]"},
		"job created anew, not suspended": {queued(t).resumedByHand().unit(func(u *v1alpha1.QueueUnit) {
			u.Spec.ConsumerRef.UID = "job-0"
		}).phase(v1alpha1.PhaseRunning), "job suspend=true [Suspended]; delete unit [UnitReplaced]"},
		"job created anew, may have pods": {queued(t).with(jobRead).resumedByHand().started().
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.UID = "job-0" }), "look at pods"},
		"unit of a job of another namespace": {queued(t).
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Namespace = "other" }), "delete unit [UnitReplaced]"},
		"unit of another job of another namespace": {queued(t).unit(func(u *v1alpha1.QueueUnit) {
			u.Labels, u.Spec.ConsumerRef.Namespace, u.Spec.ConsumerRef.Name, u.Spec.ConsumerRef.UID = nil, "other", "x", "x-1"
		}), "delete unit [UnitReplaced]"},
		"unit of another kind": {queued(t).
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Kind = "CronJob" }), "tell [NameTaken]"},
		"unit without consumer": {queued(t).
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef = nil }).phase(v1alpha1.PhaseDequeued), "tell [NameTaken]"},
		"unit without consumer, job is not suspended": {queued(t).resumedByHand().
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef = nil }), "job suspend=true [Suspended]; tell [NameTaken]"},

		// Jobs that are gone.
		"gone":                   {queued(t).with(gone), "read job"},
		"gone indeed":            {queued(t).with(gone).with(func(o *Situation) { o.FreshJob = true }), "delete unit"},
		"gone, unit of a person": {queued(t).with(gone).unit(func(u *v1alpha1.QueueUnit) { u.Labels = nil }), ""},
		"gone, unit of other kind": {queued(t).with(gone).
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef.Kind = "Other" }), ""},
		"gone with its unit": {unqueued(t).with(gone), ""},
	} {
		t.Run(name, func(t *testing.T) {
			job, unit := &unstructured.Unstructured{}, tc.scene.Unit.DeepCopy()
			if tc.scene.Job != nil {
				job = tc.scene.Job.Object.DeepCopy()
			}
			if strings.Contains(tc.want, "delete unit") {
				tc.scene.FreshJob = false
				require.Equal(t, "read job", describe(tc.scene.decide()), "no unit is deleted by an outdated job")
				tc.scene.FreshJob = true
			}
			require.Equal(t, tc.want, describe(tc.scene.decide()))
			require.Equal(t, tc.want, describe(tc.scene.decide()), "I13")
			require.Equal(t, tc.want, describe(Decide(asCached(t, tc.scene.Situation))), "of what caches keep of the job")
			if tc.scene.Job != nil {
				require.Equal(t, job, tc.scene.Job.Object, "what was observed is not changed")
			}
			require.Equal(t, unit, tc.scene.Unit, "what was observed is not changed")
		})
	}
}

func unmanage(o *Situation) { o.Managed = false }

func gone(o *Situation) { o.Job = nil }

func marked(o *Situation) { jobs.EditOf(o.Kind, o.Job.Object).MarkSuspended() }

// asCached is an observation of the job as the cache keeps it.
func asCached(t *testing.T, o Situation) Situation {
	if o.Job == nil {
		return o
	}
	raw, err := o.Job.Object.MarshalJSON()
	require.NoError(t, err)
	job := &unstructured.Unstructured{}
	require.NoError(t, job.UnmarshalJSON(raw)) // with the numbers of the API machinery
	expanded, err := compact.Expand(compact.Job(o.Kind, job, o.Options.WholeTemplates))
	require.NoError(t, err)
	o.Job = jobs.Open(o.Kind, expanded)
	return o
}

func unitRead(o *Situation) { o.FreshUnit = true }

func jobRead(o *Situation) { o.FreshJob = true }

// leftOut is a job that asks for no queue, of which the configuration says this.
func asleep(o *Situation) { o.Asleep = managedjobs.NamesNoQueue }

func unmanagedAs(what managedjobs.UnmanagedJobs) func(*Situation) {
	return func(o *Situation) { o.Unmanaged = what }
}

func podsAre(b Bound) func(*Situation) { return func(o *Situation) { o.Bound = b } }

// added: an earlier resume wrote the quota into the template.
func added(o *Situation) {
	if err := jobs.EditOf(o.Kind, o.Job.Object).AddToTemplates(map[string]jobs.Addition{
		"j": {Labels: map[string]string{v1alpha1.LabelQuotaName: "a"}},
	}); err != nil {
		panic(err)
	}
}

func mismatch(s *scene) *scene {
	return s.job("b", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName)
}

func heldByOwner(s *scene) *scene {
	return s.job("true", "metadata", "annotations", v1alpha1.AnnotationHold)
}

func running(t testing.TB) *scene {
	return queued(t).resumedByHand().started().ready(2).phase(v1alpha1.PhaseRunning)
}

// parkedFor is what the controller writes into a unit that is not to be admitted.
func parkedFor(reason string) func(u *v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		jobunit.Park(u, &jobunit.Problem{Reason: reason})
		u.Annotations[v1alpha1.AnnotationHold] = "true"
	}
}

// A person deactivates a unit. It stays so while the job becomes faulty and is corrected: its owner must not undo the
// decision of an operator.
func TestAPersonsDecisionStays(t *testing.T) {
	inactive := false
	u := queued(t).Unit
	u.Spec.Active = &inactive
	wrong := u.DeepCopy()
	jobunit.Park(wrong, &jobunit.Problem{Reason: unitcondition.ReasonHeldByOwner})
	right := u.DeepCopy()
	right.Spec.Active = nil
	if parked := jobunit.Corrected(u, wrong); parked != nil {
		u = parked
	}
	if again := jobunit.Corrected(u, right); again != nil {
		u = again
	}
	require.NotNil(t, u.Spec.Active)
	require.False(t, *u.Spec.Active)
}

func adoption(t testing.TB) *scene {
	return queued(t).resumedByHand().started().ready(2).unit(annotated(v1alpha1.AnnotationAdopted, "true"))
}

func annotated(key, value string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) {
		if u.Annotations == nil {
			u.Annotations = map[string]string{}
		}
		u.Annotations[key] = value
	}
}

func inQuota(name string) func(*v1alpha1.QueueUnit) {
	return func(u *v1alpha1.QueueUnit) { u.Labels[v1alpha1.LabelQuotaName] = name }
}

// request1 claims that the job asks for less than it does.
func request1(u *v1alpha1.QueueUnit) {
	quantity := u.Spec.Request.Cpu().DeepCopy()
	quantity.SetMilli(1)
	u.Spec.Request = corev1.ResourceList{"cpu": quantity}
}

func TestUnitOfJob(t *testing.T) {
	s := unqueued(t).
		job(map[string]any{
			v1alpha1.QueueNameKey: "q", v1alpha1.AnnotationSuspendedBy: "x",
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
		}, "metadata", "annotations").
		job("high", "spec", "template", "spec", "priorityClassName").
		job("b", "metadata", "labels", v1alpha1.LabelQuotaNameFallback1).
		job("1", "metadata", "labels", "mine")
	value := int32(9)
	u := jobunit.Of(s.Job, demanded(s.Job, &podrequest.Creation{}), &value)
	require.Equal(t, "team/j", u.Namespace+"/"+u.Name)
	require.Equal(t, map[string]string{
		v1alpha1.LabelQuotaName: "a", v1alpha1.LabelCreatedBy: v1alpha1.CreatedByController, "mine": "1",
	}, u.Labels)
	require.Equal(t, map[string]string{v1alpha1.QueueNameKey: "q"}, u.Annotations)
	yes := true
	require.Equal(t, []metav1.OwnerReference{{
		APIVersion: "batch/v1", Kind: "Job", Name: "j", UID: "job-1", Controller: &yes, BlockOwnerDeletion: &yes,
	}}, u.OwnerReferences)
	require.Equal(t, &corev1.ObjectReference{
		APIVersion: "batch/v1", Kind: "Job", Namespace: "team", Name: "j", UID: "job-1",
	}, u.Spec.ConsumerRef)
	require.Equal(t, "q", u.Spec.Queue)
	require.Equal(t, "high", u.Spec.PriorityClassName)
	require.Equal(t, int32(9), *u.Spec.Priority)
	require.Nil(t, u.Spec.Active)
	require.Equal(t, "1", u.Spec.Request.Cpu().String())
	require.Len(t, u.Spec.PodSets, 1)
	require.Equal(t, int32(2), u.Spec.PodSets[0].Count)
	require.JSONEq(t,
		`{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"500m"}}}],"priorityClassName":"high"}}`,
		string(u.Spec.PodSets[0].Template.Raw))
}

func TestUnitOfJobThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		edit *scene
		want string
	}{
		"mismatch":     {mismatch(unqueued(t)), "QuotaMismatch"},
		"count":        {unqueued(t).job("many", "spec", "parallelism"), "InvalidRequest"},
		"negative":     {unqueued(t).job("-1", "spec", "template", "spec", "overhead", "cpu"), "InvalidRequest"},
		"absurd":       {unqueued(t).job("9e18", "spec", "template", "spec", "overhead", "cpu"), "InvalidRequest"},
		"bad priority": {unqueued(t).job("x", "metadata", "annotations", v1alpha1.AnnotationPriority), "InvalidRequest"},
	} {
		t.Run(name, func(t *testing.T) {
			d := demanded(tc.edit.Job, &podrequest.Creation{})
			require.NotNil(t, d.Problem)
			require.Equal(t, tc.want, d.Problem.Reason)
			u := jobunit.Of(tc.edit.Job, d, nil)
			require.False(t, *u.Spec.Active)
			require.Equal(t, tc.want, u.Annotations[v1alpha1.AnnotationParkedReason])
			parked := unitstatus.Parked(u, d.Problem, epoch)
			require.Equal(t, tc.want, parked.Status.Conditions[0].Reason)
			require.Nil(t, unitstatus.Parked(parked, d.Problem, epoch), "I12")
		})
	}
}

func TestCorrectedUnparks(t *testing.T) {
	parked := mismatch(queued(t))
	want := jobunit.Of(parked.Job, demanded(parked.Job, &podrequest.Creation{}), nil)
	u := jobunit.Corrected(parked.Unit, want)
	require.False(t, *u.Spec.Active)
	require.Nil(t, jobunit.Corrected(u, want), "I12")
	fixed := jobunit.Corrected(u, queued(t).Unit)
	require.Nil(t, fixed.Spec.Active)
	require.NotContains(t, fixed.Annotations, v1alpha1.AnnotationParkedReason)
}

func TestCorrectedReadsTemplatesByMeaning(t *testing.T) {
	s := queued(t)
	u := s.Unit.DeepCopy()
	u.Spec.PodSets[0].Template = runtime.RawExtension{Raw: []byte(
		`{"metadata":null,"spec":{"containers":[{"resources":{"requests":{"cpu":"500m"}},"name":"c"}]}}`)}
	require.Nil(t, jobunit.Corrected(u, s.Unit))
	u.Spec.PodSets[0].Template.Raw = []byte(`{"spec":{}}`)
	require.NotNil(t, jobunit.Corrected(u, s.Unit))
}

func TestResumeWritesWhatPodsNeed(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseDequeued).job("false", "metadata", "labels", v1alpha1.LabelPreemptible)
	s.Unit.Labels[v1alpha1.LabelPreemptible] = "false"
	actions := s.decide().Do
	require.Len(t, actions, 1)
	step, ok := actions[0].(PatchJob)
	require.True(t, ok)
	sets, err := step.After.PodSets()
	require.NoError(t, err)
	require.Equal(t, map[string]string{v1alpha1.LabelQuotaName: "a", v1alpha1.LabelPreemptible: "false"},
		sets[0].Template.Labels)
	require.Equal(t, map[string]string{
		v1alpha1.AnnotationRelatedQueueUnit: "team/j", v1alpha1.AnnotationRelatedPodSet: "j",
	}, sets[0].Template.Annotations)
	require.True(t, step.After.HasAdditions())
	require.Nil(t, step.Plain, "without the label the pods would be charged elsewhere, so a refusal is waited out")

	seen := queued(t).phase(v1alpha1.PhaseDequeued).condition("Suspended").with(marked)
	step, ok = seen.decide().Do[0].(PatchJob)
	require.True(t, ok)
	require.Nil(t, step.Plain)

	labelled := queued(t).job("a", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName).
		phase(v1alpha1.PhaseDequeued).with(marked)
	labelled.condition("Suspended")
	step, ok = labelled.decide().Do[0].(PatchJob)
	require.True(t, ok)
	require.NotNil(t, step.Plain, "its pods are charged right, whatever is refused")
	require.False(t, step.After.SuspendedByUs())
	require.False(t, step.Plain.HasAdditions())
}

// The write that resumes a job also makes it a gang for Koordinator, in its size at that time.
func TestResumeMakesGangs(t *testing.T) {
	gang := func(o *Situation) { o.Terms.EveryJobIsGang = true }
	annotations := func(s *scene) map[string]string {
		step, ok := s.decide().Do[0].(PatchJob)
		require.True(t, ok)
		sets, err := step.After.PodSets()
		require.NoError(t, err)
		s.Job = step.After
		return sets[0].Template.Annotations
	}
	require.NotContains(t, annotations(queued(t).phase(v1alpha1.PhaseDequeued)), extension.AnnotationGangName)

	s := queued(t).phase(v1alpha1.PhaseDequeued).with(gang)
	written := annotations(s)
	require.Equal(t, "j", written[extension.AnnotationGangName])
	require.Equal(t, "2", written[extension.AnnotationGangMinNum])

	// The job was suspended while it ran. Its templates are still immutable, and it has fewer pods now.
	s.job(true, "spec", "suspend").started().condition("Suspended").with(marked)
	require.IsType(t, PatchJob{}, s.decide().Do[0], "its gang is what it was")
	s.job(int64(1), "spec", "parallelism")
	s.unit(func(u *v1alpha1.QueueUnit) {
		u.Spec = jobunit.Of(s.Job, demanded(s.Job, s.Terms.Creation), nil).Spec
	})
	require.IsType(t, ResetStart{}, s.decide().Do[0], "pods of a gang of two would wait for ever")
	s.job(nil, "status", "startTime")
	require.NotContains(t, annotations(s), extension.AnnotationGangName)

	named := queued(t).job("ring", "spec", "template", "metadata", "labels", jobs.LabelPodGroup).
		phase(v1alpha1.PhaseDequeued)
	require.Equal(t, "ring", annotations(named)[extension.AnnotationGangName])
}

// Jobs that are admitted together say so in their units, and the pods of gangs that are made name the group.
func TestGangGroups(t *testing.T) {
	grouped := func(s *scene, text string) *scene {
		return s.job(text, "metadata", "annotations", extension.AnnotationGangGroups).
			with(func(o *Situation) { o.Terms.EveryJobIsGang = true })
	}
	step, ok := grouped(unqueued(t), `["team/other","team/j"]`).decide().Do[0].(CreateUnit)
	require.True(t, ok)
	require.Equal(t, "j,other", step.Unit.Annotations[v1alpha1.AnnotationGangGroup])
	require.Equal(t, "j", step.Unit.Annotations[v1alpha1.AnnotationGangs])

	s := queued(t)
	s.unit(func(u *v1alpha1.QueueUnit) {
		u.Annotations = map[string]string{v1alpha1.AnnotationGangGroup: "j,x", v1alpha1.AnnotationGangs: "j"}
	})
	patch, ok := s.decide().Do[0].(PatchUnit)
	require.True(t, ok, "it names no group any more")
	require.Empty(t, patch.After.Annotations)

	s = grouped(queued(t).phase(v1alpha1.PhaseDequeued), `["team/other","team/j"]`)
	resume, ok := s.decide().Do[0].(PatchJob)
	require.True(t, ok)
	sets, err := resume.After.PodSets()
	require.NoError(t, err)
	require.Equal(t, "j", sets[0].Template.Annotations[extension.AnnotationGangName])
	require.JSONEq(t, `["team/j","team/other"]`, sets[0].Template.Annotations[extension.AnnotationGangGroups])
	s.Job = resume.After
	again, err := jobs.GangGroupOf(s.Job, true, "j")
	require.NoError(t, err)
	require.Equal(t, []string{"j", "other"}, again.All)
	s.Job = s.Job.Plain(nil)
	sets, err = s.Job.PodSets()
	require.NoError(t, err)
	require.NotContains(t, sets[0].Template.Annotations, extension.AnnotationGangGroups)

	forged := unqueued(t).job("a,b", "metadata", "annotations", v1alpha1.AnnotationGangGroup)
	step, ok = forged.decide().Do[0].(CreateUnit)
	require.True(t, ok)
	require.NotContains(t, step.Unit.Annotations, v1alpha1.AnnotationGangGroup)

	step, ok = grouped(unqueued(t), `["team/j","other/j"]`).decide().Do[0].(CreateUnit)
	require.True(t, ok)
	require.Equal(t, "InvalidRequest", step.Unit.Annotations[v1alpha1.AnnotationParkedReason])
	require.NotContains(t, step.Unit.Annotations, v1alpha1.AnnotationGangGroup)
}

// A forged record that claims the label of the template as ours does not change the quota of any pod (C0).
func TestAForgedRecordHidesNoQuota(t *testing.T) {
	forged := func(o *Situation) {
		o.Job.Object.SetLabels(map[string]string{v1alpha1.QueueNameKey: "q"})
		o.Job.Object.SetAnnotations(map[string]string{
			v1alpha1.AnnotationTemplateAdditions: `{"j":{"labels":{"` + v1alpha1.LabelQuotaName + `":null}}}`,
		})
	}
	rich := func(t *testing.T) *scene {
		s := queued(t).job("rich", "spec", "template", "metadata", "labels", v1alpha1.LabelQuotaName)
		s.unit(func(u *v1alpha1.QueueUnit) { delete(u.Labels, v1alpha1.LabelQuotaName) })
		return s.phase(v1alpha1.PhaseDequeued).with(forged).with(marked).condition("Suspended")
	}
	step, ok := rich(t).decide().Do[0].(PatchJob)
	require.True(t, ok)
	sets, err := step.After.PodSets()
	require.NoError(t, err)
	require.Empty(t, sets[0].Template.Labels)
	require.Nil(t, step.Plain, "should that be refused, the job does not go")

	started := rich(t).started()
	require.IsType(t, ResetStart{}, started.decide().Do[0], "nor before its template can be changed")
}

func TestEndedUnitHoldsNothing(t *testing.T) {
	s := queued(t).phase(v1alpha1.PhaseRunning)
	u := counted(false, 2).Running(s.Unit, epoch, epoch)
	require.Equal(t, int64(2), u.Status.Admissions[0].Running)
	unitstatus.SetCondition(u, v1alpha1.ConditionQuotaReserved, metav1.ConditionTrue, "QuotaReserved", "", epoch)
	u = unitstatus.Ended(u, jobs.End{Message: strings.Repeat("x", 2000)}, epoch)
	require.Empty(t, u.Status.Admissions)
	for _, c := range u.Status.Conditions {
		require.Equal(t, c.Type == v1alpha1.ConditionFinished, c.Status == metav1.ConditionTrue, c.Type)
	}
	require.Less(t, len(u.Status.Message), 600)
}

// TestFormerNameOfTheRequest: units have the request under both names. A unit of an earlier release is not written for
// that alone.
func TestFormerNameOfTheRequest(t *testing.T) {
	made := unqueued(t).decide().Do[0].(CreateUnit).Unit
	require.Equal(t, made.Spec.Request, made.Spec.Resource)
	require.NotEmpty(t, made.Spec.Resource)

	one, two := amounts("cpu", "1"), amounts("cpu", "2")
	for name, tc := range map[string]struct{ request, resource, want corev1.ResourceList }{
		"as it should be":       {one, one, one},
		"of an earlier release": {one, nil, nil},
		"has changed":           {two, nil, one},
		"written by another":    {one, two, one},
		"the former name alone": {nil, one, one},
	} {
		t.Run(name, func(t *testing.T) {
			u := &v1alpha1.QueueUnit{Spec: v1alpha1.QueueUnitSpec{Request: tc.request, Resource: tc.resource}}
			jobunit.CorrectRequest(u, one)
			require.Equal(t, v1alpha1.QueueUnitSpec{Request: one, Resource: tc.want}, u.Spec)
		})
	}
}

// TestFormerPreemptibleLabel: the unit and the pods get the label that the scheduler and ElasticQuota read.
func TestFormerPreemptibleLabel(t *testing.T) {
	s := unqueued(t).job("false", "metadata", "labels", v1alpha1.LabelPreemptibleFallback)
	entered := s.decide()
	require.Equal(t, "create unit [Queued]", describe(entered))
	made := entered.Do[0].(CreateUnit).Unit
	require.Equal(t, "false", made.Labels[v1alpha1.LabelPreemptible])
	require.NotContains(t, made.Labels, v1alpha1.LabelPreemptibleFallback)
	d := demanded(s.Job, s.Terms.Creation)
	require.Len(t, d.Templates(), 1)
	require.Equal(t, "false", d.Templates()[0].Labels[v1alpha1.LabelPreemptible])
	former := made.DeepCopy()
	former.Labels[v1alpha1.LabelPreemptibleFallback] = "true"
	require.Equal(t, made.Labels, jobunit.Corrected(former, made).Labels)
}

// Writes after the job was queued count as well, also in the form of caches.
func TestPodsThatStayAreNotResumed(t *testing.T) {
	const released = "job suspend=false [Admitted]"
	for name, tc := range map[string]struct {
		value any
		path  []string
		most  int64
		want  string
	}{
		"finalizers": {[]any{"example.com/mine"}, []string{"metadata", "finalizers"}, 3600, "delete unit [UnitReplaced]"},
		"too long":   {int64(3601), []string{"spec", "terminationGracePeriodSeconds"}, 3600, "delete unit [UnitReplaced]"},
		"an hour":    {int64(3600), []string{"spec", "terminationGracePeriodSeconds"}, 3600, released},
		"longer than the administrator allows": {
			int64(61), []string{"spec", "terminationGracePeriodSeconds"}, 60, "delete unit [UnitReplaced]",
		},
		"an hour, and the administrator allows two": {
			int64(7200), []string{"spec", "terminationGracePeriodSeconds"}, 7200, released,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := queued(t).phase(v1alpha1.PhaseDequeued).with(jobRead)
			s.Terms.Termination = tc.most
			s.job(tc.value, append([]string{"spec", "template"}, tc.path...)...)
			require.Equal(t, tc.want, describe(s.decide()))
			require.Equal(t, tc.want, describe(Decide(asCached(t, s.Situation))))
		})
	}
}

// A job is deleted without its pods, or stays for a finalizer while its quota is taken back (S2).
func TestLeftPods(t *testing.T) {
	ends := func(s *Situation) { s.EndsLeft = true }
	left := func(n int) func(*Situation) { return func(s *Situation) { s.Left = make([]notice.Pod, n) } }
	admittedOnce := func(u *v1alpha1.QueueUnit) { u.Status.Attempts = 1 }
	deleted := func(t *testing.T) *scene {
		return taken(t).unit(admittedOnce).job("2026-01-02T03:04:00Z", "metadata", "deletionTimestamp").
			with(later(time.Minute))
	}
	orphan := func(t *testing.T) *scene { return running(t).unit(admittedOnce).with(gone).with(jobRead) }
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		"not configured":         {orphan(t), "delete unit"},
		"they are looked at":     {orphan(t).with(ends), "look at left pods"},
		"none":                   {orphan(t).with(ends).with(left(0)), "delete unit"},
		"two":                    {orphan(t).with(ends).with(left(2)), "end 2 pods; delete unit"},
		"it was never admitted":  {queued(t).with(gone).with(jobRead).with(ends), "delete unit"},
		"a finalizer keeps it":   {deleted(t), "status Enqueued [CannotSuspend]"},
		"and pods end":           {deleted(t).with(ends).with(left(2)), "end 2 pods; status Enqueued [CannotSuspend]"},
		"it may go in a minute":  {deleted(t).with(ends).with(later(time.Minute - time.Second)), "later"},
		"it holds its quota yet": {running(t).job("2026-01-02T03:04:00Z", "metadata", "deletionTimestamp").with(ends), ""},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, describe(tc.scene.decide())) })
	}
}
