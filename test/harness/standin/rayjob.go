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

package standin

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var rayJobKind = schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}

// RayJobResult is the annotation of a RayJob by which a test says what Ray's dashboard would: SUCCEEDED, FAILED or
// STOPPED. In K8sJobMode the end of the submitter is needed as well; without the annotation it is the result.
const RayJobResult = "standin/ray-job-result"

const (
	rayJobFinalizer = "ray.io/rayjob-finalizer"

	rayJobInitializing     = "Initializing"
	rayJobRunning          = "Running"
	rayJobWaiting          = "Waiting"
	rayJobComplete         = "Complete"
	rayJobFailed           = "Failed"
	rayJobSuspending       = "Suspending"
	rayJobSuspended        = "Suspended"
	rayJobRetrying         = "Retrying"
	rayJobValidationFailed = "ValidationFailed"

	k8sJobMode      = "K8sJobMode"
	httpMode        = "HTTPMode"
	sidecarMode     = "SidecarMode"
	interactiveMode = "InteractiveMode"
)

// rayJobs plays KubeRay 1.3 and later for RayJobs; it needs rayClusters beside it. Facts: the RayJob controller and the
// builder of its submitter in ray-project/kuberay.
//
// A job goes through its states one write after the other. One that is created suspended goes through Initializing and
// Suspending too before it is Suspended, and has no children in them.
//
// Left out: deletion strategies, preRunningDeadlineSeconds, what is asked of the dashboard, for which see RayJobResult.
type rayJobs struct{ base }

func (o *rayJobs) kind() schema.GroupVersionKind { return rayJobKind }

func (o *rayJobs) watch(b *builder.Builder) *builder.Builder {
	return b.Owns(newObject(rayClusterKind)).Owns(&batchv1.Job{})
}

func (o *rayJobs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	job, err := o.get(ctx, rayJobKind, request.NamespacedName)
	if err != nil || job == nil {
		return reconcile.Result{}, err
	}
	if by := text(job.Object, "spec", "managedBy"); by != "" && by != rayController {
		return reconcile.Result{}, nil
	}
	if job.GetDeletionTimestamp() != nil {
		if controllerutil.RemoveFinalizer(job, rayJobFinalizer) {
			return reconcile.Result{}, o.client.Update(ctx, job)
		}
		return reconcile.Result{}, nil
	}
	before := job.DeepCopy()
	st := status(job)
	again := time.Duration(0)
	if message := rayJobInvalid(job); message != "" {
		st["jobDeploymentStatus"] = rayJobValidationFailed
		st["reason"], st["message"] = "ValidationFailed", message
	} else if again, err = o.step(ctx, job); err != nil {
		return reconcile.Result{}, err
	}
	if state := text(st, "jobDeploymentStatus"); state != text(before.Object, "status", "jobDeploymentStatus") {
		o.enter(job, state)
	}
	return reconcile.Result{RequeueAfter: again}, o.writeStatus(ctx, before, job)
}

// rayJobInvalid says why KubeRay does not run it. It looks at each reconciliation: a running job may become invalid.
func rayJobInvalid(job *unstructured.Unstructured) string {
	suspend := flag(job.Object, "spec", "suspend")
	selector := len(texts(job.Object, "spec", "clusterSelector")) > 0
	switch {
	case suspend && !flag(job.Object, "spec", "shutdownAfterJobFinishes"):
		return "to suspend needs shutdownAfterJobFinishes"
	case suspend && selector:
		return "a job on a cluster that is there already cannot be suspended"
	case !selector && part(job.Object, "spec", "rayClusterSpec") == nil:
		return "one of rayClusterSpec and clusterSelector is needed"
	case len(job.GetName()) > 47:
		return "the name is longer than 47"
	}
	return ""
}

