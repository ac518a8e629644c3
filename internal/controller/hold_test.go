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
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// The whole way: admitted, suspended by its owner, let go by him, admitted again.
func TestTheOwnerSuspendsAndGoesOn(t *testing.T) {
	for _, how := range []string{"field", "annotation"} {
		t.Run(how, func(t *testing.T) {
			w := newWorld(t, newJob())
			w.settle()
			w.admit()
			w.settle()
			w.jobStatus(runs(2))
			require.Contains(t, w.job().Annotations[v1alpha1.AnnotationResumed], "/1")
			w.suspendByHand(true)
			require.Equal(t, []string{"patch QueueUnit/j"}, w.settle())
			require.False(t, *w.unit().Spec.Active)
			w.takeBack()
			w.settle()
			c := meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionQuotaReserved)
			require.Equal(t, "SuspendedByOwner", c.Reason)
			require.True(t, *w.job().Spec.Suspend)
			w.restart()
			require.Empty(t, w.settle(), "it stays so (I12)")
			if how == "field" {
				w.suspendByHand(false)
			} else {
				w.annotateJob(v1alpha1.AnnotationHold, "false")
			}
			w.settle()
			require.True(t, *w.job().Spec.Suspend, "it waits")
			require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationHold)
			require.Nil(t, w.unit().Spec.Active)
			w.admit()
			w.jobStatus(noted)
			w.settle()
			require.False(t, *w.job().Spec.Suspend)
			require.Contains(t, w.job().Annotations[v1alpha1.AnnotationResumed], "/2")
		})
	}
}

// takeBack plays the scheduler: what is inactive loses its admission.
func (w *world) takeBack() {
	w.t.Helper()
	u := w.unit()
	u.Status.Phase, u.Status.Admissions = v1alpha1.PhaseEnqueued, nil
	for _, c := range []string{v1alpha1.ConditionQuotaReserved, v1alpha1.ConditionAdmitted} {
		setCondition(u, c, metav1.ConditionFalse, "Inactive", "", epoch)
	}
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, "Inactive", "", epoch)
	w.updateStatus(u)
}

// suspendByHand plays the owner.
func (w *world) suspendByHand(suspend bool) {
	job := w.job()
	job.Spec.Suspend = &suspend
	w.update(job)
}

func (w *world) annotateJob(key, value string) {
	job := w.job()
	metav1.SetMetaDataAnnotation(&job.ObjectMeta, key, value)
	w.update(job)
}
