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

	"github.com/koordinator-sh/koordinator/apis/extension"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
)

func queuePreempts(o *Situation) { o.QueuePreempts = true }

// The label against other preemption comes with the write that resumes the job, and goes with its next suspension. A
// value of the owner stays.
func TestTheLabelAgainstOtherPreemption(t *testing.T) {
	own := func(s *scene) *scene {
		s.job("false", "spec", "template", "metadata", "labels", extension.LabelDisablePreemptible)
		s.Unit.Spec = jobunit.Of(s.Job, demanded(s.Job, s.Terms.Creation), nil).Spec
		return s
	}
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		"the queue preempts":             {queued(t).with(queuePreempts), "true"},
		"the queue preempts nobody":      {queued(t), ""},
		"the owner has it otherwise":     {own(queued(t)).with(queuePreempts), "false"},
		"the owner has it, without need": {own(queued(t)), "false"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.scene.phase(v1alpha1.PhaseDequeued)
			before := s.Job.Object.DeepCopy()
			step, ok := s.decide().Do[0].(PatchJob)
			require.True(t, ok)
			s.Job = step.After
			require.Equal(t, tc.want, s.template(t).Labels[extension.LabelDisablePreemptible])

			s.job(true, "spec", "suspend").with(marked).phase(v1alpha1.PhaseEnqueued)
			step, ok = s.decide().Do[0].(PatchJob)
			require.True(t, ok)
			require.Equal(t, before.Object["spec"], step.After.Object.Object["spec"])
		})
	}
}
