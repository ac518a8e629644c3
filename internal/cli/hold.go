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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
)

type holdOptions struct {
	change
	unit bool
}

func holdCommand(c *connection) *cobra.Command {
	o := &holdOptions{change: change{connection: c}}
	cmd := &cobra.Command{
		Use:   "hold [JOB]",
		Short: "Keep a job from being admitted; suspend it if it runs",
		Long: `hold annotates a job with koord-queue/hold=true. The job keeps its position and holds no quota. A job that runs
gives its quota back and is suspended. The owner of the job may do so.

With --unit it sets spec.active of the QueueUnit to false. The owner of the job cannot undo that. It needs the role
jobqueue-operator.

Without JOB it holds the jobs that the flags select, at most 500. It shows them and asks.`,
		Example: `  kubectl jobqueue hold train
  kubectl jobqueue hold pytorchjob/train -n research --unit
  kubectl jobqueue hold -l sweep=17 --state pending --dry-run=server`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.each(cmd.Context(), args, "hold", notHeld(o.unit), o.hold)
		},
	}
	o.selected.Add(cmd)
	cmd.Flags().BoolVar(&o.unit, "unit", false, "hold the QueueUnit, as an operator")
	o.addDryRun(cmd)
	return cmd
}

func releaseCommand(c *connection) *cobra.Command {
	o := &holdOptions{change: change{connection: c}}
	cmd := &cobra.Command{
		Use:   "release [JOB]",
		Short: "Let a job that is on hold, suspended or deactivated wait for quota again",
		Long: `release removes the annotation koord-queue/hold from a job. A job that its owner had suspended after its
admission is allowed to continue. The job waits at its position.

With --unit it removes spec.active from the QueueUnit: of a unit that an operator holds, or that was deactivated after
a rejected admission check or a time-out. It needs the role jobqueue-operator.

Without JOB it releases those of the jobs that the flags select which can be, at most 500. It shows them and asks.`,
		Example: `  kubectl jobqueue release train
  kubectl jobqueue release train -n research --unit
  kubectl jobqueue release -l sweep=17 --yes`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.each(cmd.Context(), args, "release", canBeReleased(o.unit), o.release)
		},
	}
	o.selected.Add(cmd)
	cmd.Flags().BoolVar(&o.unit, "unit", false, "release the QueueUnit, as an operator")
	o.addDryRun(cmd)
	return cmd
}

// notHeld says of units that hold, with --unit or not, changes something. A unit keeps annotations that its job had,
// so the reason why it is parked counts.
func notHeld(byUnit bool) func(u *v1alpha1.QueueUnit) bool {
	return func(u *v1alpha1.QueueUnit) bool {
		if byUnit {
			return ptr.Deref(u.Spec.Active, true)
		}
		return u.Spec.ConsumerRef != nil && u.Annotations[v1alpha1.AnnotationParkedReason] != unitcondition.ReasonHeldByOwner
	}
}

// canBeReleased says of units that release, with --unit or without, changes something.
func canBeReleased(byUnit bool) func(u *v1alpha1.QueueUnit) bool {
	return func(u *v1alpha1.QueueUnit) bool {
		parked := u.Annotations[v1alpha1.AnnotationParkedReason]
		if byUnit {
			return parked == "" && !ptr.Deref(u.Spec.Active, true)
		}
		return u.Spec.ConsumerRef != nil &&
			(parked == unitcondition.ReasonSuspendedByOwner || parked == unitcondition.ReasonHeldByOwner)
	}
}

func (o *holdOptions) hold(ctx context.Context, to client.Client, unit *v1alpha1.QueueUnit) error {
	if o.unit {
		return o.patch(ctx, to, unit, fields{"spec": fields{"active": false}},
			fmt.Sprintf("%s held by its QueueUnit: it holds no quota until an operator releases it", answers.JobOf(unit)))
	}
	if unit.Spec.ConsumerRef == nil {
		return errNoJob(unit)
	}
	job, err := jobObject(ctx, to, unit.Spec.ConsumerRef, unit.Namespace)
	if err != nil {
		return err
	}
	return o.patch(ctx, to, job, annotations(fields{v1alpha1.AnnotationHold: "true"}),
		answers.JobOf(unit)+" held: it keeps its position and holds no quota")
}

func errNoJob(u *v1alpha1.QueueUnit) error {
	return fmt.Errorf("QueueUnit %s refers to no job: use --unit", u.Name)
}

func (o *holdOptions) release(ctx context.Context, to client.Client, unit *v1alpha1.QueueUnit) error {
	parked := unit.Annotations[v1alpha1.AnnotationParkedReason]
	inactive := unit.Inactive()
	switch {
	case o.unit && (!inactive || parked != ""):
		return fmt.Errorf("QueueUnit %s is not held by an operator and not deactivated", unit.Name)
	case o.unit:
		return o.patch(ctx, to, unit, fields{"spec": fields{"active": nil}},
			answers.JobOf(unit)+" released: its QueueUnit is active")
	case unit.Spec.ConsumerRef == nil:
		return errNoJob(unit)
	}
	job, err := jobObject(ctx, to, unit.Spec.ConsumerRef, unit.Namespace)
	if err != nil {
		return err
	}
	holds := holdsOf(job.GetAnnotations())
	switch {
	case parked == unitcondition.ReasonSuspendedByOwner:
		return o.patch(ctx, to, job, annotations(fields{v1alpha1.AnnotationHold: "false"}),
			answers.JobOf(unit)+" released: it waits for quota and is resumed by the queue")
	case len(holds) > 0:
		note := answers.JobOf(unit) + " released: it waits for quota at its position"
		if inactive && parked == "" {
			note += "; its QueueUnit is still inactive (release --unit)"
		}
		return o.patch(ctx, to, job, annotations(holds), note)
	case inactive && parked == "":
		return fmt.Errorf("%s is not held by its owner; its QueueUnit is inactive (release --unit)", answers.JobOf(unit))
	}
	return fmt.Errorf("%s is not on hold", answers.JobOf(unit))
}

// holdsOf a job are the annotations by which its owner holds it, without their values.
func holdsOf(annotations map[string]string) fields {
	holds := fields{}
	if _, held := annotations[v1alpha1.AnnotationHold]; held {
		holds[v1alpha1.AnnotationHold] = nil
	}
	if annotations[v1alpha1.AnnotationActive] == "false" {
		holds[v1alpha1.AnnotationActive] = nil
	}
	return holds
}
