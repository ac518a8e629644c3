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

package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/controlplane"
)

func TestTheSameSeedGivesTheSamePlan(t *testing.T) {
	const length = 10 * time.Minute
	require.Equal(t, faultPlan(7, length), faultPlan(7, length))
	require.NotEqual(t, faultPlan(7, length), faultPlan(8, length))
	require.Equal(t, stream(7, length, time.Second), stream(7, length, time.Second))
}

func TestAPlanOfTenMinutesHasEveryFault(t *testing.T) {
	const length, lease = 10 * time.Minute, 20 * time.Second
	seen, long := map[string]bool{}, 0
	until := map[controlplane.Component]time.Duration{}
	for _, f := range faultPlan(1, length) {
		require.Less(t, f.At, length)
		require.LessOrEqual(t, f.At+f.Hold, length, "all faults are over at the end")
		require.GreaterOrEqual(t, f.At, until[f.Component], "one fault of a process at a time")
		until[f.Component] = f.At + f.Hold
		seen[string(f.Kind)+" "+string(f.Component)] = true
		if f.Kind == pause && f.Hold > lease {
			long++
		}
	}
	for _, c := range targets {
		require.True(t, seen["kill "+string(c)], c)
		require.True(t, seen["pause "+string(c)], c)
	}
	require.NotZero(t, long, "pauses that are longer than a lease")
}

func TestAStreamHasAllKindsOfWork(t *testing.T) {
	var gangs, running, deleted, plain int
	quotas := map[string]bool{}
	for _, a := range stream(1, 5*time.Minute, time.Second) {
		if a.pod != nil {
			plain++
			require.NotZero(t, a.deleteAfter, "nothing else ends it")
			continue
		}
		quotas[a.job.Spec.Template.Labels[v1alpha1.LabelQuotaName]] = true
		if a.job.Spec.Template.Annotations["gang.scheduling.koordinator.sh/name"] != "" {
			gangs++
		}
		if !*a.job.Spec.Suspend {
			running++
		}
		if a.deleteAfter > 0 {
			deleted++
		}
	}
	for what, n := range map[string]int{"gangs": gangs, "jobs that are not suspended": running, "deleted jobs": deleted, "plain pods": plain} {
		require.NotZero(t, n, what)
	}
	require.Len(t, quotas, len(groups))
}

func TestOrderIsJudgedOnlyAwayFromFaults(t *testing.T) {
	at := func(seconds int) time.Time {
		return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(seconds) * time.Second)
	}
	scheduler := []outage{{schedulerA, at(100), at(110)}}
	server := []outage{{controlplane.APIServer, at(100), at(110)}}
	for _, test := range []struct {
		outages []outage
		at      int
		want    bool
	}{
		{nil, 100, false},
		{scheduler, 96, false},
		{scheduler, 98, true},
		{scheduler, 105, true},
		{scheduler, 114, true},
		{scheduler, 116, false},
		{server, 116, true},
		{server, 129, true},
		{server, 131, false},
	} {
		require.Equal(t, test.want, disturbed(test.outages, at(test.at)), "%v at %d", test.outages, test.at)
	}
}

func audit(t *testing.T, lines string) *audited {
	t.Helper()
	path := filepath.Join(t.TempDir(), auditLog)
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	a, err := readAudit(path)
	require.NoError(t, err)
	return a
}

