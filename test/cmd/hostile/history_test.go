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
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/observer"
)

// book is a history that is written by hand.
type book struct {
	*history
	t        *testing.T
	revision int64
}

func (b *book) write(object any) {
	b.t.Helper()
	b.revision++
	require.NoError(b.t, b.note(observer.Change{Object: object, Revision: b.revision}))
}

func newBook(t *testing.T) *book {
	t.Helper()
	client := fake.NewClientset()
	b := &book{history: newHistory(newWorker(client, victimLoad), newWorker(client, honestLoad), true), t: t}
	b.write(&unstructured.Unstructured{Object: map[string]any{
		"kind":     "ElasticQuota",
		"metadata": map[string]any{"name": victimQuota, "labels": map[string]any{v1alpha1.LabelQuotaParent: companyQuota}},
		"spec":     map[string]any{"max": map[string]any{"cpu": "10"}},
	}})
	return b
}

// runs plays the life of a job of the victim, which is admitted or not.
func (b *book) runs(admitted bool) {
	uid := b.victim.submit(b.t.Context())
	job := victimLoad.job(1)
	job.UID = "j"
	b.victim.jobs = map[string]string{"j": victimNamespace + "/" + job.Name}
	require.Empty(b.t, uid, "the fake gives none")
	b.write(job)
	unit := unitOf("u", victimQuota, "1")
	unit.Namespace = victimNamespace
	unit.Spec.ConsumerRef = &corev1.ObjectReference{UID: "j"}
	unit.Status.LastAllocateTime, unit.Status.Attempts = &metav1.Time{Time: time.Now()}, 1
	if !admitted {
		unit.Status = v1alpha1.QueueUnitStatus{}
	}
	b.write(unit)
	pod := podOf("p", victimQuota, "", "1")
	pod.Namespace = victimNamespace
	pod.OwnerReferences = []metav1.OwnerReference{
		*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	b.write(pod.DeepCopy())
	pod.Spec.NodeName = "n"
	b.write(pod.DeepCopy())
	pod.Status.Phase = corev1.PodSucceeded
	b.write(pod)
	job = job.DeepCopy()
	job.Status = batchv1.JobStatus{Succeeded: 1, CompletionTime: &metav1.Time{Time: time.Now()},
		Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}
	b.write(job)
}

func TestAVictimThatWorksUndisturbed(t *testing.T) {
	b := newBook(t)
	b.runs(true)
	done, states, found := b.judge()
	require.Empty(t, found)
	require.Equal(t, 1, done)
	require.Equal(t, 7, states)
	require.True(t, b.victim.done("j"))
}

func TestAVictimsJobThatWaitsForEver(t *testing.T) {
	b := newBook(t)
	b.victim.jobs["j"] = victimNamespace + "/work-00001"
	b.write(func() *batchv1.Job { j := victimLoad.job(1); j.UID = "j"; return j }())
	_, _, found := b.judge()
	require.Len(t, found, 1)
	require.Equal(t, checker.Lost, found[0].Rule)
}

func TestAVictimsPodThatRanUnadmitted(t *testing.T) {
	b := newBook(t)
	b.runs(false)
	_, _, found := b.judge()
	require.Len(t, found, 1)
	require.Equal(t, checker.NotAdmitted, found[0].Rule)
}

// Whatever pods of the hostile namespace say of their owner, they are not the victim's.
func TestForgedOwnersBlameNobody(t *testing.T) {
	b := newBook(t)
	b.runs(true)
	forged := podOf("forged", hostileQuota, "", "1")
	forged.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "work-00001", UID: "j"}}
	b.write(forged.DeepCopy())
	forged.Spec.NodeName = "n"
	b.write(forged)
	_, _, found := b.judge()
	require.Empty(t, found)
	b.write(podOf("thief", victimQuota, "", "1"))
	_, _, found = b.judge()
	require.Len(t, found, 1)
	require.Equal(t, checker.ForeignCharge, found[0].Rule)
}

func TestASlowJobHoldsNothing(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.PodTemplateSpec){
		"":            func(*corev1.PodTemplateSpec) {},
		"a finalizer": func(p *corev1.PodTemplateSpec) { p.Finalizers = []string{"example.com/kept"} },
		"a long grace": func(p *corev1.PodTemplateSpec) {
			p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](mostTermination + 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			job := honestLoad.job(1)
			job.Namespace, job.UID = aliasedNamespace, "j"
			spoil(&job.Spec.Template)
			b.write(job)
			unit := unitOf("u", hostileQuota, "1")
			unit.Namespace, unit.Spec.ConsumerRef = aliasedNamespace, &corev1.ObjectReference{UID: "j"}
			b.write(unit)
			_, _, found := b.judge()
			_, byAlias := b.evictions()
			if name == "" {
				require.Empty(t, found)
				require.Equal(t, 1, byAlias)
				return
			}
			require.Equal(t, heldSlowly, found[0].Rule)
			require.Zero(t, byAlias)
		})
	}
}

func cores(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func podOf(name, quota, node, cpu string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostileNamespace, Name: name, UID: types.UID(name),
			Labels: map[string]string{v1alpha1.LabelQuotaName: quota}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: cores(cpu)}}}},
	}
}

func unitOf(name, quota, cpu string) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostileNamespace, Name: name, UID: types.UID(name),
			Labels: map[string]string{v1alpha1.LabelQuotaName: quota}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued,
			Admissions: []v1alpha1.Admission{{Name: "main", Replicas: 1, Resources: cores(cpu)}}},
	}
}