// enter does what is done once when a state is entered: the end is counted, and may be followed by another attempt.
func (o *rayJobs) enter(job *unstructured.Unstructured, state string) {
	st := status(job)
	if state != rayJobComplete && state != rayJobFailed {
		return
	}
	st["endTime"] = timestamp(o.clock.Now())
	if state == rayJobComplete {
		if text(st, "jobStatus") == "SUCCEEDED" {
			st["succeeded"] = numberOr(0, st, "succeeded") + 1
		}
		return
	}
	st["failed"] = numberOr(0, st, "failed") + 1
	limit, limited := number(job.Object, "spec", "backoffLimit")
	if limited && numberOr(0, st, "failed") <= limit && text(st, "reason") != "DeadlineExceeded" {
		st["jobDeploymentStatus"] = rayJobRetrying
	}
}

// step does what the state asks for and may set the next one. It returns when it is to be called again, 0 for when
// something happens.
func (o *rayJobs) step(ctx context.Context, job *unstructured.Unstructured) (time.Duration, error) {
	st := status(job)
	switch text(st, "jobDeploymentStatus") {
	case "":
		return 0, o.begin(ctx, job)
	case rayJobInitializing:
		return o.live(job, func() error { return o.initialize(ctx, job) })
	case rayJobWaiting:
		// Doubtful: a job that waits for its user to submit is not suspended.
		if id := text(job.Object, "spec", "jobId"); id != "" {
			st["jobId"], st["jobDeploymentStatus"] = id, rayJobRunning
		}
		return 0, nil
	case rayJobRunning:
		return o.live(job, func() error { return o.observe(ctx, job) })
	case rayJobSuspending:
		return 0, o.reset(ctx, job, rayJobSuspended)
	case rayJobRetrying:
		return 0, o.reset(ctx, job, "")
	case rayJobSuspended:
		if !flag(job.Object, "spec", "suspend") {
			set(st, "jobDeploymentStatus", "")
		}
		return 0, nil
	case rayJobComplete, rayJobFailed:
		return o.shutDown(ctx, job)
	}
	// Doubtful: an invalid job stays so, even when its spec is put right.
	return 0, nil
}

// live is what Initializing and Running begin with: a suspension, then the deadline.
func (o *rayJobs) live(job *unstructured.Unstructured, next func() error) (time.Duration, error) {
	st := status(job)
	if flag(job.Object, "spec", "suspend") {
		st["jobDeploymentStatus"] = rayJobSuspending
		return 0, nil
	}
	seconds, limited := number(job.Object, "spec", "activeDeadlineSeconds")
	if !limited {
		return 0, next()
	}
	left := timeOf(st, "startTime").Add(time.Duration(seconds) * time.Second).Sub(o.clock.Now())
	if left <= 0 {
		st["jobDeploymentStatus"], st["reason"] = rayJobFailed, "DeadlineExceeded"
		return 0, nil
	}
	return left, next()
}

// begin gives the job its names, before anything is made by them.
func (o *rayJobs) begin(ctx context.Context, job *unstructured.Unstructured) error {
	if controllerutil.AddFinalizer(job, rayJobFinalizer) {
		st := job.Object["status"]
		if err := o.client.Update(ctx, job); err != nil {
			return err
		}
		job.Object["status"] = st
	}
	st := status(job)
	if rayJobMode(job) != interactiveMode && text(st, "jobId") == "" {
		st["jobId"] = textOr(job.GetName()+"-"+o.suffix(), job.Object, "spec", "jobId")
	}
	if text(st, "rayClusterName") == "" {
		st["rayClusterName"] = textOr(job.GetName()+"-"+o.suffix(), job.Object, "spec", "clusterSelector", rayClusterLabel)
	}
	st["startTime"], st["jobDeploymentStatus"] = timestamp(o.clock.Now()), rayJobInitializing
	return nil
}

func rayJobMode(job *unstructured.Unstructured) string {
	return textOr(k8sJobMode, job.Object, "spec", "submissionMode")
}

