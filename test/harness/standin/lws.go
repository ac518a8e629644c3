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
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

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
	lwsNameLabel     = "leaderworkerset.sigs.k8s.io/name"
	lwsGroupLabel    = "leaderworkerset.sigs.k8s.io/group-index"
	lwsIndexLabel    = "leaderworkerset.sigs.k8s.io/worker-index"
	lwsKeyLabel      = "leaderworkerset.sigs.k8s.io/group-key"
	lwsRevisionLabel = "leaderworkerset.sigs.k8s.io/template-revision-hash"

	lwsSizeAnnotation   = "leaderworkerset.sigs.k8s.io/size"
	lwsLeaderAnnotation = "leaderworkerset.sigs.k8s.io/leader-name"
)

// leaderWorkerSets plays the controller of LeaderWorkerSet 0.6; PodWebhook plays its webhook of pods. The pods are made
// by the StatefulSet controller of Kubernetes, which must run. Facts: the two controllers and the webhooks in
// kubernetes-sigs/lws.
//
// There is no suspension. Left out: rollouts step by step (a new template replaces all at once), Services, subgroups,
// exclusive placement, volume claims, changes of the size.
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

// lwsRevision changes with the templates. It is no real hash of LeaderWorkerSet.
func lwsRevision(lws *unstructured.Unstructured) (string, error) {
	content, err := json.Marshal(part(lws.Object, "spec", "leaderWorkerTemplate"))
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:5]), err
}

// leaderSet is the StatefulSet of the leaders, a group each.
func (o *leaderWorkerSets) leaderSet(ctx context.Context, lws *unstructured.Unstructured) (*appsv1.StatefulSet, error) {
	revision, err := lwsRevision(lws)
	if err != nil {
		return nil, err
	}
	field := "leaderTemplate"
	if part(lws.Object, "spec", "leaderWorkerTemplate", field) == nil {
		field = "workerTemplate"
	}
	template, err := podTemplate(lws.Object, "spec", "leaderWorkerTemplate", field)
	if err != nil {
		return nil, err
	}
	selector := map[string]string{lwsNameLabel: lws.GetName(), lwsIndexLabel: "0"}
	template.Labels = merged(template.Labels, selector, map[string]string{lwsRevisionLabel: revision})
	template.Annotations = merged(template.Annotations, map[string]string{lwsSizeAnnotation: itoa(lwsSize(lws))})
	want := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: lws.GetName(), Namespace: lws.GetNamespace(), OwnerReferences: ownedBy(lws),
			Labels:      map[string]string{lwsNameLabel: lws.GetName(), lwsRevisionLabel: revision},
			Annotations: map[string]string{"leaderworkerset.sigs.k8s.io/replicas": itoa(lwsReplicas(lws))},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas: ptr.To(int32Of(lwsReplicas(lws))), ServiceName: lws.GetName(), Template: template,
			PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: selector},
		},
	}
	there := &appsv1.StatefulSet{}
	found, err := o.find(ctx, want.Namespace, want.Name, there)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return want, o.client.Create(ctx, want)
	case *there.Spec.Replicas == *want.Spec.Replicas && there.Labels[lwsRevisionLabel] == revision:
		return there, nil
	}
	there.Spec.Replicas, there.Spec.Template = want.Spec.Replicas, want.Spec.Template
	there.Labels, there.Annotations = merged(there.Labels, want.Labels), merged(there.Annotations, want.Annotations)
	return there, o.client.Update(ctx, there)
}

// groups makes the workers of each leader there is, and returns the number of groups that are ready.
func (o *leaderWorkerSets) groups(ctx context.Context, lws *unstructured.Unstructured) (int64, error) {
	pods, err := o.pods(ctx, lws.GetNamespace(), map[string]string{lwsNameLabel: lws.GetName()}, nil)
	if err != nil {
		return 0, err
	}
	members := map[string][]corev1.Pod{}
	for _, pod := range pods {
		members[pod.Labels[lwsGroupLabel]] = append(members[pod.Labels[lwsGroupLabel]], pod)
	}
	readyGroups := int64(0)
	for _, leader := range pods {
		if leader.Labels[lwsIndexLabel] != "0" || leader.DeletionTimestamp != nil {
			continue
		}
		restarted, err := o.restart(ctx, lws, &leader, members[leader.Labels[lwsGroupLabel]])
		if err != nil {
			return 0, err
		}
		if restarted {
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

// restart: a group lives and dies as one, unless its restart policy is None. The leader waits for its workers to go.
func (o *leaderWorkerSets) restart(
	ctx context.Context, lws *unstructured.Unstructured, leader *corev1.Pod, group []corev1.Pod,
) (bool, error) {
	policy := textOr("RecreateGroupOnPodRestart", lws.Object, "spec", "leaderWorkerTemplate", "restartPolicy")
	if policy != "RecreateGroupOnPodRestart" {
		return false, nil
	}
	for _, pod := range group {
		// Those of the leader before are on their way out.
		if pod.CreationTimestamp.Before(&leader.CreationTimestamp) || (pod.DeletionTimestamp == nil && !restartedOnce(pod)) {
			continue
		}
		err := o.client.Delete(ctx, leader, client.PropagationPolicy(metav1.DeletePropagationForeground))
		return true, client.IgnoreNotFound(err)
	}
	return false, nil
}

func restartedOnce(pod corev1.Pod) bool {
	for _, container := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if container.RestartCount > 0 {
			return true
		}
	}
	return false
}

// workerSet makes the StatefulSet of the workers of a group, which has the name of its leader and counts from 1. It
// says whether all workers are ready.
func (o *leaderWorkerSets) workerSet(
	ctx context.Context, lws *unstructured.Unstructured, leader *corev1.Pod,
) (bool, error) {
	workers := lwsSize(lws) - 1
	if workers == 0 {
		return true, nil
	}
	there := &appsv1.StatefulSet{}
	found, err := o.find(ctx, leader.Namespace, leader.Name, there)
	if err != nil {
		return false, err
	}
	if found {
		// One of the leader before is left to the garbage collector.
		return metav1.IsControlledBy(there, leader) && int64(there.Status.ReadyReplicas) == workers, nil
	}
	if text(lws.Object, "spec", "startupPolicy") == "LeaderReady" && !ready(*leader) {
		return false, nil
	}
	template, err := podTemplate(lws.Object, "spec", "leaderWorkerTemplate", "workerTemplate")
	if err != nil {
		return false, err
	}
	selector := map[string]string{
		lwsNameLabel: lws.GetName(), lwsGroupLabel: leader.Labels[lwsGroupLabel], lwsKeyLabel: leader.Labels[lwsKeyLabel],
	}
	labels := merged(selector, map[string]string{lwsRevisionLabel: leader.Labels[lwsRevisionLabel]})
	template.Labels = merged(template.Labels, labels)
	template.Annotations = merged(template.Annotations, map[string]string{
		lwsSizeAnnotation: itoa(lwsSize(lws)), lwsLeaderAnnotation: leader.Name,
	})
	return false, o.client.Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: leader.Name, Namespace: leader.Namespace, Labels: labels,
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
	name := pod.Name
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '-' {
			return strconv.ParseInt(name[i+1:], 10, 64)
		}
	}
	return strconv.ParseInt(name, 10, 64)
}
