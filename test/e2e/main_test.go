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

// Package e2e_test runs jobs through the whole system on a real control plane. That is etcd, API server, controller
// manager, KWOK nodes, the rebuilt scheduler and the controller, each with only the shipped rights.
//
// All checks read the API and the store alone. An observer sees every change of every pod from the first job on, and
// computes from these whether I1 and I3 hold.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

const (
	nodes  = 20
	second = time.Second
	// soon bounds waits for things that take milliseconds on an idle machine.
	soon = 60 * second
	// pace of polls.
	pace = 100 * time.Millisecond
)

// cluster is a running control plane with its clients.
type cluster struct {
	*controlplane.ControlPlane
	kube kubernetes.Interface
	dyn  dynamic.Interface
	// scheduler is the one whose metrics count.
	scheduler controlplane.Component
	// checksVersion is the version of AdmissionChecks; empty is that of the shipped definition.
	checksVersion string
	// history of its pods, from the first one on.
	history *podHistory
}

// shared is the cluster of all tests that do not break the installation; nil until first used.
var shared *cluster

// workDir holds the state of all clusters of this run.
var workDir string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "jobqueue-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	workDir = dir
	code := m.Run()
	if shared != nil {
		_ = shared.Stop()
	}
	if code != 0 && os.Getenv("E2E_KEEP") != "" {
		fmt.Fprintln(os.Stderr, "state and logs are kept in", dir)
		return code
	}
	_ = os.RemoveAll(dir)
	return code
}

// Stop ends all processes, and the observer of their store before them.
func (c *cluster) Stop() error {
	c.history.end()
	return c.ControlPlane.Stop()
}

// start brings up a control plane with nodes and the CRDs and roles installed, but neither scheduler nor controller. It
// ends with the test.
func start(t *testing.T, name string, opts controlplane.Options) *cluster {
	t.Helper()
	opts.Components = controlplane.Full()
	if opts.Nodes == 0 {
		opts.Nodes = nodes
	}
	c := startBare(t, name, opts)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, c.install(ctx))
	return c
}

// startBare brings up the components of a control plane, in which nothing is installed. It ends with the test.
func startBare(t *testing.T, name string, opts controlplane.Options) *cluster {
	t.Helper()
	c := startKept(t, name, opts)
	t.Cleanup(func() {
		c.showLogs(t)
		_ = c.Stop()
	})
	return c
}

// startKept is startBare for a cluster that goes on after the test.
func startKept(t *testing.T, name string, opts controlplane.Options) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	opts.Dir = filepath.Join(workDir, name)
	cp, err := controlplane.Start(ctx, opts)
	require.NoError(t, err)
	c := &cluster{ControlPlane: cp, scheduler: controlplane.Scheduler}
	c.history, err = follow(cp.URL(controlplane.Etcd))
	require.NoError(t, err)
	c.kube, err = kubernetes.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	c.dyn, err = dynamic.NewForConfig(cp.RESTConfig(controlplane.Admin))
	require.NoError(t, err)
	return c
}

// showLogs shows how the logs of our processes end if the test failed.
func (c *cluster) showLogs(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Log(c.OwnLogs(40))
	}
}

// complete starts scheduler and controller with the shipped configuration, but for audits as often as they may be.
func (c *cluster) complete(t *testing.T) {
	t.Helper()
	require.NoError(t, c.StartScheduler(t.Context(), controlplane.SchedulerOptions{Mutate: auditOften}))
	require.NoError(t, c.StartController(t.Context(), controlplane.ControllerOptions{}))
}

func auditOften(config map[string]any) { controlplane.JobQueueArgs(config)["auditInterval"] = "10s" }

// agrees checks that no audit of the running scheduler has found its state to differ from the API (I7).
func (c *cluster) agrees(t *testing.T) {
	t.Helper()
	if !c.Running(c.scheduler) {
		return
	}
	require.Zero(t, c.metric(t, `scheduler_jobqueue_audits_total{`, `result="Differences"`),
		"audits that found differences")
	require.Zero(t, c.metric(t, `scheduler_jobqueue_state_rebuilds_total{`), "rebuilds")
}

// sharedCluster is the complete cluster that most tests share; each test has namespaces and quotas of its own.
func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	if shared == nil {
		c := startKept(t, "shared", controlplane.Options{Components: controlplane.Full(), Nodes: nodes})
		require.NoError(t, c.install(t.Context()))
		shared = c
		c.complete(t)
	}
	t.Cleanup(func() {
		if shared.showLogs(t); !t.Failed() {
			shared.agrees(t)
		}
	})
	return shared
}
