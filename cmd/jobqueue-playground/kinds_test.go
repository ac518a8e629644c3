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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/cases"
	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

func mixed(t *testing.T, n int, seed uint64) []cases.Submission {
	t.Helper()
	all, err := mixedWorkload(n, seed)
	require.NoError(t, err)
	require.Len(t, all, n)
	return all
}

// The table of kinds agrees with what the product says of them.
func TestMixedKindsAreAsDescribed(t *testing.T) {
	for i, kind := range mixedKinds() {
		t.Run(kind.Kind, func(t *testing.T) {
			described, ok := jobkind.Find(kind.String())
			require.True(t, ok)
			require.Equal(t, described.File(), kind.rights)
			require.Equal(t, described.GVR, kind.resource())
			if kind.file != "" {
				require.EqualValues(t, described.SuspendField, kind.suspend)
			}
			seen := append(followed(), schema.GroupResource{Group: "batch", Resource: "jobs"},
				schema.GroupResource{Resource: "pods"})
			for _, child := range described.Children {
				require.Contains(t, seen, child.GVR.GroupResource(), "or its pods would belong to nobody")
			}

			job := mixed(t, i+1, 1)[i]
			require.Equal(t, kind.GroupVersionKind, job.Object.GroupVersionKind())
			require.Equal(t, kind.resource(), job.Resource)
			require.Empty(t, jobs.Open(described, job.Object).Invalid())
			if described.Child == nil {
				pods, _ := asked(t, described, job.Object)
				require.Equal(t, job.Pods, pods)
			}
		})
	}
}

// asked is how many pods a job has, and how many cores they ask for.
func asked(t *testing.T, kind *jobkind.Kind, job *unstructured.Unstructured) (pods int, cores float64) {
	t.Helper()
	sets, err := jobs.Open(kind, job).PodSets()
	require.NoError(t, err)
	for _, set := range sets {
		pods += int(set.Count)
	}
	request, err := jobs.PodSetsRequest(sets, &podrequest.Creation{})
	require.NoError(t, err)
	return pods, request.Cpu().AsApproximateFloat64()
}

func TestMixedWorkloadFits(t *testing.T) {
	require.Equal(t, mixed(t, 50, 7), mixed(t, 50, 7))
	require.NotEqual(t, mixed(t, 50, 7), mixed(t, 50, 8))

	limits := map[string]float64{"team-research": 24, "team-platform": 24, "employees": 20, "interns": 12}
	total := map[string]float64{}
	suspended := map[bool]int{}
	for _, s := range mixed(t, 300, 1) {
		kind, ok := jobkind.Find(jobkind.KindString(s.Object.GroupVersionKind()))
		require.True(t, ok)
		quota := s.Object.GetLabels()[v1alpha1.LabelQuotaName]
		if kind.Child == nil {
			_, cores := asked(t, kind, s.Object)
			require.LessOrEqual(t, cores, limits[quota], "a %s that can never fit would never end", kind)
			total[quota] += cores
		}
		suspended[jobs.Open(kind, s.Object).Suspended()]++
	}
	for quota, limit := range limits {
		require.Greater(t, total[quota], 3*limit, "more than fits at once in %s", quota)
	}
	require.Greater(t, suspended[true], suspended[false])
	require.Positive(t, suspended[false], "some forget")
}

func TestSizeIsWrittenWhereverThereIsAPlaceForIt(t *testing.T) {
	object := map[string]any{"groups": []any{map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{controlplane.RunTimeAnnotation: "1h", "other": "1h"}},
		"spec": map[string]any{"containers": []any{map[string]any{
			"resources": map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "1Gi"}},
		}}},
	}}}, "driver": map[string]any{"coreRequest": "200m", "cores": int64(1)}}
	sized{runTime: time.Second, priority: "high", times: 5}.edit(object)
	require.Equal(t, map[string]any{"groups": []any{map[string]any{"template": map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{controlplane.RunTimeAnnotation: "1s", "other": "1h"}},
		"spec": map[string]any{"priorityClassName": "high", "containers": []any{map[string]any{
			"resources": map[string]any{"requests": map[string]any{"cpu": "500m", "memory": "1Gi"}},
		}}},
	}}}, "driver": map[string]any{"coreRequest": "1", "cores": int64(1)}}, object)
}

// A TrainJob needs its TrainingRuntime in each namespace.
func TestNeedsOfTrainJobs(t *testing.T) {
	objects, err := needs()
	require.NoError(t, err)
	require.Len(t, objects, 3)
	for i, namespace := range []string{"research", "platform", "lab"} {
		require.Equal(t, "TrainingRuntime", objects[i].GetKind())
		require.Equal(t, namespace, objects[i].GetNamespace())
	}
	for _, s := range mixed(t, 20, 1) {
		if s.Object.GetKind() == "TrainJob" {
			runtime, _, err := unstructured.NestedString(s.Object.Object, "spec", "runtimeRef", "name")
			require.NoError(t, err)
			require.Equal(t, objects[0].GetName(), runtime)
		}
	}
}

