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

package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// eventOf is an event of an object, so long after the beginning.
func eventOf(name string, of corev1.ObjectReference, reason, message string, after time.Duration) *corev1.Event {
	of.Namespace = "team"
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, InvolvedObject: of, Type: corev1.EventTypeWarning,
		Reason: reason, Message: message, LastTimestamp: metav1.NewTime(epoch.Add(after)),
	}
}

// timedOut is a job that made no pod and lost its admission for that.
func timedOut(t *testing.T) *world {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	u := w.unit()
	u.Status.Phase, u.Status.Admissions, u.Status.Message = v1alpha1.PhaseTimeoutBackoff, nil, "the job made no pod"
	for _, c := range []string{v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted} {
		setCondition(u, c, metav1.ConditionFalse, "IdleReservation", u.Status.Message, epoch)
	}
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "IdleReservation", u.Status.Message, epoch)
	w.updateStatus(u)
	w.told()
	return w
}

func TestARefusalIsTold(t *testing.T) {
	w := timedOut(t)
	job := corev1.ObjectReference{Kind: "Job", Name: "j", UID: w.job().UID}
	other := corev1.ObjectReference{Kind: "Job", Name: "other", UID: "job-2"}
	w.create(eventOf("a", job, "FailedCreate", "first words", time.Second))
	w.create(eventOf("b", job, "FailedCreate", "pods \"j-1\" is forbidden: exceeded quota: small", time.Minute))
	w.create(eventOf("c", job, "BackoffLimitExceeded", "is something else", time.Hour))
	w.create(eventOf("d", other, "FailedCreate", "is of another", time.Hour))
	require.Equal(t, []string{"patch Job/j", "status QueueUnit/j", "patch Job/j"}, w.settle(), "suspended, told, restored")
	const words = "the job made no pod: pods \"j-1\" is forbidden: exceeded quota: small"
	require.Equal(t, words, w.unit().Status.Message)
	require.Equal(t, words, meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionEvicted).Message)
	require.True(t, *w.job().Spec.Suspend)
	require.Empty(t, w.settle())
}

func TestNoRefusalIsKnown(t *testing.T) {
	for name, fails := range map[string]error{"none was told": nil, "events cannot be read": errors.New("forbidden")} {
		t.Run(name, func(t *testing.T) {
			w := timedOut(t)
			w.fails = fails
			require.Equal(t, []string{"patch Job/j", "patch Job/j"}, w.settle(), "suspended, restored")
			require.Equal(t, "the job made no pod", w.unit().Status.Message)
		})
	}
}

// The Jobs of a JobSet make its pods.
func TestRefusalsOfChildren(t *testing.T) {
	w := newWorld(t, newJob())
	kind, ok := jobkind.Find("JobSet.v1alpha2.jobset.x-k8s.io")
	require.True(t, ok)
	job := w.unstructuredJob()
	w.r.Kind = *kind
	child := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: "Job", Name: name, UID: types.UID(name)}
	}
	w.create(eventOf("a", child("j-workers-0"), "FailedCreate", "no room", time.Second))
	w.create(eventOf("b", child("k-workers-0"), "FailedCreate", "is of another", time.Minute))
	require.Equal(t, "no room", w.r.observer().refusal(t.Context(), jobs.Open(kind, job), time.Time{}))
}
