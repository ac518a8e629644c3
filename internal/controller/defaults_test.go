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
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// withDefaults is a world in which plain Jobs have them.
func withDefaults(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(objects, newJob(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Value: 7})...)
	m, err := managedjobs.Parse("jobDefaults: [{kind: Job.v1.batch, gang: {waitTime: 5m}, preemptible: false, " +
		"priorityClassName: nightly, maxExecutionTime: 1h}]")
	require.NoError(t, err)
	w.r.Options.Predicate, err = managedjobs.NewPredicate(m)
	require.NoError(t, err)
	return w
}

func TestAJobGetsDefaults(t *testing.T) {
	w := withDefaults(t)
	w.settle()
	u := w.unit()
	require.EqualValues(t, 7, *u.Spec.Priority)
	require.EqualValues(t, 3600, *u.Spec.MaximumExecutionTimeSeconds)
	w.admit()
	w.settle()
	job := w.job()
	require.False(t, *job.Spec.Suspend)
	require.Equal(t, "false", job.Spec.Template.Labels[v1alpha1.LabelPreemptible])
	require.Equal(t, "5m", job.Spec.Template.Annotations[extension.AnnotationGangWaitTime])
	require.NotContains(t, job.Annotations, v1alpha1.AnnotationMaxExecutionTime, "it is not its owner's")
	require.Empty(t, w.settle())
}

// The pods get the class of the profile, which is what counts on nodes.
func TestTheClassOfAProfileGoesBeforeADefault(t *testing.T) {
	w := withDefaults(t, koordManager(), batchClass(), batchProfile()).withProfiles()
	w.settle()
	require.Equal(t, "koord-batch", w.unit().Spec.PriorityClassName)
	require.EqualValues(t, 5500, *w.unit().Spec.Priority)
}
