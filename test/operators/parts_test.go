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
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// A Job was created suspended, and its owner is a Job, or a Workflow without a queue. Nobody else resumes it, so it
// waits by itself. While a unit stands for the Workflow, the Job is a part of it.
func TestJobsThatTheirOwnersDoNotResume(t *testing.T) {
	c := standInCluster(t)
	c.logsOfFailure(t)
	workflow := &standInKinds[slices.IndexFunc(standInKinds, func(k jobKind) bool { return k.name == "workflow" })]

	unqueued := c.create(t, workflow, "parts-unqueued", false)
	unqueued.quota("4")
	unqueued.eventually("its pod is on a node", func(context.Context) (bool, error) {
		return len(unqueued.bound()) == 1, nil
	})
	first := unqueued.makes(t, "first")
	first.awaitUnit("first", v1alpha1.PhaseRunning)
	first.makes(t, "second").awaitUnit("second", v1alpha1.PhaseRunning)
	require.Len(t, unqueued.bound(), 5, "its pods, and those of the two Jobs")

	queued := c.create(t, workflow, "parts-queued", true, inQuota("parts-queued"))
	queued.quota("4")
	queued.awaitUnit(queued.name, v1alpha1.PhaseRunning)
	part, later := queued.makes(t, "part"), unqueued.makes(t, "later")
	later.awaitUnit("later", v1alpha1.PhaseRunning) // which was created after that one
	_, err := queued.units().Get(t.Context(), "part", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "a unit stands for its Workflow: %v", err)
	queued.endPods(true)
	queued.awaitUnit(queued.name, v1alpha1.PhaseSucceed)
	part.awaitUnit("part", v1alpha1.PhaseRunning)
}

// makes a suspended Job with a quota that this one controls.
func (l *life) makes(t *testing.T, name string) *life {
	t.Helper()
	_, job := manifest(t, "job")
	kind := &ownKinds[slices.IndexFunc(ownKinds, func(k jobKind) bool { return k.name == "job" })]
	job.SetName(name)
	inQuota(l.namespace)(job)
	require.NoError(t, unstructured.SetNestedField(job.Object, true, kind.suspend...))
	owner := l.current()
	job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	made := &life{
		t: t, cluster: l.cluster, kind: kind, namespace: l.namespace, name: name,
		client: l.cluster.resource(t, job.GroupVersionKind()).Namespace(l.namespace),
	}
	_, err := made.client.Create(t.Context(), job, metav1.CreateOptions{})
	require.NoError(t, err)
	return made
}
