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

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
)

func fourCores() *limits {
	l := newLimits(true)
	l.quota(checker.Quota{Name: hostileQuota, Max: checker.Resources{"cpu": 4000}})
	l.quota(checker.Quota{Name: otherQuota, Max: checker.Resources{"cpu": 4000}})
	return l
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

func rulesOf(l *limits) (rules []checker.Rule) {
	for _, v := range l.violations {
		rules = append(rules, v.Rule)
	}
	return rules
}

func TestPodsOfAQuota(t *testing.T) {
	type state struct{ name, quota, node, cpu string }
	for name, c := range map[string]struct {
		states []state
		broken []checker.Rule
	}{
		"within": {states: []state{
			{"a", hostileQuota, "", "4"}, {"a", hostileQuota, "n", "4"}, {"b", hostileQuota, "", "4"}}},
		"beyond": {
			states: []state{{"a", hostileQuota, "", "4"}, {"a", hostileQuota, "n", "4"},
				{"b", hostileQuota, "", "1"}, {"b", hostileQuota, "n", "1"}},
			broken: []checker.Rule{checker.QuotaPassed}},
		"nobody scheduled it": {
			states: []state{{"a", hostileQuota, "n", "4"}, {"b", hostileQuota, "", "4"}, {"b", hostileQuota, "n", "4"}}},
		"labelled on its node": {
			states: []state{{"a", otherQuota, "", "4"}, {"a", otherQuota, "n", "4"}, {"b", hostileQuota, "", "4"},
				{"b", hostileQuota, "n", "4"}, {"a", hostileQuota, "n", "4"}, {"a", hostileQuota, "n", "4"}}},
		"another's quota": {
			states: []state{{"a", victimQuota, "", "1"}, {"a", victimQuota, "n", "1"}},
			broken: []checker.Rule{foreignCharge}},
	} {
		t.Run(name, func(t *testing.T) {
			l := fourCores()
			for _, s := range c.states {
				l.pod(podOf(s.name, s.quota, s.node, s.cpu), false)
			}
			require.Equal(t, c.broken, rulesOf(l))
		})
	}
}

// Without the queue nobody promises for pods but ElasticQuota. What units hold, and whose quota is named, is judged as
// ever.
func TestPodsWithoutTheQueue(t *testing.T) {
	l := fourCores()
	l.queued = false
	l.pod(podOf("a", hostileQuota, "", "5"), false)
	l.pod(podOf("a", hostileQuota, "n", "5"), false)
	require.Empty(t, l.violations)
	l.pod(podOf("b", victimQuota, "", "1"), false)
	l.unit(unitOf("u", otherQuota, "5"), false)
	require.Equal(t, []checker.Rule{foreignCharge, heldBeyondMax}, rulesOf(l))
}

func TestAPodThatIsGoneTakesNothing(t *testing.T) {
	l := fourCores()
	for _, name := range []string{"a", "b"} {
		l.pod(podOf(name, hostileQuota, "", "4"), false)
		bound := podOf(name, hostileQuota, "n", "4")
		l.pod(bound, false)
		l.pod(bound, true)
	}
	require.Empty(t, l.violations)
}

func unitOf(name, quota, cpu string) *v1alpha1.QueueUnit {
	return &v1alpha1.QueueUnit{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostileNamespace, Name: name, UID: types.UID(name),
			Labels: map[string]string{v1alpha1.LabelQuotaName: quota}},
		Status: v1alpha1.QueueUnitStatus{Phase: v1alpha1.PhaseDequeued,
			Admissions: []v1alpha1.Admission{{Name: "main", Replicas: 1, Resources: cores(cpu)}}},
	}
}

func TestUnitsHoldNoMoreThanTheirQuota(t *testing.T) {
	l := fourCores()
	l.unit(unitOf("a", hostileQuota, "3"), false)
	l.unit(unitOf("b", otherQuota, "3"), false)
	adopted := unitOf("adopted", hostileQuota, "100")
	adopted.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionAdmitted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAdopted}}
	l.unit(adopted, false)
	require.Empty(t, l.violations)
	l.unit(unitOf("c", hostileQuota, "2"), false)
	l.unit(unitOf("c", hostileQuota, "2"), false)
	require.Equal(t, []checker.Rule{heldBeyondMax}, rulesOf(l), "once")
	l.unit(unitOf("c", hostileQuota, "2"), true)
	l.unit(unitOf("d", hostileQuota, "1"), false)
	require.Len(t, l.violations, 1)
}

func TestAUnitHoldsNothingOfAnother(t *testing.T) {
	l := fourCores()
	inQueue := unitOf("q", hostileQuota, "1")
	inQueue.Spec.Queue = victimQuota
	waiting := unitOf("waiting", victimQuota, "1")
	waiting.Status = v1alpha1.QueueUnitStatus{}
	l.unit(waiting, false)
	require.Empty(t, l.violations)
	l.unit(inQueue, false)
	l.unit(unitOf("q2", victimQuota, "1"), false)
	own := unitOf("own", victimQuota, "1")
	own.Namespace = victimNamespace
	l.unit(own, false)
	require.Equal(t, []checker.Rule{foreignCharge, foreignCharge}, rulesOf(l))
}

// A job that is over has given back what its unit says it holds, before the unit says so.
func TestAJobThatIsOverHoldsNothing(t *testing.T) {
	now := metav1.Now()
	for name, end := range map[string]func(*batchv1.Job){
		"deleted": func(j *batchv1.Job) { j.DeletionTimestamp = &now },
		"complete": func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := fourCores()
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "j"}}
			unit := unitOf("a", hostileQuota, "3")
			unit.Spec.ConsumerRef = &corev1.ObjectReference{UID: "j"}
			l.job(job, false)
			l.unit(unit, false)
			end(job)
			l.job(job, false)
			l.unit(unit, false)
			l.unit(unitOf("b", hostileQuota, "3"), false)
			require.Empty(t, l.violations)
			l.unit(unitOf("c", hostileQuota, "2"), false)
			require.Len(t, l.violations, 1)
		})
	}
}
