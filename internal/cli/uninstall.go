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
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/config/controller/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/kinds"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/uninstall"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
)

var errNotConfirmed = errors.New("not confirmed; nothing was changed")

type uninstallOptions struct {
	*connection
	waiting             string
	dryRun, yes         bool
	namespace, leaseRef string
}

func uninstallCommand(c *connection) *cobra.Command {
	o := &uninstallOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "uninstall --waiting=resume|leave",
		Short: "Take out of the cluster what the controller put into it",
		Long: `uninstall resumes the jobs that wait in the queue, or leaves them suspended, removes what the controller
wrote into jobs, and deletes the QueueUnits and Queues that it made. Jobs that run go on. Jobs whose QueueUnit somebody
made inactive stay suspended in any case.

Scale the controller's Deployment to zero first. The command waits up to a minute for the Lease of the controller to be
free; while one runs, nothing is done. It can be interrupted and run again.

It knows the kinds that are built in, and those of the ConfigMap koord-jobqueue-managed-jobs. helm uninstall deletes
that ConfigMap, so run this command before it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.waiting, "waiting", "", "what becomes of jobs that wait: resume or leave")
	fs.BoolVar(&o.dryRun, "dry-run", false, "say what would be done, change nothing")
	fs.BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
	fs.StringVar(&o.namespace, "queue-namespace", "koord-queue", "where Queues and the ConfigMap of managed jobs are")
	fs.StringVar(&o.leaseRef, "lease", "",
		"namespace/name of the controller's Lease (default QUEUE-NAMESPACE/jobqueue-controller)")
	return cmd
}

func (o *uninstallOptions) run(ctx context.Context, in io.Reader, out io.Writer) error {
	waiting := uninstall.Waiting(o.waiting)
	if waiting != uninstall.Resume && waiting != uninstall.Leave {
		return fmt.Errorf("--waiting must be %s or %s", uninstall.Resume, uninstall.Leave)
	}
	lease, err := o.lease()
	if err != nil {
		return err
	}
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	if !o.dryRun && !o.yes {
		if err := confirm(in, out, config.Host, waiting); err != nil {
			return err
		}
	}
	kinds, err := knownKinds(ctx, c, o.namespace)
	if err != nil {
		return err
	}
	u := &uninstall.Run{
		Client: c, Kinds: kinds, Waiting: waiting, DryRun: o.dryRun,
		QueueNamespace: o.namespace, Lease: lease, Clock: clock.RealClock{}, Out: out,
	}
	_, err = u.Do(ctx)
	return err
}

// knownKinds are those that are built in, and those that the configuration describes.
func knownKinds(ctx context.Context, c client.Client, namespace string) ([]jobkind.Kind, error) {
	m, err := controller.ReadManagedJobs(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	p, err := managedjobs.NewPredicate(m)
	if err != nil {
		return nil, err
	}
	return kinds.WithBuiltin(p.Kinds()), nil
}

func (o *uninstallOptions) lease() (types.NamespacedName, error) {
	if o.leaseRef == "" {
		return types.NamespacedName{Namespace: o.namespace, Name: v1alpha1.Default().LeaderElection.ResourceName}, nil
	}
	namespace, name, ok := strings.Cut(o.leaseRef, "/")
	if !ok || namespace == "" || name == "" {
		return types.NamespacedName{}, fmt.Errorf("--lease: want namespace/name, have %q", o.leaseRef)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

// confirm asks a person. Where nobody can answer, --yes is the answer.
func confirm(in io.Reader, out io.Writer, host string, waiting uninstall.Waiting) error {
	_, err := fmt.Fprintf(out, "Remove the job queue from %s and %s the jobs that wait? Type yes (or use --yes): ", host,
		waiting)
	if err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return errNotConfirmed
	}
	return nil
}
