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
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
)

type submitOptions struct {
	change
	files        []string
	quota, queue string
	wait         bool
	timeout      time.Duration
}

func submitCommand(c *connection) *cobra.Command {
	o := &submitOptions{change: change{connection: c}}
	cmd := &cobra.Command{
		Use:   "submit -f FILE",
		Short: "Create jobs suspended, with quota and queue, and follow them",
		Long: `submit creates the jobs of a file. It sets the labels of quota and queue, and suspends each job so that it
creates no pod before it is admitted.

With --wait it writes each change of state until all jobs have ended. Its exit code is 1 if one failed.`,
		Example: `  kubectl jobqueue submit -f train.yaml --quota research
  kubectl jobqueue submit -f train.yaml --quota research --queue express --wait --timeout=1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "file, directory or URL with jobs; - is standard input")
	cmd.Flags().StringVar(&o.quota, "quota", "", "ElasticQuota to charge; empty leaves the label of the job")
	cmd.Flags().StringVar(&o.queue, "queue", "", "queue to wait in; empty leaves the label of the job")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "follow the jobs until they end")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 0, "with --wait: end after this time; 0 is no bound")
	o.addDryRun(cmd)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

func (o *submitOptions) run(ctx context.Context) error {
	reader, namespace, err := o.reader()
	if err != nil {
		return err
	}
	infos, err := resource.NewBuilder(o.flags).Unstructured().Local().ContinueOnError().
		FilenameParam(false, &resource.FilenameOptions{Filenames: o.files}).Flatten().Do().Infos()
	if err != nil {
		return err
	}
	followed := make([]*follower, 0, len(infos))
	for _, info := range infos {
		f, err := o.submit(ctx, reader.Objects, namespace, info.Object.(*unstructured.Unstructured))
		if err != nil {
			return err
		}
		followed = append(followed, f)
	}
	if !o.wait || o.dryRun != dryRunNone {
		return nil
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	return o.follow(ctx, reader, followed)
}

func (o *submitOptions) submit(
	ctx context.Context, to client.Client, namespace string, job *unstructured.Unstructured,
) (*follower, error) {
	kinds := jobkind.Builtin()
	i := slices.IndexFunc(kinds, func(k jobkind.Kind) bool { return k.GVK == job.GroupVersionKind() })
	if i < 0 {
		return nil, fmt.Errorf("%s: no kind that can be queued; see kubectl jobqueue kinds list", job.GroupVersionKind())
	}
	kind := &kinds[i]
	if job.GetNamespace() == "" {
		job.SetNamespace(namespace)
	}
	labels := job.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	if o.quota != "" {
		for _, key := range v1alpha1.QuotaLabels {
			delete(labels, key)
		}
		labels[v1alpha1.LabelQuotaName] = o.quota
	}
	if o.queue != "" {
		labels[v1alpha1.QueueNameKey] = o.queue
	}
	job.SetLabels(labels)
	if jobs.CanBeSuspended(jobs.Open(kind, job)) {
		if err := jobs.EditOf(kind, job).SetSuspend(true); err != nil {
			return nil, err
		}
	}
	note := fmt.Sprintf("%s/%s submitted", kind.GVR.GroupResource(), job.GetName())
	options := []client.CreateOption{client.FieldOwner("kubectl-jobqueue")}
	switch o.dryRun {
	case dryRunNone:
	case dryRunClient:
		return nil, o.say(note + " (dry run)")
	case dryRunServer:
		options, note = append(options, client.DryRunAll), note+" (server dry run)"
	default:
		return nil, fmt.Errorf("--dry-run: want %s, %s or %s, have %q", dryRunNone, dryRunClient, dryRunServer, o.dryRun)
	}
	if err := to.Create(ctx, job, options...); err != nil {
		return nil, err
	}
	name := job.GetName()
	return &follower{
		job: note[:len(note)-len(" submitted")], unit: types.NamespacedName{Namespace: job.GetNamespace(),
			Name: kind.UnitName(name)},
	}, o.say(note)
}

// follower has what was last written about a job.
type follower struct {
	job  string
	unit types.NamespacedName
	last string
	seen bool
	done bool
}

var errJobFailed = errors.New("a job failed, or its QueueUnit was deleted")

// follow writes each change until all jobs have ended.
func (o *submitOptions) follow(ctx context.Context, reader *answers.Reader, followed []*follower) error {
	failed := false
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		all := true
		for _, f := range followed {
			if f.done {
				continue
			}
			bad, err := o.look(ctx, reader, f)
			if err != nil {
				return false, err
			}
			failed, all = failed || bad, all && f.done
		}
		return all, nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("not all jobs have ended: %w", err)
	case failed:
		return errJobFailed
	}
	return nil
}

// look reads the unit of a job, writes a change, and says whether the job has failed.
func (o *submitOptions) look(ctx context.Context, reader *answers.Reader, f *follower) (failed bool, err error) {
	unit := &v1alpha1.QueueUnit{}
	switch err := reader.Objects.Get(ctx, f.unit, unit); {
	case apierrors.IsNotFound(err) && !f.seen:
		return false, nil // the controller has not made it yet
	case apierrors.IsNotFound(err):
		f.done = true
		return true, o.say(f.job + " deleted")
	case err != nil:
		return false, err
	}
	f.seen = true
	state, line := screen.State(unit), screen.StateLine(unit)
	f.done = state == "Succeeded" || state == "Failed"
	if line == f.last {
		return false, nil
	}
	f.last = line
	return state == "Failed", o.say(f.job + " " + line)
}
