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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var rayClusterKind = schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayCluster"}

const (
	rayController = "ray.io/kuberay-operator"

	rayClusterLabel = "ray.io/cluster"
	rayGroupLabel   = "ray.io/group"
	rayTypeLabel    = "ray.io/node-type"
	// The group of the head.
	rayHeadGroup = "headgroup"
)

// rayClusters plays KubeRay 1.3 and later for RayClusters. Facts: the RayCluster controller and the pod builder in
// ray-project/kuberay, with the feature RayClusterStatusConditions, which is on by default.
//
// Left out: Services, Ingress, accounts and roles of the autoscaler, Redis, batch schedulers, in-place upgrades. Nobody
// is the autoscaler: a test that wants one changes replicas, and scaleStrategy.workersToDelete with it.
type rayClusters struct{ base }

func (o *rayClusters) kind() schema.GroupVersionKind { return rayClusterKind }

func (o *rayClusters) watch(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.Pod{}) }

func (o *rayClusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cluster, err := o.get(ctx, rayClusterKind, request.NamespacedName)
	if err != nil || cluster == nil || cluster.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	if by := text(cluster.Object, "spec", "managedBy"); by != "" && by != rayController {
		return reconcile.Result{}, nil
	}
	failure := o.makePods(ctx, cluster)
	before := cluster.DeepCopy()
	if err := o.setStatus(ctx, cluster, failure); err != nil {
		return reconcile.Result{}, err
	}
	if err := o.writeStatus(ctx, before, cluster); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, failure
}

func (o *rayClusters) clusterPods(ctx context.Context, cluster *unstructured.Unstructured) ([]corev1.Pod, error) {
	return o.pods(ctx, cluster.GetNamespace(), map[string]string{rayClusterLabel: cluster.GetName()}, cluster)
}

// makePods. Suspension is atomic: it is carried out from the condition, whatever the spec says by then, and a cluster
// whose spec says suspend makes no pods before the condition is written.
func (o *rayClusters) makePods(ctx context.Context, cluster *unstructured.Unstructured) error {
	pods, err := o.clusterPods(ctx, cluster)
	if err != nil {
		return err
	}
	st := status(cluster)
	switch {
	case conditionOf(st, "RayClusterSuspending") == "True":
		return o.deletePods(ctx, pods)
	case conditionOf(st, "RayClusterSuspended") == "True", flag(cluster.Object, "spec", "suspend"):
		return nil
	}
	head := map[string]string{rayTypeLabel: "head"}
	err = o.scale(ctx, cluster, ofGroup(pods, head), 1, func() (*corev1.Pod, error) { return rayHead(cluster) })
	if err != nil {
		return err
	}
	for _, group := range parts(cluster.Object, "spec", "workerGroupSpecs") {
		if err := o.makeWorkers(ctx, cluster, group, pods); err != nil {
			return err
		}
	}
	return nil
}

func ofGroup(pods []corev1.Pod, labels map[string]string) []corev1.Pod {
	var out []corev1.Pod
	for _, pod := range pods {
		fits := true
		for key, value := range labels {
			fits = fits && pod.Labels[key] == value
		}
		if fits {
			out = append(out, pod)
		}
	}
	return out
}

func (o *rayClusters) makeWorkers(
	ctx context.Context, cluster *unstructured.Unstructured, group map[string]any, all []corev1.Pod,
) error {
	pods := ofGroup(all, map[string]string{rayTypeLabel: "worker", rayGroupLabel: text(group, "groupName")})
	if flag(group, "suspend") {
		return o.deletePods(ctx, pods)
	}
	unwanted := map[string]bool{}
	names, _, _ := unstructured.NestedStringSlice(group, "scaleStrategy", "workersToDelete")
	for _, name := range names {
		unwanted[name] = true
	}
	var wanted []corev1.Pod
	for _, pod := range pods {
		if !unwanted[pod.Name] {
			wanted = append(wanted, pod)
			continue
		}
		if err := o.deletePods(ctx, []corev1.Pod{pod}); err != nil {
			return err
		}
	}
	return o.scale(ctx, cluster, wanted, rayWorkers(group), func() (*corev1.Pod, error) {
		return rayWorker(cluster, group)
	})
}

