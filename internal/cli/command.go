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

// Package cli has the commands of "kubectl jobqueue". A command parses its flags, reads answers (package answers) or
// objects with the rights of the caller, and writes them as text or as objects.
package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/kinds"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/listing"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/page"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/schedulerconfig"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/simulation"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/submission"
)

// connection is how a command reaches the cluster, and where it writes.
type connection struct {
	flags   *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock
}

// reader returns what answers, and the namespace of the caller.
func (c *connection) reader() (*answers.Reader, string, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	r, err := answers.New(config)
	return r, namespace, err
}

// mostCompleted is the number of jobs that a shell gets to choose from.
const mostCompleted = 500

// completeJob names jobs of the namespace to a shell that completes an argument.
func (c *connection) completeJob(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	reader, namespace, err := c.reader()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	units := &v1alpha1.QueueUnitList{}
	err = reader.Objects.List(cmd.Context(), units, client.InNamespace(namespace), client.Limit(mostCompleted))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]string, 0, len(units.Items))
	for i := range units.Items {
		names = append(names, answers.JobOf(&units.Items[i]))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// Requests of one command in a second, and at once. client-go's own 5 and 10 slow a command down.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 100
)

func limits(config *rest.Config) *rest.Config {
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	return config
}

// Command is kubectl-jobqueue with all that is below it.
func Command(streams genericiooptions.IOStreams) *cobra.Command {
	return commandAt(streams, clock.RealClock{})
}

// commandAt has the time of a clock.
func commandAt(streams genericiooptions.IOStreams, now clock.PassiveClock) *cobra.Command {
	c := &connection{flags: genericclioptions.NewConfigFlags(true).WithWrapConfigFn(limits), streams: streams, clock: now}
	root := &cobra.Command{
		Use:   "kubectl-jobqueue",
		Short: "Shows jobs that wait for quota, and why",
		Long: `kubectl jobqueue shows which jobs wait for quota, in which order, and why.

It reads QueueUnits, and the aggregated API of koord-scheduler if that is installed. Every request has the rights of the
caller.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl jobqueue"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	c.flags.AddFlags(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: "ask", Title: "Ask:"}, &cobra.Group{ID: "change", Title: "Change:"},
		&cobra.Group{ID: "operate", Title: "Operate:"})
	for group, commands := range map[string][]*cobra.Command{
		"ask": {
			listing.Jobs(c.flags, streams, c.clock), listing.Queues(c.flags, streams), whyCommand(c),
			(&whenOptions{connection: c}).command(), topCommand(c), shareCommand(c),
			preemptionsCommand(c), historyCommand(c), usageCommand(c), observeCommand(c),
			page.Command(c.flags, c.streams, Plugin()),
		},
		"change": {
			submission.Command(c.flags, streams, clock.RealClock{}), labelCommand(c), holdCommand(c), releaseCommand(c),
			moveCommand(c), priorityCommand(c),
		},
		"operate": {
			drainCommand(c), resumeCommand(c), doctorCommand(c), snapshotCommand(c), kinds.Command(c.flags),
			schedulerconfig.Command(streams), simulation.Command(c.flags, streams, c.clock), uninstallCommand(c),
		},
	} {
		for _, command := range commands {
			command.GroupID = group
			if strings.Contains(command.Use, "JOB") {
				command.ValidArgsFunction = c.completeJob
			}
		}
		root.AddCommand(commands...)
		for _, command := range commands {
			for _, flag := range []string{"queue", "from"} {
				if command.Flags().Lookup(flag) != nil {
					_ = command.RegisterFlagCompletionFunc(flag, listing.QueueNames(c.flags))
				}
			}
			if strings.Contains(command.Use, "QUEUE") && !strings.Contains(command.Use, "JOB") {
				command.ValidArgsFunction = listing.QueueNames(c.flags)
			}
		}
	}
	return root
}
