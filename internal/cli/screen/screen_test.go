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

package screen

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
)

var update = flag.Bool("golden", false, "write the golden files")

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// waiting is a unit that asks for four cores, with the reason that its object has.
func waiting(name, reason, message string) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: "research", Name: name, CreationTimestamp: before(12 * time.Minute)},
		Spec:       v1alpha1.QueueUnitSpec{ConsumerRef: &corev1.ObjectReference{Kind: "Job", Name: name}},
		Status: v1alpha1.QueueUnitStatus{
			Phase:     v1alpha1.PhaseEnqueued,
			Effective: &v1alpha1.Effective{Queue: "shared", Quota: "research", Requested: "cpu: 4"},
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionQuotaReserved, Status: metav1.ConditionFalse, Reason: reason, Message: message},
			},
		},
	}
}

func short() *visibility.Unit {
	return &visibility.Unit{Status: visibility.UnitStatus{
		Phase: "Enqueued", Queue: "shared", Quota: "research", Priority: 10, Position: 4, Waiting: 6, Reason: "QuotaExceeded",
		Message: `quota "research": cpu: request 4, free 0, claimed ahead 4`,
		Shortages: []visibility.Shortage{
			{
				Level: "research", Resource: "cpu", Bound: "runtime", Binds: true, Limit: resource.MustParse("4"),
				Reserved: resource.MustParse("4"), ClaimedAhead: ptr.To(resource.MustParse("4")),
				Request: resource.MustParse("4"), Missing: resource.MustParse("8"),
			},
			{
				Level: "company", Resource: "cpu", Bound: "max", Limit: resource.MustParse("20"), Used: resource.MustParse("14"),
				Reserved: resource.MustParse("4"), Request: resource.MustParse("4"), Free: resource.MustParse("2"),
				Missing: resource.MustParse("2"),
			},
		},
		Holders: heldBy("research", "research", map[string]string{"old": "4"}, "0"),
	}}
}

func golden(t *testing.T, name string, write func(*bytes.Buffer) error) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, write(&b))
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestWhy(t *testing.T) {
	since := before(20 * time.Minute)
	checked := waiting("checked", "WaitingForAdmissionChecks", "1 of 2 checks have answered")
	checked.Status.Phase = v1alpha1.PhaseReserved
	checked.Status.AdmissionChecks = []v1alpha1.AdmissionCheckState{
		{Name: "budget", State: "Ready"}, {Name: "licence", State: "Pending", Message: "asked the licence server"},
	}
	backoff := waiting("backoff", "Backoff", "waits until 2026-01-01T12:01:00Z before it is tried again")
	backoff.Status.Phase = v1alpha1.PhaseTimeoutBackoff
	stalled := waiting("stalled", "", "")
	stalled.Status.Phase, stalled.Status.Effective.Held = v1alpha1.PhaseDequeued, "cpu: 4"
	stalled.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: "Admitted"},
		{Type: v1alpha1.ConditionPodsReady, Status: metav1.ConditionFalse, Reason: "PodsNotCreated",
			Message: `pods of the job cannot be created; the job's own controller says: "exceeded quota: small"`},
	}
	kept := waiting("kept", "", "")
	kept.Status.Phase, kept.Status.Effective.Held = v1alpha1.PhaseRunning, "cpu: 4"
	kept.Status.Effective.Preemptable = ptr.To(false)
	doubted := waiting("doubted", "QuotaExceeded", `quota "research": cpu`)
	doubted.Annotations = map[string]string{v1alpha1.AnnotationDoubts: "a pod of main asks for 9 of cpu\n\x1b[2Janother"}
	preempted := waiting("lent-1", "QuotaExceeded", `quota "platform": cpu`)
	preempted.Status.Conditions = append(preempted.Status.Conditions, evictedFor(taken().Reason, taken().Message))
	// Each table and each row of the summary is in one of these.
	wide := map[string]bool{"why-short": true, "why-others": true, "why-takes": true, "why-checks": true, "why-kept": true,
		"why-stalled": true, "why-escapes": true, "why-taken": true}
	for name, s := range map[string]*Story{
		"why-doubted": {Unit: doubted},
		"why-kept":    {Unit: kept},
		"why-stalled": {Unit: stalled, Live: &visibility.Unit{Status: visibility.UnitStatus{
			LosesQuotaAt: ptr.To(before(-9 * time.Minute)), LosesQuotaFor: "IdleReservation",
		}}},
		"why-short": {
			Unit: waiting("train", "QuotaExceeded", `quota "research": cpu`), Live: short(), MoreAhead: 1,
			Forecast: &visibility.Forecast{Status: forecasted()},
			Ahead: []visibility.WaitingUnit{
				{Position: 1, Requested: cpu("8"), QueuedAt: &since},
				{Position: 2, Namespace: "research", Name: "first", Requested: cpu("4"), Reason: "QuotaExceeded", QueuedAt: &since},
			},
			Quota: quotaOf("research", "4", "10", "4"),
		},
		"why-others": {
			Unit: waiting("train", "QuotaExceeded", `quota "research": cpu`), Live: usedByOthers(),
			OtherPods: []string{"notebook", "\x1b[2Jdebug"}, MoreOtherPods: 3,
		},
		"why-objects": {
			Unit:    waiting("train", "QuotaExceeded", `quota "research": cpu`),
			Missing: "the server could not find the requested resource",
		},
		"why-takes": {
			Unit: waiting("own", "QuotaExceeded", `quota "research": cpu`), Live: &visibility.Unit{}, Taking: ptr.To(taking()),
		},
		"why-taken":  {Unit: preempted, Live: &visibility.Unit{}, Taken: ptr.To(taken())},
		"why-checks": {Unit: checked, Live: &visibility.Unit{}},
		"why-backoff": {Unit: backoff, Live: &visibility.Unit{Status: visibility.UnitStatus{
			Reason: "Backoff", Message: "waits until 2026-01-01T12:01:00Z", NotBefore: ptr.To(before(-time.Minute)),
		}}},
		"why-not-written": {Unit: &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{
			Namespace: "research", Name: "new", CreationTimestamp: before(time.Second),
		}}, Live: short()},
		"why-new": {Unit: &v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{
			Namespace: "research", Name: "new", CreationTimestamp: before(time.Second),
		}}},
		// A tenant chooses the words of a message.
		"why-escapes": {Unit: waiting("evil", "CheckRetry", "\x1b[2Jcleared\nReason: none")},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, func(b *bytes.Buffer) error { return Why(b, now, s) })
		})
		if wide[name] {
			t.Run(name+" -o wide", func(t *testing.T) {
				golden(t, name+"-wide", func(b *bytes.Buffer) error { return WhyWide(b, now, s, 2) })
			})
		}
	}
}

