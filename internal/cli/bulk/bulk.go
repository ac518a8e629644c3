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

// Package bulk changes many units. It shows which ones, asks, and changes one after the other.
package bulk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
)

// most is the number of jobs that one command changes.
const most = 500

var (
	errNotConfirmed = errors.New("not confirmed; nothing was changed")
	errNoSelection  = errors.New("name a job, or select jobs with -l, --state, a queue or -A")
	errBoth         = errors.New("name a job or select jobs, not both")
	errTooMany      = fmt.Errorf("more than %d jobs match; select fewer", most)
)

// Flags select the jobs, and say whether somebody asks.
type Flags struct {
	unitlist.Flags
	yes bool
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	f.Flags.Add(cmd)
	cmd.Flags().BoolVar(&f.yes, "yes", false, "of selected jobs: do not ask for confirmation")
}

// Named says whether the arguments name a job. It is an error if they do and jobs are selected, or neither.
func (f *Flags) Named(args []string) (bool, error) {
	switch {
	case len(args) > 0 && f.Given():
		return false, errBoth
	case len(args) == 0 && !f.Given():
		return false, errNoSelection
	}
	return len(args) > 0, nil
}

// Change is what is done about each unit.
type Change struct {
	// Verb of the question, for example hold.
	Verb string
	// Wants are units that the change is for; the others stay as they are.
	Wants func(*v1alpha1.QueueUnit) bool
	// Do changes one, and says so.
	Do func(context.Context, *v1alpha1.QueueUnit) error
}

// Source reads the units that a query selects.
type Source func(ctx context.Context, q *unitlist.Query, yield func([]v1alpha1.QueueUnit, bool) error) error

// Run changes the units that a query selects. Dry runs do not ask. If one unit cannot be changed, the others are.
func (f *Flags) Run(
	ctx context.Context, streams genericiooptions.IOStreams, now time.Time, from Source, q *unitlist.Query, c *Change,
	dry bool,
) error {
	var units []v1alpha1.QueueUnit
	err := from(ctx, q, func(page []v1alpha1.QueueUnit, _ bool) error {
		for i := range page {
			if c.Wants(&page[i]) {
				units = append(units, page[i])
			}
		}
		if len(units) > most {
			return errTooMany
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(units) == 0:
		_, err := fmt.Fprintf(streams.ErrOut, "No job that matches is one to %s.\n", c.Verb)
		return err
	}
	if !dry && !f.yes {
		if err := confirm(streams, now, units, c.Verb); err != nil {
			return err
		}
	}
	failed := 0
	for i := range units {
		if err := c.Do(ctx, &units[i]); err != nil {
			failed++
			if _, err := fmt.Fprintf(streams.ErrOut, "%s in namespace %s: %v\n", answers.JobOf(&units[i]), units[i].Namespace,
				err); err != nil {
				return err
			}
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d jobs were not changed", failed, len(units))
	}
	return nil
}

// confirm shows the jobs to a person, and asks. Where nobody can answer, --yes is the answer.
func confirm(streams genericiooptions.IOStreams, now time.Time, units []v1alpha1.QueueUnit, verb string) error {
	rows := make([]screen.Row, 0, len(units))
	for i := range units {
		rows = append(rows, screen.RowOfObject(&units[i]))
	}
	if err := screen.NewTable(streams.Out, true, false).Write(now, rows); err != nil {
		return err
	}
	jobs := "this job"
	if len(units) > 1 {
		jobs = fmt.Sprintf("these %d jobs", len(units))
	}
	if _, err := fmt.Fprintf(streams.Out, "\nTo %s %s, type yes (or use --yes): ", verb, jobs); err != nil {
		return err
	}
	answer, err := bufio.NewReader(streams.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return errNotConfirmed
	}
	return nil
}
