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
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var workflowKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Workflow"}

const (
	workflowLabel          = "workflows.argoproj.io/workflow"
	workflowCompletedLabel = "workflows.argoproj.io/completed"
	workflowPhaseLabel     = "workflows.argoproj.io/phase"

	nodePending   = "Pending"
	nodeRunning   = "Running"
	nodeSucceeded = "Succeeded"
	nodeFailed    = "Failed"
	nodeError     = "Error"
)

// workflows plays the workflow controller of Argo 3.5 and later for workflows of one container. Facts: its operator and
// pod builder in argoproj/argo-workflows.
type workflows struct{ base }

func (o *workflows) kind() schema.GroupVersionKind { return workflowKind }

func (o *workflows) watch(b *builder.Builder) *builder.Builder { return podsByLabel(b, workflowLabel) }

func (o *workflows) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wf, err := o.get(ctx, workflowKind, request.NamespacedName)
	if err != nil || wf == nil || wf.GetDeletionTimestamp() != nil || workflowEnded(text(status(wf), "phase")) {
		return reconcile.Result{}, err
	}
	before := wf.DeepCopy()
	if err := o.operate(ctx, wf); err != nil {
		return reconcile.Result{}, err
	}
	if !equality.Semantic.DeepEqual(before.Object, wf.Object) {
		// There is no status subresource: labels and status are written in one.
		err = o.client.Update(ctx, wf)
	}
	return reconcile.Result{}, err
}

func workflowEnded(phase string) bool {
	return phase == nodeSucceeded || phase == nodeFailed || phase == nodeError
}

func (o *workflows) operate(ctx context.Context, wf *unstructured.Unstructured) error {
	st := status(wf)
	if text(st, "phase") == "" {
		// So it is for a suspended workflow too.
		st["startedAt"] = timestamp(o.clock.Now())
		o.setPhase(wf, nodeRunning)
	}
	pod := &corev1.Pod{}
	found, err := o.find(ctx, wf.GetNamespace(), wf.GetName(), pod)
	if err != nil {
		return err
	}
	node := part(st, "nodes", wf.GetName())
	if node == nil {
		o.condition(wf, "PodRunning", false)
		if flag(wf.Object, "spec", "suspend") {
			return nil
		}
		return o.begin(ctx, wf)
	}
	switch {
	case !found:
		node["phase"] = nodeError
	case pod.Status.Phase != "":
		node["phase"] = string(pod.Status.Phase) // the names are equal
	}
	o.condition(wf, "PodRunning", node["phase"] == nodeRunning)
	if phase := text(node, "phase"); workflowEnded(phase) {
		now := timestamp(o.clock.Now())
		node["finishedAt"], st["finishedAt"] = now, now
		o.setPhase(wf, phase)
		o.condition(wf, "Completed", true)
	}
	return nil
}

func (o *workflows) setPhase(wf *unstructured.Unstructured, phase string) {
	status(wf)["phase"] = phase
	completed := "false"
	if workflowEnded(phase) {
		completed = "true"
	}
	wf.SetLabels(merged(wf.GetLabels(), map[string]string{workflowPhaseLabel: phase, workflowCompletedLabel: completed}))
}

func (o *workflows) condition(wf *unstructured.Unstructured, kind string, value bool) {
	setCondition(status(wf), condition{kind: kind, status: value, noTimes: true}, o.clock.Now())
}

// begin makes the pod, and the node for it.
func (o *workflows) begin(ctx context.Context, wf *unstructured.Unstructured) error {
	name := text(wf.Object, "spec", "entrypoint")
	for _, template := range parts(wf.Object, "spec", "templates") {
		if text(template, "name") != name {
			continue
		}
		pod, err := workflowPod(wf, template)
		if err != nil {
			return err
		}
		if err := o.client.Create(ctx, pod); err != nil {
			return err
		}
		status(wf)["nodes"] = map[string]any{wf.GetName(): map[string]any{
			"id": wf.GetName(), "name": wf.GetName(), "displayName": wf.GetName(), "templateName": name, "type": "Pod",
			"startedAt": timestamp(o.clock.Now()), "phase": nodePending,
		}}
		return nil
	}
	return errors.New("nobody here plays a workflow whose entrypoint is none of its templates")
}

// workflowPod has the container of the template and Argo's own, init and wait, which ask for nothing. Doubtful: an
// installation may say what they ask for (executor in the configuration of the controller).
func workflowPod(wf *unstructured.Unstructured, template map[string]any) (*corev1.Pod, error) {
	container, err := decode[corev1.Container](part(template, "container"))
	if err != nil {
		return nil, err
	}
	container.Name = "main"
	spec, metadata := part(wf.Object, "spec"), part(template, "metadata")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		SchedulerName: text(spec, "schedulerName"), PriorityClassName: text(spec, "podPriorityClassName"),
		RestartPolicy:  corev1.RestartPolicyNever,
		InitContainers: []corev1.Container{{Name: "init", Image: "argoexec"}},
		Containers:     []corev1.Container{{Name: "wait", Image: "argoexec"}, container},
	}}
	pod.Name, pod.Namespace, pod.OwnerReferences = wf.GetName(), wf.GetNamespace(), ownedBy(wf)
	pod.Labels = merged(texts(spec, "podMetadata", "labels"), texts(metadata, "labels"), map[string]string{
		workflowLabel: wf.GetName(), workflowCompletedLabel: "false",
	})
	pod.Annotations = merged(texts(spec, "podMetadata", "annotations"), texts(metadata, "annotations"),
		map[string]string{"workflows.argoproj.io/node-name": wf.GetName()})
	return pod, nil
}