func evictedFor(reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: v1alpha1.ConditionEvicted, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		LastTransitionTime: before(5 * time.Minute),
	}
}

// quotaOf is a quota without min, with a share, a max, and what admitted jobs reserve.
func quotaOf(name, share, most, reserved string) *visibility.LocalQuota {
	return &visibility.LocalQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: visibility.QuotaStatus{
		Min: cpu("0"), Limit: cpu(share), Max: cpu(most), Reserved: cpu(reserved),
	}}
}

// heldBy has units of a namespace, by name, that hold so many cpu at a level, and other units that hold the rest.
func heldBy(level, namespace string, held map[string]string, others string) *visibility.Holders {
	h := &visibility.Holders{Level: level, Resource: "cpu", Others: resource.MustParse(others)}
	for name, amount := range held {
		h.Units = append(h.Units, visibility.Holder{
			Namespace: namespace, Name: name, Quota: namespace, Since: ptr.To(before(time.Hour)),
			Held: resource.MustParse(amount),
		})
	}
	slices.SortFunc(h.Units, func(a, b visibility.Holder) int {
		return cmp.Or(b.Held.Cmp(a.Held), strings.Compare(a.Name, b.Name))
	})
	return h
}

// usedByOthers is short of what pods without a job use.
func usedByOthers() *visibility.Unit {
	u := short()
	x := &u.Status.Shortages[0]
	x.Used, x.UsedByOthers, x.ClaimedAhead = resource.MustParse("4"), resource.MustParse("3"), nil
	x.Limit, x.Missing = resource.MustParse("8"), resource.MustParse("4")
	u.Status.Holders = heldBy("research", "research", map[string]string{"a": "1", "b": "1"}, "3")
	return u
}

func TestList(t *testing.T) {
	running := waiting("running", "", "")
	running.Status.Phase, running.Status.Conditions, running.Status.Effective.Held = v1alpha1.PhaseRunning, nil, "cpu: 4"
	stopped := waiting("stopped", "Inactive", "")
	stopped.Spec.Active = ptr.To(false)
	listed := short()
	listed.Status.Waiting, listed.Status.Requested = 0, cpu("4") // as in a list
	listed.Namespace, listed.Name, listed.CreationTimestamp = "research", "train", before(12*time.Minute)
	listed.Status.State, listed.Status.Kind, listed.Status.Job = "Pending", "Job.v1.batch", "train"
	watched := listed.DeepCopy()
	watched.Name, watched.Status.Observed, watched.Status.Position, watched.Status.Job = "a-rather-long-name", true, 0, ""
	rows := []Row{
		RowOf(listed), RowOf(watched), RowOfObject(running), RowOfObject(stopped),
		RowOfObject(&v1alpha1.QueueUnit{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "bare"}}),
	}
	rows[0].Forecast = &visibility.Forecast{Status: forecasted()}
	rows[1].Forecast = &visibility.Forecast{Status: visibility.ForecastStatus{Latest: ptr.To(before(-26 * time.Hour))}}
	list := func(namespaces, wide bool) func(b *bytes.Buffer) error {
		return func(b *bytes.Buffer) error {
			table := NewTable(b, namespaces, wide)
			return errors.Join(table.Write(now, rows[:3]), table.Write(now, rows[3:])) // of which columns are as wide
		}
	}
	golden(t, "list", list(false, false))
	golden(t, "list-wide", list(true, true))
}

