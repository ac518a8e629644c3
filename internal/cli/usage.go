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
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

type usageOptions struct {
	*connection
	since         period
	quota, output string
	all           bool
}

func usageCommand(c *connection) *cobra.Command {
	o := &usageOptions{connection: c, since: period(30 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show resource-hours by quota and namespace",
		Long: `usage adds up the quota that jobs held, in resource-hours by quota and namespace. It reads the same record as
history, and the QueueUnits of jobs that run.

usage needs the aggregated API. With -A it needs the role jobqueue-operator.`,
		Example: `  kubectl jobqueue usage --since 30d
  kubectl jobqueue usage -A --quota research`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().Var(&o.since, "since", "count this period, for example 24h or 30d")
	cmd.Flags().StringVar(&o.quota, "quota", "", "count this quota only")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "count jobs of all namespaces")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func (o *usageOptions) run(ctx context.Context) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	to := o.clock.Now()
	from := to.Add(-time.Duration(o.since))
	found, err := reader.Records(ctx, &answers.RecordQuery{Namespace: namespace, Quota: o.quota, Since: from})
	if err != nil {
		return answers.Unanswered(err, o.all)
	}
	units, err := reader.Admitted(ctx, namespace, math.MaxInt)
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(answers.UsageOf(found.Items, units, from, to), func(u answers.Usage) bool {
		return o.quota != "" && u.Quota != o.quota
	})
	if o.output != "" {
		return output.Data(o.streams.Out, o.output, all)
	}
	return screen.Usage(o.streams.Out, all, found, from, to)
}
