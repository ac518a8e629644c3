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

package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

// StandingOptions of the measurements on a store with many units that wait in a full cluster. Profiles are of the time
// in which the wake-up is measured.
type StandingOptions struct {
	Setting
	// Measure names what is measured.
	Measure []string
	// Waiting units, and Few for comparison on a store of its own, 0 for none; StartupWaiting at start and leader changes.
	Waiting, Few, StartupWaiting int
	// Holding is how many units hold quota, rounded up to a multiple of the number of queues.
	Holding int
	// Policies of the wake-up measurement. It takes Samples for each policy and each number of pending units, PerSecond at
	// most. In each of the Rounds the numbers take turns.
	Policies  []v1alpha1.QueuePolicy
	Samples   int
	Rounds    int
	PerSecond float64
	// Changes of the leader of each kind. Freed units end before each, so that there is something to admit.
	Changes, Freed int
	Seed           int64
}

// Values of StandingOptions.Measure.
const (
	MeasureWake    = "wake"
	MeasureStartup = "startup"
)

func (o *StandingOptions) measures(what string) bool { return slices.Contains(o.Measure, what) }

// StandingReport is the result. Times are by the clock of this process, on what its watch delivered.
type StandingReport struct {
	Scenario string         `json:"scenario"`
	Queues   int            `json:"queues"`
	Wake     *WakeReport    `json:"wake,omitempty"`
	Startup  *StartupReport `json:"startup,omitempty"`
	Machine
}

// Standing measures what the options say.
func Standing(ctx context.Context, o StandingOptions) (_ *StandingReport, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	screen := o.begin()
	defer screen.end()
	x := &StandingReport{Scenario: "standing", Queues: standingQueues}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	many, err := openStore(ctx, &o, "many", screen)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, many.cp.Stop()) }()
	if o.measures(MeasureStartup) {
		if x.Startup, err = many.measureStartup(ctx, &o); err != nil {
			return nil, fmt.Errorf("start-up: %w", err)
		}
	}
	if o.measures(MeasureWake) {
		if x.Wake, err = measureWake(ctx, &o, many, screen); err != nil {
			return nil, fmt.Errorf("wake-up: %w", err)
		}
	}
	many.noteLoad()
	x.Machine = many.machine()
	return x, nil
}

func (o *StandingOptions) complete() error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.Few >= o.Waiting {
		o.Few = 0
	}
	return os.MkdirAll(o.Dir, 0o755)
}

func (o *StandingOptions) validate() error {
	switch {
	case len(o.Measure) == 0:
		return errors.New("nothing is to be measured")
	case o.Holding < standingQueues || o.Waiting < standingQueues || o.StartupWaiting < standingQueues:
		return fmt.Errorf("holding and waiting units have to be at least %d, one for each queue", standingQueues)
	case o.measures(MeasureWake) && (o.Samples < 1 || o.Rounds < 1 || o.PerSecond <= 0 || len(o.Policies) == 0):
		return errors.New("samples, rounds, samples per second and policies are required")
	case o.measures(MeasureStartup) && (o.Changes < 0 || o.Freed < 1 || o.Freed > o.Holding):
		return errors.New("freed must be from 1 to the number of units that hold quota")
	}
	return nil
}

// Print writes the report as tables.
func (x *StandingReport) Print(out io.Writer) {
	fmt.Fprintf(out, "\n%d queues; %d cores, load %s\n", x.Queues, x.Cores, x.load())
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if x.Startup != nil {
		x.Startup.print(t)
	}
	if x.Wake != nil {
		x.Wake.print(t)
	}
	_ = t.Flush()
}
