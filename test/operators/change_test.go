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
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is one of a job, below its template of pods where that is not said otherwise.
type change struct {
	name  string
	path  string
	value any
	// whole: the path begins at the job.
	whole bool
}

var templateChanges = []change{
	{name: "labels", path: "/metadata/labels", value: map[string]any{"changed": "yes"}},
	{name: "annotations", path: "/metadata/annotations/changed", value: "yes"},
	{name: "nodeSelector", path: "/spec/nodeSelector", value: map[string]any{"kubernetes.io/os": "linux"}},
	{name: "tolerations", path: "/spec/tolerations", value: []any{map[string]any{"operator": "Exists"}}},
	{name: "schedulingGates", path: "/spec/schedulingGates", value: []any{map[string]any{"name": "example.com/gate"}}},
	{name: "affinity", path: "/spec/affinity", value: map[string]any{"nodeAffinity": map[string]any{}}},
	{name: "priorityClassName", path: "/spec/priorityClassName", value: "system-node-critical"},
	{name: "schedulerName", path: "/spec/schedulerName", value: "default-scheduler"},
	{name: "resources", path: "/spec/containers/0/resources", value: map[string]any{
		"requests": map[string]any{"cpu": "300m"},
	}},
}

var wholeChanges = map[string][]change{
	"jobset": {
		{name: "replicas", path: "/spec/replicatedJobs/1/replicas", value: 3, whole: true},
		{name: "parallelism", path: "/spec/replicatedJobs/1/template/spec/parallelism", value: 1, whole: true},
	},
	"trainjob": {
		{name: "numNodes", path: "/spec/trainer/numNodes", value: 2, whole: true},
		{name: "resources", path: "/spec/trainer/resourcesPerNode", value: map[string]any{
			"requests": map[string]any{"cpu": "300m"},
		}, whole: true},
		{name: "labels of the JobSet", path: "/spec/labels", value: map[string]any{"changed": "yes"}, whole: true},
		{name: "nodeSelector", path: "/spec/podSpecOverrides", value: []any{map[string]any{
			"targetJobs":   []any{map[string]any{"name": "node"}},
			"nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
		}}, whole: true},
		{name: "schedulingGates", path: "/spec/podSpecOverrides", value: []any{map[string]any{
			"targetJobs":      []any{map[string]any{"name": "node"}},
			"schedulingGates": []any{map[string]any{"name": "example.com/gate"}},
		}}, whole: true},
		{name: "runtimeRef", path: "/spec/runtimeRef/name", value: "other", whole: true},
	},
}

// refusals are the changes that the API server refuses, with the webhooks of the operators. The training-operator
// refuses none, not even to jobs that run, whose pods stay as they are.
var refusals = map[string]struct{ suspended, running string }{
	"jobset": {
		suspended: "affinity priorityClassName schedulerName resources replicas parallelism",
		running: "labels annotations nodeSelector tolerations schedulingGates affinity priorityClassName schedulerName " +
			"resources replicas parallelism",
	},
	"trainjob": {suspended: "runtimeRef", running: "nodeSelector schedulingGates runtimeRef"},
}

// TestChanges says what of a job may be changed while it is suspended and while it runs.
func TestChanges(t *testing.T) {
	c := sharedCluster(t)
	for i := range jobKinds {
		kind := &jobKinds[i]
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			l := c.create(t, kind, kind.name+"-changes", true)
			l.await("is suspended", hasCondition("Suspended", "True"))
			require.Equal(t, refusals[kind.name].suspended, l.refused())
			l.suspend(false)
			l.awaitRunning()
			l.awaitStatus()
			require.Equal(t, refusals[kind.name].running, l.refused())
			l.suspend(true)
			l.await("is suspended again", hasCondition("Suspended", "True"))
			l.awaitNoPods()
			// A TrainJob may be changed when the status of its JobSet counts no pods, which is after there are none.
			var refused string
			l.eventually("refuses the changes of a suspended job after it has run", func(context.Context) (bool, error) {
				refused = l.refused()
				return refused == refusals[kind.name].suspended, nil
			})
		})
	}
}

func (l *life) changes() []change {
	changes := wholeChanges[l.kind.name]
	if l.kind.template != "" {
		changes = append(templateChanges[:len(templateChanges):len(templateChanges)], changes...)
	}
	return changes
}

// refused tries every change, without making it, and returns the names of those that are refused.
func (l *life) refused() string {
	l.t.Helper()
	var names []string
	for _, change := range l.changes() {
		if err := l.change(change, metav1.DryRunAll); err != nil {
			l.t.Logf("%s: %s: %v", l.kind.name, change.name, strings.SplitN(err.Error(), "{", 2)[0])
			names = append(names, change.name)
		}
	}
	return strings.Join(names, " ")
}

