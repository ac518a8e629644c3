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
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

func good() (unmanaged, managed *result) {
	unmanaged = &result{
		perMinute: 100, peak: map[string]int64{"scheduler": 1, "controller": 2},
		evictions: map[string]int{takenOfHonest: 5},
	}
	managed = &result{
		requests:  map[string]count{jobKind: {Made: 3, Refused: 4}, unitKind: {Made: 2}},
		perMinute: 95, peak: map[string]int64{"scheduler": 10, "controller": 20},
		evictions: map[string]int{takenOfHostile: 4, "hostile QueueDrained": 1}, byAlias: 1,
	}
	return unmanaged, managed
}

func TestSummary(t *testing.T) {
	unmanaged, managed := good()
	s := summarize(options{seed: 3, duration: time.Minute}, unmanaged, managed)
	require.Empty(t, s.failures(0.9))
	content, err := json.Marshal(s)
	require.NoError(t, err)
	var read map[string]any
	require.NoError(t, json.Unmarshal(content, &read))
	for key, want := range map[string]any{
		"objects": 5.0, "violations": 0.0, "processesRestarted": 0.0, "victimThroughputRatio": 0.95,
		"peakRSSBytes": map[string]any{"scheduler": 10.0, "controller": 20.0},
		"evictions": map[string]any{
			"managed":   map[string]any{"hostile Reclaimed": 4.0, "hostile QueueDrained": 1.0},
			"unmanaged": map[string]any{"borrower Reclaimed": 5.0},
		},
	} {
		require.Equal(t, want, read[key], key)
	}
	require.NotContains(t, string(content), "\n")
}

func TestWhatFailsARun(t *testing.T) {
	broken := []checker.Violation{{Rule: checker.Lost, Subject: "j"}}
	for name, spoil := range map[string]func(unmanaged, managed *result){
		"a violation":                      func(_, m *result) { m.violations = broken },
		"a violation without management":   func(u, _ *result) { u.violations = broken },
		"a process that ended":             func(_, m *result) { m.restarts = 1 },
		"a victim that is slowed down":     func(_, m *result) { m.perMinute = 89 },
		"nothing to compare with":          func(u, _ *result) { u.perMinute = 0 },
		"nothing that was taken":           func(_, m *result) { delete(m.evictions, takenOfHostile) },
		"nothing that was taken otherwise": func(u, _ *result) { u.evictions = nil },
		"no job by an alias":               func(_, m *result) { m.byAlias = 0 },
		"no hostile objects":               func(_, m *result) { m.requests = nil },
		"a bound that the tenant changed": func(_, m *result) {
			m.requests[namespaceKind] = count{Changed: 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			unmanaged, managed := good()
			spoil(unmanaged, managed)
			s := summarize(options{}, unmanaged, managed)
			require.Len(t, s.failures(0.9), 1)
			var out bytes.Buffer
			s.print(&out, 0.9)
			require.Contains(t, out.String(), "Failed: ")
		})
	}
}

// The bounds of memory are those at which Kubernetes would end the processes.
func TestMemoryIsBoundedAsInTheDeployments(t *testing.T) {
	root, err := controlplane.RepositoryRoot()
	require.NoError(t, err)
	for component, dir := range map[controlplane.Component]string{
		controlplane.Scheduler: "components/scheduler", controlplane.Controller: "base/controller",
	} {
		content, err := os.ReadFile(filepath.Join(root, "manifests", dir, "deployment.yaml"))
		require.NoError(t, err)
		var d appsv1.Deployment
		require.NoError(t, yaml.Unmarshal(content, &d))
		require.Equal(t, d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(), attacked[component].most)
	}
	require.Empty(t, tooMuch(map[string]int64{"scheduler": 2 << 30, "controller": 1 << 30}))
	require.Len(t, tooMuch(map[string]int64{"scheduler": 2<<30 + 1, "controller": 1<<30 + 1}), 2)
}

func TestPeakOf(t *testing.T) {
	require.EqualValues(t, 2048<<10, peakOf("Name:\tx\nVmPeak:\t 9999 kB\nVmHWM:\t    2048 kB\nVmRSS:\t 1 kB\n"))
	require.Zero(t, peakOf("Name:\tx\n"))
}

func TestThroughput(t *testing.T) {
	v := newWorker(nil, victimLoad)
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	complete := func(uid string, second int) {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
		v.note(job, begin) // not done yet
		job.Status.Succeeded, job.Status.CompletionTime = 1, &metav1.Time{Time: begin}
		v.note(job, begin.Add(time.Duration(second)*time.Second))
		v.note(job, begin.Add(time.Hour)) // written once more
	}
	complete("before", -1)
	complete("first", 0)
	complete("second", 29)
	complete("after", 30)
	require.True(t, v.done("after"))
	require.InDelta(t, 4, v.perMinute(begin, begin.Add(30*time.Second)), 1e-9)
	require.Equal(t, 29*time.Second, v.longestGap(begin, begin, begin.Add(30*time.Second)))
	v.waves = false
	require.Equal(t, 70*time.Second, v.longestGap(begin, begin, begin.Add(100*time.Second)), "to the end")
	v.waves = true
	require.Equal(t, 30*time.Second, v.longestGap(begin, begin, begin.Add(100*time.Second)), "from wave to wave")
	require.Empty(t, starvation(maxGap))
	require.Equal(t, starved, starvation(maxGap + time.Second)[0].Rule)
}

func TestAWaveEnds(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	next := func(l *load, after time.Duration) time.Duration { return l.next(begin, begin.Add(after)).Sub(begin) }
	require.Equal(t, waveSubmit-1, next(&victimLoad, waveSubmit-1))
	require.Equal(t, wave, next(&victimLoad, waveSubmit))
	require.Equal(t, 2*wave, next(&victimLoad, 2*wave-1))
	require.Equal(t, 2*wave, next(&victimLoad, 2*wave))
	require.Equal(t, waveSubmit, next(&honestLoad, waveSubmit), "it has no waves")
}

func TestEachEvictionCountsOnce(t *testing.T) {
	e := newEvictions()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	is := func(status metav1.ConditionStatus, second int) {
		u := unitOf("u", hostileQuota, "1")
		u.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ConditionEvicted, Status: status, Reason: "Reclaimed",
			LastTransitionTime: metav1.Time{Time: at.Add(time.Duration(second) * time.Second)},
		}}
		e.note(u)
	}
	e.note(unitOf("u", hostileQuota, "1"))
	is(metav1.ConditionTrue, 1)
	is(metav1.ConditionTrue, 1) // written once more
	is(metav1.ConditionFalse, 2)
	is(metav1.ConditionTrue, 3)
	require.Equal(t, map[string]int{takenOfHostile: 2}, e.byName())
}
