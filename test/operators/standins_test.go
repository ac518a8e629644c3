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
	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/standin"
)

// standInKinds are kinds whose operators the stand-in plays.
var standInKinds = []jobKind{
	{
		name: "mpijob-v2beta1", suspend: []string{"spec", "runPolicy", "suspend"}, pods: 3,
		owners: []string{"MPIJob"}, otherOwners: []string{"Job", "MPIJob"}, early: true,
	},
	{
		name: "sparkapplication", suspend: []string{"spec", "suspend"}, pods: 3,
		owners: []string{"SparkApplication"}, otherOwners: []string{"Pod", "SparkApplication"},
		decides: "spark-kubernetes-driver",
	},
	{name: "workflow", suspend: []string{"spec", "suspend"}, pods: 1, owners: []string{"Workflow"}, keepsPods: true},
}

// ownKinds are those of Kubernetes that can be suspended.
var ownKinds = []jobKind{
	{name: "job", suspend: []string{"spec", "suspend"}, pods: 2, owners: []string{"Job"}},
}

// gatedKinds cannot be suspended: their pods wait in the scheduler.
var gatedKinds = []jobKind{
	{name: "deployment", pods: 3, owners: []string{"ReplicaSet", "Deployment"}},
	{name: "statefulset", pods: 2, owners: []string{"StatefulSet"}},
	{
		name: "leaderworkerset", pods: 4, owners: []string{"StatefulSet", "LeaderWorkerSet"},
		otherOwners: []string{"StatefulSet", "Pod", "StatefulSet", "LeaderWorkerSet"},
	},
}

// moreControllers has those run as well that make pods of StatefulSets, which LeaderWorkerSet needs, and Deployments.
const moreControllers = "--controllers=job-controller,garbage-collector-controller,pod-garbage-collector-controller," +
	"namespace-controller,ttl-after-finished-controller,serviceaccount-controller,statefulset-controller," +
	"replicaset-controller,deployment-controller"

// played is the cluster of the stand-in, where its kinds are queued; nil until first used.
var played *cluster

// stopPlaying ends the stand-in that runs.
var stopPlaying = func() {}

func standInCluster(t *testing.T) *cluster {
	t.Helper()
	if played != nil {
		return played
	}
	c := standInAlone(t, "played")
	played = c
	c.manage(t, standInFiles()...) // before they are there
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
	c.awaitManaged(t)
	require.NoError(t, c.ApplyStandInCRDs(t.Context()))
	stopPlaying = c.play(t)
	return c
}

// standInAlone is a cluster for the stand-in that has the scheduler, and no controller yet.
func standInAlone(t *testing.T, name string) *cluster {
	t.Helper()
	c := start(t, name, controlplane.Options{
		Components: controlplane.Full(), Nodes: nodes, ControllerManagerArgs: []string{moreControllers},
	})
	require.NoError(t, c.Install(t.Context()))
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{}))
	return c
}

// standInFiles are the descriptors of its kinds, and of those of Kubernetes.
func standInFiles() (files []string) {
	files = []string{podKind.name}
	for _, kind := range slices.Concat(standInKinds, ownKinds, gatedKinds) {
		files = append(files, kind.name)
	}
	return files
}

// play starts the stand-in, and returns what stops it.
func (c *cluster) play(t *testing.T) (stop func()) {
	t.Helper()
	mgr, err := standin.NewManager(c.RESTConfig(controlplane.Admin), standin.Kinds(), "0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return func() {
		cancel()
		<-ended
	}
}

// decidesBy says whether a pod is one by which its job ends.
func (k *jobKind) decidesBy(pod *corev1.Pod) bool {
	return k.decides == "" || strings.Contains(pod.Spec.Containers[0].Name, k.decides)
}
