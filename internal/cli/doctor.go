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

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

// errFaults ends doctor with a failure after it has written what it found.
var errFaults = errors.New("the installation has errors")

type doctorOptions struct {
	*connection
	names  doctor.Names
	output string
}

func doctorCommand(c *connection) *cobra.Command {
	o := &doctorOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the installation; say what is wrong and what to do",
		Long: `doctor reads the installation and writes one line for each fault with what to do. It examines APIs, leaders,
the configuration of the scheduler, managed kinds and their rights, and policies of tenancy. It also examines the
aggregated API, queues, quotas, units and audits.

Its exit code is 1 if a finding is an error. It needs the right to read all this; it says what it could not read.`,
		Example: `  kubectl jobqueue doctor
  kubectl jobqueue doctor -o json --scheduler-namespace scheduling`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.names.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context) error {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	findings, err := doctor.Find(ctx, config, o.names, o.clock.Now())
	if err != nil {
		return err
	}
	if o.output != "" {
		if err := output.Data(o.streams.Out, o.output, findings); err != nil {
			return err
		}
	} else if err := screen.Findings(o.streams.Out, findings); err != nil {
		return err
	}
	for i := range findings {
		if findings[i].Severity == doctor.Error {
			return errFaults
		}
	}
	return nil
}
