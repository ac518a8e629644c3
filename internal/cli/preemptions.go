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

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

type preemptionsOptions struct {
	*connection
	queue, output string
	since         period
	all, dryRun   bool
}

func preemptionsCommand(c *connection) *cobra.Command {
	o := &preemptionsOptions{connection: c, since: period(24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "preemptions",
		Short: "List jobs that preempt others, and jobs that were preempted",
		Long: `preemptions lists the preemptions in progress: the job that takes, its queue and quota, and its victims.
Then it lists the jobs that were preempted: when, why, by which quota, how often they were evicted, and their state.

Jobs of other namespaces have names only if you may list them. Jobs that were preempted and admitted again come from the
aggregated API. Without it, only jobs that wait since their preemption are listed.

With --dry-run, preemptions lists the jobs of queues with dryRun that would preempt others, and their victims. Of jobs
that ask for the same, it lists the first one. The list needs the aggregated API.`,
		Example: `  # Preemptions that concern jobs of the current namespace
  kubectl jobqueue preemptions

  # Preemptions of one queue in all namespaces, with the jobs that took
  kubectl jobqueue preemptions -A --queue research -o wide

  # Preemptions that dryRun keeps from happening
  kubectl jobqueue preemptions -A --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list preemptions of all namespaces")
	cmd.Flags().StringVar(&o.queue, "queue", "", "list preemptions with a taker or a victim of this queue only")
	cmd.Flags().Var(&o.since, "since", "list preemptions of this period (24h, 30d), and those of jobs that still wait")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "list what jobs of queues with dryRun would preempt")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: wide, json, yaml or name")
	return cmd
}

func (o *preemptionsOptions) run(ctx context.Context) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	since := o.clock.Now().Add(-time.Duration(o.since))
	read := reader.Preemptions
	if o.dryRun {
		read = reader.DryRun
	}
	found, err := read(ctx, &answers.PreemptionQuery{Namespace: namespace, Queue: o.queue, Since: since})
	if err != nil {
		return err
	}
	switch o.output {
	case "", "wide":
		return screen.Preemptions(o.streams.Out, found, since, o.output == "wide")
	case "name":
		for _, name := range found.Units() {
			if _, err := fmt.Fprintf(o.streams.Out, "queueunit.%s/%s\n", v1alpha1.GroupName, name); err != nil {
				return err
			}
		}
		return nil
	default:
		return output.Data(o.streams.Out, o.output, found)
	}
}
