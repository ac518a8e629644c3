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

// Command jobqueue-playground runs the whole system on this machine, without containers. It has a demo that checks
// itself, and a cluster to try things on. It also builds the programs that the demo and the tests start.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/cmd/jobqueue-playground/screen"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane/binaries"
)

// interrupted is the exit code after Ctrl-C, as of a shell.
const interrupted = 130

func main() {
	// The client library's warnings would tear the table apart.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second signal ends this process at once; the kernel then ends its children.
	context.AfterFunc(ctx, stop)
	err := newCommand().ExecuteContext(ctx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted; every process that was started has ended")
		os.Exit(interrupted)
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "jobqueue-playground",
		Short:         "koord-jobqueue on a real local control plane: demo, playground and build",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(cmd.Help(), errors.New("a command is required"))
		},
	}
	root.AddCommand(newDemoCommand(), newPlaygroundCommand(), newBuildCommand())
	return root
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "",
		"work directory for store, kubeconfigs and logs; must be empty or absent (default: a new one in _artifacts/)")
	cmd.Flags().IntVar(&f.nodes, "nodes", 100, "number of nodes, of 8 cores and 32Gi each")
	cmd.Flags().BoolVar(&f.noColor, "no-color", false, "no colours, as with the environment variable NO_COLOR")
}

func newBuildCommand() *cobra.Command {
	var kubectl bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build into bin/ what is not current: scheduler, controller, control plane, KWOK",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			root, err := controlplane.RepositoryRoot()
			if err != nil {
				return err
			}
			var others []binaries.Binary
			if kubectl {
				others = append(others, binaries.Kubectl(), binaries.Plugin(), binaries.Migrate())
			}
			return build(cmd.Context(), screen.New(false), root, others...)
		},
	}
	cmd.Flags().BoolVar(&kubectl, "kubectl", false, "build kubectl, its plugin and jobqueue-migrate, too")
	return cmd
}
