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
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobask"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobunit"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podrequest"
)

// sceneOf is a managed job of another kind, before it has a unit; in quota a by the label of the job.
func sceneOf(t testing.TB, kind, text string) *scene {
	t.Helper()
	k, ok := jobkind.Find(kind)
	require.True(t, ok, kind)
	s := &scene{t: t, Situation: Situation{Now: epoch, Kind: k, Managed: true,
		Terms: jobask.Terms{Creation: &podrequest.Creation{}}, FreshUnit: true}}
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	s.Job = jobs.Open(k, object)
	s.Job.Object.SetGroupVersionKind(k.GVK)
	s.Job.Object.SetNamespace("team")
	s.Job.Object.SetName("j")
	s.Job.Object.SetUID("job-1")
	s.Job.Object.SetLabels(map[string]string{v1alpha1.LabelQuotaName: "a"})
	return s
}

// withUnit gives the job its unit, in this phase.
func (s *scene) withUnit(phase v1alpha1.QueueUnitPhase) *scene {
	s.Unit = jobunit.Of(s.Job, demanded(s.Job, &podrequest.Creation{}), nil)
	s.Unit.UID = "unit-1"
	return s.phase(phase)
}

func deployment(t testing.TB) *scene {
	return sceneOf(t, "Deployment.v1.apps", `
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, quota.scheduling.koordinator.sh/name: a}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
`)
}

func rayJob(t testing.TB) *scene {
	return sceneOf(t, "RayJob.v1.ray.io", `
spec:
  shutdownAfterJobFinishes: true
  submissionMode: SidecarMode
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
`)
}

// guestRayJob runs in a RayCluster of others, and is submitted in this mode.
func guestRayJob(t testing.TB, mode string) *scene {
	return sceneOf(t, "RayJob.v1.ray.io", `
spec:
  clusterSelector: {ray.io/cluster: shared}
  submissionMode: `+mode+`
  submitterPodTemplate:
    metadata: {labels: {quota.scheduling.koordinator.sh/name: a}}
    spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}
`)
}

// trainJob has its child if it is to have it.
func trainJob(t testing.TB, suspended, child bool) *scene {
	s := sceneOf(t, "TrainJob.v1alpha1.trainer.kubeflow.org", "spec: {runtimeRef: {name: torch}}").
		job(suspended, "spec", "suspend")
	var jobSet *unstructured.Unstructured
	if child {
		jobSet = &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(`
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: j, namespace: team, uid: jobset-1}
spec:
  suspend: true
  replicatedJobs:
  - name: node
    template:
      spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: c,
	resources: {requests: {cpu: 500m}}}]}}}
status: {conditions: [{type: Suspended, status: "True"}]}
`), &jobSet.Object))
	}
	s.Job = jobs.Open(s.Kind, jobs.WithChild(s.Kind, s.Job.Object, jobSet))
	return s
}

