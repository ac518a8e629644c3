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

package jobplan

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobask"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// plainPod asks for cpu in quota a.
func plainPod(name, group string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{v1alpha1.LabelQuotaName: "a"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if group != "" {
		pod.Labels[podgroup.LabelName] = group
		pod.Annotations = map[string]string{podgroup.AnnotationTotal: "2"}
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// The life of a group's unit: it stands for no object, waits for all pods, and goes with the last of them.
func TestPlanOfPodGroups(t *testing.T) {
	kind, ok := jobkind.Find("Pod.v1.")
	require.True(t, ok)
	group := func(pods ...*corev1.Pod) *scene {
		job, err := podgroup.Of(pods)
		require.NoError(t, err)
		return &scene{t: t, Situation: Situation{
			Now: epoch, Kind: kind, Managed: true, Terms: jobask.Terms{Creation: &podrequest.Creation{}},
			Job: jobs.Open(kind, job), FreshUnit: true,
		}}
	}
	running := func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning }
	done := func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
	a, b := plainPod("a", "ring"), plainPod("b", "ring")
	waiting, released := v1alpha1.PhaseEnqueued, v1alpha1.PhaseDequeued
	ofUnit := group(a, b).withUnit(waiting).Unit
	require.Nil(t, ofUnit.Spec.ConsumerRef)
	require.Empty(t, ofUnit.OwnerReferences)
	require.Equal(t, "ring-pods", ofUnit.Name)
	foreign := func(u *v1alpha1.QueueUnit) { delete(u.Labels, v1alpha1.LabelCreatedBy) }
	parked := func(u *v1alpha1.QueueUnit) { jobunit.Park(u, &jobunit.Problem{Reason: "x"}) }
	all := func(u *v1alpha1.QueueUnit) { u.Spec = ofUnit.Spec }
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		"it is new":        {group(a, b), "look at pods"},
		"it is on no node": {group(a, b).with(podsAre(BoundNone)), "create unit [Queued]"},
		"a pod is missing": {group(a).with(podsAre(BoundNone)), "create unit [Queued]"},
		"it is there now":  {group(a, b).withUnit(waiting).unit(parked), "patch unit"},
		"it waits":         {group(a, b).withUnit(waiting), ""},
		"it is admitted":   {group(a, b).withUnit(released), ""},
		"one of it has ended": {
			group(plainPod("a", "ring", done), plainPod("b", "ring", running)).withUnit(released).unit(all),
			"patch unit [Shrinks]",
		},
		"one of it was deleted": {
			group(plainPod("b", "ring", running)).withUnit(released).unit(all), "patch unit [Shrinks]",
		},
		"one of it was deleted, the other has ended": {
			group(plainPod("a", "ring", done)).withUnit(released).unit(all), "status Failed",
		},
		"all of it have ended": {
			group(plainPod("a", "ring", done), plainPod("b", "ring", done)).withUnit(released),
			"status Succeed",
		},
		"it ran before": {group(plainPod("a", "", running)), "look at pods"},
		"it runs, and is left": {group(plainPod("a", "", running)).with(podsAre(BoundSome)),
			"create unit adopted [Adopted]"},
		"its unit is another's": {group(a, b).withUnit(waiting).unit(foreign), "tell [NameTaken]"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(tc.scene.decide()))
		})
	}
	orphan := Situation{Now: epoch, Kind: kind, Unit: ofUnit, FreshJob: true}
	require.Equal(t, "delete unit", describe(Decide(orphan)))
	foreign(ofUnit)
	require.Empty(t, Decide(orphan), "somebody else's stays")
}
