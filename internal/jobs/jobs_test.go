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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/podupdate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podtemplate"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/jobobjects"
)

var batchJob, object, grouped = jobobjects.BatchJob, jobobjects.Object, jobobjects.Pod

const template = `
  template:
    spec:
      containers: [{name: c, resources: {requests: {cpu: 500m, memory: 1Gi}}}]
`

func TestPodSetsCount(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want int32
	}{
		"defaults":                          {"", 1},
		"parallelism":                       {"  parallelism: 4", 4},
		"completions bound":                 {"  parallelism: 4\n  completions: 3", 3},
		"completions beyond":                {"  parallelism: 4\n  completions: 30", 4},
		"part is done":                      {"  parallelism: 4\n  completions: 5\nstatus: {succeeded: 3}", 2},
		"all is done":                       {"  parallelism: 4\n  completions: 5\nstatus: {succeeded: 5}", 0},
		"zero":                              {"  parallelism: 0", 0},
		"work queue ignores what succeeded": {"  parallelism: 4\nstatus: {succeeded: 3}", 4},
		"whole number as float":             {"  parallelism: 4.0", 4},
	} {
		t.Run(name, func(t *testing.T) {
			sets, err := Open(batchJob(t), object(t, "spec:"+template+tc.spec)).PodSets()
			require.NoError(t, err)
			require.Len(t, sets, 1)
			require.Equal(t, "j", sets[0].Name)
			require.Equal(t, tc.want, sets[0].Count)
		})
	}
}

func TestPodSetsRefuse(t *testing.T) {
	for name, text := range map[string]string{
		"negative":          "spec:" + template + "  parallelism: -1",
		"word":              "spec:" + template + "  parallelism: many",
		"fraction":          "spec:" + template + "  parallelism: 1.5",
		"no template":       "spec: {parallelism: 1}",
		"template a string": "spec: {template: x}",
		"containers a map":  "spec: {template: {spec: {containers: {}}}}",
		"no container":      "spec: {template: {spec: {containers: []}}}",
		"init alone":        "spec: {template: {spec: {initContainers: [{name: i}]}}}",
		"endless quantity": "spec: {template: {spec: {containers: [{name: c, " +
			"resources: {requests: {cpu: \"1e-99999999\"}}}]}}}",
		"endless overhead": "spec: {template: {spec: {containers: [{name: c}], overhead: {cpu: \"1E+99999999\"}}}}",
		"long quantity": "spec: {template: {spec: {containers: [{name: c}], volumes: [{emptyDir: {sizeLimit: \"" +
			strings.Repeat("1", 70) + "\"}}]}}}",
		"bad quantity": "spec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: lots}}}]}}}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(batchJob(t), object(t, text)).PodSets()
			require.ErrorIs(t, err, podtemplate.ErrMalformed)
		})
	}
}

