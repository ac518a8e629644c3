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

// Package jobpods finds the pods of a job. It reads from the API server, because a cache can be behind.
package jobpods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

// podsPerPage bounds what is in memory of the pods of a job, of which users write the annotations.
const podsPerPage = 250

// onNodes are pods that are bound and have not ended. An ended pod keeps the name of its node.
var onNodes = fields.AndSelectors(
	fields.OneTermNotEqualSelector("spec.nodeName", ""),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// Bound says whether pods of a job are on nodes; one is enough. It asks the API server, because a job whose pods run
// must not be suspended by an outdated cache. Anybody may write the label of pods, so the owners decide.
func Bound(
	ctx context.Context, live client.Reader, kind *jobkind.Kind, job *jobs.Job,
) (jobplan.Bound, error) {
	selector := job.PodSelector()
	if _, selects := selector.Requirements(); !selects {
		return jobplan.BoundNone, nil // the job does not say yet what its pods are known by, and has none
	}
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := live.List(ctx, pods,
		client.InNamespace(job.Object.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector},
		client.MatchingFieldsSelector{Selector: onNodes},
	)
	if err != nil {
		return jobplan.BoundUnknown, err
	}
	owners := ownership{
		live: live, kind: kind, namespace: job.Object.GetNamespace(),
		controllers: map[types.UID]*metav1.OwnerReference{},
	}
	for i := range pods.Items {
		belongs, err := owners.leadTo(ctx, metav1.GetControllerOfNoCopy(&pods.Items[i]), job.Object.GetUID())
		if err != nil {
			return jobplan.BoundUnknown, err
		}
		if belongs {
			return jobplan.BoundSome, nil
		}
	}
	return jobplan.BoundNone, nil
}

// ownership follows owners up to a job, and asks for each of them once.
type ownership struct {
	live      client.Reader
	kind      *jobkind.Kind
	namespace string
	// controllers of objects that stand between the job and its pods, nil for one without.
	controllers map[types.UID]*metav1.OwnerReference
}

func (w *ownership) leadTo(ctx context.Context, owner *metav1.OwnerReference, job types.UID) (leads bool, err error) {
	made := func(of *metav1.OwnerReference) *metav1.OwnerReference {
		next, asked := w.controllers[of.UID]
		if asked {
			return next
		}
		if next, err = w.ask(ctx, of); err == nil {
			w.controllers[of.UID] = next
		}
		return next
	}
	for of := range jobkind.Up(owner, made) {
		if of.UID == job {
			return true, nil
		}
	}
	return false, err
}

// ask for the controller of an object; nil too if it is of no kind that stands between, or is not there.
func (w *ownership) ask(ctx context.Context, ref *metav1.OwnerReference) (*metav1.OwnerReference, error) {
	for _, between := range w.kind.Children {
		if between.GVK.Kind != ref.Kind {
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(between.GVK)
		err := w.live.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: ref.Name}, object)
		if err != nil || object.UID != ref.UID {
			return nil, client.IgnoreNotFound(err)
		}
		return metav1.GetControllerOf(object), nil
	}
	return nil, nil
}

// Running returns the running pods of a job, read from the API server. Owners are not checked. A foreign pod of the
// namespace with the labels of the job only gets a notice that nobody needs.
func Running(ctx context.Context, live client.Reader, job *jobs.Job) ([]notice.Pod, error) {
	running := []notice.Pod{}
	selector := job.PodSelector()
	if _, selects := selector.Requirements(); !selects {
		return running, nil
	}
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := live.List(ctx, page,
			client.InNamespace(job.Object.GetNamespace()),
			client.MatchingLabelsSelector{Selector: selector},
			client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("status.phase", string(corev1.PodRunning))},
			client.Limit(podsPerPage), client.Continue(next),
		)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].DeletionTimestamp == nil {
				running = append(running, notice.PodOf(&page.Items[i]))
			}
		}
		if next = page.Continue; next == "" {
			return running, nil
		}
	}
}

// Left are those on nodes that name the unit and do not go by themselves. If the job is gone, pods that an owner
// controls are left to the garbage collector. Labels may have been changed since, so all pods of the namespace are
// read, and only if an administrator has these pods ended.
func Left(ctx context.Context, live client.Reader, s *jobplan.Situation) ([]notice.Pod, error) {
	left, unit := []notice.Pod{}, client.ObjectKeyFromObject(s.Unit).String()
	for next := ""; ; {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := live.List(ctx, page, client.InNamespace(s.Unit.Namespace),
			client.MatchingFieldsSelector{Selector: onNodes}, client.Limit(podsPerPage), client.Continue(next))
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			pod := &page.Items[i]
			if pod.Annotations[v1alpha1.AnnotationRelatedQueueUnit] == unit && pod.DeletionTimestamp == nil &&
				(s.Job != nil || metav1.GetControllerOfNoCopy(pod) == nil) {
				left = append(left, notice.PodOf(pod))
			}
		}
		if next = page.Continue; next == "" {
			return left, nil
		}
	}
}