// initialize makes the cluster, and the submitter once the cluster is ready.
func (o *rayJobs) initialize(ctx context.Context, job *unstructured.Unstructured) error {
	cluster, err := o.cluster(ctx, job)
	if err != nil {
		return err
	}
	if cluster == nil {
		if part(job.Object, "spec", "rayClusterSpec") == nil {
			return nil // the one that is selected is not there yet
		}
		if cluster, err = rayJobCluster(job); err != nil {
			return err
		}
		if err := o.client.Create(ctx, cluster); err != nil {
			return err
		}
	}
	st := status(job)
	mirror(st, cluster)
	if text(cluster.Object, "status", "state") != "ready" {
		return nil
	}
	st["dashboardURL"] = cluster.GetName() + "-head-svc." + job.GetNamespace() + ".svc.cluster.local:8265"
	switch rayJobMode(job) {
	case interactiveMode:
		st["jobDeploymentStatus"] = rayJobWaiting
		return nil
	case k8sJobMode:
		if err := o.makeSubmitter(ctx, job, cluster); err != nil {
			return err
		}
	}
	st["jobDeploymentStatus"] = rayJobRunning
	return nil
}

func (o *rayJobs) cluster(ctx context.Context, job *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return o.get(ctx, rayClusterKind, types.NamespacedName{
		Namespace: job.GetNamespace(), Name: text(job.Object, "status", "rayClusterName"),
	})
}

// mirror copies the state of the cluster. Doubtful: KubeRay writes it only when the state of the job changes as well.
func mirror(st map[string]any, cluster *unstructured.Unstructured) {
	if of := part(cluster.Object, "status"); of != nil {
		st["rayClusterStatus"] = runtime.DeepCopyJSON(of)
	}
}

// rayJobCluster has the labels and annotations of its job: a queue that is named there is named on the cluster too.
func rayJobCluster(job *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	cluster := newObject(rayClusterKind)
	cluster.SetNamespace(job.GetNamespace())
	cluster.SetName(text(job.Object, "status", "rayClusterName"))
	cluster.SetLabels(merged(job.GetLabels(), map[string]string{
		"ray.io/originated-from-cr-name": job.GetName(), "ray.io/originated-from-crd": rayJobKind.Kind,
	}))
	cluster.SetAnnotations(job.GetAnnotations())
	cluster.SetOwnerReferences(ownedBy(job))
	spec := runtime.DeepCopyJSON(part(job.Object, "spec", "rayClusterSpec"))
	cluster.Object["spec"] = spec
	if rayJobMode(job) != sidecarMode {
		return cluster, nil
	}
	// The submitter is one more container of the head, which is not restarted.
	submitter, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ptr.To(raySubmitter(spec)))
	if err != nil {
		return nil, err
	}
	head := part(spec, "headGroupSpec", "template", "spec")
	containers, _ := head["containers"].([]any)
	head["containers"], head["restartPolicy"] = append(containers, submitter), "Never"
	return cluster, nil
}

// raySubmitter is the container that waits for the job at the dashboard, with the image of the head.
func raySubmitter(clusterSpec map[string]any) corev1.Container {
	container := corev1.Container{
		Name: "ray-job-submitter",
		Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			},
			Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("200Mi"),
			},
		},
	}
	for _, first := range parts(clusterSpec, "headGroupSpec", "template", "spec", "containers")[:1] {
		container.Image = text(first, "image")
	}
	return container
}

func (o *rayJobs) makeSubmitter(ctx context.Context, job, cluster *unstructured.Unstructured) error {
	if found, err := o.find(ctx, job.GetNamespace(), job.GetName(), &batchv1.Job{}); err != nil || found {
		return err
	}
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{raySubmitter(part(cluster.Object, "spec"))}, RestartPolicy: corev1.RestartPolicyNever,
	}}
	if part(job.Object, "spec", "submitterPodTemplate") != nil {
		var err error
		if template, err = podTemplate(job.Object, "spec", "submitterPodTemplate"); err != nil {
			return err
		}
	}
	first := &template.Spec.Containers[0]
	first.Env = append(first.Env,
		corev1.EnvVar{Name: "RAY_DASHBOARD_ADDRESS", Value: text(job.Object, "status", "dashboardURL")},
		corev1.EnvVar{Name: "RAY_JOB_SUBMISSION_ID", Value: text(job.Object, "status", "jobId")})
	return o.client.Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.GetName(), Namespace: job.GetNamespace(), OwnerReferences: ownedBy(job),
			Labels: map[string]string{
				"ray.io/originated-from-cr-name": job.GetName(), "ray.io/originated-from-crd": rayJobKind.Kind,
				"app.kubernetes.io/created-by": "kuberay-operator",
			},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: ptr.To(int32Of(numberOr(2, job.Object, "spec", "submitterConfig", "backoffLimit"))),
			Template:     template,
		},
	})
}

