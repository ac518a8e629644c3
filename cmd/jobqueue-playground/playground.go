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

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane/binaries"
)

func newPlaygroundCommand() *cobra.Command {
	f, bare := &clusterFlags{}, false
	cmd := &cobra.Command{
		Use:   "playground",
		Short: "Leave the control plane of the demo running, to try things on",
		Long: `Starts what the demo starts, with the same quotas and queues but without jobs, prints three things to try, and
goes on until Ctrl-C, which ends every process that was started. It builds the plugin kubectl-jobqueue into bin/, and
kubectl as well if this machine has none.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			start := playground
			if bare {
				start = bareCluster
			}
			return runPlayground(cmd.Context(), f, start)
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&bare, "bare", false, "install nothing: the Deployments that you install into koordinator-system "+
		"and koord-queue run as processes of this machine")
	return cmd
}

// starter starts a cluster and says how to use it.
type starter func(
	ctx context.Context, s screen.Screen, f clusterFlags, dir, root string,
) (cp *controlplane.ControlPlane, use string, err error)

func playground(
	ctx context.Context, s screen.Screen, f clusterFlags, dir, root string,
) (*controlplane.ControlPlane, string, error) {
	cp, err := startCluster(ctx, s, f, dir, &demonstrations()[0])
	if err != nil {
		return nil, "", err
	}
	if err := awaitQuotas(ctx, cp); err != nil {
		return nil, "", errors.Join(err, cp.Stop())
	}
	page, err := startPage(ctx, cp)
	if err != nil {
		return nil, "", errors.Join(err, cp.Stop())
	}
	return cp, tryThis(s, cp, root, page), nil
}

// bareCluster runs what is installed by hand.
func bareCluster(
	ctx context.Context, s screen.Screen, f clusterFlags, dir, root string,
) (*controlplane.ControlPlane, string, error) {
	begin := time.Now()
	step := func(message string) { s.Printf("  %5.1fs  %s\n", time.Since(begin).Seconds(), message) }
	opts := controlplane.Options{Dir: dir, Components: controlplane.Full(), Nodes: f.nodes, Progress: step}
	cp, err := controlplane.Start(ctx, opts)
	if err != nil {
		return nil, "", err
	}
	err = cp.RunDeployments(ctx)
	return cp, fmt.Sprintf(`
%s In another terminal:

export KUBECONFIG=%s PATH=%s:$PATH

Logs: %s
%s
`, s.Bold("The cluster is ready, and nothing is installed."), cp.Kubeconfig(controlplane.Admin),
		filepath.Join(root, "bin"), filepath.Join(cp.Dir(), "logs"), s.Bold("Ctrl-C stops everything.")), err
}

func runPlayground(ctx context.Context, f *clusterFlags, start starter) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	s := screen.New(f.noColor)
	others := []binaries.Binary{binaries.Plugin()}
	if !kubectlOnPath() {
		others = append(others, binaries.Kubectl())
	}
	if err := build(ctx, s, root, others...); err != nil {
		return err
	}
	dir, err := f.newDir(root, "playground")
	if err != nil {
		return err
	}
	cp, use, err := start(ctx, s, *f, dir, root)
	if err != nil {
		return fmt.Errorf("%w\nlogs: %s", err, filepath.Join(dir, "logs"))
	}
	s.Printf("%s", use)
	for {
		select {
		case <-ctx.Done():
			s.Printf("\nStopping\n")
			return cp.Stop()
		case exit := <-cp.Exits():
			// Left as it is: the user may have killed it.
			s.Printf("%s ended (%v); its log is %s\n", exit.Component, exit.Err, exit.Log)
		}
	}
}

// tryThis says how to use the cluster from another terminal: three commands to paste.
func tryThis(s screen.Screen, cp *controlplane.ControlPlane, root, page string) string {
	return fmt.Sprintf(`
%s Look at it in a browser:

%s

In another terminal:

export KUBECONFIG=%s PATH=%s:$PATH

%s
kubectl jobqueue top -A

%s
kubectl create -f %s

%s
kubectl jobqueue why train -n research

More to try: docs/quickstart.md. Logs: %s
%s
`, s.Bold("The cluster is ready."), page, cp.Kubeconfig(controlplane.Admin), filepath.Join(root, "bin"),
		s.Bold("1. See the departments and what they use"),
		s.Bold("2. Submit a job that takes a whole quota, and one that has to wait for it"),
		filepath.Join(root, "examples", "quickstart"),
		s.Bold("3. Ask why the second one waits"),
		filepath.Join(cp.Dir(), "logs"), s.Bold("Ctrl-C stops everything."))
}
