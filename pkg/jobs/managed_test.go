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

package jobs

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestParseManagedJobs(t *testing.T) {
	m, err := ParseManagedJobs("")
	require.NoError(t, err)
	require.Equal(t, DefaultManagedJobs(), m)
	require.Equal(t, KindsNamed("Job.v1.batch"), m.Kinds)

	m, err = ParseManagedJobs("kinds: [Job.v1.batch]\nnamespaceSelector: {matchLabels: {queue: \"on\"}}\n" +
		"requireQueueName: true\n")
	require.NoError(t, err)
	require.True(t, m.RequireQueueName)
	require.Equal(t, "on", m.NamespaceSelector.MatchLabels["queue"])

	for name, tc := range map[string]struct{ text, want string }{
		"unknown field":  {"requireQueue: true", "requireQueue"},
		"unknown kind":   {"kinds: [Job.v2.batch]", "Job.v2.batch"},
		"bad selector":   {"namespaceSelector: {matchExpressions: [{key: a, operator: Near}]}", "namespaceSelector"},
		"unknown nested": {"namespaceSelector: {labels: {a: b}}", "labels"},
		"not a map":      {"[1]", "managedJobs"},
		"mapped":         {"manageMappedNamespaces: Sometimes", "none of Never, Labelled and Always"},
		"other gangs":    {"gangs: [PyTorchJob.v1.kubeflow.org]", "gangs[0]"},
		"gated gangs":    {"kinds: [Deployment.v1.apps]\ngangs: [Deployment.v1.apps]", "can be suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseManagedJobs(tc.text)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestHashIsOfTheMeaning(t *testing.T) {
	same := []string{
		"",
		"kinds: [Job.v1.batch]",
		"kinds: [Job.v1.batch, Job.v1.batch]",
		"namespaceSelector: {}",
		"namespaceSelector: {matchLabels: {}}\nrequireQueueName: false",
		"manageMappedNamespaces: Labelled\ngangs: []",
	}
	want := DefaultManagedJobs().Hash()
	require.Len(t, want, 64)
	for _, text := range same {
		m, err := ParseManagedJobs(text)
		require.NoError(t, err)
		require.Equal(t, want, m.Hash(), text)
	}
	require.NotEqual(t, want, ManagedJobs{RequireQueueName: true}.Hash())
	require.NotEqual(t, want, ManagedJobs{ManageMappedNamespaces: MappedAlways}.Hash())
	require.NotEqual(t, want, ManagedJobs{Gangs: []string{"Job.v1.batch"}}.Hash())
	require.NotEqual(t, want,
		ManagedJobs{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}.Hash())
	a, err := ParseManagedJobs("namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x, y]}, {key: b, " +
		"operator: Exists}]}")
	require.NoError(t, err)
	b, err := ParseManagedJobs("namespaceSelector: {matchExpressions: [{key: b, operator: Exists}, {key: a, " +
		"operator: In, values: [y, x]}]}")
	require.NoError(t, err)
	require.Equal(t, a.Hash(), b.Hash())
}

func TestPredicate(t *testing.T) {
	p, err := NewPredicate(ManagedJobs{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "on"}},
	})
	require.NoError(t, err)
	strict, err := NewPredicate(ManagedJobs{RequireQueueName: true})
	require.NoError(t, err)
	beside, err := NewPredicate(ManagedJobs{OtherQueueLabels: []string{"kueue.x-k8s.io/queue-name"}})
	require.NoError(t, err)
	kueues := map[string]string{"kueue.x-k8s.io/queue-name": "k"}
	on := map[string]string{"queue": "on"}
	quota := map[string]string{v1alpha1.LabelQuotaName: "a"}
	queue := map[string]string{v1alpha1.QueueNameKey: "q"}
	for name, tc := range map[string]struct {
		predicate *Predicate
		namespace string
		labels    map[string]string
		sets      []map[string]string
		want      bool
	}{
		"quota":                      {p, "team", on, []map[string]string{quota}, true},
		"fallback":                   {p, "team", on, []map[string]string{{v1alpha1.LabelQuotaNameFallback2: "a"}}, true},
		"empty value":                {p, "team", on, []map[string]string{{v1alpha1.LabelQuotaName: ""}}, false},
		"queue":                      {p, "team", on, []map[string]string{nil, queue}, true},
		"queue by annotation":        {p, "team", on, []map[string]string{QueueAnnotation(queue)}, true},
		"quota by annotation":        {p, "team", on, []map[string]string{QueueAnnotation(quota)}, false},
		"nothing":                    {p, "team", on, []map[string]string{{"a": "b"}}, false},
		"no sets":                    {p, "team", on, nil, false},
		"namespace not selected":     {p, "team", nil, []map[string]string{quota}, false},
		"system namespace":           {p, "kube-system", on, []map[string]string{quota}, false},
		"koordinator's namespace":    {p, "koordinator-system", on, []map[string]string{quota}, false},
		"Kueue's":                    {beside, "team", on, []map[string]string{quota, kueues}, false},
		"Kueue's, which is not here": {p, "team", on, []map[string]string{quota, kueues}, true},
		"queue name required":        {strict, "team", nil, []map[string]string{quota}, false},
		"queue name required, here":  {strict, "team", nil, []map[string]string{quota, queue}, true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tc.predicate.ManagesLabels(tc.namespace, tc.labels, tc.sets...))
		})
	}
	_, err = NewPredicate(ManagedJobs{Kinds: KindsNamed("Nope.v1.x")})
	require.ErrorContains(t, err, "Nope.v1.x")
}