// observe is what the dashboard would be asked about.
func (o *rayJobs) observe(ctx context.Context, job *unstructured.Unstructured) error {
	st := status(job)
	cluster, err := o.cluster(ctx, job)
	if err != nil {
		return err
	}
	if cluster == nil {
		// Doubtful: KubeRay makes a cluster that somebody deleted anew, without a job that runs on it.
		return nil
	}
	mirror(st, cluster)
	result, done := job.GetAnnotations()[RayJobResult], true
	if rayJobMode(job) == k8sJobMode {
		submitter := &batchv1.Job{}
		if found, err := o.find(ctx, job.GetNamespace(), job.GetName(), submitter); err != nil || !found {
			return err
		}
		done = jobEnded(submitter)
		switch {
		case done && result == "" && jobHas(submitter, batchv1.JobComplete):
			result = "SUCCEEDED"
		case done && result == "":
			result = "FAILED"
		}
	}
	switch {
	case !done || result == "":
		st["jobStatus"] = "RUNNING"
	case result == "FAILED":
		st["jobStatus"], st["jobDeploymentStatus"], st["reason"] = result, rayJobFailed, "AppFailed"
	default: // SUCCEEDED, and STOPPED, which is Complete as well
		st["jobStatus"], st["jobDeploymentStatus"] = result, rayJobComplete
	}
	return nil
}

// reset deletes what was made and, when it is gone, forgets it. It is carried out whatever the spec says by then. Pods
// of the cluster may outlive the cluster.
func (o *rayJobs) reset(ctx context.Context, job *unstructured.Unstructured, next string) error {
	clusterGone, err := o.deleteCluster(ctx, job)
	if err != nil {
		return err
	}
	submitter := &batchv1.Job{}
	found := false
	if rayJobMode(job) != httpMode {
		if found, err = o.find(ctx, job.GetNamespace(), job.GetName(), submitter); err != nil {
			return err
		}
	}
	if found && submitter.DeletionTimestamp == nil {
		err := o.client.Delete(ctx, submitter, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if !clusterGone || found {
		return nil
	}
	st := status(job)
	for _, field := range []string{
		"rayClusterStatus", "rayClusterName", "dashboardURL", "jobId", "message", "reason", "jobStatus",
	} {
		delete(st, field)
	}
	set(st, "jobDeploymentStatus", next)
	return nil
}

// deleteCluster says whether it is gone.
func (o *rayJobs) deleteCluster(ctx context.Context, job *unstructured.Unstructured) (bool, error) {
	if len(texts(job.Object, "spec", "clusterSelector")) > 0 {
		return true, nil
	}
	cluster, err := o.cluster(ctx, job)
	if err != nil || cluster == nil {
		return err == nil, err
	}
	if cluster.GetDeletionTimestamp() == nil {
		return false, client.IgnoreNotFound(o.client.Delete(ctx, cluster))
	}
	return false, nil
}

// shutDown deletes the cluster of a job that ended, and leaves the submitter.
func (o *rayJobs) shutDown(ctx context.Context, job *unstructured.Unstructured) (time.Duration, error) {
	if !flag(job.Object, "spec", "shutdownAfterJobFinishes") {
		return 0, nil
	}
	ttl := time.Duration(numberOr(0, job.Object, "spec", "ttlSecondsAfterFinished")) * time.Second
	if left := timeOf(status(job), "endTime").Add(ttl).Sub(o.clock.Now()); left > 0 {
		return left, nil
	}
	_, err := o.deleteCluster(ctx, job)
	return 0, err
}