func TestPlanOfKinds(t *testing.T) {
	waiting, released := v1alpha1.PhaseEnqueued, v1alpha1.PhaseDequeued
	for name, tc := range map[string]struct {
		scene *scene
		want  string
	}{
		// A job that cannot be suspended is never written.
		"a Deployment is looked at":         {deployment(t), "look at pods"},
		"a new Deployment waits as it is":   {deployment(t).with(podsAre(BoundNone)), "create unit [Queued]"},
		"a Deployment with pods is adopted": {deployment(t).with(podsAre(BoundSome)), "create unit adopted [Adopted]"},
		"a Deployment that waits":           {deployment(t).withUnit(waiting), ""},
		"a Deployment that is admitted":     {deployment(t).withUnit(released), ""},
		"a Deployment that runs": {deployment(t).withUnit(released).job(int64(2), "status",
			"readyReplicas").runsFor(RunningDelay), "status Running"},
		"a Deployment that grows": {deployment(t).withUnit(v1alpha1.PhaseRunning).job(int64(3), "spec",
			"replicas"), "patch unit [Grows]"},
		"a Deployment beside another's unit":   {deployment(t).withUnit(waiting).unit(ofNobody), "tell [NameTaken]"},
		"a Deployment that lost its admission": {deployment(t).withUnit(v1alpha1.PhaseTimeoutBackoff), ""},
		"a Deployment with its quota elsewhere": {unlabelledPods(deployment(t)).with(podsAre(BoundNone)),
			"create unit [Queued]"},
		"a Deployment with forged marks that waits":         {forgedMarks(deployment(t)).withUnit(waiting), ""},
		"a Deployment with forged marks that is admitted":   {forgedMarks(deployment(t)).withUnit(released), ""},
		"a Deployment with forged marks that nobody queues": {forgedMarks(deployment(t)).with(unmanage), ""},

		// A job that its kind says cannot be queued is not suspended: its operator would take that for a mistake of the user.
		"a RayJob":                  {rayJob(t), "job suspend=true [Suspended]; create unit [Queued]"},
		"a RayJob without shutdown": {rayJob(t).job(false, "spec", "shutdownAfterJobFinishes"), "create unit [Queued]"},
		"it waits with a reason": {rayJob(t).job(false, "spec", "shutdownAfterJobFinishes").withUnit(waiting),
			"status Enqueued"},
		"it is corrected by its user": {rayJob(t).job(true, "spec", "suspend").withUnit(waiting), ""},

		// KubeRay fails a RayJob in a cluster of others that is suspended: its submitter waits in the scheduler.
		"a RayJob in a cluster of others":       {guestRayJob(t, "K8sJobMode"), "create unit [Queued]"},
		"it waits":                              {guestRayJob(t, "K8sJobMode").withUnit(waiting), ""},
		"it is admitted":                        {guestRayJob(t, "K8sJobMode").withUnit(released), ""},
		"it loses its admission":                {guestRayJob(t, "K8sJobMode").withUnit(v1alpha1.PhaseTimeoutBackoff), ""},
		"it waits with forged marks":            {forgedMarks(guestRayJob(t, "K8sJobMode")).withUnit(waiting), ""},
		"without a submitter nothing is queued": {guestRayJob(t, "HTTPMode"), ""},
		"it is suspended by its user": {guestRayJob(t, "K8sJobMode").job(true, "spec", "suspend").withUnit(waiting),
			"status Enqueued"},

		// Pods of another scheduler are neither held back nor counted.
		"a job of another scheduler": {otherScheduler(unqueued(t)), "create unit [Queued]"},
		"it is parked":               {otherScheduler(unqueued(t)).withUnit(waiting), "patch unit"},
		"a job of a scheduler of ours": {otherScheduler(unqueued(t)).job("ours", "spec", "template", "spec",
			"schedulerName").withUnit(waiting), ""},

		// The request of a TrainJob is in its JobSet, which is created although it is suspended.
		"a TrainJob without its JobSet":           {trainJob(t, false, false), "job suspend=true [Suspended]"},
		"a suspended TrainJob without its JobSet": {trainJob(t, true, false), ""},
		"a suspended TrainJob with its JobSet":    {trainJob(t, true, true), "create unit [Queued]"},
		"a TrainJob that waits":                   {trainJob(t, true, true).withUnit(waiting), ""},
		"a TrainJob that is admitted": {trainJob(t, true, true).withUnit(released),
			"job suspend=false [Admitted]"},
		"a TrainJob whose JobSet is not there now": {trainJob(t, true, true).withUnit(waiting).with(withoutChild), ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, describe(tc.scene.decide()))
		})
	}
}

func ofNobody(u *v1alpha1.QueueUnit) { u.Spec.ConsumerRef = nil }

// otherScheduler: pods that name no scheduler go to another one.
func otherScheduler(s *scene) *scene {
	return s.with(func(o *Situation) { o.Terms.Schedulers = []string{"ours"} })
}

func withoutChild(o *Situation) { o.Job = jobs.Open(o.Kind, jobs.WithChild(o.Kind, o.Job.Object, nil)) }

// forgedMarks are those that the controller writes to jobs that it suspends and resumes.
func forgedMarks(s *scene) *scene {
	s.Job.Object.SetAnnotations(map[string]string{
		v1alpha1.AnnotationSuspendedBy: v1alpha1.CreatedByController, v1alpha1.AnnotationTemplateAdditions: "{}",
	})
	return s
}

func unlabelledPods(s *scene) *scene {
	return s.job(map[string]any{"app": "web"}, "spec", "template", "metadata", "labels")
}

// A job whose pods cannot be labelled is not admitted to a quota that its pods are not charged to.
func TestPodsThatCannotBeCharged(t *testing.T) {
	u := jobunit.Of(unlabelledPods(deployment(t)).Job,
		demanded(unlabelledPods(deployment(t)).Job, &podrequest.Creation{}), nil)
	require.Equal(t, "QuotaMismatch", u.Annotations[v1alpha1.AnnotationParkedReason])
	require.False(t, *u.Spec.Active)
}

