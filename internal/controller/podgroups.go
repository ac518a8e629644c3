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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/event"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

// podGroupIndex finds pods that nobody owns by their group.
const podGroupIndex = "jobqueue/pod-group"

// podGroups reads groups of pods as the jobs that they are. From a cache that has podGroupIndex it reads by that, else
// by label and name.
type podGroups struct {
	client.Reader
	predicate *managedjobs.Predicate
	indexed   bool
}

// Get makes the job of all pods of a group; it is not found where there are none.
func (g podGroups) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	job, ok := into.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("a group of pods cannot be read into %T", into)
	}
	pods, err := g.podsOf(ctx, key)
	if err != nil {
		return err
	}
	group, err := podgroup.Of(pods)
	if err != nil {
		return err
	}
	if group == nil {
		return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}
	group.DeepCopyInto(job)
	return nil
}

func (g podGroups) podsOf(ctx context.Context, key types.NamespacedName) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	if g.indexed {
		if err := g.Reader.List(ctx, list, client.InNamespace(key.Namespace),
			client.MatchingFields{podGroupIndex: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	} else {
		if err := g.Reader.List(ctx, list, client.InNamespace(key.Namespace),
			client.MatchingLabels{podgroup.LabelName: key.Name}); err != nil {
			return nil, err
		}
		alone := corev1.Pod{}
		switch err := g.Reader.Get(ctx, key, &alone); {
		case err == nil && podgroup.NameOf(&alone) == alone.Name && alone.Labels[podgroup.LabelName] == "":
			list.Items = append(list.Items, alone)
		case client.IgnoreNotFound(err) != nil:
			return nil, err
		}
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if pod := &list.Items[i]; g.predicate.QueuesPod(pod) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// List names the groups of a namespace.
func (g podGroups) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	groups, ok := into.(*unstructured.UnstructuredList)
	if !ok {
		return fmt.Errorf("groups of pods cannot be read into %T", into)
	}
	list := &corev1.PodList{}
	if err := g.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	seen := map[types.NamespacedName]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		key := groupOf(pod)
		if seen[key] || !g.predicate.QueuesPod(pod) {
			continue
		}
		seen[key] = true
		group := unstructured.Unstructured{Object: map[string]any{}}
		group.SetNamespace(key.Namespace)
		group.SetName(key.Name)
		groups.Items = append(groups.Items, group)
	}
	return nil
}

func groupOf(pod client.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.GetNamespace(), Name: podgroup.NameOf(pod)}
}

// groupOfPod wakes the group of a pod, if it has one.
func (g podGroups) groupOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	if !g.predicate.QueuesPod(pod) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: groupOf(pod)}}
}

// podCacheOptions keep of pods that are queued what is read of them, and of others that they are there.
func podCacheOptions(mgr manager.Manager, p *managedjobs.Predicate) cache.Options {
	return cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: func(object any) (any, error) {
			if pod, ok := object.(*corev1.Pod); ok {
				return podgroup.Compact(pod, p.QueuesPod(pod)), nil
			}
			return object, nil
		}}},
	}
}

// firstPodRecorder records what is about a group as events of its first pod.
type firstPodRecorder struct{ event.Recorder }

// Eventf implements event.Recorder.
func (r firstPodRecorder) Eventf(
	regarding, related runtime.Object, eventtype, reason, action, note string, args ...any,
) {
	if group, ok := regarding.(*unstructured.Unstructured); ok {
		name, _, _ := unstructured.NestedString(group.Object, "spec", "first")
		regarding = &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: group.GetKind()},
			ObjectMeta: metav1.ObjectMeta{Namespace: group.GetNamespace(), Name: name, UID: group.GetUID()},
		}
	}
	r.Recorder.Eventf(regarding, related, eventtype, reason, action, note, args...)
}
