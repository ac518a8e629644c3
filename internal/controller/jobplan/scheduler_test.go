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

	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

// By default jobs run on koord-scheduler. A job with pods for another scheduler is parked before it gets quota, and its
// reason names the field. If only the operator of the job decides, nothing is assumed.
func TestPodsForAnotherSchedulerAreParked(t *testing.T) {
	predicate, err := managedjobs.NewPredicate(managedjobs.Default())
	require.NoError(t, err)
	const (
		mine   = `schedulerName: koord-scheduler, `
		labels = `metadata: {labels: {quota.scheduling.koordinator.sh/name: a, scheduling.koordinator.sh/scheduler-name: `
	)
	job := func(metadata, scheduler string) string {
		return `spec: {suspend: true, template: {` + metadata + `spec: {` + scheduler + `containers: [{name: c}]}}}`
	}
	ray := func(head, worker string) string {
		return `
spec:
  suspend: true
  shutdownAfterJobFinishes: true
  rayClusterSpec:
    headGroupSpec: {template: {spec: {` + head + `containers: [{name: c}]}}}
    workerGroupSpecs: [{groupName: w, replicas: 1, template: {spec: {` + worker + `containers: [{name: c}]}}}]
`
	}
	spark := func(fields, driver string) string {
		return `spec: {suspend: true, mode: cluster, ` + fields + `driver: {` + driver + `cores: 1}, executor: {` + mine +
			`cores: 1}}`
	}
	const (
		batch   = "Job.v1.batch"
		rayJobs = "RayJob.v1.ray.io"
		sparks  = "SparkApplication.v1beta2.sparkoperator.k8s.io"
		argo    = "Workflow.v1alpha1.argoproj.io"
	)
	for name, c := range map[string]struct{ kind, text, want string }{
		"it names ours": {batch, job("", mine), ""},
		"it names none": {batch, job("", ""), "the pods of j go to scheduler \"default-scheduler\", and the queue holds " +
			"pods of koord-scheduler only: set .spec.template.spec.schedulerName to koord-scheduler"},
		"it names another": {batch, job("", "schedulerName: volcano, "), `scheduler "volcano"`},

		// koord-scheduler takes pods by a label, too; default-scheduler does not know of it, and takes them as well.
		"by label":             {batch, job(labels+"koord-scheduler}}, ", "schedulerName: x, "), ""},
		"by label, and none":   {batch, job(labels+"koord-scheduler}}, ", ""), `scheduler "default-scheduler"`},
		"by label, to another": {batch, job(labels+"x}}, ", mine), `scheduler "x"`},

		"every group of Ray":           {rayJobs, ray(mine, mine), ""},
		"one group of Ray":             {rayJobs, ray(mine, ""), "set .spec.rayClusterSpec.workerGroupSpecs.0.template."},
		"the section of Spark":         {sparks, spark("", mine), ""},
		"the batch scheduler of Spark": {sparks, spark("batchScheduler: koord-scheduler, ", ""), ""},
		"the configuration of Spark": {sparks,
			spark("sparkConf: {spark.kubernetes.driver.scheduler.name: koord-scheduler}, ", ""), ""},
		"another configuration of Spark": {sparks, spark("sparkConf: {spark.kubernetes.scheduler.name: x}, ", ""),
			`pods of driver go to scheduler "x"`},
		"Spark without": {sparks, spark("", ""), "set .spec.driver.schedulerName to koord-scheduler"},
		"Argo":          {argo, "spec: {suspend: true, schedulerName: koord-scheduler}", ""},
		"Argo without":  {argo, "spec: {suspend: true}", "set .spec.schedulerName to koord-scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sceneOf(t, c.kind, c.text)
			s.Job.Object.SetLabels(map[string]string{"koord-queue/queue-name": "q"})
			s.Terms.Schedulers = predicate.Schedulers()
			ask := s.ask()
			if c.want == "" {
				require.Nil(t, ask.Problem())
				return
			}
			require.NotNil(t, ask.Problem())
			require.Equal(t, "OtherScheduler", ask.Problem().Reason)
			require.Contains(t, ask.Problem().Message, c.want)
			require.False(t, *ask.Unit.Spec.Active)
		})
	}
}
