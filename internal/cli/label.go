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
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

type labelOptions struct {
	*connection
	submit.Options
	job   submit.Job
	gang  string
	files []string
}

func labelCommand(c *connection) *cobra.Command {
	o := &labelOptions{connection: c}
	cmd := &cobra.Command{
		Use:   "label -f FILE",
		Short: "Print jobs with the labels of a queueing system",
		Long: `label prints the jobs of a file with the labels and annotations that a queueing system reads, on the job and on
its pod templates. It names the scheduler, and suspends jobs for systems that resume them. Before the job it prints the
objects that describe a gang. It asks no cluster.`,
		Example: `  kubectl jobqueue label --driver kueue --queue team -f job.yaml | kubectl create -f -
  kubectl jobqueue label --driver yunikorn --queue root.research --gang gangSchedulingStyle=Hard -f rayjob.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.gang = strings.TrimSpace(o.gang)
			return o.run(cmd.Flags().Changed("gang"))
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "file, directory or URL with jobs; - is standard input")
	f.StringVar(&o.Driver, "driver", "koord", "queueing system: one of "+strings.Join(submit.Drivers(), ", "))
	f.StringVar(&o.SchedulerName, "scheduler-name", "", "schedulerName of the pods; empty is the usual name of the system")
	f.StringVar(&o.KubernetesAPI, "kubernetes-api", "", "version of scheduling.k8s.io, for the driver k8s")
	f.StringVar(&o.job.Queue, "queue", "", "queue to wait in; of the driver koord the ElasticQuota, unless --quota is set")
	f.StringVar(&o.job.Quota, "quota", "", "ElasticQuota to charge, for the driver koord and a queue that quotas share")
	f.StringVar(&o.job.User, "user", "", "user of the job, for the driver yunikorn")
	f.StringVar(&o.job.PriorityClass, "priority-class", "", "priority class in the queue, for kueue and volcano")
	f.DurationVar(&o.job.MaxRunTime, "max-run-time", 0, "bound of the run time, for koord and kueue; 0 is none")
	f.BoolVar(&o.job.NonPreemptible, "non-preemptible", false, "the job keeps what it holds")
	f.StringVar(&o.gang, "gang", "", "place all pods together, with parameters of YuniKorn: "+
		`"placeholderTimeoutInSeconds=60 gangSchedulingStyle=Hard"`)
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

func (o *labelOptions) run(gang bool) error {
	driver, err := submit.New(o.Options)
	if err != nil {
		return err
	}
	if gang {
		if o.job.Gang, err = submit.ParseGang(o.gang); err != nil {
			return err
		}
	}
	infos, err := resource.NewBuilder(o.flags).Unstructured().Local().ContinueOnError().
		FilenameParam(false, &resource.FilenameOptions{Filenames: o.files}).Flatten().Do().Infos()
	if err != nil {
		return err
	}
	for _, info := range infos {
		object := info.Object.(*unstructured.Unstructured)
		if namespace := *o.flags.Namespace; namespace != "" && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		labelled, groups, err := driver.Label(o.job, object.Object)
		if err != nil {
			return fmt.Errorf("%s: %w", info.Source, err)
		}
		for _, one := range append(groups, labelled) {
			text, err := yaml.Marshal(one)
			if err != nil {
				return err
			}
			if _, err := fmt.Fprintf(o.streams.Out, "---\n%s", text); err != nil {
				return err
			}
		}
	}
	return nil
}
