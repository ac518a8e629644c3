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

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// ReasonLabels of the event of a CronJob whose jobs do not inherit its labels.
const ReasonLabels = "LabelsNotInTemplate"

// queueKeys are the labels that put a job into a quota or queue.
var queueKeys = append([]string{v1alpha1.QueueNameKey}, v1alpha1.QuotaLabels[:]...)

// CronJobs tells, by an event, that jobs inherit no label of their CronJob. It writes nothing else.
type CronJobs struct {
	// Stored returns what is kept of a CronJob, nil if it is gone.
	Stored   func(key types.NamespacedName) *batchv1.CronJob
	Recorder events.EventRecorder
	// Pace waits until the next event may go out.
	Pace func(context.Context) error
}

// Reconcile one CronJob.
func (r *CronJobs) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cron := r.Stored(req.NamespacedName)
	if cron == nil || cron.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	key := notInherited(cron)
	if key == "" {
		return ctrl.Result{}, nil
	}
	if err := r.Pace(ctx); err != nil {
		return ctrl.Result{}, err
	}
	r.Recorder.Eventf(cron, nil, corev1.EventTypeWarning, ReasonLabels, "Queue",
		"no job of this CronJob is queued: the label %s must be in spec.jobTemplate.metadata.labels", key)
	return ctrl.Result{}, nil
}

// notInherited is a label of the CronJob that names a quota or queue while its jobs name none; empty if there is none.
func notInherited(cron *batchv1.CronJob) string {
	template := &cron.Spec.JobTemplate
	if has(template.Labels) != "" || has(template.Spec.Template.Labels) != "" ||
		template.Annotations[v1alpha1.QueueNameKey] != "" {
		return ""
	}
	return has(cron.Labels)
}

func has(set map[string]string) string {
	for _, key := range queueKeys {
		if set[key] != "" {
			return key
		}
	}
	return ""
}

// trimCronJob keeps what notInherited reads. Templates may be large.
func trimCronJob(object any) (any, error) {
	cron, ok := object.(*batchv1.CronJob)
	if !ok {
		return object, nil // the last known state of a deleted CronJob
	}
	kept := &batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: cron.Namespace, Name: cron.Name, UID: cron.UID, ResourceVersion: cron.ResourceVersion,
		DeletionTimestamp: cron.DeletionTimestamp, Labels: queueLabels(cron.Labels),
	}}
	template := &cron.Spec.JobTemplate
	kept.Spec.JobTemplate.Labels = queueLabels(template.Labels)
	if value := template.Annotations[v1alpha1.QueueNameKey]; value != "" {
		kept.Spec.JobTemplate.Annotations = map[string]string{v1alpha1.QueueNameKey: value[:min(len(value), 1)]}
	}
	kept.Spec.JobTemplate.Spec.Template.Labels = queueLabels(template.Spec.Template.Labels)
	return kept, nil
}

func queueLabels(set map[string]string) map[string]string {
	var kept map[string]string
	for _, key := range queueKeys {
		if value := set[key]; value != "" {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}

// cronJobDiffers says whether something else may be to tell: not after a run.
func cronJobDiffers(before, after any) bool {
	a, ok := before.(*batchv1.CronJob)
	b, ok2 := after.(*batchv1.CronJob)
	return !ok || !ok2 || a.UID != b.UID || !equality.Semantic.DeepEqual(a.Labels, b.Labels) ||
		!equality.Semantic.DeepEqual(a.Spec, b.Spec)
}
