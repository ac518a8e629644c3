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

package operators_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

var definitions = schema.GroupVersionResource{
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

func TestDefinitionsAlone(t *testing.T) {
	c := start(t, "definitions", controlplane.Options{})
	defer func() { require.NoError(t, c.Stop()) }()
	require.NoError(t, c.ApplyOperatorCRDs(t.Context(), controlplane.TrainingOperator, "pytorchjob", "tfjob"))
	served := func() []string {
		list, err := c.dyn.Resource(definitions).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for _, definition := range list.Items {
			names = append(names, definition.GetName())
		}
		return names
	}
	require.ElementsMatch(t, []string{"pytorchjobs.kubeflow.org", "tfjobs.kubeflow.org"}, served())
	require.Error(t, c.ApplyOperatorCRDs(t.Context(), controlplane.TrainingOperator, "rayjob"))
	for _, operator := range controlplane.Operators() {
		require.NoError(t, c.ApplyOperatorCRDs(t.Context(), operator))
	}
	require.Len(t, served(), 6+3+1)
}

// runLong has the pods of the runtime run until they are told to end.
const runLong = `[{"op": "add", "path": "/spec/template/spec/replicatedJobs/0/template/spec/template/metadata",
	"value": {"annotations": {"` + controlplane.RunTimeAnnotation + `": "1h"}}}]`

// TestWithoutWebhooks: the operators run without their webhooks, too, if jobs say what those would fill in. One that is
// killed goes on with what happened meanwhile.
func TestWithoutWebhooks(t *testing.T) {
	c := complete(t, "no-webhooks", false)
	defer func() { require.NoError(t, c.Stop()) }()
	c.logsOfFailure(t)
	for i := range jobKinds {
		kind := &jobKinds[i]
		var edit []func(*unstructured.Unstructured)
		switch kind.name {
		case "pytorchjob":
		case "jobset":
			edit = append(edit, func(job *unstructured.Unstructured) {
				spec := job.Object["spec"].(map[string]any)
				spec["network"] = map[string]any{"enableDNSHostnames": true}
				spec["successPolicy"] = map[string]any{"operator": "All"}
				for _, r := range spec["replicatedJobs"].([]any) {
					require.NoError(t, unstructured.SetNestedField(r.(map[string]any), "Indexed",
						"template", "spec", "completionMode"))
				}
			})
		case "trainjob":
			runtimes := schema.GroupVersionKind{
				Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "ClusterTrainingRuntime",
			}
			_, err := c.resource(t, runtimes).Patch(t.Context(), controlplane.TrainingRuntime, types.JSONPatchType,
				[]byte(runLong), metav1.PatchOptions{})
			require.NoError(t, err)
			edit = append(edit, func(job *unstructured.Unstructured) {
				job.Object["spec"].(map[string]any)["runtimeRef"] = map[string]any{"name": controlplane.TrainingRuntime}
			})
		default:
			continue
		}
		operator := map[string]controlplane.Component{
			"pytorchjob": controlplane.TrainingOperator, "jobset": controlplane.JobSet, "trainjob": controlplane.Trainer,
		}[kind.name]
		t.Run(kind.name, func(t *testing.T) {
			l := c.create(t, kind, kind.name, true, edit...)
			l.await("is suspended", hasCondition("Suspended", "True"))
			l.suspend(false)
			l.awaitRunning()

			require.NoError(t, c.Kill(operator))
			l.suspend(true)
			require.Never(t, func() bool { return len(l.pods()) < kind.pods }, second, pace, "nobody deletes pods")
			require.NoError(t, c.Restart(t.Context(), operator))
			l.await("is suspended", hasCondition("Suspended", "True"))
			l.awaitNoPods()
			l.suspend(false)
			l.awaitRunning()
			l.endPods(true)
			l.await("succeeds", hasCondition(kind.succeeded, "True"))
		})
	}
}

// TestWebhooksOfADeadOperator: while an operator whose webhooks are installed does not run, nobody writes to its jobs.
func TestWebhooksOfADeadOperator(t *testing.T) {
	c := sharedCluster(t)
	kind := &jobKinds[0]
	l := c.create(t, kind, "webhooks", false)
	l.awaitRunning()
	require.NoError(t, c.Kill(controlplane.TrainingOperator))
	patch := map[string]any{}
	require.NoError(t, unstructured.SetNestedField(patch, true, kind.suspend...))
	err := l.tryPatch(patch)
	require.True(t, apierrors.IsInternalError(err), "%v", err)
	require.ErrorContains(t, err, "failed calling webhook")
	require.NoError(t, c.Restart(t.Context(), controlplane.TrainingOperator))
	l.suspend(true)
	l.awaitNoPods()
}

// TestGangScheduler: with --gang-scheduler-name the training-operator makes PodGroups that Koordinator does not read.
func TestGangScheduler(t *testing.T) {
	c := start(t, "gang", controlplane.Options{})
	defer func() { require.NoError(t, c.Stop()) }()
	require.NoError(t, c.StartOperator(t.Context(), controlplane.TrainingOperator, controlplane.OperatorOptions{
		Kinds: []string{"pytorchjob"}, GangScheduler: "koord-scheduler",
	}))
	groups := c.resource(t, schema.GroupVersionKind{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Kind: "PodGroup"})
	kind := &jobKinds[0]
	l := c.create(t, kind, "gang", true, func(job *unstructured.Unstructured) {
		require.NoError(t, unstructured.SetNestedMap(job.Object, map[string]any{
			"minAvailable": int64(2), "queue": "research", "priorityClass": "urgent", "scheduleTimeoutSeconds": int64(30),
		}, "spec", "runPolicy", "schedulingPolicy"))
		for _, replicas := range []string{"Master", "Worker"} {
			unstructured.RemoveNestedField(job.Object, "spec", "pytorchReplicaSpecs", replicas, "template", "spec",
				"schedulerName")
		}
	})
	c.logsOfFailure(t)
	l.await("is suspended", hasCondition("Suspended", "True"))
	list, err := groups.Namespace(l.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items, "a job that waits has no group")

	l.suspend(false)
	require.Eventually(t, func() bool { return len(l.pods()) == kind.pods }, soon, pace)
	group, err := groups.Namespace(l.namespace).Get(t.Context(), l.name, metav1.GetOptions{})
	require.NoError(t, err)
	save(t, kind, "gang/podgroup", group)
	spec := group.Object["spec"].(map[string]any)
	require.EqualValues(t, 2, spec["minMember"])
	require.EqualValues(t, 30, spec["scheduleTimeoutSeconds"])
	require.NotNil(t, spec["minResources"])
	for _, pod := range l.pods() {
		require.Equal(t, "koord-scheduler", pod.Spec.SchedulerName)
		require.Equal(t, l.name, pod.Labels["scheduling.x-k8s.io/pod-group"])
		require.Empty(t, pod.Labels["pod-group.scheduling.sigs.k8s.io"])
	}

	l.suspend(true)
	l.await("is suspended", hasCondition("Suspended", "True"))
	require.Eventually(t, func() bool {
		_, err := groups.Namespace(l.namespace).Get(t.Context(), l.name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, soon, pace, "its group goes with its pods")
}
