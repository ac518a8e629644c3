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
	"slices"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
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
		Long: `why explains on one page why a job waits. It shows the position, and the quota that is short and by how much. It
names the units that hold that quota, the pods that use it without an admitted job, and the units ahead. It also says whom
the job preempts or which job preempted it, and what helps.

JOB is NAME or KIND/NAME. Of jobs in other namespaces the page shows the amounts and not the names.`,
		Example: `  kubectl jobqueue why train
  kubectl jobqueue why pytorchjob/train -n research`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.repeat(cmd.Context(), o.watch, func(out io.Writer) error { return o.run(cmd.Context(), out, args[0]) })
		},
	}
	cmd.Flags().IntVar(&o.most, "limit", 5, "number of units ahead, of holders, and of pods without a job that are listed")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show again when something changes, until interrupted")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json, yaml or name of the QueueUnit")
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
	if o.output != "" {
		return writeObject(out, o.output, unit)
	}
	return screen.Why(out, o.clock.Now(), o.story(ctx, reader, unit))
}

// story asks for everything that the caller may know, and leaves out the rest.
func (o *whyOptions) story(ctx context.Context, reader *answers.Reader, unit *v1alpha1.QueueUnit) *screen.Story {
	s := &screen.Story{Unit: unit}
	s.Taking, s.Taken, _ = reader.PreemptionOf(ctx, unit)
	live, err := reader.LiveUnit(ctx, unit.Namespace, unit.Name)
	if err != nil {
		s.Missing = err.Error()
		return s
	}
	s.Live = live
	if len(live.Status.Shortages) == 0 && live.Status.Position == 0 {
		return s
	}
	if slices.ContainsFunc(live.Status.Shortages, func(x visibility.Shortage) bool { return !x.UsedByOthers.IsZero() }) {
		s.OtherPods, s.MoreOtherPods, _ = answers.OtherPods(ctx, reader, unit.Namespace, live.Status.Quota, o.most)
	}
	if live.Status.Position > 0 {
		s.Forecast, _ = reader.Forecast(ctx, unit.Namespace, unit.Name)
	}
	if line, err := reader.Line(ctx, unit.Namespace, live.Status.Queue, o.most); err == nil {
		for _, w := range line.Items {
			if w.Position < live.Status.Position {
				s.Ahead = append(s.Ahead, w)
			}
		}
		s.MoreAhead = int64(live.Status.Position) - 1 - int64(len(s.Ahead))
	}
	if holders, err := reader.Holders(ctx, unit.Namespace, live.Status.Quota, o.most); err == nil {
		for _, h := range holders.Items {
			if len(h.Status.Held) > 0 {
				s.Holders = append(s.Holders, h)
			}
		}
		if n := holders.RemainingItemCount; n != nil && len(s.Holders) == len(holders.Items) {
			s.MoreHolders = *n
		}
	}
	return s
}
