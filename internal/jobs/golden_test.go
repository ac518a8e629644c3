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
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	resourcehelper "k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// golden rewrites golden.yaml of each kind, which has everything that is read of its objects:
//
//	go test ./internal/jobs -run TestGolden -golden
//
// The directory of a kind below testdata/kinds has objects in every state as the operator makes them, their children,
// and pods.
var golden = flag.Bool("golden", false, "write golden.yaml of each kind anew")

// reading is what the queue reads of a job, for a person to check.
type reading struct {
	Suspended bool  `json:"suspended,omitempty"`
	Seen      bool  `json:"suspensionSeen,omitempty"`
	Started   bool  `json:"started,omitempty"`
	Running   int64 `json:"running,omitempty"`
	AllReady  bool  `json:"allReady,omitempty"`
	// ReadyOf the pod sets, in their order.
	ReadyOf []int64 `json:"readyOf,omitempty"`
	// Reclaimable pods, by pod set.
	Reclaimable map[string]int32 `json:"reclaimable,omitempty"`
	Active      int64            `json:"active,omitempty"`
	Ended       string           `json:"ended,omitempty"`
	Message     string           `json:"message,omitempty"`
	Invalid     string           `json:"invalid,omitempty"`
	Elsewhere   bool             `json:"managedByOther,omitempty"`
	Pods        string           `json:"pods"`
	Class       string           `json:"priorityClass,omitempty"`
	PodSets     []setReading     `json:"podSets"`
	// IfGang is the gang that the job would be, asked for or not.
	IfGang []Gang `json:"ifGang,omitempty"`
}

type setReading struct {
	Name    string              `json:"name"`
	Count   int32               `json:"count"`
	Least   *int32              `json:"minCount,omitempty"`
	Partial *int32              `json:"partial,omitempty"`
	Request corev1.ResourceList `json:"request"`
}

func read(t *testing.T, kind *jobkind.Kind, job *unstructured.Unstructured) reading {
	t.Helper()
	r := reading{
		Suspended: Open(kind, job).Suspended(), Seen: Open(kind, job).SuspensionSeen(), Started: Open(kind, job).Started(),
		Running: Open(kind, job).Running(), Active: Open(kind, job).Active(), Invalid: Open(kind, job).Invalid(),
		Elsewhere: Open(kind, job).ManagedByOther(), Pods: Open(kind, job).PodSelector().String(),
	}
	if end, ended := Open(kind, job).Ended(); ended {
		r.Ended, r.Message = map[bool]string{true: "Succeeded", false: "Failed"}[end.Succeeded], end.Message
	}
	priority, err := Open(kind, job).Priority()
	require.NoError(t, err)
	r.Class = priority.Class
	sets, err := Open(kind, job).PodSets()
	require.NoError(t, err)
	for i := range sets {
		request, err := (&podrequest.Creation{}).Request(sets[i].Template)
		require.NoError(t, err)
		r.PodSets = append(r.PodSets, setReading{sets[i].Name, sets[i].Count, sets[i].MinCount, sets[i].Least, request})
	}
	pods := int64(0)
	sizes := make([]PodSetSize, len(sets))
	for i := range sets {
		pods += int64(sets[i].Count)
		sizes[i] = PodSetSize{sets[i].Name, int64(sets[i].Count)}
	}
	r.ReadyOf = Open(kind, job).ReadyOf(sizes)
	r.AllReady, r.Reclaimable = Open(kind, job).AllReady(pods), Open(kind, job).Reclaimable()
	plain := job.DeepCopy()
	EditOf(kind, plain).RestoreTemplates(nil)
	r.IfGang = Gangs(Open(kind, plain), true)
	return r
}

func TestGoldenObjects(t *testing.T) {
	dirs, err := filepath.Glob("testdata/kinds/*")
	require.NoError(t, err)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
			require.NoError(t, err)
			readings := map[string]reading{}
			for _, file := range files {
				state := strings.TrimSuffix(filepath.Base(file), ".yaml")
				if state == "golden" {
					continue
				}
				kind, job := recorded(t, file)
				readings[state] = read(t, kind, job)
				t.Run(state, func(t *testing.T) {
					compact, err := compact.Expand(compact.Job(kind, job.DeepCopy(), false))
					require.NoError(t, err)
					_, child := Split(job)
					require.Equal(t, readings[state], read(t, kind, WithChild(kind, compact, child)), "as a cache has it")
					comesBack(t, kind, job)
				})
			}
			compareGolden(t, filepath.Join(dir, "golden.yaml"), readings)
		})
	}
}