// object returns one with a UID, and what controls it if that is not nil.
func object(kind, name string, owner metav1.Object) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for _, k := range mixedKinds() {
		if k.Kind == kind {
			o.SetGroupVersionKind(k.GroupVersionKind)
		}
	}
	o.SetName(name)
	o.SetNamespace("research")
	o.SetUID(types.UID("job-" + name))
	o.SetOwnerReferences(controlledBy(owner))
	return o
}

func controlledBy(owner metav1.Object) []metav1.OwnerReference {
	if owner == nil {
		return nil
	}
	controller := true
	return []metav1.OwnerReference{{UID: owner.GetUID(), Controller: &controller}}
}

// trainJob feeds a view with a TrainJob, what is made for it, and as many bound pods as said; the job needs three.
func trainJob(t *testing.T, admitted bool, pods int) *view {
	t.Helper()
	v := newView(mixedKinds())
	take := func(object any) { require.NoError(t, v.take(observer.Change{Object: object})) }
	job := object("TrainJob", "train", nil)
	v.submitted(job, nil, time.Now())
	take(job)
	unit := &v1alpha1.QueueUnit{}
	unit.UID, unit.Namespace, unit.Name, unit.Spec.Queue = "unit", "research", "train-trainjob", "team-platform"
	unit.Spec.ConsumerRef = &corev1.ObjectReference{UID: job.GetUID()}
	unit.Status.Phase = v1alpha1.PhaseEnqueued
	if admitted {
		unit.Status.Phase = v1alpha1.PhaseRunning
	}
	take(unit)
	set := object("JobSet", "set", job)
	take(set)
	child := &batchv1.Job{}
	child.UID, child.OwnerReferences = "child", controlledBy(set)
	take(child)
	for i := range pods {
		pod := &corev1.Pod{}
		pod.UID, pod.OwnerReferences = types.UID("pod-"+string(rune('a'+i))), controlledBy(child)
		pod.Spec.NodeName = "node"
		take(pod)
		pod = pod.DeepCopy()
		pod.Status.Phase = corev1.PodSucceeded
		take(pod)
	}
	job = job.DeepCopy()
	require.NoError(t, unstructured.SetNestedSlice(job.Object, []any{
		map[string]any{"type": "Complete", "status": "True"},
	}, "status", "conditions"))
	take(job)
	return v
}

func TestPodsCountForTheTopmostJob(t *testing.T) {
	rules := func(v *view) (rules []checker.Rule) {
		_, _, _, violations := v.verdict()
		for _, violation := range violations {
			rules = append(rules, violation.Rule)
		}
		return rules
	}
	good := trainJob(t, true, 3)
	require.Empty(t, rules(good))
	require.Equal(t, 1, good.ended())
	require.Equal(t, []checker.Rule{checker.NotAdmitted}, rules(trainJob(t, false, 1))[:1])
	require.Equal(t, []checker.Rule{checker.RanTwice, checker.Lost}, rules(trainJob(t, true, 4)))
	require.Equal(t, []checker.Rule{checker.Lost}, rules(trainJob(t, true, 2)), "it says that it is complete")

	jobs := good.checks.Standing().Ended
	require.NoError(t, good.take(observer.Change{Object: object("TrainJob", "train", nil), Deleted: true}))
	require.Equal(t, jobs-1, good.checks.Standing().Ended)

	good = trainJob(t, true, 3)
	results := good.kindResults()
	require.Len(t, results, len(mixedKinds()))
	for _, result := range results {
		if result.Kind == "TrainJob" {
			require.Equal(t, []int{1, 1, 1, 1},
				[]int{result.submitted, result.done, len(result.waits), len(result.queues["team-platform"])})
			continue
		}
		require.Zero(t, result.submitted, "the JobSet and the Job of a TrainJob are no jobs of their own")
	}
	text := strings.Join(good.board(time.Now(), nil).lines(screen.Screen{}), "\n")
	require.Contains(t, text, "TrainJob 0/0/1 ")
	require.Contains(t, text, "JobSet 0/0/0")
}

func TestKindTable(t *testing.T) {
	require.Empty(t, kindTable(screen.Screen{}, nil), "the demo without kinds has none")
	waits := []time.Duration{time.Second, 3 * time.Second}
	var results []kindResult
	for _, kind := range mixedKinds() {
		results = append(results, kindResult{jobKind: &kind, submitted: 3, done: 2, waits: waits,
			queues: map[string][]time.Duration{"shared-lab": waits}})
	}
	text := strings.Join(kindTable(screen.Screen{}, results), "\n")
	require.Regexp(t, `PyTorchJob +3 +2 +1.0s +3.0s +- +- +2 +1.0s +- +training-operator`, text)
	require.Regexp(t, `SparkApplication .* played by a stand-in`, text)
	require.NotRegexp(t, `JobSet .* played`, text)
}
