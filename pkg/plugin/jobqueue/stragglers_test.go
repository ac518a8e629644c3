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

package jobqueue

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

type stragglerTest struct {
	*world
	*stragglers
	pods      map[string]*corev1.Pod
	ready     bool
	activated []string
	reported  []string
}

func newStragglerTest(t *testing.T) *stragglerTest {
	t.Helper()
	st := &stragglerTest{world: newWorld(), pods: map[string]*corev1.Pod{}, ready: true}
	s := newStragglers(st.world.clock, 30*time.Second)
	s.gate = st.world.gate(t, managedjobs.Jobs{})
	s.gate.Watch = s.watch
	s.pod = func(_, name string) *corev1.Pod { return st.pods[name] }
	s.activate = func(pods []*corev1.Pod) bool {
		for _, pod := range pods {
			st.activated = append(st.activated, pod.Name)
		}
		return st.ready
	}
	s.report = func(pod *corev1.Pod, v verdict) {
		st.reported = append(st.reported,
			map[verdict]string{unknown: "unknown ", unseen: "unseen ", overdue: "overdue "}[v]+pod.Name)
	}
	st.stragglers = s
	return st
}

func (st *stragglerTest) hold(name, job string, labels map[string]string) *corev1.Pod {
	pod := jobPod(job, labels)
	pod.Name, pod.UID = name, types.UID(name)
	st.pods[name] = pod
	st.stragglers.gate.Check(pod)
	return pod
}

func TestAPodGoesOnWhenItsJobTurnsOutNotToBeManaged(t *testing.T) {
	st := newStragglerTest(t)
	st.hold("p", "j", unlabelled)
	st.look()
	require.Empty(t, st.activated)
	st.jobs["j"] = Job{}
	st.arrived("somebody else")
	require.Empty(t, st.kick)
	st.arrived("j")
	require.Len(t, st.kick, 1, "the arrival of its job does not wait for the next tick")
	st.ready = false
	st.look()
	st.ready = true
	st.look()
	require.Equal(t, []string{"p", "p"}, st.activated, "a replica that does not lead keeps it in mind")
	st.look()
	require.Len(t, st.activated, 2)
	require.Empty(t, st.stragglers.pods)
	require.Empty(t, st.owners)
}

// The job is resumed while the gate judges a pod of it: by the time at which the pod is watched nothing is to come.
func TestAPodWhoseJobIsResumedMeanwhileIsNotHeld(t *testing.T) {
	st := newStragglerTest(t)
	st.snapshot.consumers["j"] = true
	st.jobs["j"] = Job{Annotations: map[string]string{v1alpha1.AnnotationSuspendedBy: "jobqueue-controller"}}
	st.stragglers.gate.Watch = func(pod *corev1.Pod, unseen bool) {
		st.jobs["j"] = Job{}
		st.arrived("j")
		st.watch(pod, unseen)
	}
	require.Nil(t, st.stragglers.gate.Check(jobPod("j", quotaLabel)))
	require.Empty(t, st.kick)
}

// If jobs without a queue do not run, only a label on the job releases a pod.
func TestAPodOfAJobWithoutLabelsIsHandedOverWhenItGetsOne(t *testing.T) {
	st := newStragglerTest(t)
	st.stragglers.gate = st.world.gate(t, managedjobs.Jobs{UnmanagedJobs: managedjobs.UnmanagedGate})
	st.stragglers.gate.Watch = st.watch
	st.jobs["j"] = Job{}
	st.hold("p", "j", unlabelled)
	st.world.clock.Step(time.Hour)
	st.look()
	require.Empty(t, st.activated)
	require.Empty(t, st.reported, "its job has the event")
	st.jobs["j"] = Job{Labels: quotaLabel}
	st.arrived("j")
	require.Len(t, st.kick, 1)
	st.snapshot.consumers["j"] = false
	st.look()
	require.Empty(t, st.stragglers.pods)
}

func TestAPodIsHandedOverToItsUnit(t *testing.T) {
	st := newStragglerTest(t)
	st.hold("p", "j", quotaLabel)
	st.hold("p", "j", quotaLabel)
	st.snapshot.consumers["j"] = false
	st.look()
	require.Empty(t, st.stragglers.pods)
	require.Empty(t, st.activated)
}

