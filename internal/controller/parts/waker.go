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

package parts

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/compact"
)

// Index finds jobs of a namespace by the UIDs of their controlling owners.
const Index = "jobqueue/owner"

// notKept is what the index has for jobs that are too large for the cache, whose owners it does not know.
const notKept = "-"

// OwnerOf is what Index has of a job.
func OwnerOf(job client.Object) []string {
	if kept, is := job.(*unstructured.Unstructured); is {
		expanded, err := compact.Expand(kept)
		if err != nil {
			return []string{notKept}
		}
		job = expanded
	}
	if owner := metav1.GetControllerOfNoCopy(job); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// Waker has the parts of a job looked at again when no unit stands for the job any more.
type Waker struct {
	// Kind of the parts, and a reader of them that has Index.
	Kind schema.GroupVersionKind
	Jobs client.Reader
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Handler of events of units.
func (w Waker) Handler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			before, was := e.ObjectOld.(*v1alpha1.QueueUnit)
			after, is := e.ObjectNew.(*v1alpha1.QueueUnit)
			if was && is && standsFor(before) != standsFor(after) {
				w.wake(ctx, before, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) {
			if u, is := e.Object.(*v1alpha1.QueueUnit); is {
				w.wake(ctx, u, queue)
			}
		},
	}
}

func (w Waker) wake(ctx context.Context, u *v1alpha1.QueueUnit, queue requests) {
	maker := standsFor(u)
	if maker == "" {
		return
	}
	for _, owner := range []string{string(maker), notKept} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(w.Kind.GroupVersion().WithKind(w.Kind.Kind + "List"))
		err := w.Jobs.List(ctx, list, client.InNamespace(u.Namespace), client.MatchingFields{Index: owner},
			client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the parts of a job whose QueueUnit ended", "queueUnit", u.Name)
		}
		for i := range list.Items {
			queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{
				Namespace: list.Items[i].GetNamespace(), Name: list.Items[i].GetName(),
			}})
		}
	}
}
