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
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane/binaries"
)

func newPlaygroundCommand() *cobra.Command {
	f := &clusterFlags{}
	cmd := &cobra.Command{
		Use:   "playground",
		Short: "Leave the control plane of the demo running, to try things on",
		Long: `Starts what the demo starts, with the same quotas and queues but without jobs, prints the kubeconfig and what
to try, and goes on until Ctrl-C, which ends every process that was started. Without a kubectl on this machine it
builds one.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPlayground(cmd.Context(), f) },
	}
	f.register(cmd)
	return cmd
}

func runPlayground(ctx context.Context, f *clusterFlags) error {
	root, err := controlplane.RepositoryRoot()
	if err != nil {
		return err
	}
	s := newScreen(f.noColor)
	kubectl := "kubectl"
	var others []binaries.Binary
	if !kubectlOnPath() {
		kubectl = filepath.Join(root, "bin", "kubectl")
		others = append(others, binaries.Kubectl())
	}
	if err := build(ctx, s, root, others...); err != nil {
		return err
	}
	dir, err := f.newDir(root, "playground")
	if err != nil {
		return err
	}
	cp, err := startCluster(ctx, s, *f, dir, scenarioQueues)
	if err != nil {
		return fmt.Errorf("%w\nlogs: %s", err, filepath.Join(dir, "logs"))
	}
	s.printf("%s", tryThis(s, cp, kubectl))
	for {
		select {
		case <-ctx.Done():
			s.printf("\nStopping\n")
			return cp.Stop()
		case exit := <-cp.Exits():
			// Left as it is: whoever plays may have killed it.
			s.printf("%s ended (%v); its log is %s\n", exit.Component, exit.Err, exit.Log)
		}
	}
}

// tryThis is what a newcomer may do, as commands to paste.
func tryThis(s screen, cp *controlplane.ControlPlane, kubectl string) string {
	scheduler := cp.URL(controlplane.Scheduler)
	sections := []struct {
		title    string
		commands []string
	}{
		{"The cluster is yours", []string{
			"export KUBECONFIG=" + cp.Kubeconfig(controlplane.Admin),
			"ls " + filepath.Join(cp.Dir(), "logs"),
			kubectl + " get elasticquotas -A",
			kubectl + " get queues -n koord-queue",
		}},
		{"Submit a job: it is suspended, queued, admitted, resumed and run", []string{
			kubectl + " create -f - <<'YAML'",
			sampleJob("first", 4, 10*time.Second) + "YAML",
			kubectl + " get queueunits -A -w",
		}},
		{"Submit more than fits into 24 cores: what waits says why", []string{
			"for i in $(seq 1 10); do sed \"s/name: again/name: again-$i/\" <<'YAML' | " + kubectl + " create -f -; done",
			sampleJob("again", 4, time.Minute) + "YAML",
			kubectl + " get queueunits -n research",
			kubectl + " describe job -n research again-9",
			kubectl + " get --raw /apis/visibility.koord-queue.x-k8s.io/v1alpha1/queues",
			kubectl + " get --raw '/apis/visibility.koord-queue.x-k8s.io/v1alpha1/queues/team-research/waitingunits?limit=5'",
		}},
		{"Change something and watch", []string{
			kubectl + ` patch elasticquota -n research team-research --type=merge -p '{"spec":{"max":{"cpu":"16"}}}'`,
			kubectl + ` patch queue -n koord-queue team-research --type=merge -p '{"spec":{"stopPolicy":"Hold"}}'`,
			kubectl + ` patch job -n research again-9 --type=merge -p '{"spec":{"suspend":false}}'  ` +
				`# they stay gated, and it is suspended again`,
			"curl -s " + scheduler + "/metrics | grep jobqueue",
		}},
	}
	var out strings.Builder
	for _, section := range sections {
		fmt.Fprintf(&out, "\n%s\n", s.bold(section.title))
		for _, command := range section.commands {
			// No indent: they are to be pasted.
			fmt.Fprintf(&out, "%s\n", command)
		}
	}
	fmt.Fprintf(&out, "\n%s\n", s.bold("Ctrl-C stops everything"))
	return out.String()
}
