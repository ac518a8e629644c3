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
	"fmt"
	"hash/fnv"
	"slices"
	"time"

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
	nodeNameAnnotation     = "workflows.argoproj.io/node-name"

	nodePending   = "Pending"
	nodeRunning   = "Running"
	nodeSucceeded = "Succeeded"
	nodeFailed    = "Failed"
	nodeError     = "Error"
	nodeOmitted   = "Omitted"
)

// workflows plays the workflow controller of Argo 3.5 and later. Facts: its operator and pod builder in
// argoproj/argo-workflows.
//
// Known templates: container, script, containerSet, steps and dag, with withItems, retryStrategy.limit,
// continueOn.failed, failFast and parallelism. Left out: parameters and artifacts (texts are passed on as they are),
// when, exit handlers, hooks, suspend templates, synchronization, collection of pods, time to live.
type workflows struct{ base }

func (o *workflows) kind() schema.GroupVersionKind { return workflowKind }

func (o *workflows) watch(b *builder.Builder) *builder.Builder { return podsByLabel(b, workflowLabel) }

func (o *workflows) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	wf, err := o.get(ctx, workflowKind, request.NamespacedName)
	if err != nil || wf == nil || wf.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, err
	}
	before := wf.DeepCopy()
	run := &workflowRun{workflows: o, wf: wf}
	again, err := run.operate(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !equality.Semantic.DeepEqual(before.Object, wf.Object) {
		// There is no status subresource: labels and status are written in one.
		err = o.client.Update(ctx, wf)
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// workflowRun is one look at one workflow.
type workflowRun struct {
	*workflows
	wf   *unstructured.Unstructured
	pods map[string]*corev1.Pod // by the name of their node
}

func workflowEnded(phase string) bool {
	return phase == nodeSucceeded || phase == nodeFailed || phase == nodeError
}

// operate returns when it is to be called again, 0 for when something happens.
func (r *workflowRun) operate(ctx context.Context) (time.Duration, error) {
	st := status(r.wf)
	list, err := r.workflows.pods(ctx, r.wf.GetNamespace(), map[string]string{workflowLabel: r.wf.GetName()}, r.wf)
	if err != nil {
		return 0, err
	}
	r.pods = map[string]*corev1.Pod{}
	for i := range list {
		r.pods[list[i].Annotations[nodeNameAnnotation]] = &list[i]
	}
	if workflowEnded(text(st, "phase")) {
		return 0, r.labelPods(ctx)
	}
	if text(st, "phase") == "" {
		// So it is for a suspended workflow too.
		st["startedAt"] = timestamp(r.clock.Now())
		r.setPhase(nodeRunning, "")
	}
	stop, again := r.stops()
	if err := r.observe(ctx, stop); err != nil {
		return 0, err
	}
	if err := r.labelPods(ctx); err != nil {
		return 0, err
	}
	// Doubtful: the newest versions end a suspended workflow that is shut down, older ones leave it until it is resumed.
	if flag(r.wf.Object, "spec", "suspend") {
		return again, nil
	}
	phase, err := r.template(ctx, text(r.wf.Object, "spec", "entrypoint"), r.wf.GetName(), stop != "")
	if err != nil {
		return 0, err
	}
	if stop != "" && phase != nodeSucceeded && !r.anyPodLeft() {
		phase = nodeFailed
	}
	if workflowEnded(phase) {
		r.finish(phase, stop)
	}
	return again, nil
}

// stops says why nothing new is begun, "" when nothing forbids it, and when the deadline is.
func (r *workflowRun) stops() (string, time.Duration) {
	if how := text(r.wf.Object, "spec", "shutdown"); how != "" {
		return "Stopped with strategy '" + how + "'", 0
	}
	seconds, limited := number(r.wf.Object, "spec", "activeDeadlineSeconds")
	if !limited {
		return "", 0
	}
	left := timeOf(status(r.wf), "startedAt").Add(time.Duration(seconds) * time.Second).Sub(r.clock.Now())
	if left <= 0 {
		return "Step exceeded its deadline", 0
	}
	return "", left
}

func (r *workflowRun) anyPodLeft() bool {
	for name, pod := range r.pods {
		if !ended(*pod) && !workflowEnded(text(r.node(name), "phase")) {
			return true
		}
	}
	return false
}

func (r *workflowRun) setPhase(phase, message string) {
	st := status(r.wf)
	set(st, "phase", phase)
	set(st, "message", message)
	completed := "false"
	if workflowEnded(phase) {
		completed = "true"
	}
	r.wf.SetLabels(merged(r.wf.GetLabels(), map[string]string{
		workflowPhaseLabel: phase, workflowCompletedLabel: completed,
	}))
}

func (r *workflowRun) condition(kind string, value bool) {
	setCondition(status(r.wf), condition{kind: kind, status: value, noTimes: true}, r.clock.Now())
}

func (r *workflowRun) finish(phase, message string) {
	r.setPhase(phase, message)
	status(r.wf)["finishedAt"] = timestamp(r.clock.Now())
	r.condition("PodRunning", false)
	r.condition("Completed", true)
}

// node is the record of a node in the status, nil when it has none yet.
func (r *workflowRun) node(name string) map[string]any {
	return part(r.wf.Object, "status", "nodes", r.nodeID(name))
}

func (r *workflowRun) nodeID(name string) string {
	if name == r.wf.GetName() {
		return name
	}
	return r.wf.GetName() + "-" + hashOf(name)
}

func hashOf(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return itoa(int64(h.Sum32()))
}

func (r *workflowRun) podName(node, template string) string {
	if node == r.wf.GetName() {
		return node
	}
	return r.wf.GetName() + "-" + template + "-" + hashOf(node)
}

// setNode records the phase of a node, and returns it.
func (r *workflowRun) setNode(name, template, kind, phase, message string) string {
	node := r.node(name)
	if node == nil {
		node = map[string]any{
			"id": r.nodeID(name), "name": name, "displayName": name, "templateName": template, "type": kind,
			"startedAt": timestamp(r.clock.Now()),
		}
		st := status(r.wf)
		if part(st, "nodes") == nil {
			st["nodes"] = map[string]any{}
		}
		part(st, "nodes")[r.nodeID(name)] = node
	}
	if text(node, "phase") != phase {
		node["phase"] = phase
		set(node, "message", message)
		if workflowEnded(phase) {
			node["finishedAt"] = timestamp(r.clock.Now())
		}
	}
	return phase
}

// observe takes the phases of pods for those of their nodes. To stop kills what runs: its pods are deleted.
func (r *workflowRun) observe(ctx context.Context, stop string) error {
	anyRunning := false
	for _, value := range part(r.wf.Object, "status", "nodes") {
		node, _ := value.(map[string]any)
		name, template := text(node, "name"), text(node, "templateName")
		if text(node, "type") != "Pod" || workflowEnded(text(node, "phase")) {
			continue
		}
		pod := r.pods[name]
		switch {
		case pod == nil:
			r.setNode(name, template, "Pod", nodeError, "pod deleted")
		case succeeded(*pod):
			r.setNode(name, template, "Pod", nodeSucceeded, "")
		case failed(*pod):
			r.setNode(name, template, "Pod", nodeFailed, pod.Status.Message)
		case stop != "":
			// Argo signals the containers of running pods, which then fail, and deletes pending ones.
			if err := r.deletePods(ctx, []corev1.Pod{*pod}); err != nil {
				return err
			}
			r.setNode(name, template, "Pod", nodeFailed, stop)
		case running(*pod):
			anyRunning = true
			r.setNode(name, template, "Pod", nodeRunning, "")
		default:
			r.setNode(name, template, "Pod", nodePending, "")
		}
	}
	r.condition("PodRunning", anyRunning)
	return nil
}

// labelPods marks the pods whose nodes have ended, so that Argo need not look at them again.
func (r *workflowRun) labelPods(ctx context.Context) error {
	for name, pod := range r.pods {
		if pod.DeletionTimestamp != nil || !ended(*pod) || !workflowEnded(text(r.node(name), "phase")) ||
			pod.Labels[workflowCompletedLabel] == "true" {
			continue
		}
		pod.Labels[workflowCompletedLabel] = "true"
		if err := r.client.Update(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// template carries out what can be carried out of a template as the node, and returns the phase of the node; "" when it
// could not begin. With stopping nothing is begun.
func (r *workflowRun) template(ctx context.Context, name, node string, stopping bool) (string, error) {
	if phase := text(r.node(node), "phase"); workflowEnded(phase) {
		return phase, nil
	}
	var template map[string]any
	for _, one := range parts(r.wf.Object, "spec", "templates") {
		if text(one, "name") == name {
			template = one
		}
	}
	switch {
	case template == nil:
		return r.setNode(node, name, "Pod", nodeError, fmt.Sprintf("template %q not found", name)), nil
	case template["steps"] != nil:
		phase, err := r.steps(ctx, template, node, stopping)
		return r.setNode(node, name, "Steps", phase, ""), err
	case template["dag"] != nil:
		phase, err := r.dag(ctx, template, node, stopping)
		return r.setNode(node, name, "DAG", phase, ""), err
	case template["retryStrategy"] != nil:
		phase, err := r.retry(ctx, template, node, stopping)
		return r.setNode(node, name, "Retry", phase, ""), err
	default:
		return r.leaf(ctx, template, node, stopping)
	}
}

// retry makes attempts, each a node of its own, until one succeeds or there were as many as the limit lets, and one
// more. Without a limit there is no end.
func (r *workflowRun) retry(ctx context.Context, template map[string]any, node string, stopping bool) (string, error) {
	limit, limited := workflowLimit(template)
	for i := int64(0); ; i++ {
		phase, err := r.leaf(ctx, template, fmt.Sprintf("%s(%d)", node, i), stopping)
		switch {
		case err != nil:
			return nodeRunning, err
		case phase == nodeSucceeded || (workflowEnded(phase) && (stopping || limited && i >= limit)):
			return phase, nil
		case !workflowEnded(phase):
			return nodeRunning, nil
		}
	}
}

// workflowLimit is a number or a text.
func workflowLimit(template map[string]any) (int64, bool) {
	if limit, found := number(template, "retryStrategy", "limit"); found {
		return limit, true
	}
	var limit int64
	_, err := fmt.Sscan(text(template, "retryStrategy", "limit"), &limit)
	return limit, err == nil
}

// steps are groups, one after the other; the steps of a group run side by side.
func (r *workflowRun) steps(ctx context.Context, template map[string]any, node string, stopping bool) (string, error) {
	groups, _ := template["steps"].([]any)
	for i, group := range groups {
		var phases []string
		for _, step := range parts(map[string]any{"group": group}, "group") {
			for _, name := range expanded(fmt.Sprintf("%s[%d].%s", node, i, text(step, "name")), step) {
				phase, err := r.template(ctx, text(step, "template"), name, stopping)
				if err != nil {
					return nodeRunning, err
				}
				if workflowEnded(phase) && phase != nodeSucceeded && flag(step, "continueOn", "failed") {
					phase = nodeSucceeded
				}
				phases = append(phases, phase)
			}
		}
		if phase := together(phases); phase != nodeSucceeded {
			return phase, nil
		}
	}
	return nodeSucceeded, nil
}

// together is the phase of all: they run until the last one has ended, and one that did not succeed fails all.
func together(phases []string) string {
	if slices.ContainsFunc(phases, func(p string) bool { return !workflowEnded(p) && p != nodeOmitted }) {
		return nodeRunning
	}
	switch {
	case slices.Contains(phases, nodeError):
		return nodeError
	case slices.Contains(phases, nodeFailed):
		return nodeFailed
	}
	return nodeSucceeded
}

// expanded are the nodes of a step or task: one, or one for each item.
func expanded(name string, step map[string]any) []string {
	items, found := step["withItems"].([]any)
	if !found {
		return []string{name}
	}
	var names []string
	for i, item := range items {
		names = append(names, fmt.Sprintf("%s(%d:%v)", name, i, item))
	}
	return names
}

// dag begins a task when all that it depends on have succeeded. One whose dependency failed is omitted. Once a task has
// failed no other one begins, unless failFast is false.
func (r *workflowRun) dag(ctx context.Context, template map[string]any, node string, stopping bool) (string, error) {
	tasks := parts(template, "dag", "tasks")
	failFast := true
	if value, found, _ := unstructured.NestedBool(template, "dag", "failFast"); found {
		failFast = value
	}
	phases := map[string]string{}
	broken := stopping
	// Tasks may be listed in any order: as often as there are tasks, those are looked at whose dependencies are known.
	for range tasks {
		for _, task := range tasks {
			name := text(task, "name")
			if _, known := phases[name]; known {
				continue
			}
			ready, omit := dependencies(task, phases)
			switch {
			case omit:
				phases[name] = nodeOmitted
			case ready:
				phase, err := r.task(ctx, task, node, broken)
				if err != nil {
					return nodeRunning, err
				}
				phases[name] = phase
				broken = broken || (failFast && (phase == nodeFailed || phase == nodeError))
			}
		}
	}
	var all []string
	for _, task := range tasks {
		phase := phases[text(task, "name")]
		if phase == "" && broken {
			phase = nodeOmitted
		}
		all = append(all, phase)
	}
	return together(all), nil
}

func (r *workflowRun) task(ctx context.Context, task map[string]any, node string, broken bool) (string, error) {
	var phases []string
	for _, name := range expanded(node+"."+text(task, "name"), task) {
		if broken && r.node(name) == nil && r.node(name+"(0)") == nil {
			return "", nil
		}
		phase, err := r.template(ctx, text(task, "template"), name, broken)
		if err != nil {
			return "", err
		}
		phases = append(phases, phase)
	}
	phase := together(phases)
	if workflowEnded(phase) && flag(task, "continueOn", "failed") {
		phase = nodeSucceeded
	}
	return phase, nil
}

// dependencies: of the language of depends only names joined by && are known.
func dependencies(task map[string]any, phases map[string]string) (ready, omit bool) {
	names, _, _ := unstructured.NestedStringSlice(task, "dependencies")
	names = append(names, dependsOn(text(task, "depends"))...)
	ready = true
	for _, name := range names {
		switch phase := phases[name]; phase {
		case nodeSucceeded:
		case nodeFailed, nodeError, nodeOmitted:
			return false, true
		default:
			ready = false
		}
	}
	return ready, false
}

// leaf is a node that is a pod.
func (r *workflowRun) leaf(ctx context.Context, template map[string]any, node string, stopping bool) (string, error) {
	name := text(template, "name")
	if phase := text(r.node(node), "phase"); phase != "" {
		return phase, nil
	}
	if stopping || r.full() {
		return "", nil
	}
	pod, err := r.build(template, node)
	if err != nil {
		return r.setNode(node, name, "Pod", nodeError, err.Error()), nil
	}
	if r.pods[node] == nil {
		if err := r.client.Create(ctx, pod); err != nil {
			return "", err
		}
		r.pods[node] = pod
	}
	return r.setNode(node, name, "Pod", nodePending, ""), nil
}

// full: spec.parallelism bounds the pods that have not ended.
func (r *workflowRun) full() bool {
	limit, limited := number(r.wf.Object, "spec", "parallelism")
	active := int64(0)
	for _, pod := range r.pods {
		if !ended(*pod) {
			active++
		}
	}
	return limited && active >= limit
}
