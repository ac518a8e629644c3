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

	"github.com/spf13/cobra"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/output"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

func shareCommand(c *connection) *cobra.Command {
	var all bool
	var format string
	cmd := &cobra.Command{
		Use:   "share",
		Short: "Show which quota is served first, and why",
		Long: `share shows the quotas below each parent in the order in which free quota goes to their queues: the quota
that holds the smallest share of its min is first. The share is that of the resource of which the quota holds most.
Queues with a greater priority go before this order. The row of koordinator-root-quota says how much of the cluster is
used and reserved, of the resource of which that is most.

share needs the aggregated API. With -A it needs the role jobqueue-operator.`,
		Example: `  kubectl jobqueue share
  kubectl jobqueue share -A -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			quotas, err := quotasOf(cmd.Context(), c, all)
			switch {
			case err != nil:
				return err
			case format != "":
				return output.Data(c.streams.Out, format, quotas)
			}
			return screen.Share(c.streams.Out, quotas)
		},
	}
	cmd.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show all quotas")
	cmd.Flags().StringVarP(&format, "output", "o", "", "output format: json or yaml")
	return cmd
}

// quotasOf are the quotas that the namespace of the caller uses, or all.
func quotasOf(ctx context.Context, c *connection, all bool) ([]visibility.Quota, error) {
	reader, namespace, err := c.reader()
	if err != nil {
		return nil, err
	}
	if all {
		namespace = ""
	}
	quotas, err := reader.Quotas(ctx, namespace)
	if err != nil {
		return nil, answers.Unanswered(err, all)
	}
	return quotas, nil
}