// scale makes what is missing and deletes what is too many. A pod that ended is replaced, in two steps. With an
// autoscaler nothing is taken at random: it names the pods that go.
func (o *rayClusters) scale(
	ctx context.Context, cluster *unstructured.Unstructured, pods []corev1.Pod, want int64,
	build func() (*corev1.Pod, error),
) error {
	var dead []corev1.Pod
	for _, pod := range pods {
		if ended(pod) {
			dead = append(dead, pod)
		}
	}
	if len(dead) > 0 {
		return o.deletePods(ctx, dead)
	}
	for range want - int64(len(pods)) {
		pod, err := build()
		if err != nil {
			return err
		}
		if err := o.client.Create(ctx, pod); err != nil {
			return err
		}
	}
	if over := int64(len(pods)) - want; over > 0 && !rayAutoscaling(cluster) {
		return o.deletePods(ctx, pods[:over])
	}
	return nil
}

func rayAutoscaling(cluster *unstructured.Unstructured) bool {
	return flag(cluster.Object, "spec", "enableInTreeAutoscaling")
}

// rayReplicas is the number of replicas of a group, between its bounds.
func rayReplicas(group map[string]any) int64 {
	least := numberOr(0, group, "minReplicas")
	return max(least, min(numberOr(least, group, "replicas"), numberOr(1<<31-1, group, "maxReplicas")))
}

func rayHosts(group map[string]any) int64 { return max(1, numberOr(1, group, "numOfHosts")) }

// rayWorkers is the number of pods of a group.
func rayWorkers(group map[string]any) int64 {
	if flag(group, "suspend") {
		return 0
	}
	return rayReplicas(group) * rayHosts(group)
}

func rayLabels(cluster *unstructured.Unstructured, group, nodeType string) map[string]string {
	return map[string]string{
		rayClusterLabel: cluster.GetName(), rayGroupLabel: group, rayTypeLabel: nodeType,
		"ray.io/is-ray-node": "yes", "ray.io/identifier": cluster.GetName() + "-" + nodeType,
		"app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator",
	}
}

func rayHead(cluster *unstructured.Unstructured) (*corev1.Pod, error) {
	template, err := podTemplate(cluster.Object, "spec", "headGroupSpec", "template")
	if err != nil {
		return nil, err
	}
	// Labels of the template win, but for those that KubeRay finds its pods by.
	template.Labels = merged(rayLabels(cluster, rayHeadGroup, "head"), template.Labels,
		map[string]string{rayClusterLabel: cluster.GetName(), rayGroupLabel: rayHeadGroup, rayTypeLabel: "head"})
	if rayAutoscaling(cluster) {
		sidecar, err := rayAutoscaler(cluster, template.Spec.Containers[0].Image)
		if err != nil {
			return nil, err
		}
		template.Spec.Containers = append(template.Spec.Containers, sidecar)
		// KubeRay makes that account, with the right to change the cluster.
		if template.Spec.ServiceAccountName == "" {
			template.Spec.ServiceAccountName = cluster.GetName()
		}
	}
	pod := newPod(cluster.GetNamespace(), &template, ownedBy(cluster))
	pod.GenerateName = cluster.GetName() + "-head-"
	return pod, nil
}

// rayAutoscaler is the second container of the head of a cluster that scales itself. What it asks for is added to what
// the template asks for.
func rayAutoscaler(cluster *unstructured.Unstructured, image string) (corev1.Container, error) {
	half := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi"),
	}
	container := corev1.Container{
		Name: "autoscaler", Image: textOr(image, cluster.Object, "spec", "autoscalerOptions", "image"),
		Resources: corev1.ResourceRequirements{Requests: half, Limits: half.DeepCopy()},
	}
	if given := part(cluster.Object, "spec", "autoscalerOptions", "resources"); given != nil {
		var err error
		container.Resources, err = decode[corev1.ResourceRequirements](given)
		return container, err
	}
	return container, nil
}

func rayWorker(cluster *unstructured.Unstructured, group map[string]any) (*corev1.Pod, error) {
	template, err := podTemplate(group, "template")
	if err != nil {
		return nil, err
	}
	name := text(group, "groupName")
	template.Labels = merged(rayLabels(cluster, name, "worker"), template.Labels,
		map[string]string{rayClusterLabel: cluster.GetName(), rayGroupLabel: name, rayTypeLabel: "worker"})
	// An init container waits for the head.
	fifth := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("256Mi"),
	}
	template.Spec.InitContainers = append(template.Spec.InitContainers, corev1.Container{
		Name: "wait-gcs-ready", Image: template.Spec.Containers[0].Image,
		Resources: corev1.ResourceRequirements{Requests: fifth, Limits: fifth.DeepCopy()},
	})
	pod := newPod(cluster.GetNamespace(), &template, ownedBy(cluster))
	pod.GenerateName = cluster.GetName() + "-" + name + "-worker-"
	return pod, nil
}