func TestQueues(t *testing.T) {
	queue := func(name string, s visibility.QueueStatus) visibility.Queue {
		return visibility.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: s}
	}
	queues := []visibility.Queue{
		queue("express", visibility.QueueStatus{
			Exists: true, Policy: "Block", Quotas: []string{"*"}, Pending: 1200, Admitted: 30, Priority: 5,
			First: "research/train", FirstKind: "PyTorchJob.v1.kubeflow.org", FirstJob: "train", StopPolicy: "None",
		}),
		queue("night", visibility.QueueStatus{
			Exists: true, Policy: "FIFO", Quotas: []string{"a", "b", "c", "d"}, Pending: 2, Parked: 1,
			StopPolicy: "HoldAndDrain", First: "research/bare",
		}),
		queue("research", visibility.QueueStatus{Exists: true, Policy: "Priority", Quotas: []string{"research"}}),
		queue("nowhere", visibility.QueueStatus{Parked: 3, Quotas: []string{"*"}}),
	}
	golden(t, "queues", func(b *bytes.Buffer) error { return Queues(b, queues, false) })
	golden(t, "queues-wide", func(b *bytes.Buffer) error { return Queues(b, queues, true) })
}

func TestTop(t *testing.T) {
	gpu := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")}
	quotas := []visibility.Quota{
		{ObjectMeta: metav1.ObjectMeta{Name: "research"}, Status: visibility.QuotaStatus{
			Parent: "company", Min: cpu("2"), Limit: cpu("4"), Max: cpu("10"), Used: cpu("3"), Reserved: cpu("1"),
			Holding: 2, Waiting: 6,
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "company"}, Status: visibility.QuotaStatus{
			Parent: "root", Max: corev1.ResourceList{"cpu": resource.MustParse("20"), "nvidia.com/gpu": resource.MustParse("8")},
			Used: gpu,
		}},
		{ObjectMeta: metav1.ObjectMeta{Name: "empty"}, Status: visibility.QuotaStatus{Parent: "company"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Status: visibility.QuotaStatus{Max: cpu("9223372036854775807m")}},
	}
	golden(t, "top", func(b *bytes.Buffer) error { return Top(b, quotas, "") })
	root := metav1.ObjectMeta{Name: "koordinator-root-quota"}
	closed := []visibility.Quota{{ObjectMeta: root, Status: visibility.QuotaStatus{
		Exists: true, Max: corev1.ResourceList{"cpu": resource.MustParse("20"), "nvidia.com/gpu": resource.MustParse("8")},
		Limit: corev1.ResourceList{"cpu": resource.MustParse("20"), "nvidia.com/gpu": resource.MustParse("6")}, Used: gpu,
	}}}
	golden(t, "top-closed", func(b *bytes.Buffer) error { return Top(b, closed, "") })
	golden(t, "top-cpu", func(b *bytes.Buffer) error { return Top(b, quotas, "cpu") })
	closed[0].Status.Reserved = corev1.ResourceList{
		"cpu": resource.MustParse("1"), "nvidia.com/gpu": resource.MustParse("1")}
	golden(t, "share-root", func(b *bytes.Buffer) error { return Share(b, closed) })
	golden(t, "share", func(b *bytes.Buffer) error {
		return Share(b, append(quotas, visibility.Quota{
			ObjectMeta: metav1.ObjectMeta{Name: "lab"},
			Status:     visibility.QuotaStatus{Parent: "company", Min: cpu("4"), Max: cpu("8"), Used: cpu("1"), Waiting: 1},
		}))
	})
}

func TestFindings(t *testing.T) {
	golden(t, "findings", func(b *bytes.Buffer) error {
		return Findings(b, []doctor.Finding{
			{Severity: doctor.Error, Code: "CRDMissing", Message: "The API server does not serve queues.", Fix: "Apply them."},
			{Severity: doctor.Note, Code: "NotExamined", Message: "Not read: Queues: \x1b[2J"},
		})
	})
	golden(t, "findings-none", func(b *bytes.Buffer) error { return Findings(b, nil) })
}
