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
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

type listOptions struct {
	*connection
	queue, output        string
	all, finished, watch bool
}

func listCommand(c *connection) *cobra.Command {
	o := &listOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs: queue, position, state, reason",
		Long: `list shows the jobs of a namespace that are in a queue: their position, state, and the reason if they wait.

Positions come from the aggregated API. Without it the column is empty. With -o wide, ADMITTED is a forecast of the 100
jobs that are admitted first; "kubectl jobqueue when" explains one.`,
		Example: `  # Jobs of the current namespace
  kubectl jobqueue list

  # Jobs of one queue in all namespaces, with quota, amounts and forecasts
  kubectl jobqueue list -A --queue research -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.repeat(cmd.Context(), o.watch, func(out io.Writer) error { return o.run(cmd.Context(), out) })
		},
	}
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "list jobs of all namespaces")
	cmd.Flags().StringVar(&o.queue, "queue", "", "list jobs of this queue only")
	cmd.Flags().BoolVar(&o.finished, "finished", false, "list jobs that have ended as well")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "list again when something changes, until interrupted")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: wide, json, yaml or name")
	return cmd
}

func (o *listOptions) run(ctx context.Context, out io.Writer) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	if o.all {
		namespace = ""
	}
	units, err := reader.Units(ctx, namespace)
	if err != nil {
		return err
	}
	units = slices.DeleteFunc(units, func(u v1alpha1.QueueUnit) bool { return !o.wants(&u) })
	switch o.output {
	case "", "wide":
	default:
		return writeObjects(out, o.output, units)
	}
	if len(units) == 0 {
		_, err := fmt.Fprintln(o.streams.ErrOut, "No jobs are in a queue.")
		return err
	}
	rows := o.rows(ctx, reader, units)
	if o.output == "wide" {
		o.foresee(ctx, reader, namespace, rows)
	}
	return screen.List(out, o.clock.Now(), rows, o.all, o.output == "wide")
}

func (o *listOptions) wants(u *v1alpha1.QueueUnit) bool {
	over := u.Status.Phase == v1alpha1.PhaseSucceed || u.Status.Phase == v1alpha1.PhaseFailed
	return (o.finished || !over) && (o.queue == "" || queueOf(u) == o.queue)
}

func queueOf(u *v1alpha1.QueueUnit) string {
	if e := u.Status.Effective; e != nil && e.Queue != "" {
		return e.Queue
	}
	return u.Spec.Queue
}

// rows joins units with the answers of the aggregated API: by namespace and queue, those in line by position. A
// namespace without an answer has what the objects say.
func (o *listOptions) rows(ctx context.Context, reader *answers.Reader, units []v1alpha1.QueueUnit) []screen.Row {
	live := map[string]map[string]visibility.Unit{}
	rows := make([]screen.Row, len(units))
	for i := range units {
		u := &units[i]
		found, asked := live[u.Namespace]
		if !asked {
			found, _ = reader.LiveUnits(ctx, u.Namespace)
			live[u.Namespace] = found
		}
		rows[i].Unit = u
		if l, ok := found[u.Name]; ok {
			rows[i].Live = &l
		}
	}
	slices.SortStableFunc(rows, func(a, b screen.Row) int {
		return cmp.Or(
			cmp.Compare(a.Unit.Namespace, b.Unit.Namespace), cmp.Compare(queueOf(a.Unit), queueOf(b.Unit)),
			cmp.Compare(position(a), position(b)), a.Unit.CreationTimestamp.Compare(b.Unit.CreationTimestamp.Time),
		)
	})
	return rows
}

// foresee joins rows with forecasts. Without an answer there are none.
func (o *listOptions) foresee(ctx context.Context, reader *answers.Reader, namespace string, rows []screen.Row) {
	if !slices.ContainsFunc(rows, func(r screen.Row) bool { return r.Live != nil && r.Live.Status.Position > 0 }) {
		return
	}
	forecasts, _ := reader.Forecasts(ctx, namespace, o.queue)
	for i := range rows {
		rows[i].Forecast = forecasts[rows[i].Unit.Namespace+"/"+rows[i].Unit.Name]
	}
}

// position has those that are not in line at the end.
func position(r screen.Row) int32 {
	if r.Live == nil || r.Live.Status.Position == 0 {
		return math.MaxInt32
	}
	return r.Live.Status.Position
}
