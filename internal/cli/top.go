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
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

func topCommand(c *connection) *cobra.Command {
	var all, watch bool
	var resource, format string
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show quotas: guarantee, limit, used, reserved, pending",
		Long: `top shows the quotas that jobs of a namespace use, as a tree. Columns are the guarantee (min), the share of
this moment (runtime) and the largest limit (max). The share grows with the demand of jobs. Further columns are the use
of pods, the amount that is reserved for admitted jobs, and the number of units. Below the table is what is free on
nodes that are cordoned, not ready or being deleted: no job gets it.

top needs the aggregated API. With -A it needs the role jobqueue-operator.`,
		Example: `  kubectl jobqueue top
  kubectl jobqueue top -A --resource nvidia.com/gpu`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.repeat(cmd.Context(), watch, func(out io.Writer) error {
				quotas, err := quotasOf(cmd.Context(), c, all)
				switch {
				case err != nil:
					return err
				case format != "":
					return output.Data(out, format, quotas)
				}
				if len(quotas) == 0 {
					none := "No job of this namespace uses a quota. Show all quotas with -A."
					if all {
						none = "The scheduler knows no quota yet."
					}
					_, err := fmt.Fprintln(c.streams.ErrOut, none)
					return err
				}
				return screen.Top(out, quotas, resource)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show all quotas")
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show again when something changes, until interrupted")
	cmd.Flags().StringVarP(&format, "output", "o", "", "output format: json or yaml")
	cmd.Flags().StringVar(&resource, "resource", "", "show this resource only")
	return cmd
}
