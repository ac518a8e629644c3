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
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/doctor"
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
	fs := cmd.Flags()
	fs.StringVar(&o.names.QueueNamespace, "queue-namespace", v1alpha1.DefaultQueueNamespace,
		"namespace of Queues and controller")
	fs.StringVar(&o.names.SchedulerNamespace, "scheduler-namespace", "koordinator-system", "namespace of koord-scheduler")
	fs.StringVar(&o.names.SchedulerLease, "scheduler-lease", "koord-scheduler", "name of the Lease of koord-scheduler")
	fs.StringVar(&o.names.ControllerLease, "controller-lease", "jobqueue-controller",
		"name of the Lease of jobqueue-controller")
	fs.StringVarP(&o.output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func (o *doctorOptions) run(ctx context.Context) error {
	config, err := o.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, authorizationv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		schedulingv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	objects, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	reader, err := answers.New(config)
	if err != nil {
		return err
	}
	from := doctor.Cluster{Objects: objects, Discovery: served, Audit: reader.Audit}
	findings := doctor.Examine(doctor.Read(ctx, from, o.names, o.clock.Now()))
	if o.output != "" {
		if err := writeData(o.streams.Out, o.output, findings); err != nil {
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
