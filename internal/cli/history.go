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
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

// period is a flag: a duration that may be in days.
type period time.Duration

// Set implements pflag.Value.
func (p *period) Set(text string) error {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 15)
		if err != nil {
			return fmt.Errorf("%q is not a number of days", days)
		}
		*p = period(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("must not be negative")
	}
	*p = period(d)
	return err
}

// String implements pflag.Value.
func (p *period) String() string {
	if d := time.Duration(*p); d == 0 || d%(24*time.Hour) != 0 {
		return d.String()
	}
	return strconv.Itoa(int(time.Duration(*p)/(24*time.Hour))) + "d"
}

// Type implements pflag.Value.
func (p *period) Type() string { return "duration" }

type historyOptions struct {
	*connection
	query  answers.RecordQuery
	since  period
	all    bool
	output string
}

func historyCommand(c *connection) *cobra.Command {
	o := &historyOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "history [JOB]",
		Short: "Show past admissions, evictions and waits of jobs",
		Long: `history shows the transitions of a job, of a queue, or of a namespace: when jobs were enqueued, admitted,
evicted and ended, how long they waited and ran. Jobs that are deleted are in the record, too.

JOB is NAME or KIND/NAME. history needs the aggregated API. Without it, history JOB shows what the QueueUnit says.`,
		Example: `  kubectl jobqueue history train
  kubectl jobqueue history --queue research --since 24h -A`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.query.Job = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&o.query.Queue, "queue", "", "show transitions in this queue only")
	cmd.Flags().StringVar(&o.query.Quota, "quota", "", "show transitions in this quota only")
	cmd.Flags().Var(&o.since, "since", "show transitions of this period, for example 24h or 30d (default all)")
	cmd.Flags().IntVar(&o.query.Limit, "limit", 1000, "show this many transitions, the newest; 0 is no limit")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "show transitions of all namespaces")
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func (o *historyOptions) run(ctx context.Context) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	if !o.all {
		o.query.Namespace = namespace
	}
	if o.since > 0 {
		o.query.Since = o.clock.Now().Add(-time.Duration(o.since))
	}
	found, err := reader.Records(ctx, &o.query)
	if err != nil {
		return o.fromObject(ctx, reader, namespace, err)
	}
	if o.output != "" {
		list := &visibility.RecordList{Items: found.Items, CompleteSince: found.CompleteSince}
		list.SetGroupVersionKind(visibility.SchemeGroupVersion.WithKind("RecordList"))
		return output.Object(o.streams.Out, o.output, list)
	}
	if len(found.Items) == 0 && !o.all {
		_, err := fmt.Fprintln(o.streams.ErrOut,
			"No such transition is in the record of this namespace. -A shows all namespaces.")
		return err
	}
	return screen.History(o.streams.Out, found, o.query.Since, o.all)
}

// fromObject shows what the QueueUnit of a job says, if there is one.
func (o *historyOptions) fromObject(
	ctx context.Context, reader *answers.Reader, namespace string, missing error,
) error {
	silent := answers.Unanswered(missing, o.all)
	if o.query.Job == "" || o.all || o.output != "" {
		return silent
	}
	unit, err := reader.Unit(ctx, namespace, o.query.Job)
	if err != nil {
		return errors.Join(silent, err)
	}
	return screen.Traces(o.streams.Out, unit, missing.Error())
}