func TestManagesJob(t *testing.T) {
	p, err := NewPredicate(DefaultManagedJobs())
	require.NoError(t, err)
	require.True(t, p.ManagesKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}))
	require.False(t, p.ManagesKind(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}))
	unit, ok := p.UnitName(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "a")
	require.True(t, ok)
	require.Equal(t, "a", unit)
	_, ok = p.UnitName(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, "a")
	require.False(t, ok)
	for name, tc := range map[string]struct {
		text string
		want bool
	}{
		"label on the job": {"metadata: {name: j, namespace: n, labels: {quota.scheduling.koordinator.sh/name: a}}", true},
		"label on the template": {"metadata: {name: j, namespace: n}\n" +
			"spec: {template: {metadata: {labels: {quota.scheduling.koordinator.sh/name: a}}}}", true},
		"annotation": {"metadata: {name: j, namespace: n, annotations: {koord-queue/queue-name: a}}", true},
		"nothing":    {"metadata: {name: j, namespace: n}", false},
		"managed by another": {"metadata: {name: j, namespace: n, " +
			"labels: {quota.scheduling.koordinator.sh/name: a}}\nspec: {managedBy: other}", false},
		"owned by a managed job": {"metadata: {name: j, namespace: n, labels: {quota.scheduling.koordinator.sh/name: a}, " +
			"ownerReferences: [{apiVersion: batch/v1, kind: Job, name: x, uid: y, controller: true}]}", false},
		"owned by a job of a kind that is not managed": {"metadata: {name: j, namespace: n, " +
			"labels: {quota.scheduling.koordinator.sh/name: a}, ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, " +
			"kind: JobSet, name: x, uid: y, controller: true}]}", false},
		"owned by what makes no Jobs": {"metadata: {name: j, namespace: n, " +
			"labels: {quota.scheduling.koordinator.sh/name: a}, ownerReferences: [{apiVersion: apps/v1, " +
			"kind: Deployment, name: x, uid: y, controller: true}]}", true},
		"owned by a CronJob": {"metadata: {name: j, namespace: n, labels: {quota.scheduling.koordinator.sh/name: a}, " +
			"ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: x, uid: y, controller: true}]}", true},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, p.ManagesJob(Open(batchJob(t), object(t, tc.text)), nil))
		})
	}
}

