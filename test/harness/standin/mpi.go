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
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var mpiJobKind = schema.GroupVersionKind{Group: "kubeflow.org", Version: "v2beta1", Kind: "MPIJob"}

const (
	mpiOperatorLabel = "training.kubeflow.org/operator-name"
	mpiJobLabel      = "training.kubeflow.org/job-name"
	mpiRoleLabel     = "training.kubeflow.org/job-role"
	mpiIndexLabel    = "training.kubeflow.org/replica-index"
)

// mpiJobs plays mpi-operator 0.6. Facts: its controller and defaults in kubeflow/mpi-operator.
//
// Left out: the Service, ConfigMap and Secret, by which nothing is scheduled; PodGroups; the checks of its validation.
type mpiJobs struct{ base }

func (o *mpiJobs) kind() schema.GroupVersionKind { return mpiJobKind }

func (o *mpiJobs) watch(b *builder.Builder) *builder.Builder {
	// Pods of the launcher are owned by its Job, those of workers by the MPIJob; both bear the label.
	return podsByLabel(b.Owns(&batchv1.Job{}), mpiJobLabel)
}

func (o *mpiJobs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	job, err := o.get(ctx, mpiJobKind, request.NamespacedName)
	if err != nil || job == nil || job.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	before := job.DeepCopy()
	st := status(job)
	if conditionOf(st, "Created") == "" {
		o.condition(st, "Created", true, "MPIJobCreated")
	}
	if (conditionOf(st, "Succeeded") == "True" || conditionOf(st, "Failed") == "True") && st["completionTime"] != nil {
		err = o.cleanUp(ctx, job)
	} else {
		err = o.run(ctx, job)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, o.writeStatus(ctx, before, job)
}

func (o *mpiJobs) condition(st map[string]any, kind string, value bool, reason string) bool {
	return setCondition(st, condition{
		kind: kind, status: value, reason: reason, message: "MPIJob: " + reason, updateTime: true,
	}, o.clock.Now())
}

func mpiSuspended(job *unstructured.Unstructured) bool {
	return flag(job.Object, "spec", "runPolicy", "suspend")
}

func (o *mpiJobs) run(ctx context.Context, job *unstructured.Unstructured) error {
	st := status(job)
	suspended := mpiSuspended(job)
	if st["startTime"] == nil && !suspended {
		st["startTime"] = timestamp(o.clock.Now())
	}
	launcher := &batchv1.Job{}
	found, err := o.find(ctx, job.GetNamespace(), job.GetName()+"-launcher", launcher)
	if err != nil {
		return err
	}
	if !found {
		launcher = nil
	}
	var workers []corev1.Pod
	if launcher == nil || !jobEnded(launcher) {
		if launcher, workers, err = o.makeChildren(ctx, job, launcher); err != nil {
			return err
		}
	}
	if launcher != nil && ptr.Deref(launcher.Spec.Suspend, false) != suspended {
		launcher.Spec.Suspend = &suspended
		if err := o.client.Update(ctx, launcher); err != nil {
			return err
		}
	}
	if suspended {
		if err := o.deleteWorkers(ctx, job); err != nil {
			return err
		}
	}
	return o.setStatus(ctx, job, launcher, workers)
}

// makeChildren makes what is missing, and returns all there is.
func (o *mpiJobs) makeChildren(
	ctx context.Context, job *unstructured.Unstructured, launcher *batchv1.Job,
) (*batchv1.Job, []corev1.Pod, error) {
	var workers []corev1.Pod
	var err error
	if !mpiSuspended(job) {
		if workers, err = o.makeWorkers(ctx, job); err != nil {
			return nil, nil, err
		}
	}
	// A job that is created suspended has a launcher Job at once, suspended, whatever launcherCreationPolicy says.
	if launcher != nil {
		return launcher, workers, nil
	}
	if launcher, err = mpiLauncher(job); err != nil {
		return nil, nil, err
	}
	return launcher, workers, o.client.Create(ctx, launcher)
}

// cleanUp is what happens after the end: cleanPodPolicy, None unless given, says which workers go.
func (o *mpiJobs) cleanUp(ctx context.Context, job *unstructured.Unstructured) error {
	policy := text(job.Object, "spec", "runPolicy", "cleanPodPolicy")
	if policy != "All" && policy != "Running" {
		return nil
	}
	part(status(job), "replicaStatuses")["Worker"] = map[string]any{}
	return o.deleteWorkers(ctx, job)
}

func (o *mpiJobs) deleteWorkers(ctx context.Context, job *unstructured.Unstructured) error {
	workers, err := o.workers(ctx, job)
	if err != nil {
		return err
	}
	if text(job.Object, "spec", "runPolicy", "cleanPodPolicy") == "Running" {
		workers = slices.DeleteFunc(workers, ended)
	}
	return o.deletePods(ctx, workers)
}

func mpiLabels(job *unstructured.Unstructured, role string) map[string]string {
	return map[string]string{mpiOperatorLabel: "mpi-operator", mpiJobLabel: job.GetName(), mpiRoleLabel: role}
}

func (o *mpiJobs) workers(ctx context.Context, job *unstructured.Unstructured) ([]corev1.Pod, error) {
	return o.pods(ctx, job.GetNamespace(), mpiLabels(job, "worker"), job)
}

func mpiWorkers(job *unstructured.Unstructured) int64 {
	return numberOr(0, job.Object, "spec", "mpiReplicaSpecs", "Worker", "replicas")
}

// makeWorkers creates missing workers, also in place of deleted ones.
func (o *mpiJobs) makeWorkers(ctx context.Context, job *unstructured.Unstructured) ([]corev1.Pod, error) {
	there, err := o.workers(ctx, job)
	if err != nil {
		return nil, err
	}
	byName := map[string]corev1.Pod{}
	for _, pod := range there {
		byName[pod.Name] = pod
	}
	var workers []corev1.Pod
	for i := range mpiWorkers(job) {
		name := job.GetName() + "-worker-" + itoa(i)
		pod, found := byName[name]
		if !found {
			made, err := mpiWorker(job, name, i)
			if err != nil {
				return nil, err
			}
			if err := o.client.Create(ctx, made); err != nil {
				return nil, err
			}
			pod = *made
		}
		workers = append(workers, pod)
	}
	return workers, nil
}

func mpiWorker(job *unstructured.Unstructured, name string, index int64) (*corev1.Pod, error) {
	spec := part(job.Object, "spec", "mpiReplicaSpecs", "Worker")
	template, err := podTemplate(spec, "template")
	if err != nil {
		return nil, err
	}
	template.Labels = merged(template.Labels, mpiLabels(job, "worker"), map[string]string{mpiIndexLabel: itoa(index)})
	template.Spec.Hostname, template.Spec.Subdomain = name, job.GetName()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod := newPod(job.GetNamespace(), &template, ownedBy(job))
	pod.Name = name
	return pod, nil
}

func mpiLauncher(job *unstructured.Unstructured) (*batchv1.Job, error) {
	spec := part(job.Object, "spec", "mpiReplicaSpecs", "Launcher")
	template, err := podTemplate(spec, "template")
	if err != nil {
		return nil, err
	}
	template.Labels = merged(template.Labels, mpiLabels(job, "launcher"))
	template.Spec.Hostname, template.Spec.Subdomain = job.GetName()+"-launcher", job.GetName()
	template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	launcher := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.GetName() + "-launcher", Namespace: job.GetNamespace(),
			Labels: map[string]string{"app": job.GetName()}, OwnerReferences: ownedBy(job),
		},
		Spec: batchv1.JobSpec{Template: template},
	}
	if limit, found := number(job.Object, "spec", "runPolicy", "backoffLimit"); found {
		launcher.Spec.BackoffLimit = ptr.To(int32Of(limit))
	}
	if mpiSuspended(job) {
		launcher.Spec.Suspend = ptr.To(true)
	}
	return launcher, nil
}