func recorded(t *testing.T, file string) (*jobkind.Kind, *unstructured.Unstructured) {
	t.Helper()
	job := recordedObject(t, file)
	kind, ok := jobkind.Find(jobkind.KindString(job.GroupVersionKind()))
	require.True(t, ok, job.GroupVersionKind())
	child := filepath.Join(filepath.Dir(file), "children", filepath.Base(file))
	if _, err := os.Stat(child); err != nil || kind.Child == nil {
		return kind, WithChild(kind, job, nil)
	}
	return kind, WithChild(kind, job, compact.Child(kind, recordedObject(t, child)))
}

func recordedObject(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(text, &object.Object))
	return object
}

func compareGolden(t *testing.T, file string, readings map[string]reading) {
	t.Helper()
	text, err := yaml.Marshal(readings)
	require.NoError(t, err)
	if *golden {
		require.NoError(t, os.WriteFile(file, text, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

// comesBack: what resuming and suspending write into a job is taken back to the last field.
func comesBack(t *testing.T, kind *jobkind.Kind, before *unstructured.Unstructured) {
	t.Helper()
	if !Open(kind, before).Suspended() {
		return
	}
	before = before.DeepCopy()
	EditOf(kind, before).RestoreTemplates(nil) // some were recorded just before that
	job := before.DeepCopy()
	sets, err := Open(kind, job).PodSets()
	require.NoError(t, err)
	additions := map[string]Addition{}
	for i := range sets {
		additions[sets[i].Name] = Addition{
			Labels: map[string]string{
				v1alpha1.LabelQuotaName: "a", extension.LabelDisablePreemptible: "true",
			},
			Annotations: map[string]string{v1alpha1.AnnotationRelatedPodSet: sets[i].Name},
		}
	}
	require.NoError(t, EditOf(kind, job).AddToTemplates(additions))
	require.NoError(t, EditOf(kind, job).SetSuspend(false))
	require.False(t, Open(kind, job).Suspended())
	resumed, err := Open(kind, job).PodSets()
	require.NoError(t, err)
	places, err := Open(kind, job).podSets()
	require.NoError(t, err)
	for i := range resumed {
		if object, _ := places[i].MetadataAt(jobkind.LabelsKey); object == nil || places[i].Early {
			continue
		}
		require.Equal(t, "a", resumed[i].Template.Labels[v1alpha1.LabelQuotaName], resumed[i].Name)
		require.Equal(t, "true", resumed[i].Template.Labels[extension.LabelDisablePreemptible], resumed[i].Name)
		require.Equal(t, resumed[i].Name, resumed[i].Template.Annotations[v1alpha1.AnnotationRelatedPodSet])
	}
	require.NoError(t, EditOf(kind, job).SetSuspend(true))
	EditOf(kind, job).RestoreTemplates(nil)
	require.Equal(t, withoutEmptyMetadata(before.DeepCopy().Object), withoutEmptyMetadata(job.Object))
}

var emptyMeansNothing = map[string]bool{"metadata": true, "labels": true, "annotations": true}

// withoutEmptyMetadata: metadata without a field says nothing.
func withoutEmptyMetadata(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			item = withoutEmptyMetadata(item)
			if fields, ok := item.(map[string]any); ok && len(fields) == 0 && emptyMeansNothing[key] {
				delete(v, key)
			}
		}
	case []any:
		for _, item := range v {
			withoutEmptyMetadata(item)
		}
	}
	return value
}

// foundByOthers are pods that the label of their kind does not find. They run together with pods that the label finds.
var foundByOthers = map[string]bool{"rayjob/submitter": true}

// Pods as operators made them ask for what was read of their job, and bear the label by which they are found.
func TestGoldenPods(t *testing.T) {
	files, err := filepath.Glob("testdata/kinds/*/pods/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		dir, set := filepath.Dir(filepath.Dir(file)), strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(filepath.Join(filepath.Base(dir), set), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			pod := &corev1.Pod{}
			require.NoError(t, yaml.Unmarshal(text, pod))
			kind, job := recorded(t, filepath.Join(dir, "running.yaml"))
			if !foundByOthers[filepath.Base(dir)+"/"+set] {
				require.True(t, Open(kind, job).PodSelector().Matches(labels.Set(pod.Labels)), "%v", pod.Labels)
			}
			sets, err := Open(kind, job).PodSets()
			require.NoError(t, err)
			for i := range sets {
				if sets[i].Name != set {
					continue
				}
				request, err := (&podrequest.Creation{}).Request(sets[i].Template)
				require.NoError(t, err)
				want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
				require.True(t, equality.Semantic.DeepEqual(want, request), "asks for %v, estimated %v", want, request)
				return
			}
			t.Fatalf("no pod set is called %s", set)
		})
	}
}
