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

package stray

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func TestACronJobWhoseJobsInheritNoLabelIsTold(t *testing.T) {
	quota := map[string]string{v1alpha1.LabelQuotaName: "a"}
	for name, tc := range map[string]struct {
		edit func(*batchv1.CronJob)
		told bool
	}{
		"labels of the CronJob alone": {func(*batchv1.CronJob) {}, true},
		"labels of the job template":  {func(c *batchv1.CronJob) { c.Spec.JobTemplate.Labels = quota }, false},
		"labels of the pod template":  {func(c *batchv1.CronJob) { c.Spec.JobTemplate.Spec.Template.Labels = quota }, false},
		"annotation of the job template": {func(c *batchv1.CronJob) {
			c.Spec.JobTemplate.Annotations = map[string]string{v1alpha1.QueueNameKey: "q"}
		}, false},
		"no label of a queue": {func(c *batchv1.CronJob) { c.Labels = map[string]string{"app": "x"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			cron := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "nightly", Labels: quota}}
			tc.edit(cron)
			kept, err := trimCronJob(cron)
			require.NoError(t, err)
			recorder := events.NewFakeRecorder(1)
			r := &CronJobs{
				Recorder: recorder, Pace: func(context.Context) error { return nil },
				Stored: func(types.NamespacedName) *batchv1.CronJob { return kept.(*batchv1.CronJob) },
			}
			_, err = r.Reconcile(t.Context(), ctrl.Request{})
			require.NoError(t, err)
			if !tc.told {
				require.Empty(t, recorder.Events)
				return
			}
			require.Equal(t, "Warning LabelsNotInTemplate no job of this CronJob is queued: the label "+
				"quota.scheduling.koordinator.sh/name must be in spec.jobTemplate.metadata.labels", <-recorder.Events)
		})
	}
}
