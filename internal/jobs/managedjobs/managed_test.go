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

package managedjobs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/jobobjects"
)

func TestParseManagedJobs(t *testing.T) {
	m, err := Parse("")
	require.NoError(t, err)
	require.Equal(t, Default(), m)
	require.Equal(t, KindsNamed("Job.v1.batch"), m.Kinds)
	require.Equal(t, []string{"koord-scheduler"}, m.SchedulerNames, "the profile that is installed")

	m, err = Parse("kinds: [Job.v1.batch]\nnamespaceSelector: {matchLabels: {queue: \"on\"}}\n" +
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
		"other defaults": {"jobDefaults: [{kind: PyTorchJob.v1.kubeflow.org}]",
			"managedJobs.jobDefaults[kind=PyTorchJob.v1.kubeflow.org]: it is none of the kinds here"},
		"gated defaults": {"kinds: [Deployment.v1.apps]\njobDefaults: [{kind: Deployment.v1.apps}]", "can be suspended"},
		"twice":          {"jobDefaults: [{kind: Job.v1.batch}, {kind: Job.v1.batch}]", "[kind=Job.v1.batch] is there twice"},
		"a bad default": {"jobDefaults: [{kind: Job.v1.batch, gang: {waitTime: x}}]",
			`jobDefaults[kind=Job.v1.batch].gang.waitTime: "x"`},
		"unknown default": {"jobDefaults: [{kind: Job.v1.batch, timeout: 1s}]", "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(tc.text)
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
		"schedulerNames: [koord-scheduler]",
	}
	want := Default().Hash()
	require.Len(t, want, 64)
	for _, text := range same {
		m, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, m.Hash(), text)
	}
	require.NotEqual(t, want, Jobs{RequireQueueName: true}.Hash())
	require.NotEqual(t, want, Jobs{ManageMappedNamespaces: MappedAlways}.Hash())
	require.NotEqual(t, want, Jobs{Gangs: []string{"Job.v1.batch"}}.Hash())
	require.NotEqual(t, want,
		Jobs{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}.Hash())
	a, err := Parse("namespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x, y]}, {key: b, " +
		"operator: Exists}]}")
	require.NoError(t, err)
	b, err := Parse("namespaceSelector: {matchExpressions: [{key: b, operator: Exists}, {key: a, " +
		"operator: In, values: [y, x]}]}")
	require.NoError(t, err)
	require.Equal(t, a.Hash(), b.Hash())
}

func TestDefaults(t *testing.T) {
	const text = "kinds: [Job.v1.batch, JobSet.v1alpha2.jobset.x-k8s.io]\n" +
		"jobDefaults: [{kind: JobSet.v1alpha2.jobset.x-k8s.io}, {kind: Job.v1.batch, grace: 30s, preemptible: false}]"
	m, err := Parse(text)
	require.NoError(t, err)
	p, err := NewPredicate(m)
	require.NoError(t, err)
	require.Equal(t, `{"preemptible":false,"grace":"30s"}`, Defaults(p, jobobjects.BatchJob(t)).Text())
	turned, err := Parse("kinds: [Job.v1.batch, JobSet.v1alpha2.jobset.x-k8s.io]\n" +
		"jobDefaults: [{kind: Job.v1.batch, preemptible: false, grace: 30s}, {kind: JobSet.v1alpha2.jobset.x-k8s.io}]")
	require.NoError(t, err)
	require.Equal(t, m.Hash(), turned.Hash())
	without, err := NewPredicate(Default())
	require.NoError(t, err)
	require.Nil(t, Defaults(without, jobobjects.BatchJob(t)))
	require.NotEqual(t, without.Hash(), p.Hash())
}

func TestPredicate(t *testing.T) {
	p, err := NewPredicate(Jobs{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"queue": "on"}},
	})
	require.NoError(t, err)
	strict, err := NewPredicate(Jobs{RequireQueueName: true})
	require.NoError(t, err)
	beside, err := NewPredicate(Jobs{OtherQueueLabels: []string{"kueue.x-k8s.io/queue-name"}})
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
	_, err = NewPredicate(Jobs{Kinds: KindsNamed("Nope.v1.x")})
	require.ErrorContains(t, err, "Nope.v1.x")
}