// The launcher of an MPIJob is made of its template before the job is resumed: no label that resuming writes reaches
// it.
func TestPodsThatResumingDoesNotReach(t *testing.T) {
	mpiJob := func(launcherLabels string) *scene {
		return sceneOf(t, "MPIJob.v2beta1.kubeflow.org", `
spec:
  runPolicy: {suspend: true}
  mpiReplicaSpecs:
    Launcher: {template: {metadata: {labels: `+launcherLabels+`}, spec: {containers: [{name: c}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 500m}}}]}}}
status: {conditions: [{type: Suspended, status: "True"}]}
`)
	}
	lacks := mpiJob("{}")
	require.Equal(t, &jobunit.Problem{Reason: "QuotaMismatch", Message: "job names more than one quota: " +
		`the job says "a", and pods of ` +
		"launcher cannot be given a label: name the quota in their template and create the job again, or use the quota of " +
		"the namespace"}, demanded(lacks.Job, &podrequest.Creation{}).Problem)

	// Koordinator charges pods without a label to the quota of the namespace.
	mapped := mpiJob("{}").withUnit(v1alpha1.PhaseDequeued)
	for quota, parks := range map[string]bool{"a": false, "b": true} {
		mapped.Terms.Creation = &podrequest.Creation{Quota: quota}
		require.Equal(t, parks, demanded(mapped.Job, mapped.Terms.Creation).Problem != nil, quota)
	}
	mapped.Terms.Creation.Quota = "a"
	mapped.Unit = jobunit.Of(mapped.Job, demanded(mapped.Job, mapped.Terms.Creation), nil)
	mapped.Unit.Status.Phase = v1alpha1.PhaseDequeued
	require.Nil(t, mapped.Unit.Spec.Active)
	require.Equal(t, "job suspend=false [Admitted]", describe(mapped.decide()))

	has := mpiJob("{quota.scheduling.koordinator.sh/name: a}").withUnit(v1alpha1.PhaseDequeued)
	require.Nil(t, has.Unit.Spec.Active)
	require.Equal(t, "job suspend=false [Admitted]", describe(has.decide()))
}

// Spark ends executors that it does not need, and asks for them again, so their quota stays. Held quota falls with the
// request of the application, and a later increase is requested again.
func TestExecutorsThatSparkEndsKeepTheirQuota(t *testing.T) {
	s := sceneOf(t, "SparkApplication.v1beta2.sparkoperator.k8s.io", `
spec:
  mode: cluster
  batchScheduler: koord-scheduler
  driver: {cores: 1, memory: 512m}
  executor: {cores: 1, memory: 512m}
  dynamicAllocation: {enabled: true, initialExecutors: 4, minExecutors: 1}
status:
  applicationState: {state: RUNNING}
  executorState: {a: RUNNING, b: RUNNING, c: RUNNING, d: RUNNING}
`).withUnit(v1alpha1.PhaseRunning)
	require.Equal(t, "5", s.Unit.Spec.Request.Cpu().String())
	for _, state := range []string{"COMPLETED", "RUNNING"} {
		s.job(map[string]any{"a": "RUNNING", "b": state, "c": state, "d": state}, "status", "executorState")
		for _, action := range s.decide().Do {
			require.IsType(t, Report{}, action, "it says how many run")
		}
		require.Empty(t, s.Job.Reclaimable())
		require.True(t, s.Job.AllReady(5))
	}
	for _, step := range []struct {
		initial int64
		asks    string
	}{{2, "3"}, {4, "5"}, {0, "2"}} {
		s.job(step.initial, "spec", "dynamicAllocation", "initialExecutors")
		patch, ok := s.decide().Do[0].(PatchUnit)
		require.True(t, ok)
		s.Unit = patch.After
		require.Equal(t, step.asks, s.Unit.Spec.Request.Cpu().String())
	}
}

// The labels of a TrainJob's pods are written into its JobSet, before it is resumed.
func TestResumeWritesIntoTheChild(t *testing.T) {
	s := trainJob(t, true, true).withUnit(v1alpha1.PhaseDequeued)
	actions := s.decide().Do
	require.Len(t, actions, 1)
	own, child := jobs.Split(actions[0].(PatchJob).After.Object)
	require.NotContains(t, own.Object, "child")
	text, err := child.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"quota.scheduling.koordinator.sh/name":"a"`)
	require.Contains(t, string(text), `"koord-queue/related-queueunit":"team/j-trainjob"`)
}

// A label on the job is none of its pods, also where they have no template.
func TestResumeLabelsPodsWithoutATemplate(t *testing.T) {
	s := sceneOf(t, "Workflow.v1alpha1.argoproj.io", "spec: {suspend: true}").withUnit(v1alpha1.PhaseDequeued)
	s.job("Running", "status", "phase")
	actions := s.decide().Do
	require.Len(t, actions, 1)
	resumed := actions[0].(PatchJob).After.Object
	labels, _, err := unstructured.NestedStringMap(resumed.Object, "spec", "podMetadata", "labels")
	require.NoError(t, err)
	require.Equal(t, map[string]string{v1alpha1.LabelQuotaName: "a"}, labels)

	submitted := rayJob(t).job("K8sJobMode", "spec", "submissionMode").withUnit(v1alpha1.PhaseEnqueued)
	require.Equal(t, "QuotaMismatch", submitted.Unit.Annotations[v1alpha1.AnnotationParkedReason],
		"KubeRay makes the submitter of a template of its own")
}

// The reconciler knows no kind by its name: kinds are data.
func TestNoKindIsKnownByItsName(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if matched, _ := filepath.Match("*_test.go", file); matched {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, kind := range jobkind.Builtin() {
			if name := kind.GVK.Kind; name != "Job" {
				require.False(t, strings.Contains(string(text), `"`+name+`"`), "%s names %s", file, name)
			}
		}
		require.False(t, strings.Contains(string(text), "k8s.io/api/batch"), file)
	}
}
