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
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const workflowManifest = `
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: wf}
spec:
  suspend: true
  entrypoint: main
  schedulerName: koord-scheduler
  podPriorityClassName: low
  podMetadata: {labels: {queue: q, who: all}, annotations: {a: "1"}}
  templates:
  - name: main
    steps:
    - - {name: one, template: work}
    - - {name: left, template: work}
      - {name: right, template: code}
  - name: work
    metadata: {labels: {who: work}}
    container: {image: busybox, command: [sleep, "10"]}
  - name: code
    priorityClassName: high
    podSpecPatch: '{"containers":[{"name":"main","resources":{"requests":{"cpu":"3"}}}]}'
    script: {image: python, command: [python], source: print()}
`

// workflowNodes are the pods by the names of their nodes, and the workflow.
func workflowNodes(t *testing.T, w *world) string {
	t.Helper()
	var out []string
	for _, pod := range w.listPods(t) {
		out = append(out, strings.TrimPrefix(pod.Annotations[nodeNameAnnotation], "wf")+"="+string(pod.Status.Phase))
	}
	slices.Sort(out)
	conditions := strings.TrimSuffix(w.conditions(t), "PodRunning=False")
	return strings.TrimSpace(strings.Join(append(out, text(w.object(t).Object, "status", "phase"), conditions), " "))
}

// playNode gives the pods of a node a phase.
func playNode(node string, phase corev1.PodPhase) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		for _, pod := range w.listPods(t) {
			if strings.HasSuffix(pod.Annotations[nodeNameAnnotation], node) {
				w.play(t, pod.Name, phase)
				return
			}
		}
		t.Fatalf("no pod of node %q", node)
	}
}

// act is a step of a story that looks at nodes.
type act struct {
	name string
	do   func(*testing.T, *world)
	// want is what workflowNodes prints, which leaves out that no pod runs.
	want string
}

func tellNodes(t *testing.T, w *world, acts []act) {
	t.Helper()
	for _, a := range acts {
		if !t.Run(a.name, func(t *testing.T) {
			if a.do != nil {
				a.do(t, w)
			}
			w.settle(t)
			require.Equal(t, a.want, workflowNodes(t, w))
		}) {
			return
		}
	}
}

func TestWorkflow(t *testing.T) {
	begin := []act{
		{name: "created suspended: no pods, Running all the same", want: "Running"},
		{name: "resumed: the first step", do: changing("spec.suspend", false), want: "[0].one= Running"},
		{name: "running", do: playNode("one", corev1.PodRunning), want: "[0].one=Running Running PodRunning=True"},
		{
			name: "suspended while running: the pod goes on", do: changing("spec.suspend", true),
			want: "[0].one=Running Running PodRunning=True",
		},
		{
			name: "it ends: no next step", do: playNode("one", corev1.PodSucceeded),
			want: "[0].one=Succeeded Running",
		},
		{
			name: "resumed again: two at once", do: changing("spec.suspend", false),
			want: "[0].one=Succeeded [1].left= [1].right= Running",
		},
		{
			name: "one of them ends", do: playNode("left", corev1.PodSucceeded),
			want: "[0].one=Succeeded [1].left=Succeeded [1].right= Running",
		},
	}
	for _, last := range []act{
		{
			name: "ends well", do: playNode("right", corev1.PodSucceeded),
			want: "[0].one=Succeeded [1].left=Succeeded [1].right=Succeeded Succeeded Completed=True",
		},
		{
			name: "ends badly", do: playNode("right", corev1.PodFailed),
			want: "[0].one=Succeeded [1].left=Succeeded [1].right=Failed Failed Completed=True",
		},
		{
			name: "a pod is deleted",
			do: func(t *testing.T, w *world) {
				pod := w.podNamed(t, "wf-code")
				require.NoError(t, w.Delete(t.Context(), &pod))
			},
			want: "[0].one=Succeeded [1].left=Succeeded Error Completed=True",
		},
		{
			name: "terminated", do: changing("spec.shutdown", "Terminate"),
			want: "[0].one=Succeeded [1].left=Succeeded Failed Completed=True",
		},
	} {
		t.Run(last.name, func(t *testing.T) {
			w := newWorld(t, workflowManifest, Workflow)
			tellNodes(t, w, append(begin[:len(begin):len(begin)], last))
			require.Equal(t, "true", w.object(t).GetLabels()[workflowCompletedLabel])
			for _, pod := range w.listPods(t) {
				require.Equal(t, "true", pod.Labels[workflowCompletedLabel])
			}
		})
	}
}

func TestWorkflowPods(t *testing.T) {
	w := newWorld(t, workflowManifest, Workflow)
	w.change(t, "spec.suspend", false)
	w.settle(t)
	playNode("one", corev1.PodSucceeded)(t, w)
	w.settle(t)
	work, code := w.podNamed(t, "wf-work"), w.podNamed(t, "wf-code")
	require.Equal(t, "Workflow", work.OwnerReferences[0].Kind)
	require.Equal(t, map[string]string{
		"queue": "q", "who": "work", workflowLabel: "wf", workflowCompletedLabel: work.Labels[workflowCompletedLabel],
	}, work.Labels)
	require.Equal(t, "1", work.Annotations["a"])
	require.Equal(t, "koord-scheduler", work.Spec.SchedulerName)
	require.Equal(t, "low", work.Spec.PriorityClassName)
	require.Equal(t, "high", code.Spec.PriorityClassName)
	for _, container := range code.Spec.Containers {
		if container.Name == "main" {
			require.Equal(t, "3", container.Resources.Requests.Cpu().String())
			require.Equal(t, "python", container.Image)
		}
	}
	require.Len(t, code.Spec.Containers, 2)
}