func TestManagesJob(t *testing.T) {
	p, err := NewPredicate(Default())
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
		// A Job makes pods and no Jobs: nothing would ever resume a suspended Job that names one.
		"owned by a managed job": {"metadata: {name: j, namespace: n, labels: {quota.scheduling.koordinator.sh/name: a}, " +
			"ownerReferences: [{apiVersion: batch/v1, kind: Job, name: x, uid: y, controller: true}]}", true},
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
			require.Equal(t, tc.want, p.ManagesJob(jobs.Open(jobobjects.BatchJob(t), jobobjects.Object(t, tc.text)), nil))
		})
	}
}

// A job is a part of what makes such jobs. Its maker resumes it, unless its suspension leaves parts as they are.
func TestPartsAreMadeByTheirOwners(t *testing.T) {
	m, err := Parse(`
kinds:
- Job.v1.batch
- Pod.v1.
- Workflow.v1alpha1.argoproj.io
- apiVersion: factory.example/v1
  kind: Widget
  resource: widgets
  children:
  - {apiVersion: factory.example/v1, kind: Group, resource: groups}
  - {apiVersion: batch/v1, kind: Job, resource: jobs}
  podSets: [{template: .spec.pod, count: [{default: 1}]}]
  state: {}
  pods: {label: factory.example/widget}
`)
	require.NoError(t, err)
	p, err := NewPredicate(m)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		owner, of    string
		part, leaves bool
	}{
		"a Job of a JobSet":            {"JobSet.jobset.x-k8s.io", "Job.batch", true, false},
		"a JobSet of a TrainJob":       {"TrainJob.trainer.kubeflow.org", "JobSet.jobset.x-k8s.io", true, false},
		"a Job of an MPIJob":           {"MPIJob.kubeflow.org", "Job.batch", true, false},
		"a Job of a Workflow":          {"Workflow.argoproj.io", "Job.batch", true, true},
		"a pod of a Workflow":          {"Workflow.argoproj.io", "Pod", true, false},
		"a Job of a Widget":            {"Widget.factory.example", "Job.batch", true, false},
		"a Job of a Widget's group":    {"Group.factory.example", "Job.batch", true, false},
		"a StatefulSet of a leader":    {"Pod", "StatefulSet.apps", true, false},
		"a pod of a StatefulSet":       {"StatefulSet.apps", "Pod", true, false},
		"a Job of a Job":               {"Job.batch", "Job.batch", false, false},
		"a JobSet of a Job":            {"Job.batch", "JobSet.jobset.x-k8s.io", false, false},
		"a RayCluster of a RayCluster": {"RayCluster.ray.io", "RayCluster.ray.io", false, false},
		"a Job of a CronJob":           {"CronJob.batch", "Job.batch", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			of := schema.ParseGroupKind(tc.owner).WithVersion("v1")
			owner := &metav1.OwnerReference{APIVersion: of.GroupVersion().String(), Kind: of.Kind}
			require.Equal(t, tc.part, p.IsPart(schema.ParseGroupKind(tc.of), owner))
			require.Equal(t, tc.leaves, p.LeavesParts(schema.ParseGroupKind(tc.of), owner))
		})
	}
	require.False(t, p.IsPart(schema.GroupKind{Group: "batch", Kind: "Job"}, nil))
	require.False(t, p.LeavesParts(schema.GroupKind{Group: "batch", Kind: "Job"}, nil))
	for of, want := range map[string][]string{"Job.batch": {"Workflow.v1alpha1.argoproj.io"}, "Pod": nil} {
		var makers []string
		for _, kind := range LeftBy(p, schema.ParseGroupKind(of)) {
			makers = append(makers, kind.String())
		}
		require.Equal(t, want, makers, "makers of a %s that waits by itself", of)
	}
}