func (o *mpiJobs) setStatus(
	ctx context.Context, job *unstructured.Unstructured, launcher *batchv1.Job, workers []corev1.Pod,
) error {
	st := status(job)
	suspended := mpiSuspended(job)
	if suspended {
		o.condition(st, "Suspended", true, "MPIJobSuspended")
	} else if conditionOf(st, "Suspended") != "" && o.condition(st, "Suspended", false, "MPIJobResumed") {
		// Until here the time of the run before stays in the status, suspended as it is.
		st["startTime"] = timestamp(o.clock.Now())
	}
	replicas := map[string]any{}
	launchers := int64(0)
	if launcher != nil {
		pods, err := o.pods(ctx, job.GetNamespace(), mpiLabels(job, "launcher"), launcher)
		if err != nil {
			return err
		}
		launchers = count(pods, running)
		replicas["Launcher"] = o.launcherStatus(st, launcher, launchers)
	}
	active := count(workers, running)
	replicas["Worker"] = counts(active, count(workers, succeeded), count(workers, failed))
	st["replicaStatuses"] = replicas
	switch {
	case suspended:
		o.condition(st, "Running", false, "MPIJobSuspended")
	case launchers >= 1 && active == int64(len(workers)):
		o.condition(st, "Running", true, "MPIJobRunning")
	}
	return nil
}

// launcherStatus derives the status of the job from that of the launcher.
func (o *mpiJobs) launcherStatus(st map[string]any, launcher *batchv1.Job, active int64) map[string]any {
	failures := int64(launcher.Status.Failed)
	switch {
	case jobHas(launcher, batchv1.JobComplete):
		if st["completionTime"] == nil && launcher.Status.CompletionTime != nil {
			st["completionTime"] = timestamp(launcher.Status.CompletionTime.Time)
		}
		o.finish(st, "Succeeded", "MPIJobSucceeded")
		return counts(0, 1, failures)
	case jobHas(launcher, batchv1.JobFailed):
		if st["completionTime"] == nil {
			st["completionTime"] = timestamp(o.clock.Now())
		}
		o.finish(st, "Failed", "MPIJobFailed")
		return counts(0, 0, failures)
	default:
		return counts(active, 0, failures)
	}
}

// finish: with the end, Running is false.
func (o *mpiJobs) finish(st map[string]any, kind, reason string) {
	o.condition(st, kind, true, reason)
	if conditionOf(st, "Running") == "True" {
		o.condition(st, "Running", false, reason)
	}
}

// counts are those of status.replicaStatuses, which leaves out zeros.
func counts(active, succeeded, failed int64) map[string]any {
	out := map[string]any{}
	for name, n := range map[string]int64{"active": active, "succeeded": succeeded, "failed": failed} {
		if n > 0 {
			out[name] = n
		}
	}
	return out
}

func jobHas(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func jobEnded(job *batchv1.Job) bool {
	return jobHas(job, batchv1.JobComplete) || jobHas(job, batchv1.JobFailed)
}
