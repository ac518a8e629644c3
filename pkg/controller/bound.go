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
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/jobs/jobkind"
)

// bound says whether pods of a job are on nodes. A group says it itself.
func (o *observer) bound(ctx context.Context, job *jobs.Job) (jobplan.Bound, error) {
	if !o.kind.OfPods() {
		return o.boundPods(ctx, job)
	}
	now := newObject(o.kind.GVK)
	switch err := o.liveJobs.Get(ctx, client.ObjectKeyFromObject(job.Object), now); {
	case client.IgnoreNotFound(err) != nil:
		return jobplan.BoundUnknown, err
	case err == nil && jobs.Open(o.kind, now).Started():
		return jobplan.BoundSome, nil
	default:
		return jobplan.BoundNone, nil
	}
}

// onNodes are pods that are bound and have not ended. One that has ended keeps the name of its node.
var onNodes = fields.AndSelectors(
	fields.OneTermNotEqualSelector("spec.nodeName", ""),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
)

// boundPods asks the API server, not a cache: a job whose pods run is never suspended on old news. One pod is enough.
// The label by which pods are found anybody may write; the owners decide.
func (o *observer) boundPods(ctx context.Context, job *jobs.Job) (jobplan.Bound, error) {
	selector := job.PodSelector()
	if _, selects := selector.Requirements(); !selects {
		return jobplan.BoundNone, nil // the job does not say yet what its pods are known by, and has none
	}
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := o.live.List(ctx, pods,
		client.InNamespace(job.Object.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector},
		client.MatchingFieldsSelector{Selector: onNodes},
	)
	if err != nil {
		return jobplan.BoundUnknown, err
	}
	owners := ownership{o: o, namespace: job.Object.GetNamespace(), controllers: map[types.UID]*metav1.OwnerReference{}}
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
	o         *observer
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
	for _, between := range w.o.kind.Children {
		if between.GVK.Kind != ref.Kind {
			continue
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(between.GVK)
		err := w.o.live.Get(ctx, types.NamespacedName{Namespace: w.namespace, Name: ref.Name}, object)
		if err != nil || object.UID != ref.UID {
			return nil, client.IgnoreNotFound(err)
		}
		return metav1.GetControllerOf(object), nil
	}
	return nil, nil
}