// A label of another queue system takes a job out of this one only where the configuration says that it is there (H7).
func TestAnotherQueueSystemHasTheJobWhereItIsConfigured(t *testing.T) {
	here, err := NewPredicate(DefaultManagedJobs())
	require.NoError(t, err)
	beside, err := NewPredicate(ManagedJobs{OtherQueueLabels: []string{"kueue.x-k8s.io/queue-name"}})
	require.NoError(t, err)
	const job = "metadata: {name: j, namespace: n, labels: {quota.scheduling.koordinator.sh/name: a"
	for name, text := range map[string]string{
		"on the job":      job + ", kueue.x-k8s.io/queue-name: k}}",
		"on the template": job + "}}\nspec: {template: {metadata: {labels: {kueue.x-k8s.io/queue-name: k}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, here.ManagesJob(Open(batchJob(t), object(t, text)), nil))
			require.False(t, here.QueuedElsewhere(Open(batchJob(t), object(t, text))))
			require.False(t, beside.ManagesJob(Open(batchJob(t), object(t, text)), nil))
			require.True(t, beside.QueuedElsewhere(Open(batchJob(t), object(t, text))))
		})
	}
	require.True(t, here.QueuedElsewhere(Open(batchJob(t), object(t, "spec: {managedBy: other}"))))
	_, err = ParseManagedJobs("otherQueueLabels: [a b]")
	require.ErrorContains(t, err, `otherQueueLabels[0]: "a b" is not the key of a label`)
	a, err := ParseManagedJobs("otherQueueLabels: [b, a, b]")
	require.NoError(t, err)
	b, err := ParseManagedJobs("otherQueueLabels: [a, b]")
	require.NoError(t, err)
	require.Equal(t, a.Hash(), b.Hash())
	require.NotEqual(t, DefaultManagedJobs().Hash(), a.Hash())
}

func TestWhatBecomesOfJobsThatAskForNoQueue(t *testing.T) {
	const selected = "namespaceSelector: {matchLabels: {queue: \"on\"}}\n"
	in := map[string]string{"queue": "on"}
	for name, tc := range map[string]struct {
		text string
		job  string
		in   map[string]string
		want UnmanagedJobs
	}{
		"all namespaces":     {"", "{}", in, UnmanagedPass},
		"all, said so":       {"namespaceSelector: {}", "{}", in, UnmanagedPass},
		"all, told":          {"unmanagedJobs: Warn", "{}", in, UnmanagedWarn},
		"namespaces by name": {selected, "{}", in, UnmanagedWarn},
		"another namespace":  {selected, "{}", nil, UnmanagedPass},
		"held":               {selected + "unmanagedJobs: Gate", "{}", in, UnmanagedGate},
		"let go":             {selected + "unmanagedJobs: Pass", "{}", in, UnmanagedPass},
		"one that asks":      {selected, "{labels: {koord-queue/queue-name: a}}", in, UnmanagedPass},
		"a quota is not enough": {selected + "requireQueueName: true",
			"{labels: {" + v1alpha1.LabelQuotaName + ": a}}", in, UnmanagedWarn},
		"another queue system has": {selected + "otherQueueLabels: [k/q]", "{labels: {k/q: a}}", in, UnmanagedPass},
		"part of another job": {selected, "{ownerReferences: [{apiVersion: batch/v1, kind: Job, name: a, uid: u, " +
			"controller: true}]}", in, UnmanagedPass},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ParseManagedJobs(tc.text)
			require.NoError(t, err)
			p, err := NewPredicate(m)
			require.NoError(t, err)
			require.Equal(t, tc.want, p.UnmanagedJob(Open(batchJob(t), object(t, "metadata: "+tc.job)), tc.in))
		})
	}
	_, err := ParseManagedJobs("unmanagedJobs: Deny")
	require.ErrorContains(t, err, `managedJobs.unmanagedJobs: "Deny" is none of Pass, Warn and Gate`)
}

func FuzzParseManagedJobs(f *testing.F) {
	f.Add("kinds: [Job.v1.batch]\nnamespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x]}]}")
	f.Add("requireQueueName: 1")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseManagedJobs(text)
		if err != nil {
			return
		}
		_, err = NewPredicate(m)
		require.NoError(t, err, "what parses can be used")
		require.Equal(t, m.Hash(), m.withDefaults().Hash())
	})
}