func (o *rayClusters) setStatus(ctx context.Context, cluster *unstructured.Unstructured, failure error) error {
	pods, err := o.clusterPods(ctx, cluster)
	if err != nil {
		return err
	}
	st := status(cluster)
	before := text(st, "state")
	desired, least, most := int64(0), int64(0), int64(0)
	for _, group := range parts(cluster.Object, "spec", "workerGroupSpecs") {
		desired += rayWorkers(group)
		if !flag(group, "suspend") {
			least += numberOr(0, group, "minReplicas") * rayHosts(group)
			most += numberOr(1<<31-1, group, "maxReplicas") * rayHosts(group)
		}
	}
	workers := ofGroup(pods, map[string]string{rayTypeLabel: "worker"})
	set(st, "desiredWorkerReplicas", desired)
	set(st, "minWorkerReplicas", least)
	set(st, "maxWorkerReplicas", min(most, 1<<31-1))
	set(st, "readyWorkerReplicas", count(workers, runningAndReady))
	set(st, "availableWorkerReplicas", count(workers, running))
	set(st, "observedGeneration", cluster.GetGeneration())
	all := len(pods) > 0 && count(pods, runningAndReady) == int64(len(pods))
	o.setConditions(cluster, pods, all, failure)
	// The state is only ever set, so a cluster that was ready and lost a pod says "ready" still.
	switch suspended := flag(cluster.Object, "spec", "suspend"); {
	case suspended && len(pods) == 0:
		st["state"] = "suspended"
	case failure == nil && all && int64(len(pods)) == desired+1:
		st["state"] = "ready"
	}
	if state := text(st, "state"); state != before {
		st["lastUpdateTime"] = timestamp(o.clock.Now())
		times := part(st, "stateTransitionTimes")
		if times == nil {
			times = map[string]any{}
		}
		times[state] = timestamp(o.clock.Now())
		st["stateTransitionTimes"] = times
	}
	return nil
}

// rayFailure is the reason of ReplicaFailure. Doubtful: KubeRay also tells failed deletions from failed creations.
func rayFailure(pods []corev1.Pod) string {
	if len(ofGroup(pods, map[string]string{rayTypeLabel: "head"})) == 0 {
		return "FailedCreateHeadPod"
	}
	return "FailedCreateWorkerPod"
}

func (o *rayClusters) setConditions(cluster *unstructured.Unstructured, pods []corev1.Pod, all bool, failure error) {
	st := status(cluster)
	put := func(kind string, value bool, reason string) {
		setCondition(st, condition{kind: kind, status: value, reason: reason}, o.clock.Now())
	}
	if failure != nil {
		put("ReplicaFailure", true, rayFailure(pods))
	} else {
		removeCondition(st, "ReplicaFailure")
	}
	if heads := ofGroup(pods, map[string]string{rayTypeLabel: "head"}); len(heads) == 0 {
		put("HeadPodReady", false, "HeadPodNotFound")
	} else if ready(heads[0]) {
		put("HeadPodReady", true, "HeadPodRunningAndReady")
	} else {
		put("HeadPodReady", false, "ContainersNotReady")
	}
	suspending := conditionOf(st, "RayClusterSuspending") == "True"
	suspended := conditionOf(st, "RayClusterSuspended") == "True"
	// Once true it stays, until a suspension: it says that all pods were ready once.
	if conditionOf(st, "RayClusterProvisioned") != "True" && !suspended {
		if all {
			put("RayClusterProvisioned", true, "AllPodRunningAndReadyFirstTime")
		} else {
			put("RayClusterProvisioned", false, "RayClusterPodsProvisioning")
		}
	}
	wanted := flag(cluster.Object, "spec", "suspend")
	switch {
	case suspending:
		if len(pods) == 0 {
			put("RayClusterProvisioned", false, "RayClusterPodsProvisioning")
			put("RayClusterSuspending", false, "RayClusterSuspending")
			put("RayClusterSuspended", true, "RayClusterSuspended")
		}
	case suspended:
		// Resumed by false, and not by the absence of the field.
		if value, found, _ := unstructured.NestedBool(cluster.Object, "spec", "suspend"); found && !value {
			put("RayClusterSuspended", false, "RayClusterSuspended")
		}
	default:
		put("RayClusterSuspended", false, "RayClusterSuspended")
		put("RayClusterSuspending", wanted, "RayClusterSuspending")
	}
}
