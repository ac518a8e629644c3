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

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

type overrideOptions struct {
	change
	queue    string
	priority int32
	clear    bool
}

func moveCommand(c *connection) *cobra.Command {
	o := &overrideOptions{change: change{connection: c}}
	cmd := &cobra.Command{
		Use:   "move [JOB] --queue QUEUE",
		Short: "Move a job to another queue, as an operator",
		Long: `move writes the annotation koord-queue/override-queue to the QueueUnit of a job. The controller keeps it in
place of the queue that the job names. The job stays in its quota. A job that is admitted keeps what it holds.

It needs the role jobqueue-operator, and the namespace of the job needs the right to use the queue. An owner moves a job
by its label koord-queue/queue-name instead.

Without JOB it moves the jobs that the flags select, at most 500. It shows them and asks.`,
		Example: `  kubectl jobqueue move train --queue express -n research
  kubectl jobqueue move train --clear -n research
  kubectl jobqueue move --from research --state pending --queue express --dry-run=server`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.move(cmd.Context(), args) },
	}
	o.selected.OfQueue = "from"
	o.selected.Add(cmd)
	cmd.Flags().StringVar(&o.queue, "queue", "", "name of the queue")
	cmd.Flags().BoolVar(&o.clear, "clear", false, "return the job to the queue that it names itself")
	o.addDryRun(cmd)
	o.addQueueNamespace(cmd)
	cmd.MarkFlagsMutuallyExclusive("queue", "clear")
	cmd.MarkFlagsOneRequired("queue", "clear")
	return cmd
}

func priorityCommand(c *connection) *cobra.Command {
	o := &overrideOptions{change: change{connection: c}}
	cmd := &cobra.Command{
		Use:   "priority JOB --to NUMBER",
		Short: "Change the priority of a job in its queue, as an operator",
		Long: `priority writes the annotation koord-queue/override-priority to the QueueUnit of a job. The controller keeps
it in place of the priority of the job. A greater number is admitted first. The priority of pods does not change.

It needs the role jobqueue-operator.`,
		Example: `  kubectl jobqueue priority train --to 100 -n research
  kubectl jobqueue priority train --clear -n research`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.prioritize(cmd.Context(), args[0]) },
	}
	cmd.Flags().Int32Var(&o.priority, "to", 0, "the priority")
	cmd.Flags().BoolVar(&o.clear, "clear", false, "return the job to its own priority")
	o.addDryRun(cmd)
	cmd.MarkFlagsMutuallyExclusive("to", "clear")
	cmd.MarkFlagsOneRequired("to", "clear")
	return cmd
}

func (o *overrideOptions) move(ctx context.Context, args []string) error {
	if o.clear {
		return o.each(ctx, args, "return", func(u *v1alpha1.QueueUnit) bool {
			return u.Annotations[v1alpha1.AnnotationOverrideQueue] != ""
		}, o.override(v1alpha1.AnnotationOverrideQueue, nil, "in the queue that the job names"))
	}
	if o.queue == "" {
		return errors.New("--queue: want the name of a queue")
	}
	reader, _, err := o.reader()
	if err != nil {
		return err
	}
	if err := o.queueExists(ctx, reader.Objects, o.queue); err != nil {
		return err
	}
	return o.each(ctx, args, "move", func(u *v1alpha1.QueueUnit) bool {
		return followed(u) && u.Annotations[v1alpha1.AnnotationOverrideQueue] != o.queue && u.Spec.Queue != o.queue
	}, o.override(v1alpha1.AnnotationOverrideQueue, o.queue, fmt.Sprintf("in queue %q", o.queue)))
}

// followed says whether the controller writes the unit, and so keeps its overrides.
func followed(u *v1alpha1.QueueUnit) bool {
	return u.Spec.ConsumerRef != nil || u.Labels[v1alpha1.LabelCreatedBy] == v1alpha1.CreatedByController
}

func (o *overrideOptions) prioritize(ctx context.Context, job string) error {
	to, unit, err := o.unitOf(ctx, job)
	if err != nil {
		return err
	}
	if o.clear {
		return o.override(v1alpha1.AnnotationOverridePriority, nil, "with the priority of the job")(ctx, to, unit)
	}
	return o.override(v1alpha1.AnnotationOverridePriority, fmt.Sprint(o.priority),
		fmt.Sprintf("with priority %d", o.priority))(ctx, to, unit)
}

// override sets an annotation of a unit, or removes it.
func (o *overrideOptions) override(
	key string, value any, place string,
) func(context.Context, client.Client, *v1alpha1.QueueUnit) error {
	return func(ctx context.Context, to client.Client, unit *v1alpha1.QueueUnit) error {
		note := fmt.Sprintf("%s waits %s", answers.JobOf(unit), place)
		if !followed(unit) {
			return fmt.Errorf("QueueUnit %s has no job that the controller follows: edit its spec", unit.Name)
		}
		if len(unit.Status.Admissions) > 0 {
			note = fmt.Sprintf("%s is admitted and keeps what it holds; when it waits again, it waits %s", answers.JobOf(unit),
				place)
		}
		return o.patch(ctx, to, unit, annotations(fields{key: value}), note)
	}
}
