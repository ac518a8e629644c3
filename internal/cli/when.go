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
	"io"

	"github.com/spf13/cobra"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

type whenOptions struct {
	*connection
	output string
	watch  bool
}

func (o *whenOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "when JOB",
		Short: "Forecast when a job is admitted",
		Long: `when forecasts when a job that waits will be admitted, and says on what the forecast rests.

The first time is the most likely one, if jobs run as long as past jobs did. The job is admitted at the latest time if
all jobs run for as long as their time limits allow. Both can move when other jobs arrive.

JOB is NAME or KIND/NAME.`,
		Example: `  kubectl jobqueue when train
  kubectl jobqueue when pytorchjob/train -n research --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.repeat(cmd.Context(), o.watch, func(out io.Writer) error { return o.run(cmd.Context(), out, args[0]) })
		},
	}
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show again when something changes, until interrupted")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func (o *whenOptions) run(ctx context.Context, out io.Writer, job string) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	unit, err := reader.Unit(ctx, namespace, job)
	if err != nil {
		return err
	}
	forecast, err := reader.Forecast(ctx, unit.Namespace, unit.Name)
	if err != nil {
		return fmt.Errorf("the aggregated API gives no forecast: %w", err)
	}
	if o.output != "" {
		forecast.SetGroupVersionKind(visibility.SchemeGroupVersion.WithKind("Forecast"))
		return output.Object(out, o.output, forecast)
	}
	return screen.When(out, o.clock.Now(), forecast)
}
