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

package listing

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/terminal"
)

type queuesOptions struct {
	config     *genericclioptions.ConfigFlags
	streams    genericiooptions.IOStreams
	format     string
	all, watch bool
}

// Queues is the command queues.
func Queues(config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	o := &queuesOptions{config: config, streams: streams}
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "List queues: quotas, policy, waiting, admitted, first job",
		Long: `queues shows the queues that jobs of a namespace are in, with the numbers of their waiting and admitted jobs.
FIRST is the job at the front of the line, if you may know of it. STOP says that the queue admits nothing (Hold), or
that its admitted jobs are suspended as well (HoldAndDrain).

queues needs the aggregated API. With -A it shows all queues and needs the role jobqueue-operator.`,
		Example: `  kubectl jobqueue queues
  kubectl jobqueue queues -A -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return terminal.Repeat(cmd.Context(), streams.Out, o.watch, func(out io.Writer) error {
				return o.run(cmd.Context(), out)
			})
		},
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "show all queues")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show again when something changes, until interrupted")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "output format: wide, json, yaml or name")
	return cmd
}

func (o *queuesOptions) run(ctx context.Context, out io.Writer) error {
	reader, namespace, err := readerOf(o.config)
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	queues, err := reader.Queues(ctx, namespace)
	if err != nil {
		return answers.Unanswered(err, o.all)
	}
	switch o.format {
	case "", "wide":
	case "name":
		for i := range queues {
			if _, err := fmt.Fprintf(out, "queue.%s/%s\n", v1alpha1.GroupName, queues[i].Name); err != nil {
				return err
			}
		}
		return nil
	default:
		list := &visibility.QueueList{Items: append([]visibility.Queue{}, queues...)}
		list.SetGroupVersionKind(visibility.SchemeGroupVersion.WithKind("QueueList"))
		return output.Object(out, o.format, list)
	}
	if len(queues) == 0 {
		_, err := fmt.Fprintln(o.streams.ErrOut, "No job of this namespace is in a queue. Show all queues with -A.")
		return err
	}
	return screen.Queues(out, queues, o.format == "wide")
}

// readerOf a configuration, and the namespace of the caller.
func readerOf(config *genericclioptions.ConfigFlags) (*answers.Reader, string, error) {
	namespace, _, err := config.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", err
	}
	client, err := config.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	reader, err := answers.New(client)
	return reader, namespace, err
}

// QueueNames completes the name of a queue: of all queues, or of those of the namespace.
func QueueNames(config *genericclioptions.ConfigFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		reader, namespace, err := readerOf(config)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		queues, err := reader.Queues(cmd.Context(), "")
		if err != nil {
			queues, err = reader.Queues(cmd.Context(), namespace)
		}
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := make([]string, 0, len(queues))
		for i := range queues {
			names = append(names, queues[i].Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
