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
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/controller/jobplan"
)

// leftPods are those on nodes that name the unit and do not go by themselves. If the job is gone, pods that an owner
// controls are left to the garbage collector. Labels may have been changed since, so all pods of the namespace are read,
// and only if an administrator has these pods ended.
func leftPods(ctx context.Context, live client.Reader, s *jobplan.Situation) ([]jobplan.Pod, error) {
	left, unit := []jobplan.Pod{}, client.ObjectKeyFromObject(s.Unit).String()
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
				left = append(left, jobplan.PodOf(pod))
			}
		}
		if next = page.Continue; next == "" {
			return left, nil
		}
	}
}

// endPods gives pods an active deadline, at the pace of notices: of what a controller may write of a running pod, only
// that ends it. The unit stays until all of them have one.
func (w *writer) endPods(ctx context.Context, a jobplan.EndPods) error {
	for _, pod := range a.Pods {
		if w.shared.Notices != nil && !w.shared.Notices.TryAccept() {
			return errNoticePace
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		object.Namespace, object.Name = w.unit.Namespace, pod.Name
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"activeDeadlineSeconds":1}}`, pod.ResourceVersion)
		err := w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldOwner)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		klog.FromContext(ctx).Info("Ended a pod whose job was deleted without it", "pod", klog.KObj(object),
			"queueUnit", klog.KObj(w.unit))
	}
	return nil
}