// A label of another queue system takes a job out of this one only where the configuration says that it is there (H7).
func TestAnotherQueueSystemHasTheJobWhereItIsConfigured(t *testing.T) {
	here, err := NewPredicate(Default())
	require.NoError(t, err)
	beside, err := NewPredicate(Jobs{OtherQueueLabels: []string{"kueue.x-k8s.io/queue-name"}})
	require.NoError(t, err)
	const job = "metadata: {name: j, namespace: n, labels: {quota.scheduling.koordinator.sh/name: a"
	for name, text := range map[string]string{
		"on the job":      job + ", kueue.x-k8s.io/queue-name: k}}",
		"on the template": job + "}}\nspec: {template: {metadata: {labels: {kueue.x-k8s.io/queue-name: k}}}}",
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, here.ManagesJob(jobs.Open(jobobjects.BatchJob(t), jobobjects.Object(t, text)), nil))
			require.False(t, here.QueuedElsewhere(jobs.Open(jobobjects.BatchJob(t), jobobjects.Object(t, text))))
			require.False(t, beside.ManagesJob(jobs.Open(jobobjects.BatchJob(t), jobobjects.Object(t, text)), nil))
			require.True(t, beside.QueuedElsewhere(jobs.Open(jobobjects.BatchJob(t), jobobjects.Object(t, text))))
		})
	}
	elsewhere := jobobjects.Object(t, "spec: {managedBy: other}")
	require.True(t, here.QueuedElsewhere(jobs.Open(jobobjects.BatchJob(t), elsewhere)))
	_, err = Parse("otherQueueLabels: [a b]")
	require.ErrorContains(t, err, `otherQueueLabels[0]: "a b" is not the key of a label`)
	a, err := Parse("otherQueueLabels: [b, a, b]")
	require.NoError(t, err)
	b, err := Parse("otherQueueLabels: [a, b]")
	require.NoError(t, err)
	require.Equal(t, a.Hash(), b.Hash())
	require.NotEqual(t, Default().Hash(), a.Hash())
}

func TestAliasesAreChecked(t *testing.T) {
	const entry = "aliases: [{system: Kueue, namespaceSelector: {matchLabels: {a: b}}, queues: {q: {quota: x}}}]\n"
	for text, want := range map[string]string{
		strings.Replace(entry, "Kueue", "K", 1):                   "aliases[0].system",
		"otherQueueLabels: [kueue.x-k8s.io/queue-name]\n" + entry: "an alias understands",
	} {
		_, err := Parse(text)
		require.ErrorContains(t, err, want)
	}
	m, err := Parse("schedulerNames: [s]\n" + entry)
	require.NoError(t, err)
	require.NotEqual(t, Jobs{SchedulerNames: []string{"s"}}.Hash(), m.Hash())
}

func TestPlacementIsChecked(t *testing.T) {
	const entry = "placement: [{namespaceSelector: {matchLabels: {a: b}}, path: 'root.{namespace}'}]\n"
	_, err := Parse(strings.Replace(entry, "root", "x", 1))
	require.ErrorContains(t, err, "managedJobs.placement[0].path: it is not the path of a quota")
	m, err := Parse(entry)
	require.NoError(t, err)
	require.NotEqual(t, Default().Hash(), m.Hash())
}

