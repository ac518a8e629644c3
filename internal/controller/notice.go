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
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/notice"
)

// Notices of all jobs together have a pace, and so has the look at the pods of one job. A job of 10,000 pods is told in
// 200 seconds, in steps of 500 pods. A step takes some seconds of one of the workers.
const (
	noticesPerSecond = 100
	noticesAtOnce    = 500
)

// errNoticePace: other jobs have used up the pace of notices.
var errNoticePace = errors.New("notices of all jobs together have a pace")

// notify pods of a job. Those for which there is no time now, and those that have changed, are told at the next look. A
// notice that is withdrawn has no next look, so an error says that it has to be tried again.
func (w *writer) notify(ctx context.Context, a jobplan.Notify) error {
	var refused, again error
	for _, pod := range a.Pods {
		if !w.known.mayNotify(a) {
			break
		}
		if w.shared.Notices != nil && !w.shared.Notices.TryAccept() {
			again = errNoticePace
			break
		}
		switch err := w.notifyPod(ctx, a, pod); {
		case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
			refused = err
		case err != nil:
			again = err
		}
	}
	if a.Notice == nil && again != nil {
		return again
	}
	for _, err := range []error{refused, again} {
		if err != nil && !apierrors.IsConflict(err) && !errors.Is(err, errNoticePace) {
			klog.FromContext(ctx).Error(err, "Notices of pods of a job were not written")
		}
	}
	return nil
}

// notifyPod counts the writes that met the pod: its owner may change it as often as this controller writes it.
func (w *writer) notifyPod(ctx context.Context, a jobplan.Notify, pod notice.Pod) error {
	patch, err := a.Notice.Patch(pod)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	object.Namespace, object.Name = w.job.Object.GetNamespace(), pod.Name
	err = w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldOwner)
	if err == nil || apierrors.IsConflict(err) {
		w.known.noteNotice(a)
	}
	return client.IgnoreNotFound(err)
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
		patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"activeDeadlineSeconds":1}}`,
			pod.ResourceVersion)
		err := w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), fieldOwner)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		klog.FromContext(ctx).Info("Ended a pod whose job was deleted without it", "pod", klog.KObj(object),
			"queueUnit", klog.KObj(w.unit))
	}
	return nil
}