func (l *life) change(c change, dryRun ...string) error {
	l.t.Helper()
	path := l.kind.template + c.path
	if c.whole {
		path = c.path
	}
	content, err := json.Marshal([]any{map[string]any{"op": "add", "path": path, "value": c.value}})
	require.NoError(l.t, err)
	patched, err := l.client.Patch(l.t.Context(), l.name, types.JSONPatchType, content,
		metav1.PatchOptions{DryRun: dryRun})
	if err == nil && len(dryRun) == 0 {
		l.from = version(l.t, patched)
	}
	return err
}

// TestChangedTemplatesReachPods: what is written into the template of a suspended job is in the pods that it makes when
// it is resumed, before its first run and after it.
func TestChangedTemplatesReachPods(t *testing.T) {
	c := sharedCluster(t)
	for i := range jobKinds {
		kind := &jobKinds[i]
		if kind.template == "" {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			l := c.create(t, kind, kind.name+"-reach", true)
			for _, value := range []string{"before-first-run", "after-first-run"} {
				l.await("is suspended", hasCondition("Suspended", "True"))
				l.awaitNoPods()
				require.NoError(t, l.change(change{path: "/metadata/annotations/changed", value: value}))
				l.suspend(false)
				found := 0
				for _, pod := range l.awaitRunning() {
					if pod.Annotations["changed"] == value {
						found++
					}
				}
				require.NotZero(t, found)
				l.awaitStatus()
				l.suspend(true)
			}
		})
	}
}

// TestResizedTrainJobs: the API server lets a TrainJob be resized while it is suspended, but its JobSet cannot be. The
// TrainJob says that it is resumed, and never runs.
func TestResizedTrainJobs(t *testing.T) {
	c := sharedCluster(t)
	kind := &jobKinds[slices.IndexFunc(jobKinds, func(kind jobKind) bool { return kind.name == "trainjob" })]
	for _, change := range wholeChanges[kind.name][:2] {
		t.Run(change.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			l := c.create(t, kind, "resized-"+strings.ToLower(change.name), true)
			l.await("is suspended", hasCondition("Suspended", "True"))
			jobSets := c.resource(t, jobSetKind).Namespace(l.namespace)
			l.eventually("has a JobSet", func(ctx context.Context) (bool, error) {
				jobSet, err := jobSets.Get(ctx, l.name, metav1.GetOptions{})
				return err == nil && condition(jobSet, "Suspended") == "True", client.IgnoreNotFound(err)
			})
			require.NoError(t, l.change(change))
			l.suspend(false)
			l.await("says that it is resumed", hasCondition("Suspended", "False"))
			require.Never(t, func() bool { return len(l.pods()) > 0 }, 2*second, pace)
			jobSet, err := jobSets.Get(t.Context(), l.name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, "True", condition(jobSet, "Suspended"))
		})
	}
}

// TestManagedBy: who may be named as the controller of a job, whether a job that names another is left alone, and
// whether the name can be changed. JAXJob and TrainJob run whoever they name, though their CRDs say otherwise.
func TestManagedBy(t *testing.T) {
	c := sharedCluster(t)
	const multiKueue = "kueue.x-k8s.io/multikueue"
	anyName := []string{"mpijob", "jaxjob", "jobset"}
	ignored := []string{"jaxjob", "trainjob"}
	// MPIJob has no webhook, that of PyTorchJob compares the new job with itself, that of JAXJob nothing.
	mutable := []string{"mpijob", "pytorchjob", "jaxjob"}
	for i := range jobKinds {
		kind := &jobKinds[i]
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			c.logsOfFailure(t)
			with := func(manager string) func(job *unstructured.Unstructured) {
				return func(job *unstructured.Unstructured) {
					require.NoError(t, unstructured.SetNestedField(job.Object, manager, kind.managedBy...))
				}
			}
			l := c.create(t, kind, kind.name+"-managed", false, with(multiKueue))
			_, job := manifest(t, kind.name)
			job.SetName("other")
			with("example.com/other")(job)
			_, err := l.client.Create(t.Context(), job, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			require.Equal(t, slices.Contains(anyName, kind.name), err == nil, "%v", err)

			if slices.Contains(ignored, kind.name) {
				l.awaitRunning()
			} else {
				require.Never(t, func() bool { return len(l.pods()) > 0 }, second, pace)
				_, touched := l.current().Object["status"]
				require.False(t, touched)
			}
			patch := map[string]any{}
			require.NoError(t, unstructured.SetNestedField(patch, kind.own, kind.managedBy...))
			err = l.tryPatch(patch)
			require.Equal(t, slices.Contains(mutable, kind.name), err == nil, "%v", err)
		})
	}
}