// One template, the pod has the name of the workflow.
func TestWorkflowOfOnePod(t *testing.T) {
	w := newWorld(t, workflowManifest, Workflow)
	w.change(t, "spec.entrypoint", "work")
	w.change(t, "spec.suspend", false)
	w.settle(t)
	require.Equal(t, "Pod wf of Workflow wf", w.view(t))
}

func TestWorkflowTemplates(t *testing.T) {
	const succeeded, failed = corev1.PodSucceeded, corev1.PodFailed
	const diamond = `{tasks: [
	  {name: d, template: work, dependencies: [b, c]}, {name: a, template: work},
	  {name: b, template: work, dependencies: [a]}, {name: c, template: work, depends: "a"}]}`
	for name, test := range map[string]struct {
		main string // fields of the template main
		spec map[string]any
		acts []act
	}{
		"a diamond": {main: "dag: " + diamond, acts: []act{
			{name: "first", want: ".a= Running"},
			{name: "two", do: playNode("a", succeeded), want: ".a=Succeeded .b= .c= Running"},
			{name: "one is not enough", do: playNode("b", succeeded), want: ".a=Succeeded .b=Succeeded .c= Running"},
			{name: "last", do: playNode("c", succeeded), want: ".a=Succeeded .b=Succeeded .c=Succeeded .d= Running"},
			{
				name: "end", do: playNode("d", succeeded),
				want: ".a=Succeeded .b=Succeeded .c=Succeeded .d=Succeeded Succeeded Completed=True",
			},
		}},
		"a diamond breaks": {main: "dag: " + diamond, acts: []act{
			{name: "first", want: ".a= Running"},
			{name: "two", do: playNode("a", succeeded), want: ".a=Succeeded .b= .c= Running"},
			{name: "the other goes on", do: playNode("b", failed), want: ".a=Succeeded .b=Failed .c= Running"},
			{
				name: "end", do: playNode("c", succeeded),
				want: ".a=Succeeded .b=Failed .c=Succeeded Failed Completed=True",
			},
		}},
		"items, two at once": {
			main: "steps: [[{name: s, template: work, withItems: [p, q, r]}]]", spec: map[string]any{"parallelism": int64(2)},
			acts: []act{
				{name: "two", want: "[0].s(0:p)= [0].s(1:q)= Running"},
				{
					name: "three", do: playNode("s(0:p)", succeeded),
					want: "[0].s(0:p)=Succeeded [0].s(1:q)= [0].s(2:r)= Running",
				},
			},
		},
		"in each other": {main: "steps: [[{name: s, template: inner}]]", acts: []act{
			{name: "first", want: "[0].s[0].t= Running"},
			{name: "end", do: playNode("t", succeeded), want: "[0].s[0].t=Succeeded Succeeded Completed=True"},
		}},
		"again": {main: "steps: [[{name: s, template: retried}]]", acts: []act{
			{name: "first", want: "[0].s(0)= Running"},
			{name: "second", do: playNode("s(0)", failed), want: "[0].s(0)=Failed [0].s(1)= Running"},
			{
				name: "no third", do: playNode("s(1)", failed),
				want: "[0].s(0)=Failed [0].s(1)=Failed Failed Completed=True",
			},
		}},
		"goes on after a failure": {
			main: "steps: [[{name: s, template: work, continueOn: {failed: true}}], [{name: t, template: work}]]", acts: []act{
				{name: "first", want: "[0].s= Running"},
				{name: "second", do: playNode("s", failed), want: "[0].s=Failed [1].t= Running"},
			},
		},
		"a template that is not there": {main: "steps: [[{name: s, template: none}]]", acts: []act{
			{name: "end", want: "Error Completed=True"},
		}},
		"too long": {
			main: "container: {image: busybox}", spec: map[string]any{"activeDeadlineSeconds": int64(60)},
			acts: []act{
				{name: "first", want: "= Running"},
				{
					name: "end",
					do:   func(_ *testing.T, w *world) { w.clock.SetTime(w.clock.Now().Add(time.Minute)) },
					want: "Failed Completed=True",
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, workflowManifest, Workflow)
			templates := w.object(t).Object["spec"].(map[string]any)["templates"].([]any)
			main := map[string]any{"name": "main"}
			require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(test.main, "\t", "  ")), &main))
			container := map[string]any{"image": "busybox"}
			templates[0] = main
			templates = append(templates,
				map[string]any{"name": "inner", "steps": []any{[]any{map[string]any{"name": "t", "template": "work"}}}},
				map[string]any{"name": "retried", "retryStrategy": map[string]any{"limit": "1"}, "container": container})
			w.change(t, "spec.templates", templates)
			for field, value := range test.spec {
				w.change(t, "spec."+field, value)
			}
			w.change(t, "spec.suspend", false)
			tellNodes(t, w, test.acts)
		})
	}
}
