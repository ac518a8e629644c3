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
	"time"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

type observeOptions struct {
	*connection
	since  period
	all    bool
	output string
}

func observeCommand(c *connection) *cobra.Command {
	o := &observeOptions{connection: c, since: period(7 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "observe",
		Short: "Show what the queue would have done about observed jobs",
		Long: `observe sums up what the queue would have done about the jobs that it observes. It lists jobs that would
have waited, for how long and why, and jobs that would be preempted now.

Jobs that are deleted, and preemptions, come from the aggregated API. Without it, observe shows what the
QueueUnits say.`,
		Example: `  # The last week in all namespaces
  kubectl jobqueue observe -A

  # The last day in the current namespace
  kubectl jobqueue observe --since 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "show jobs of all namespaces")
	cmd.Flags().Var(&o.since, "since", "show jobs of this period, for example 24h or 30d")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func (o *observeOptions) run(ctx context.Context) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	now := o.clock.Now()
	since := now.Add(-time.Duration(o.since))
	found, err := answers.Observe(ctx, reader, namespace, now, since)
	switch {
	case err != nil:
		return err
	case o.output == "":
		return screen.Observed(o.streams.Out, found, since)
	default:
		return output.Data(o.streams.Out, o.output, found)
	}
}
