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

// Command jobqueue-controller writes a QueueUnit for each job, and suspends and resumes the job as koord-scheduler
// decides. This package has only the wiring: the rules are in internal/controller.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx := ctrl.SetupSignalHandler() // SIGTERM and SIGINT end it in good order, the second one at once
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "jobqueue-controller:", err)
		klog.Flush()
		os.Exit(1)
	}
	klog.Flush()
}

func command() *cobra.Command {
	o := &runOptions{}
	root := &cobra.Command{
		Use:   "jobqueue-controller",
		Short: "Keeps jobs and their QueueUnits in step",
		Long: `jobqueue-controller suspends jobs that wait for quota, writes one QueueUnit for each, resumes those that
koord-scheduler admits, mirrors how they run and end, and keeps a default Queue for each ElasticQuota.

Which jobs it manages stands in the ConfigMap koord-jobqueue-managed-jobs in the namespace of the queues, which
koord-scheduler reads too. Flags win over the file of --config.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			ctrl.SetLogger(klog.NewKlogr())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.Flags()) },
	}
	o.addFlags(root.Flags())
	root.PersistentFlags().StringVar(&o.kubeconfig, "kubeconfig", "",
		"kubeconfig file; without it the one of the environment, then the service account of the pod")
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	root.PersistentFlags().AddGoFlag(logging.Lookup("v"))
	root.PersistentFlags().AddGoFlag(logging.Lookup("vmodule"))
	return root
}
