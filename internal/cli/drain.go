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

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

func drainCommand(c *connection) *cobra.Command {
	o := &change{connection: c}
	keep := false
	cmd := &cobra.Command{
		Use:   "drain QUEUE",
		Short: "Stop a queue, and suspend its jobs",
		Long: `drain sets spec.stopPolicy of a Queue to HoldAndDrain. The queue admits nothing. Its admitted jobs are
suspended and wait at their positions. Jobs that cannot be suspended keep running.

With --keep-running it sets Hold: the queue admits nothing, and admitted jobs run on.`,
		Example: `  kubectl jobqueue drain research
  kubectl jobqueue drain research --keep-running --dry-run=server`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keep {
				return o.stop(cmd.Context(), args[0], v1alpha1.StopHold, "stopped: it admits nothing, and %d admitted jobs run on")
			}
			return o.stop(cmd.Context(), args[0], v1alpha1.StopHoldAndDrain,
				"drains: it admits nothing, and its %d admitted jobs are suspended")
		},
	}
	cmd.Flags().BoolVar(&keep, "keep-running", false, "leave admitted jobs running")
	o.addDryRun(cmd)
	o.addQueueNamespace(cmd)
	return cmd
}

func resumeCommand(c *connection) *cobra.Command {
	o := &change{connection: c}
	cmd := &cobra.Command{
		Use:     "resume QUEUE",
		Short:   "Start a queue that was stopped or drained",
		Long:    `resume sets spec.stopPolicy of a Queue to None. The queue admits jobs again.`,
		Example: `  kubectl jobqueue resume research`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.stop(cmd.Context(), args[0], v1alpha1.StopNone, "admits jobs again; %d are admitted")
		},
	}
	o.addDryRun(cmd)
	o.addQueueNamespace(cmd)
	return cmd
}

// stop sets the stop policy of a queue. The number in note is that of its admitted units.
func (c *change) stop(ctx context.Context, name string, policy v1alpha1.StopPolicy, note string) error {
	reader, _, err := c.reader()
	if err != nil {
		return err
	}
	queue := &v1alpha1.Queue{}
	key := types.NamespacedName{Namespace: c.queueNamespace, Name: name}
	if err := reader.Objects.Get(ctx, key, queue); err != nil {
		return err
	}
	admitted := int32(0)
	if queue.Status.Admitted != nil {
		admitted = *queue.Status.Admitted
	}
	return c.patch(ctx, reader.Objects, queue, fields{"spec": fields{"stopPolicy": policy}},
		fmt.Sprintf("queue/%s "+note, name, admitted))
}
