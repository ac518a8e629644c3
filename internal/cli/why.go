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
	"io"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/story"
)

type whyOptions struct {
	*connection
	output string
	most   int
	watch  bool
}

func whyCommand(c *connection) *cobra.Command {
	o := &whyOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "why JOB",
		Short: "Explain why a job waits",
		Long: `why says in a few lines why a job waits. It names the quota that is short, the jobs that must end, and the
share of your quota. It says who is ahead, when the job is admitted, and what helps. With -o wide it adds tables: each
level of the quota tree, the jobs ahead, and the jobs that hold the quota.

JOB is NAME or KIND/NAME. Of jobs that you may not read you see the amounts and not the names.`,
		Example: `  kubectl jobqueue why train
  kubectl jobqueue why pytorchjob/train -n research -o wide`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.repeat(cmd.Context(), o.watch, func(out io.Writer) error { return o.run(cmd.Context(), out, args[0]) })
		},
	}
	cmd.Flags().IntVar(&o.most, "limit", 5, "number of rows in each table of -o wide")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show again when something changes, until interrupted")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: wide, or json, yaml or name of the QueueUnit")
	return cmd
}

func (o *whyOptions) run(ctx context.Context, out io.Writer, job string) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	unit, err := reader.Unit(ctx, namespace, job)
	if err != nil {
		return err
	}
	switch o.output {
	case "":
		return screen.Why(out, o.clock.Now(), story.Of(ctx, reader, unit, o.most))
	case "wide":
		return screen.WhyWide(out, o.clock.Now(), story.Of(ctx, reader, unit, o.most), o.most)
	}
	return output.Unit(out, o.output, unit)
}
