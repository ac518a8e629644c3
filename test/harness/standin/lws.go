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
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var leaderWorkerSetKind = schema.GroupVersionKind{
	Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet",
}

const (
	lwsNameLabel  = "leaderworkerset.sigs.k8s.io/name"
	lwsGroupLabel = "leaderworkerset.sigs.k8s.io/group-index"
	lwsIndexLabel = "leaderworkerset.sigs.k8s.io/worker-index"
	lwsKeyLabel   = "leaderworkerset.sigs.k8s.io/group-key"

	lwsSizeAnnotation   = "leaderworkerset.sigs.k8s.io/size"
	lwsLeaderAnnotation = "leaderworkerset.sigs.k8s.io/leader-name"
)

// leaderWorkerSets plays the controller of LeaderWorkerSet 0.6; PodWebhook plays its webhook of pods. The pods are made
// by the StatefulSet controller of Kubernetes, which must run. Facts: the two controllers and the webhooks in
// kubernetes-sigs/lws.
//
// There is no suspension. Left out: changes of a set, restarts of groups, Services, subgroups, exclusive placement,
// volume claims.
type leaderWorkerSets struct{ base }

func (o *leaderWorkerSets) kind() schema.GroupVersionKind { return leaderWorkerSetKind }

func (o *leaderWorkerSets) watch(b *builder.Builder) *builder.Builder {
	// StatefulSets of workers are owned by leaders' pods.
	return podsByLabel(b, lwsNameLabel).Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(
		func(_ context.Context, set client.Object) []reconcile.Request {
			name := set.GetLabels()[lwsNameLabel]
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: set.GetNamespace(), Name: name}}}
		}))
}

func (o *leaderWorkerSets) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	lws, err := o.get(ctx, leaderWorkerSetKind, request.NamespacedName)
	if err != nil || lws == nil || lws.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	before := lws.DeepCopy()
	leaders, err := o.leaderSet(ctx, lws)
	if err != nil {
		return reconcile.Result{}, err
	}
	ready, err := o.groups(ctx, lws)
	if err != nil {
		return reconcile.Result{}, err
	}
	o.setStatus(lws, leaders, ready)
	return reconcile.Result{}, o.writeStatus(ctx, before, lws)
}

func lwsSize(lws *unstructured.Unstructured) int64 {
	return numberOr(1, lws.Object, "spec", "leaderWorkerTemplate", "size")
}

func lwsReplicas(lws *unstructured.Unstructured) int64 {
	return numberOr(1, lws.Object, "spec", "replicas")
}

// leaderSet is the StatefulSet of the leaders, a group each.
func (o *leaderWorkerSets) leaderSet(ctx context.Context, lws *unstructured.Unstructured) (*appsv1.StatefulSet, error) {
	template, err := podTemplate(lws.Object, "spec", "leaderWorkerTemplate", "leaderTemplate")
	if err != nil {
		return nil, err
	}
	selector := map[string]string{lwsNameLabel: lws.GetName(), lwsIndexLabel: "0"}
	template.Labels = merged(template.Labels, selector)
	template.Annotations = merged(template.Annotations, map[string]string{lwsSizeAnnotation: itoa(lwsSize(lws))})
	want := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: lws.GetName(), Namespace: lws.GetNamespace(), OwnerReferences: ownedBy(lws),
			Labels:      map[string]string{lwsNameLabel: lws.GetName()},
			Annotations: map[string]string{"leaderworkerset.sigs.k8s.io/replicas": itoa(lwsReplicas(lws))},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32Of(lwsReplicas(lws))), ServiceName: lws.GetName(), Template: template,
			PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: selector},
		},
	}
	there := &appsv1.StatefulSet{}
	found, err := o.find(ctx, want.Namespace, want.Name, there)
	if err != nil || found {
		return there, err
	}
	return want, o.client.Create(ctx, want)
}

// groups makes the workers of each leader there is, and returns the number of groups that are ready.
func (o *leaderWorkerSets) groups(ctx context.Context, lws *unstructured.Unstructured) (int64, error) {
	pods, err := o.pods(ctx, lws.GetNamespace(), map[string]string{lwsNameLabel: lws.GetName()}, nil)
	if err != nil {
		return 0, err
	}
	readyGroups := int64(0)
	for _, leader := range pods {
		if leader.Labels[lwsIndexLabel] != "0" || leader.DeletionTimestamp != nil {
			continue
		}
		workersReady, err := o.workerSet(ctx, lws, &leader)
		if err != nil {
			return 0, err
		}
		if workersReady && ready(leader) {
			readyGroups++
		}
	}
	return readyGroups, nil
}

// workerSet makes the StatefulSet of the workers of a group, which has the name of its leader and counts from 1. It
// says whether all workers are ready.
func (o *leaderWorkerSets) workerSet(
	ctx context.Context, lws *unstructured.Unstructured, leader *corev1.Pod,
) (bool, error) {
	workers := lwsSize(lws) - 1
	there := &appsv1.StatefulSet{}
	found, err := o.find(ctx, leader.Namespace, leader.Name, there)
	if err != nil {
		return false, err
	}
	if found {
		// One of the leader before is left to the garbage collector.
		return metav1.IsControlledBy(there, leader) && int64(there.Status.ReadyReplicas) == workers, nil
	}
	template, err := podTemplate(lws.Object, "spec", "leaderWorkerTemplate", "workerTemplate")
	if err != nil {
		return false, err
	}
	selector := map[string]string{
		lwsNameLabel: lws.GetName(), lwsGroupLabel: leader.Labels[lwsGroupLabel], lwsKeyLabel: leader.Labels[lwsKeyLabel],
	}
	template.Labels = merged(template.Labels, selector)
	template.Annotations = merged(template.Annotations, map[string]string{
		lwsSizeAnnotation: itoa(lwsSize(lws)), lwsLeaderAnnotation: leader.Name,
	})
	return false, o.client.Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: leader.Name, Namespace: leader.Namespace, Labels: selector,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(leader, corev1.SchemeGroupVersion.WithKind("Pod")),
			},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32Of(workers)), ServiceName: lws.GetName(), Template: template,
			PodManagementPolicy: appsv1.ParallelPodManagement, Ordinals: &appsv1.StatefulSetOrdinals{Start: 1},
			Selector: &metav1.LabelSelector{MatchLabels: selector},
		},
	})
}

func (o *leaderWorkerSets) setStatus(lws *unstructured.Unstructured, leaders *appsv1.StatefulSet, readyGroups int64) {
	st := status(lws)
	st["replicas"], st["readyReplicas"] = int64(leaders.Status.Replicas), readyGroups
	st["updatedReplicas"] = int64(leaders.Status.UpdatedReplicas)
	st["hpaPodSelector"] = lwsNameLabel + "=" + lws.GetName() + "," + lwsIndexLabel + "=0"
	available := readyGroups == lwsReplicas(lws)
	// One of the two is true, and one that never was is not written.
	for kind, is := range map[string]bool{"Available": available, "Progressing": !available} {
		if is || conditionOf(st, kind) != "" {
			reason := map[string]string{"Available": "AllGroupsReady", "Progressing": "GroupsProgressing"}[kind]
			setCondition(st, condition{kind: kind, status: is, reason: reason}, o.clock.Now())
		}
	}
}

// ordinal is the number at the end of the name of a pod of a StatefulSet.
func ordinal(pod *corev1.Pod) (int64, error) {
	return strconv.ParseInt(pod.Name[strings.LastIndex(pod.Name, "-")+1:], 10, 64)
}
