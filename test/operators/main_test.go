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

// Package operators_test leads jobs of other operators through queues. training-operator, Kubeflow's trainer and JobSet
// are the real ones, built from their modules. They run on a real control plane with KWOK nodes, koord-scheduler and
// controller.
//
// With -record the tests write the observed objects to internal/jobs/testdata/kinds, where the descriptors of kinds are
// tested with them.
package operators_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane/binaries"
)

const (
	nodes = 4
	// soon bounds waits for things that take milliseconds on an idle machine.
	soon = time.Minute
	// pace of polls.
	pace = 50 * time.Millisecond
)

var record = flag.Bool("record", false, "write the objects that were seen to internal/jobs/testdata/kinds")

// cluster is a running control plane with its clients.
type cluster struct {
	*controlplane.ControlPlane
	kube   kubernetes.Interface
	dyn    dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// workDir holds the state of all clusters of this run.
var workDir string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if testing.Short() {
		return m.Run()
	}
	root, err := controlplane.RepositoryRoot()
	if err == nil {
		// The operators compile for minutes when they are built for the first time.
		wanted := append(binaries.Default(), binaries.Operators()...)
		err = binaries.Build(context.Background(), binaries.Options{Root: root, Out: os.Stderr}, wanted...)
	}
	if err == nil {
		workDir, err = os.MkdirTemp("", "jobqueue-operators-")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := writeResults(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	stopPlaying()
	for _, c := range []*cluster{queueing, played} {
		if c != nil {
			_ = c.Stop()
		}
	}
	if code != 0 && os.Getenv("E2E_KEEP") != "" {
		fmt.Fprintln(os.Stderr, "state and logs are kept in", workDir)
		return code
	}
	_ = os.RemoveAll(workDir)
	return code
}

// start brings up a control plane with nothing installed.
func start(t *testing.T, name string, opts controlplane.Options) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane and operators that compile for minutes; runs without -short")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	opts.Dir = filepath.Join(workDir, name)
	cp, err := controlplane.Start(ctx, opts)
	require.NoError(t, err)
	c := &cluster{ControlPlane: cp}
	c.kube, err = kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	c.dyn, err = dynamic.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.kube.Discovery()))
	return c
}

// complete starts a control plane with nodes, the scheduler as shipped, and all operators.
func complete(t *testing.T, name string) *cluster {
	t.Helper()
	c := start(t, name, controlplane.Options{
		Components: controlplane.Full(),
		Nodes:      nodes,
		// The launcher of an MPIJob asks for some.
		NodeEphemeralStorage: "100Gi",
	})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	err := c.Install(ctx)
	if err == nil {
		err = c.StartScheduler(ctx, controlplane.SchedulerOptions{})
	}
	for _, operator := range controlplane.Operators() {
		if err == nil {
			err = c.StartOperator(ctx, operator, controlplane.OperatorOptions{})
		}
	}
	if err != nil {
		_ = c.Stop()
		require.NoError(t, err)
	}
	return c
}

// logsOfFailure shows the ends of the logs if the test failed.
func (c *cluster) logsOfFailure(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(c.OwnLogs(25))
		}
	})
}
