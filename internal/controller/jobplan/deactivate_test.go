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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/unitstatus"
)

// toDeactivate is a unit that the scheduler does not want to be tried again.
func toDeactivate(u *v1alpha1.QueueUnit) {
	u.Generation = 3
	unitstatus.SetCondition(u, v1alpha1.ConditionDeactivationTarget, metav1.ConditionTrue, "RequeueLimitReached",
		"it lost its admission so 3 times in a row", epoch)
}

func TestDeactivation(t *testing.T) {
	inactive := false
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		"the job is suspended first": {queued(t).resumedByHand().unit(toDeactivate), "job suspend=true [Suspended]"},
		"then its unit is made inactive": {queued(t).with(marked).unit(toDeactivate),
			"patch unit [Deactivated]"},
		"once": {queued(t).with(marked).unit(toDeactivate).
			unit(func(u *v1alpha1.QueueUnit) { u.Spec.Active = &inactive }), ""},
		"not again after somebody made it active": {queued(t).with(marked).unit(toDeactivate).
			unit(func(u *v1alpha1.QueueUnit) { u.Generation = 5 }), ""},
		"also if it was adopted, before its size is followed": {queued(t).resumedByHand().started().ready(2).
			phase(v1alpha1.PhaseRunning).unit(toDeactivate).job(int64(7), "spec", "parallelism"), "patch unit [Deactivated]"},
		"before it is set right, which would be another spec": {queued(t).with(marked).unit(toDeactivate).
			job(int64(7), "spec", "parallelism"), "patch unit [Deactivated]"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(tc.scene.decide()))
		})
	}
	step, ok := queued(t).with(marked).unit(toDeactivate).decide().Do[0].(PatchUnit)
	require.True(t, ok)
	require.True(t, jobunit.InactiveByHand(step.After), "it is for a person to undo")
	require.Contains(t, step.Event.Note, "RequeueLimitReached: it lost its admission so 3 times in a row")
}

func TestExecutionTime(t *testing.T) {
	limited := func(value string) func(*Situation) {
		return func(o *Situation) {
			o.Job.Object.SetAnnotations(map[string]string{v1alpha1.AnnotationMaxExecutionTime: value})
		}
	}
	unit := func(s *scene) *v1alpha1.QueueUnit {
		step, ok := append(s.decide().Do, nil)[0].(PatchUnit)
		if !ok {
			return s.Unit
		}
		return step.After
	}
	seconds := func(n int32) *int32 { return &n }
	require.Equal(t, seconds(60), unit(queued(t).with(limited("60"))).Spec.MaximumExecutionTimeSeconds)
	require.Equal(t, seconds(60), unit(running(t).with(limited("60"))).Spec.MaximumExecutionTimeSeconds, "also later")
	require.Nil(t, unit(queued(t)).Spec.MaximumExecutionTimeSeconds)
	byHand := func(u *v1alpha1.QueueUnit) { u.Spec.MaximumExecutionTimeSeconds = seconds(30) }
	require.Equal(t, seconds(30), unit(queued(t).unit(byHand)).Spec.MaximumExecutionTimeSeconds,
		"an operator may say it where the job does not")
	for _, s := range []*scene{queued(t), running(t)} {
		s.unit(byHand).unit(func(u *v1alpha1.QueueUnit) {
			u.Annotations = map[string]string{v1alpha1.AnnotationMaxExecutionTime: "30"}
		})
		require.Nil(t, unit(s).Spec.MaximumExecutionTimeSeconds, "the job does not say so any more")
		require.Empty(t, unit(s).Annotations)
	}
	for _, value := range []string{"", "0", "-1", "1h", "99999999999"} {
		parked := unit(queued(t).with(limited(value)))
		require.Equal(t, "InvalidRequest", parked.Annotations[v1alpha1.AnnotationParkedReason], value)
		require.Nil(t, parked.Spec.MaximumExecutionTimeSeconds)
	}
}
