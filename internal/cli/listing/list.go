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

// Package listing has the commands that list jobs and queues.
package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/terminal"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

// mostSorted is the number of jobs of a namespace or a queue that are sorted as a whole.
const mostSorted = 10_000

// errEnough ends a list of which enough was read.
var errEnough = errors.New("enough")

type listOptions struct {
	config  *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	clock   clock.PassiveClock

	unitlist.Flags
	format          string
	chunk           int64
	finished, watch bool
}

// Jobs is the command list.
func Jobs(
	config *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, clock clock.PassiveClock,
) *cobra.Command {
	o := &listOptions{config: config, streams: streams, clock: clock}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs: queue, position, state, reason",
		Long: `list shows the jobs of a namespace that are in a queue: their position, state, and the reason if they wait.
With -A it shows the jobs of all namespaces that you may see, page by page. Each page is sorted by namespace, queue and
position. Jobs of one namespace or queue are sorted as a whole.

With -o wide, ADMITTED is a forecast of the 100 jobs that are admitted first; "kubectl jobqueue when" explains one.

Positions, and the namespaces that you may see, come from the aggregated API. Without it the column is empty, and -A
needs the right to list QueueUnits of all namespaces.`,
		Example: `  # Jobs of the current namespace
  kubectl jobqueue list

  # Jobs of one queue in all namespaces that you may see, with quota, amounts and forecasts
  kubectl jobqueue list --queue research -o wide

  # Jobs of a team that run
  kubectl jobqueue list -A -l team=vision --state running`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return terminal.Repeat(cmd.Context(), streams.Out, o.watch, func(out io.Writer) error {
				return o.run(cmd.Context(), out)
			})
		},
	}
	o.Flags.Add(cmd)
	cmd.Flags().Int64Var(&o.chunk, "chunk-size", unitlist.Chunk, "number of jobs of one request, at most 500")
	cmd.Flags().BoolVar(&o.finished, "finished", false, "list jobs that have ended as well")
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false,
		"list again when something changes, until interrupted; of a long list the beginning")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "output format: wide, json, yaml or name")
	return cmd
}

func (o *listOptions) run(ctx context.Context, out io.Writer) error {
	query, err := o.Query(o.config)
	if err != nil {
		return err
	}
	if o.chunk > 0 {
		query.Chunk = min(o.chunk, unitlist.Chunk)
	}
	if o.finished && len(o.States) == 0 {
		query.States = unitstate.All()
	}
	reader, _, err := readerOf(o.config)
	if err != nil {
		return err
	}
	switch o.format {
	case "", "wide":
		return o.table(ctx, out, reader, query)
	}
	units := []v1alpha1.QueueUnit{}
	err = unitlist.Units(ctx, reader, query, func(page []v1alpha1.QueueUnit, _ bool) error {
		units = append(units, page...)
		return nil
	})
	if err != nil {
		return err
	}
	return output.Units(out, o.format, units)
}

// table writes a page as soon as it is there, unless the whole is sorted.
func (o *listOptions) table(ctx context.Context, out io.Writer, reader *answers.Reader, query *unitlist.Query) error {
	everywhere := query.Namespace == ""
	sorted := mostSorted
	if everywhere && query.Queue == "" {
		sorted = 1
	}
	table := screen.NewTable(out, everywhere, o.format == "wide")
	var rows []screen.Row
	var written bool
	foresee := o.foresee(ctx, reader, query)
	write := func() error {
		foresee(rows)
		sortRows(rows, query.Queue != "")
		written = true
		err := table.Write(o.clock.Now(), rows)
		rows = nil
		return err
	}
	err := unitlist.Pages(ctx, reader, query, func(page []screen.Row, more bool) error {
		if rows = append(rows, page...); len(rows) < sorted && (more || len(rows) == 0) {
			return nil
		}
		if err := write(); err != nil || !o.watch || !more {
			return err
		}
		return errors.Join(errEnough, o.note("More jobs follow. Select some with --queue, --state or -l."))
	})
	switch {
	case errors.Is(err, errEnough):
		return nil
	case err != nil:
		return err
	case len(rows) > 0:
		return write()
	case !written:
		return o.note("No jobs are in a queue.")
	}
	return nil
}

// foresee joins rows with forecasts, which it asks for once. Without an answer there are none.
func (o *listOptions) foresee(
	ctx context.Context, reader *answers.Reader, query *unitlist.Query,
) func(rows []screen.Row) {
	var forecasts map[string]*visibility.Forecast
	asked := o.format != "wide"
	return func(rows []screen.Row) {
		if !asked && slices.ContainsFunc(rows, func(r screen.Row) bool { return r.Position > 0 }) {
			asked = true
			forecasts, _ = reader.Forecasts(ctx, query.Namespace, query.Queue)
		}
		for i := range rows {
			rows[i].Forecast = forecasts[rows[i].Namespace+"/"+rows[i].Unit]
		}
	}
}

func (o *listOptions) note(text string) error {
	_, err := fmt.Fprintln(o.streams.ErrOut, text)
	return err
}

// sortRows by namespace and queue, or those of one queue by position alone. Rows that are not in line are at the end.
func sortRows(rows []screen.Row, ofQueue bool) {
	place := func(r *screen.Row) int32 {
		if r.Position == 0 {
			return math.MaxInt32
		}
		return r.Position
	}
	slices.SortStableFunc(rows, func(a, b screen.Row) int {
		if ofQueue && a.Position != b.Position {
			return cmp.Compare(place(&a), place(&b))
		}
		return cmp.Or(
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Queue, b.Queue), cmp.Compare(place(&a), place(&b)),
			a.Created.Compare(b.Created),
		)
	})
}