// A path asks for a queue, as the name of a queue does. A namespace that places jobs asks for the quota alone.
func TestPathsAndPlacementManageJobs(t *testing.T) {
	const placing = "placement: [{namespaceSelector: {matchLabels: {a: b}}, path: 'root.{namespace}'}]\n"
	placed, path := map[string]string{"a": "b"}, map[string]string{v1alpha1.QueuePathKey: "root.a"}
	for name, tc := range map[string]struct {
		text   string
		labels map[string]string
		set    map[string]string
		want   bool
	}{
		"a path":                       {"", nil, path, true},
		"a path, by a name only":       {"requireQueueName: true", nil, path, true},
		"a namespace":                  {placing, placed, nil, true},
		"another namespace":            {placing, nil, nil, false},
		"a namespace, by a name only":  {placing + "requireQueueName: true", placed, nil, false},
		"of another system":            {placing + "otherQueueLabels: [k]", placed, map[string]string{"k": "x"}, false},
		"an annotation that is a path": {"", nil, QueueAnnotation(path), true},
	} {
		m, err := Parse(tc.text)
		require.NoError(t, err)
		p, err := NewPredicate(m)
		require.NoError(t, err)
		require.Equal(t, tc.want, p.ManagesLabels("team", tc.labels, tc.set, Placed(p, tc.labels)), name)
	}
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
		"part of another job": {selected, "{ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, " +
			"name: a, uid: u, controller: true}]}", in, UnmanagedPass},
		"owned by another job": {selected, "{ownerReferences: [{apiVersion: batch/v1, kind: Job, name: a, uid: u, " +
			"controller: true}]}", in, UnmanagedWarn},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Parse(tc.text)
			require.NoError(t, err)
			p, err := NewPredicate(m)
			require.NoError(t, err)
			job := jobs.Open(jobobjects.BatchJob(t), jobobjects.Object(t, "metadata: "+tc.job))
			require.Equal(t, tc.want, p.UnmanagedJob(job, tc.in))
		})
	}
	_, err := Parse("unmanagedJobs: Deny")
	require.ErrorContains(t, err, `managedJobs.unmanagedJobs: "Deny" is none of Pass, Warn and Gate`)
}

func FuzzParseManagedJobs(f *testing.F) {
	f.Add("kinds: [Job.v1.batch]\nnamespaceSelector: {matchExpressions: [{key: a, operator: In, values: [x]}]}")
	f.Add("requireQueueName: 1")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		_, err = NewPredicate(m)
		require.NoError(t, err, "what parses can be used")
		require.Equal(t, m.Hash(), m.withDefaults().Hash())
	})
}

func TestWhichPodsAreQueued(t *testing.T) {
	m, err := Parse("kinds: [Pod.v1.]")
	require.NoError(t, err)
	p, err := NewPredicate(m)
	require.NoError(t, err)
	owned := func(pod *corev1.Pod) {
		controls := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", APIVersion: "apps/v1", Controller: &controls}}
	}
	unlabelled := func(pod *corev1.Pod) { delete(pod.Labels, v1alpha1.LabelQuotaName) }
	annotated := func(pod *corev1.Pod) { pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit] = "team/other" }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"by itself":              {jobobjects.Pod(1, "", ""), "team/p1-pods"},
		"of a group":             {jobobjects.Pod(1, "g", "2"), "team/g-pods"},
		"of somebody":            {jobobjects.Pod(1, "g", "2", owned), ""},
		"that asks for no queue": {jobobjects.Pod(1, "", "", unlabelled), ""},
		"that names a unit":      {jobobjects.Pod(1, "", "", annotated), "team/other"},
	} {
		require.Equal(t, tc.want, p.UnitNamedBy(tc.pod), name)
	}
	other, err := NewPredicate(Default())
	require.NoError(t, err)
	require.Empty(t, other.UnitNamedBy(jobobjects.Pod(1, "", "")), "they are not managed")
}

// A forged unit of a job that can be suspended says nothing.
func TestUnsuspendable(t *testing.T) {
	p, err := NewPredicate(Jobs{Kinds: KindsNamed("Job.v1.batch", "RayJob.v1.ray.io", "Deployment.v1.apps")})
	require.NoError(t, err)
	for kind, want := range map[string][2]bool{
		"batch/v1 Job": {false, false}, "ray.io/v1 RayJob": {false, true}, "apps/v1 Deployment": {true, true},
		"apps/v1 ReplicaSet": {false, false},
	} {
		version, name, _ := strings.Cut(kind, " ")
		gvk := schema.FromAPIVersionAndKind(version, name)
		require.Equal(t, want, [2]bool{p.Unsuspendable(gvk, false), p.Unsuspendable(gvk, true)}, kind)
	}
}
