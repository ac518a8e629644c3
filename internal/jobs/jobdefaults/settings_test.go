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

package jobdefaults

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/alias"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

var all = Settings{
	Gang: &Gang{WaitTime: "5m", Mode: "NonStrict"}, Preemptible: ptr.To(false), PriorityClassName: "batch",
	MaxExecutionTime: "24h", Grace: "1m30s",
}

// train is a job of two pod sets that says nothing.
func train(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train, namespace: n}
spec:
  pytorchReplicaSpecs:
    Master: {template: {metadata: {}, spec: {}}}
    Worker: {replicas: 4, template: {metadata: {}, spec: {}}}
`), &object.Object))
	return object
}

func open(t *testing.T, object *unstructured.Unstructured) *jobs.Job {
	t.Helper()
	kind, ok := jobkind.Find("PyTorchJob.v1.kubeflow.org")
	require.True(t, ok)
	return jobs.Open(kind, object)
}

// reading is what is read of a job.
type reading struct {
	preemptible, class, time, grace string
	gangs                           []jobs.Gang
}

func readingOf(t *testing.T, job *jobs.Job) reading {
	t.Helper()
	priority, err := job.Priority()
	require.NoError(t, err)
	annotations := job.Object.GetAnnotations()
	return reading{
		preemptible: job.Preemptible(), class: priority.Class,
		time: annotations[v1alpha1.AnnotationMaxExecutionTime], grace: annotations[v1alpha1.AnnotationGrace],
		gangs: jobs.Gangs(job, false),
	}
}

func TestApply(t *testing.T) {
	gang := jobs.Gang{PodSets: []string{"master", "worker"}, Minimum: 5, Mode: "NonStrict", WaitTime: "5m"}
	full := reading{preemptible: "false", class: "batch", time: "86400", grace: "90", gangs: []jobs.Gang{gang}}
	worker := []string{"spec", "pytorchReplicaSpecs", "Worker", "template"}
	for name, tc := range map[string]struct {
		value any
		at    []string
		want  func(*reading)
	}{
		"it says nothing": {"x", []string{"metadata", "labels", "other"}, func(*reading) {}},
		"its time": {"60", []string{"metadata", "annotations", v1alpha1.AnnotationMaxExecutionTime},
			func(r *reading) { r.time = "60" }},
		"a time that is none": {"", []string{"metadata", "annotations", v1alpha1.AnnotationMaxExecutionTime},
			func(r *reading) { r.time = "" }},
		"its grace": {"0", []string{"metadata", "annotations", v1alpha1.AnnotationGrace},
			func(r *reading) { r.grace = "0" }},
		"preemptible by its label": {"true", []string{"metadata", "labels", v1alpha1.LabelPreemptible},
			func(r *reading) { r.preemptible = "true" }},
		"preemptible by the former label of a template": {"true",
			append(worker, "metadata", "labels", v1alpha1.LabelPreemptibleFallback),
			func(r *reading) { r.preemptible = "true" }},
		"a class on a template": {"high", append(worker, "spec", "priorityClassName"),
			func(r *reading) { r.class = "high" }},
		"a class in a field of its kind": {"high", []string{"spec", "runPolicy", "schedulingPolicy", "priorityClass"},
			func(r *reading) { r.class = "high" }},
		"a priority on a template": {int64(5), append(worker, "spec", "priority"), func(r *reading) { r.class = "" }},
		"its number keeps the class as a bound": {"5", []string{"metadata", "annotations", v1alpha1.AnnotationPriority},
			func(*reading) {}},
		"a gang of its own": {"mine", append(worker, "metadata", "annotations", extension.AnnotationGangName),
			func(r *reading) { r.gangs = nil }},
		"no gang": {"1", append(worker, "metadata", "annotations", extension.AnnotationGangMinNum),
			func(r *reading) { r.gangs = nil }},
		"its waiting time": {"1m", append(worker, "metadata", "annotations", extension.AnnotationGangWaitTime),
			func(r *reading) { r.gangs[0].WaitTime = "" }},
		"its mode": {"Strict", append(worker, "metadata", "annotations", extension.AnnotationGangMode),
			func(r *reading) { r.gangs[0].Mode = "" }},
		"how many pods it needs": {int64(3), []string{"spec", "runPolicy", "schedulingPolicy", "minAvailable"},
			func(r *reading) { r.gangs[0].Minimum = 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			object := train(t)
			require.NoError(t, unstructured.SetNestedField(object.Object, tc.value, tc.at...))
			job := open(t, object)
			job.Alias = alias.Names{Queue: "q"}
			before := object.DeepCopy()
			want := full
			want.gangs = []jobs.Gang{gang}
			tc.want(&want)
			read := all.Apply(job)
			require.Equal(t, want, readingOf(t, read))
			require.Equal(t, "q", read.Queue())
			require.Equal(t, before, object, "the object belongs to an informer")
		})
	}
	job := open(t, train(t))
	require.Same(t, job, (*Settings)(nil).Apply(job))
	require.Equal(t, reading{}, readingOf(t, (&Settings{}).Apply(job)))
}

func TestCheck(t *testing.T) {
	require.NoError(t, all.Check())
	require.NoError(t, (&Settings{}).Check())
	for want, s := range map[string]Settings{
		"priorityClassName: \"Batch\"":        {PriorityClassName: "Batch"},
		"gang.waitTime: \"-5m\"":              {Gang: &Gang{WaitTime: "-5m"}},
		"gang.mode: \"strict\"":               {Gang: &Gang{Mode: "strict"}},
		"maxExecutionTime: \"1d\"":            {MaxExecutionTime: "1d"},
		"maxExecutionTime: \"1500ms\"":        {MaxExecutionTime: "1500ms"},
		"maxExecutionTime: \"600000h\"":       {MaxExecutionTime: "600000h"},
		"grace: \"0s\" is no time as \"30m\"": {Grace: "0s"},
	} {
		require.ErrorContains(t, s.Check(), want)
	}
}

// Others than the controller may write the annotation of a unit.
func TestRead(t *testing.T) {
	require.Equal(t, &all, Read(all.Text()))
	require.Nil(t, Read((*Settings)(nil).Text()))
	for _, text := range []string{
		"", "x", "[]", `{"grace":"-1s"}`, `{"kind":"a"}`, `{"grace":"` + strings.Repeat(" ", maxText) + `"}`,
	} {
		require.Nil(t, Read(text), text)
	}
}

// A label of another system is the word of the job, so it goes before a default.
func TestALabelOfAnotherSystemGoesBeforeADefault(t *testing.T) {
	seven := int32(7)
	job := open(t, train(t))
	job.Further = alias.Further{MaximumTime: "60", Priority: &seven}
	read := all.Apply(job)
	require.Equal(t, job.Further, read.Further)
	require.NotContains(t, read.Object.GetAnnotations(), v1alpha1.AnnotationMaxExecutionTime)
	priority, err := read.Priority()
	require.NoError(t, err)
	require.Equal(t, &seven, priority.Value)
}