const (
	bindLine    = `{"kind":"Event","user":{"username":"` + schedulerUser + `"},"objectRef":{"resource":"pods","subresource":"binding","namespace":"ns","name":"x"},"responseStatus":{"code":201}}` + "\n"
	refusedLine = `{"kind":"Event","user":{"username":"` + schedulerUser + `"},"objectRef":{"resource":"pods","subresource":"binding","namespace":"ns","name":"x"},"responseStatus":{"code":409}}` + "\n"
	dequeueLine = `{"kind":"Event","user":{"username":"` + schedulerUser + `"},"objectRef":{"resource":"queueunits","subresource":"status","namespace":"ns","name":"u"},"responseStatus":{"code":200},"requestObject":{"status":{"phase":"Dequeued","attempts":1}}}` + "\n"
	secondLine  = `{"kind":"Event","user":{"username":"` + schedulerUser + `"},"objectRef":{"resource":"queueunits","subresource":"status","namespace":"ns","name":"u"},"responseStatus":{"code":200},"requestObject":{"status":{"phase":"Dequeued","attempts":2}}}` + "\n"
	foreignLine = `{"kind":"Event","user":{"username":"somebody"},"objectRef":{"resource":"queueunits","subresource":"status","namespace":"ns","name":"v"},"responseStatus":{"code":200},"requestObject":{"status":{"phase":"Dequeued","attempts":1}}}` + "\n"
)

func TestTheAuditLogIsCounted(t *testing.T) {
	a := audit(t, bindLine+refusedLine+dequeueLine+secondLine)
	require.Empty(t, a.violations)
	require.Equal(t, 1, a.Bindings)
	require.Equal(t, 2, a.Dequeues)
	require.Zero(t, a.Torn)

	require.Len(t, audit(t, bindLine+bindLine).violations, 1, "bound twice")
	require.Len(t, audit(t, dequeueLine+dequeueLine).violations, 1, "released twice in one attempt")
	require.Len(t, audit(t, foreignLine).violations, 1, "released by somebody else")
}

func TestALineThatTheEndOfTheServerCutOff(t *testing.T) {
	a := audit(t, bindLine[:60]+dequeueLine+bindLine)
	require.Equal(t, 1, a.Torn)
	require.Equal(t, 1, a.Dequeues, "the line behind it is read")
	require.Equal(t, 1, a.Bindings)
	require.Empty(t, a.violations)
}

// seen feeds a history with revisions of a key that nobody reads.
func seen(h *history, revisions ...int64) {
	for _, revision := range revisions {
		h.take([]*clientv3.Event{{Kv: &mvccpb.KeyValue{Key: []byte("/registry/leases/x"), ModRevision: revision}}})
	}
}

func TestAGapOfTheHistoryIsNoticed(t *testing.T) {
	h, err := newHistory("127.0.0.1:1")
	require.NoError(t, err)
	seen(h, 2, 3, 3, 4)
	require.Zero(t, h.missing)
	seen(h, 7)
	require.EqualValues(t, 2, h.missing)
}

func TestTheLifeOfAUnitIsJudged(t *testing.T) {
	h, err := newHistory("127.0.0.1:1")
	require.NoError(t, err)
	step := func(name string, phase v1alpha1.QueueUnitPhase, attempts int64) {
		h.live(&v1alpha1.QueueUnit{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
			Status:     v1alpha1.QueueUnitStatus{Phase: phase, Attempts: attempts},
		})
	}
	step("good", v1alpha1.PhaseEnqueued, 0)
	step("good", v1alpha1.PhaseDequeued, 1)
	step("good", v1alpha1.PhaseRunning, 1)
	step("good", v1alpha1.PhaseEnqueued, 1)
	step("good", v1alpha1.PhaseDequeued, 2)
	require.Empty(t, h.wrong)
	rule := func() checker.Rule {
		defer func() { h.wrong = nil }()
		require.Len(t, h.wrong, 1)
		return h.wrong[0].Rule
	}
	step("good", v1alpha1.PhaseEnqueued, 2)
	step("good", v1alpha1.PhaseDequeued, 2)
	require.Equal(t, dequeuedTwice, rule())
	step("illegal", v1alpha1.PhaseEnqueued, 0)
	step("illegal", v1alpha1.PhaseSchedSucceed, 0)
	require.Equal(t, illegalPhase, rule())
	step("fewer", v1alpha1.PhaseEnqueued, 2)
	step("fewer", v1alpha1.PhaseEnqueued, 1)
	require.Equal(t, attemptsFell, rule())
}
