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
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// mostAnnotations of an object, in bytes, are what the API server takes.
const mostAnnotations = 256 << 10

// bounded refuses what the API server refuses: annotations of more than it takes.
func bounded(refusal error) func(string, client.Object) error {
	return func(verb string, o client.Object) error {
		size := 0
		for key, value := range o.GetAnnotations() {
			size += len(key) + len(value)
		}
		if verb == "patch" && size > mostAnnotations {
			return refusal
		}
		return nil
	}
}

var errTooLong = apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "j", nil)

// filled is a running job whose owner has filled its annotations to the last byte.
func filled(t *testing.T, refusal error) *world {
	w := newWorld(t, newJob())
	w.settle()
	w.admit()
	w.settle()
	w.jobStatus(runs(2))
	job := w.job()
	size := len("fill")
	for key, value := range job.Annotations {
		size += len(key) + len(value)
	}
	job.Annotations["fill"] = strings.Repeat("x", mostAnnotations-size)
	w.update(job)
	w.refuse = bounded(refusal)
	w.settle()
	return w
}

// lose plays the scheduler.
func (w *world) lose(reason string) {
	u := w.unit()
	u.Status.Phase = v1alpha1.PhaseEnqueued
	u.Status.Admissions = nil
	setCondition(u, v1alpha1.ConditionEvicted, metav1.ConditionTrue, reason, "taken back", metav1.NewTime(w.clock.Now()))
	w.updateStatus(u)
}

// The owner of a running job leaves no byte for the mark of the controller, so that its quota cannot be taken back
// (S1).
func TestAJobWithFullAnnotationsIsSuspended(t *testing.T) {
	for name, refusal := range map[string]error{
		"invalid":            errTooLong,
		"too large":          apierrors.NewRequestEntityTooLargeError("limit is 3145728"),
		"too large for etcd": apierrors.NewInternalError(errors.New("etcdserver: request is too large")),
	} {
		for _, reason := range []string{"Reclaimed", "QueueDrained", "ExecutionTimeExceeded"} {
			t.Run(name+", "+reason, func(t *testing.T) {
				w := filled(t, refusal)
				w.lose(reason)
				w.reconcile()
				require.True(t, *w.job().Spec.Suspend)
				require.NotContains(t, w.job().Annotations, v1alpha1.AnnotationResumed)

				w.settle()
				require.NotEqual(t, "SuspendedByOwner", w.unit().Annotations[v1alpha1.AnnotationParkedReason],
					"the controller suspended it")
				require.True(t, *w.job().Spec.Suspend)

				// With room again the job waits until its pods are gone, and is resumed normally.
				w.jobStatus(runs(2))
				emptied := w.job()
				delete(emptied.Annotations, "fill")
				w.update(emptied)
				w.admit()
				w.settle()
				require.True(t, *w.job().Spec.Suspend, "its pods are still there")
				w.jobStatus(noted)
				w.settle()
				require.False(t, *w.job().Spec.Suspend)
			})
		}
	}
}

// cannotSuspend is what the metric of that name has counted; 0 if it has counted nothing.
func cannotSuspend(t *testing.T) float64 {
	t.Helper()
	families, err := runtimemetrics.Registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == string(metrics.ControllerCannotSuspendTotal) {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

// A suspension that the API server refuses whatever is in it is told where its operator looks.
func TestASuspensionThatIsRefusedIsTold(t *testing.T) {
	w := filled(t, errTooLong)
	w.refuse = func(verb string, o client.Object) error {
		if _, isUnit := o.(*v1alpha1.QueueUnit); verb == "patch" && !isUnit {
			return errTooLong
		}
		return nil
	}
	condition := func() *metav1.Condition {
		return meta.FindStatusCondition(w.unit().Status.Conditions, v1alpha1.ConditionCannotSuspend)
	}
	before := cannotSuspend(t)
	w.lose("Reclaimed")
	_, err := w.r.Reconcile(quiet(), request("team", "j"))
	require.Error(t, err, "so that it is tried again")
	require.Nil(t, condition(), "it may work a moment later")
	require.Equal(t, before, cannotSuspend(t))

	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	_, err = w.r.Reconcile(quiet(), request("team", "j"))
	require.Error(t, err)
	require.Equal(t, metav1.ConditionTrue, condition().Status)
	require.Contains(t, condition().Message, "is invalid")
	require.Contains(t, w.told(), "CannotSuspend")
	require.Equal(t, before+1, cannotSuspend(t))
	_, err = w.r.Reconcile(quiet(), request("team", "j"))
	require.Error(t, err)
	require.Equal(t, before+1, cannotSuspend(t), "one eviction is counted once")

	w.refuse = nil
	w.settle()
	require.True(t, *w.job().Spec.Suspend)
	require.Equal(t, metav1.ConditionFalse, condition().Status)
}