func TestQuota(t *testing.T) {
	const main, second, third = v1alpha1.LabelQuotaName, v1alpha1.LabelQuotaNameFallback1, v1alpha1.LabelQuotaNameFallback2
	for name, tc := range map[string]struct {
		job, pod map[string]any
		want     string
		mismatch bool
	}{
		"none":                         {nil, nil, "", false},
		"template":                     {nil, map[string]any{main: "a"}, "a", false},
		"job":                          {map[string]any{main: "a"}, nil, "a", false},
		"both agree":                   {map[string]any{main: "a"}, map[string]any{main: "a"}, "a", false},
		"disagree":                     {map[string]any{main: "b"}, map[string]any{main: "a"}, "a", true},
		"fallback":                     {map[string]any{second: "a"}, nil, "a", false},
		"second fallback":              {nil, map[string]any{third: "a"}, "a", false},
		"first fallback before second": {map[string]any{second: "a", third: "b"}, nil, "a", false},
		"name before fallbacks":        {map[string]any{main: "a", second: "b"}, nil, "a", false},
		"disagree by fallback":         {map[string]any{second: "b"}, map[string]any{main: "a"}, "a", true},
	} {
		t.Run(name, func(t *testing.T) {
			job := object(t, "")
			if tc.job != nil {
				require.NoError(t, unstructured.SetNestedMap(job.Object, tc.job, "metadata", "labels"))
			}
			if tc.pod != nil {
				require.NoError(t, unstructured.SetNestedMap(job.Object, tc.pod, "spec", "template", "metadata", "labels"))
			}
			got, err := Open(batchJob(t), job).Quota()
			require.Equal(t, tc.want, got)
			if tc.mismatch {
				require.ErrorIs(t, err, ErrQuotaMismatch)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestQueueAndPreemptible(t *testing.T) {
	k := batchJob(t)
	job := object(t, "metadata: {name: j, labels: {koord-queue/queue-name: l}, annotations: {koord-queue/queue-name: a}}")
	require.Equal(t, "a", Open(k, job).Queue(), "the annotation is read first")
	job.SetAnnotations(nil)
	require.Equal(t, "l", Open(k, job).Queue())
	job.SetLabels(map[string]string{v1alpha1.LabelPreemptible: "false"})
	require.Equal(t, "", Open(k, job).Queue())
	require.Equal(t, "false", Open(k, job).Preemptible())
	job.SetLabels(map[string]string{v1alpha1.LabelPreemptibleFallback: "false"})
	require.Equal(t, "false", Open(k, job).Preemptible(), "by the former label")
	job.SetLabels(map[string]string{v1alpha1.LabelPreemptible: "true", v1alpha1.LabelPreemptibleFallback: "false"})
	require.Equal(t, "true", Open(k, job).Preemptible(), "the former label counts where the other is absent")
	job.SetLabels(map[string]string{v1alpha1.LabelPreemptibleFallback: "false"})
	require.Equal(t, "", Open(&jobkind.Kind{}, job).Preemptible(), "its pods could not be given the label that counts")
}

func TestPreemptibleOfSeveralTemplates(t *testing.T) {
	k := &jobkind.Kind{Sets: []jobkind.Set{
		{Name: "leader", Templates: []jobkind.Path{jobkind.PathOf(".spec.leader")}},
		{Name: "worker", Templates: []jobkind.Path{jobkind.PathOf(".spec.worker")}},
	}}
	for _, tt := range []struct{ leader, worker, job, want string }{
		{"", "", "", ""},
		{"true", "", "", "true"},
		{"", "", "true", "true"},
		{"true", "false", "", "false"},
		{"true", "", "false", "false"},
		{"true", "true", "false", "true"},
		{"", "False", "", "False"},
	} {
		job := object(t, "{}")
		for key, value := range map[string]string{"leader": tt.leader, "worker": tt.worker} {
			if value != "" {
				require.NoError(t, unstructured.SetNestedField(job.Object, value, "spec", key, "metadata", "labels",
					v1alpha1.LabelPreemptible))
			}
		}
		if tt.job != "" {
			job.SetLabels(map[string]string{v1alpha1.LabelPreemptible: tt.job})
		}
		require.Equal(t, tt.want, Open(k, job).Preemptible(), "%+v", tt)
	}
}

func TestPriorityOf(t *testing.T) {
	value := func(n int32) *int32 { return &n }
	for name, tc := range map[string]struct {
		text string
		want Priority
		bad  bool
	}{
		"none": {"", Priority{OfPods: true}, false},
		"annotation": {"metadata: {name: j, annotations: {scheduling.x-k8s.io/priority: \"-7\"}}\n" +
			"spec: {template: {spec: {priorityClassName: high}}}", Priority{Value: value(-7), Class: "high"}, false},
		"class": {"spec: {template: {spec: {priorityClassName: high}}}", Priority{Class: "high", OfPods: true}, false},
		"number and class": {"spec: {template: {spec: {priorityClassName: high, priority: 9}}}",
			Priority{Value: value(9), Class: "high", OfPods: true}, false},
		"bad annotation": {"metadata: {name: j, annotations: {scheduling.x-k8s.io/priority: top}}\n" +
			"spec: {template: {spec: {priorityClassName: high}}}", Priority{Class: "high"}, true},
		"annotation beyond": {"metadata: {name: j, annotations: {scheduling.x-k8s.io/priority: \"2147483648\"}}",
			Priority{}, true},
		"number beyond": {"spec: {template: {spec: {priority: 2147483648}}}", Priority{OfPods: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Open(batchJob(t), object(t, tc.text)).Priority()
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.bad, err != nil)
		})
	}
}

func TestState(t *testing.T) {
	k := batchJob(t)
	job := object(t, `
spec: {suspend: true}
status:
  startTime: "2026-01-01T00:00:00Z"
  active: 3
  ready: 2
  conditions:
  - {type: Suspended, status: "True"}
  - {type: Complete, status: "False"}
`)
	require.True(t, Open(k, job).Suspended())
	require.True(t, Open(k, job).Started())
	require.True(t, Open(k, job).SuspensionSeen())
	require.Equal(t, int64(3), Open(k, job).Active())
	require.Equal(t, int64(2), Open(k, job).Running())
	_, ended := Open(k, job).Ended()
	require.False(t, ended)

	end, ended := Open(k, object(t, "status: {conditions: [{type: Complete, status: \"True\", message: done}]}")).Ended()
	require.True(t, ended)
	require.Equal(t, End{Succeeded: true, Message: "done"}, end)
	end, ended = Open(k, object(t,
		"status: {conditions: [{type: Complete, status: \"True\"}, {type: Failed, status: \"True\"}]}")).Ended()
	require.True(t, ended)
	require.False(t, end.Succeeded, "a job that says both has failed")
}

func TestTemplateAdditionsAreTakenBack(t *testing.T) {
	k := batchJob(t)
	before := object(t, `
metadata: {name: j, annotations: {mine: "1"}}
spec:
  suspend: true
  template: {metadata: {annotations: {mine: "2"}}, spec: {containers: [{name: c}]}}
`)
	job := before.DeepCopy()
	additions := map[string]Addition{"j": {
		Labels:      map[string]string{v1alpha1.LabelQuotaName: "a"},
		Annotations: map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "team/j", v1alpha1.AnnotationRelatedPodSet: "j"},
	}}
	require.NoError(t, EditOf(k, job).AddToTemplates(additions))
	sets, err := Open(k, job).PodSets()
	require.NoError(t, err)
	require.Equal(t, "a", sets[0].Template.Labels[v1alpha1.LabelQuotaName])
	require.Equal(t, "team/j", sets[0].Template.Annotations[v1alpha1.AnnotationRelatedQueueUnit])
	require.True(t, Open(k, job).HasAdditions())

	again := job.DeepCopy()
	require.NoError(t, EditOf(k, again).AddToTemplates(additions))
	require.Equal(t, job, again, "adding twice is adding once")

	require.True(t, EditOf(k, job).RestoreTemplates(nil))
	require.Equal(t, before, job)
	require.False(t, EditOf(k, job).RestoreTemplates(nil))

	forged := object(t, "spec: {template: {metadata: {annotations: {koord-queue/related-podset-name: forged}}}}")
	require.NoError(t, EditOf(k, forged).AddToTemplates(additions))
	require.True(t, EditOf(k, forged).RestoreTemplates(nil))
	require.Equal(t, object(t, "spec: {template: {}}"), forged, "a value of somebody else under a key of ours is gone")
}

// The record is an annotation of the job, so its owner can forge it. A forged record adds nothing to a template, and
// removes only keys that resuming writes (C0).
func TestAForgedRecordPutsNothingIntoTemplates(t *testing.T) {
	k := batchJob(t)
	for name, record := range map[string]string{
		"another quota":           `{"j":{"labels":{"quota.scheduling.koordinator.sh/name":"victim"}}}`,
		"another spelling of it":  `{"j":{"labels":{"alibabacloud.com/quota-name":"victim"}}}`,
		"another label":           `{"j":{"labels":{"app":"victim","mine":null}}}`,
		"another unit":            `{"j":{"annotations":{"koord-queue/related-queueunit":"victim/unit"}}}`,
		"another annotation":      `{"j":{"annotations":{"koord-queue/queue-name":"victim","note":null}}}`,
		"an empty label":          `{"j":{"labels":{"quota.scheduling.koordinator.sh/name":""}}}`,
		"preemptible, once again": `{"j":{"labels":{"quota.scheduling.koordinator.sh/preemptible":"true"}}}`,
		"against preemption":      `{"j":{"labels":{"scheduling.koordinator.sh/disable-preemptible":"true"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, metadata := range []string{"", "labels: {mine: a}, annotations: {note: b}"} {
				job := object(t, "spec: {template: {metadata: {"+metadata+"}, spec: {containers: [{name: c}]}}}")
				want := job.DeepCopy()
				if metadata == "" {
					unstructured.RemoveNestedField(want.Object, "spec", "template", "metadata")
				}
				job.SetAnnotations(map[string]string{v1alpha1.AnnotationTemplateAdditions: record})
				require.True(t, EditOf(k, job).RestoreTemplates(nil))
				require.Equal(t, want, job)
			}
		})
	}
}

// Updates of admission checks are added to the template, and removed again.
func TestUpdatesOfChecksAreTakenBack(t *testing.T) {
	k := batchJob(t)
	before := object(t, `
metadata: {name: j}
spec:
  suspend: true
  template:
    metadata: {labels: {mine: a}}
    spec: {containers: [{name: c}], nodeSelector: {pool: a}, tolerations: [{key: mine, operator: Exists}]}
`)
	seconds := int64(300)
	update := podupdate.Update{
		Labels: map[string]string{"mine": "a", "theirs": "b"}, Annotations: map[string]string{"note": "c"},
		NodeSelector: map[string]string{"pool": "a", "zone": "z"},
		Tolerations: []corev1.Toleration{
			{Key: "mine", Operator: "Exists"}, {Key: "theirs", Operator: "Exists", TolerationSeconds: &seconds},
		},
	}
	all := map[string][]podupdate.Update{"j": {{NodeSelector: map[string]string{"zone": "y"}}, update}}
	additions := map[string]Addition{"j": {Labels: map[string]string{v1alpha1.LabelQuotaName: "q"}, Update: update}}
	job := before.DeepCopy()
	require.NoError(t, EditOf(k, job).AddToTemplates(additions))
	sets, err := Open(k, job).PodSets()
	require.NoError(t, err)
	template := sets[0].Template
	require.Equal(t, map[string]string{"mine": "a", "theirs": "b", v1alpha1.LabelQuotaName: "q"}, template.Labels)
	require.Equal(t, map[string]string{"note": "c"}, template.Annotations)
	require.Equal(t, map[string]string{"pool": "a", "zone": "z"}, template.Spec.NodeSelector)
	require.Len(t, template.Spec.Tolerations, 2)
	require.True(t, Open(k, job).HasUpdates())

	again := job.DeepCopy()
	require.NoError(t, EditOf(k, again).AddToTemplates(additions))
	require.Equal(t, job, again, "adding twice is adding once")

	left := job.DeepCopy()
	require.True(t, EditOf(k, left).RestoreTemplates(nil))
	sets, err = Open(k, left).PodSets()
	require.NoError(t, err)
	require.Equal(t, template.Spec, sets[0].Template.Spec, "the record is the word of the job's owner alone")
	require.Equal(t, map[string]string{"mine": "a", "theirs": "b"}, sets[0].Template.Labels)

	require.True(t, EditOf(k, job).RestoreTemplates(all))
	require.Equal(t, before, job)
	require.False(t, Open(k, job).HasUpdates())

	forged := before.DeepCopy()
	forged.SetAnnotations(map[string]string{v1alpha1.AnnotationTemplateAdditions: `{"j":{"update":{"labels":["mine"],` +
		`"nodeSelector":["pool"],"tolerations":[{"key":"mine","operator":"Exists"}]}}}`})
	asked := map[string][]podupdate.Update{"j": {
		{NodeSelector: map[string]string{"pool": "b"}, Tolerations: []corev1.Toleration{{Key: "x"}}},
	}}
	require.True(t, EditOf(k, forged).RestoreTemplates(asked))
	require.Equal(t, before, forged)
}

// Trainer applies the JobSet of a TrainJob once more when it resumes the job. Node selectors and tolerations of its
// runtime and its patches replace the present ones. The pods would wait for the update without end.
func TestUpdatesThatAnOperatorUndoes(t *testing.T) {
	k, ok := jobkind.Find("TrainJob.v1alpha1.trainer.kubeflow.org")
	require.True(t, ok)
	add := func(spec string, update podupdate.Update) error {
		child := object(t, "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, "+
			"spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: "+spec+"}}}}]}}")
		job := WithChild(k, object(t, "{metadata: {name: j}, spec: {suspend: true}}"), child)
		return EditOf(k, job).AddToTemplates(map[string]Addition{"node": {Update: update}})
	}
	selects := podupdate.Update{NodeSelector: map[string]string{"zone": "a"}}
	tolerates := podupdate.Update{Tolerations: []corev1.Toleration{{Key: "theirs", Operator: "Exists"}}}
	require.NoError(t, add("{containers: []}", selects))
	require.NoError(t, add("{containers: []}", tolerates))
	require.NoError(t, add("{containers: [], tolerations: [{key: mine}]}", selects))
	require.NoError(t, add("{containers: [], nodeSelector: {pool: b}}", tolerates))
	require.NoError(t, add("{containers: [], nodeSelector: {pool: b, zone: a}}", selects), "its patch says it")
	require.NoError(t, add("{containers: [], tolerations: [{key: mine}, {key: theirs, operator: Exists}]}", tolerates))
	for _, err := range []error{
		add("{containers: [], nodeSelector: {pool: b}}", selects),
		add("{containers: [], tolerations: [{key: mine}]}", tolerates),
	} {
		require.ErrorIs(t, err, ErrConflict)
		require.ErrorContains(t, err, "its operator replaces")
	}
}

// A check may not contradict the template, nor write keys of the queue.
func TestUpdatesThatCannotBe(t *testing.T) {
	type update = podupdate.Update
	k := batchJob(t)
	job := object(t, "spec: {template: {metadata: {labels: {a: b}}, spec: {containers: [], nodeSelector: {zone: a}}}}")
	before := job.DeepCopy()
	for name, tc := range map[string]struct {
		update update
		want   error
	}{
		"a label":            {update{Labels: map[string]string{"a": "c"}}, ErrConflict},
		"a node selector":    {update{NodeSelector: map[string]string{"zone": "b"}}, ErrConflict},
		"a quota":            {update{Labels: map[string]string{v1alpha1.LabelQuotaName: "q"}}, ErrNotAddable},
		"an old quota label": {update{Labels: map[string]string{"alibabacloud.com/quota-name": "q"}}, ErrNotAddable},
		"a unit": {update{Annotations: map[string]string{v1alpha1.AnnotationRelatedQueueUnit: "u"}},
			ErrNotAddable},
		"a gang":            {update{Annotations: map[string]string{extension.AnnotationGangName: "g"}}, ErrNotAddable},
		"a PodGroup":        {update{Labels: map[string]string{"pod-group.scheduling.sigs.k8s.io": "g"}}, ErrNotAddable},
		"a PodGroup's name": {update{Labels: map[string]string{"pod-group.scheduling.sigs.k8s.io/name": "g"}}, ErrNotAddable},
		"a group of pods":   {update{Labels: map[string]string{podgroup.LabelName: "g"}}, ErrNotAddable},
		"a number of pods":  {update{Annotations: map[string]string{podgroup.AnnotationTotal: "2"}}, ErrNotAddable},
	} {
		t.Run(name, func(t *testing.T) {
			err := EditOf(k, job).AddToTemplates(map[string]Addition{"j": {Update: tc.update}})
			require.ErrorIs(t, err, tc.want)
			require.Equal(t, before, job)
		})
	}
}

func TestOnlyWhatCanBeTakenBackIsAdded(t *testing.T) {
	k := batchJob(t)
	job := object(t, "spec: {template: {spec: {containers: []}}}")
	before := job.DeepCopy()
	for _, addition := range []Addition{
		{Labels: map[string]string{"x": "1"}}, {Annotations: map[string]string{v1alpha1.QueueNameKey: "q"}},
	} {
		require.ErrorIs(t, EditOf(k, job).AddToTemplates(map[string]Addition{"j": addition}), ErrNotAddable)
		require.Equal(t, before, job)
	}
}

func TestMarks(t *testing.T) {
	job := object(t, "")
	before := job.DeepCopy()
	EditOf(batchJob(t), job).MarkSuspended()
	require.True(t, Open(batchJob(t), job).SuspendedByUs())
	EditOf(batchJob(t), job).UnmarkSuspended()
	require.False(t, Open(batchJob(t), job).SuspendedByUs())
	require.Equal(t, before, job, "no empty map is left")
	job.SetAnnotations(map[string]string{v1alpha1.AnnotationTemplateAdditions: "not json", "other": "1"})
	require.True(t, EditOf(batchJob(t), job).RestoreTemplates(nil), "an unreadable record is dropped")
	require.Equal(t, map[string]string{"other": "1"}, job.GetAnnotations())
}

func TestManagedByOther(t *testing.T) {
	k := batchJob(t)
	require.False(t, Open(k, object(t, "")).ManagedByOther())
	require.False(t, Open(k, object(t, "spec: {managedBy: kubernetes.io/job-controller}")).ManagedByOther())
	require.True(t, Open(k, object(t, "spec: {managedBy: kueue.x-k8s.io/multikueue}")).ManagedByOther())
}

// FuzzKind feeds objects of any shape to the adapter: it must neither panic nor forget what it promises.
func FuzzKind(f *testing.F) {
	for _, seed := range []string{
		"{}", "spec: {}", "spec: {parallelism: x, template: []}", "metadata: {labels: [1], annotations: 3}",
		"spec:" + template, "spec: {suspend: yes, template: {metadata: {labels: {a: 1}, annotations: []}}}",
		"status: {conditions: {type: x}, ready: -1, active: 1e300, startTime: 3}",
		"status: {conditions: [1, {type: Complete, status: \"True\"}]}",
		"metadata: {annotations: {koord-queue/template-additions: '{\"j\":{\"labels\":{\"a\":null}}}'}}\n" +
			"spec: {template: {metadata: {labels: {a: b}}}}",
		"spec: {parallelism: 2147483647, template: {spec: {containers: [{resources: {requests: {cpu: 9e18, " +
			"memory: 9Ei}}}]}}}",
	} {
		f.Add(seed)
	}
	kinds := jobkind.Builtin()
	f.Fuzz(func(t *testing.T, text string) {
		job := &unstructured.Unstructured{Object: map[string]any{}}
		if yaml.Unmarshal([]byte(text), &job.Object) != nil || job.Object == nil {
			return
		}
		for i := range kinds {
			tryKind(t, &kinds[i], job.DeepCopy())
		}
	})
}

// tryKind reads and edits an object of any shape as a job of the kind.
func tryKind(t *testing.T, k *jobkind.Kind, job *unstructured.Unstructured) {
	t.Helper()
	job.SetGroupVersionKind(k.GVK)
	_, _, _, _ = Open(k, job).Suspended(), Open(k, job).Started(), Open(k, job).SuspensionSeen(), Open(k, job).Invalid()
	_ = Open(k, job).PodSelector()
	_, _ = Open(k, job).Ended()
	_, _ = Open(k, job).Priority()
	_, _ = Open(k, job).Quota()
	_, _ = Open(k, job).Queue(), Open(k, job).Preemptible()
	require.GreaterOrEqual(t, Open(k, job).Active(), int64(0))
	require.GreaterOrEqual(t, Open(k, job).Running(), int64(0))
	if sets, err := Open(k, job).PodSets(); err == nil {
		if request, err := PodSetsRequest(sets, &podrequest.Creation{}); err == nil {
			for name, quantity := range request {
				require.GreaterOrEqual(t, quantity.Sign(), 0, name)
			}
		}
	}
	edited := job.DeepCopy()
	EditOf(k, edited).RestoreTemplates(nil)
	for _, gang := range Gangs(Open(k, edited), true) {
		require.Greater(t, gang.Minimum, int32(1))
	}
	additions := map[string]Addition{
		job.GetName(): {Labels: map[string]string{v1alpha1.LabelQuotaName: "b"}},
	}
	if EditOf(k, edited).AddToTemplates(additions) == nil {
		EditOf(k, edited).RestoreTemplates(nil)
		require.False(t, Open(k, edited).HasAdditions())
	}
	if EditOf(k, edited).SetSuspend(true) == nil && k.CanBeSuspended() {
		require.True(t, Open(k, edited).Suspended())
	}
}

func templateOfSpec(t *testing.T, spec string) *corev1.PodTemplateSpec {
	t.Helper()
	out := &corev1.PodTemplateSpec{}
	require.NoError(t, yaml.UnmarshalStrict([]byte("spec: "+spec), out))
	return out
}

func TestPodSetsRequest(t *testing.T) {
	one := templateOfSpec(t, "{containers: [{name: a, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}")
	got, err := PodSetsRequest([]PodSet{{Name: "a", Count: 3, Template: one}, {Name: "b", Count: 2, Template: one}},
		&podrequest.Creation{})
	require.NoError(t, err)
	require.Equal(t, "500m", got.Cpu().String())
	require.Equal(t, "5Gi", got.Memory().String())

	huge := templateOfSpec(t, "{containers: [{name: a, resources: {requests: {memory: 4Ei}}}]}")
	_, err = PodSetsRequest([]PodSet{{Name: "a", Count: 2, Template: huge}}, &podrequest.Creation{})
	require.ErrorIs(t, err, podrequest.ErrRequest)
	_, err = PodSetsRequest([]PodSet{{Name: "a", Count: 1, Template: huge}, {Name: "b", Count: 1, Template: huge}},
		&podrequest.Creation{})
	require.ErrorIs(t, err, podrequest.ErrRequest)
	_, err = podrequest.Times(got, -1)
	require.ErrorIs(t, err, podrequest.ErrRequest)
	none, err := PodSetsRequest([]PodSet{{Name: "a", Count: 0, Template: huge}}, &podrequest.Creation{})
	require.NoError(t, err)
	require.True(t, none.Memory().IsZero())
}