func TestPodsThatAreGoneAreForgotten(t *testing.T) {
	st := newStragglerTest(t)
	st.hold("gone", "j", quotaLabel)
	st.hold("replaced", "j", quotaLabel)
	st.hold("bound", "j", quotaLabel)
	delete(st.pods, "gone")
	st.pods["replaced"] = jobPod("j", quotaLabel)
	st.pods["bound"] = st.pods["bound"].DeepCopy()
	st.pods["bound"].Spec.NodeName = "n"
	st.look()
	require.Empty(t, st.stragglers.pods)
	require.Empty(t, st.owners)
}

func TestAPodWithoutAUnitIsReportedOnceWhenItsGraceIsOver(t *testing.T) {
	st := newStragglerTest(t)
	st.hold("p", "j", quotaLabel)
	st.world.clock.Step(30 * time.Second)
	st.look()
	require.Empty(t, st.reported)
	st.world.clock.Step(time.Second)
	st.look()
	st.look()
	require.Equal(t, []string{"unknown p"}, st.reported)
	require.Empty(t, st.activated)
	st.stragglers.gate.PassUnknown = true
	st.hold("q", "k", quotaLabel)
	st.look()
	require.Equal(t, []string{"p"}, st.activated, "q passed by itself")
}

func TestAPodThatIsLetGoIsReportedToo(t *testing.T) {
	st := newStragglerTest(t)
	st.stragglers.gate.PassUnknown = true
	st.hold("p", "j", quotaLabel)
	st.world.clock.Step(time.Minute)
	st.look()
	require.Equal(t, []string{"overdue p"}, st.reported)
	require.Equal(t, []string{"p"}, st.activated)
}

func TestRunLooksAtEveryTickAndArrival(t *testing.T) {
	st := newStragglerTest(t)
	st.hold("p", "j", unlabelled)
	st.jobs["j"] = Job{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { st.run(ctx); close(done) }()
	st.arrived("j")
	require.Eventually(t, func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.stragglers.pods) == 0 },
		10*time.Second, time.Millisecond)
	cancel()
	<-done
}

func TestJobIndexFindsJobsByUID(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	job := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "j", UID: "u", Labels: quotaLabel,
			Annotations: map[string]string{v1alpha1.QueueNameKey: "x",
				"kubectl.kubernetes.io/last-applied-configuration": "long"},
			OwnerReferences: []metav1.OwnerReference{*ownedBy("Workflow", "argoproj.io/v1", "w")},
			ManagedFields:   []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, job)
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	arrived := make(chan types.UID, 8)
	predicate, err := managedjobs.NewPredicate(managedjobs.Jobs{})
	require.NoError(t, err)
	index, err := NewJobIndex(factory, predicate, func(uid types.UID) { arrived <- uid })
	require.NoError(t, err)
	_, seen := index.Job("u")
	require.False(t, seen)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	require.Equal(t, types.UID("u"), <-arrived)
	found, seen := index.Job("u")
	require.True(t, seen)
	require.Equal(t, quotaLabel, found.Labels)
	require.Equal(t, map[string]string{v1alpha1.QueueNameKey: "x"}, found.Annotations)
	require.Equal(t, types.UID("w"), found.Owner.UID)
	_, seen = index.Job("v")
	require.False(t, seen)
}

func TestPodsOfAnAdmittedJobGoOnWhenItIsResumed(t *testing.T) {
	st := newStragglerTest(t)
	st.snapshot.consumers["j"] = true
	st.jobs["j"] = Job{Annotations: map[string]string{v1alpha1.AnnotationSuspendedBy: v1alpha1.CreatedByController}}
	st.hold("p", "j", quotaLabel)
	st.world.clock.Step(time.Hour)
	st.look()
	require.Empty(t, st.activated)
	require.Empty(t, st.reported, "the unit is there: nothing is missing")
	st.jobs["j"] = Job{}
	st.arrived("j")
	require.Len(t, st.kick, 1)
	st.look()
	require.Equal(t, []string{"p"}, st.activated)
}
