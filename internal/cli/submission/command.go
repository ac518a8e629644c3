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

// Package submission is "kubectl jobqueue submit". It labels the jobs of files with the library for submitters, creates
// them, and follows them to their end.
package submission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/podgroup"
)

// Values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

type options struct {
	cluster *genericclioptions.ConfigFlags
	streams genericiooptions.IOStreams
	clock   clock.Clock

	files                   []string
	quota, queue, scheduler string
	managed, queueNamespace string
	dryRun                  string
	wait                    bool
	timeout                 time.Duration
}

// Command is kubectl jobqueue submit. The flags say how it reaches the cluster.
func Command(
	cluster *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams, waits clock.Clock,
) *cobra.Command {
	o := &options{cluster: cluster, streams: streams, clock: waits}
	cmd := &cobra.Command{
		Use:   "submit -f FILE",
		Short: "Create jobs suspended, with quota and queue, and follow them",
		Long: `submit creates the objects of a file, of several YAML documents or of a List. Jobs get the labels of quota and
queue and the name of the scheduler, on the job and on its pod templates. A job is created suspended if its kind allows
that, so that it has no pod before it is admitted. Other objects, such as ConfigMaps, are created as they are.

Nothing is created if one of the jobs cannot be queued. If the API server refuses an object, the others are created, as
kubectl create does.

A job keeps the quota and the queue that it names, unless a flag says otherwise. Kinds that are not built in are read
from the ConfigMap of managed jobs, if you may read it, or from the file of --managed-jobs.

With --wait it writes each change of state until all jobs have ended. If the API server does not answer, it says so and
tries again. A Deployment, a StatefulSet, a LeaderWorkerSet or a RayCluster does not end by itself.

Exit codes:
  0  all jobs are created; with --wait, all have succeeded
  1  with --wait, a job failed; or there was an error, and not all objects are created
  2  with --wait, a job vanished before its end was seen, such as a deleted one
  3  with --wait, the time of --timeout is over`,
		Example: `  kubectl jobqueue submit -f train.yaml --quota research
  kubectl jobqueue submit -f train.yaml --quota research --queue express --wait --timeout=1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.files, "filename", "f", nil, "file, directory or URL with jobs; - is standard input")
	f.StringVar(&o.quota, "quota", "", "ElasticQuota to charge; empty leaves that of the job")
	f.StringVar(&o.queue, "queue", "", "queue to wait in; empty leaves that of the job")
	f.StringVar(&o.scheduler, "scheduler-name", "", "schedulerName of the pods; empty is that of the installation")
	f.StringVar(&o.managed, "managed-jobs", "",
		"file with the configuration of managed jobs; empty reads the ConfigMap")
	f.StringVar(&o.queueNamespace, "queue-namespace", v1alpha1.DefaultQueueNamespace,
		"namespace of the ConfigMap of managed jobs")
	f.StringVar(&o.dryRun, "dry-run", dryRunNone,
		"none; client: create nothing; server: have the API server check the objects, without an effect")
	f.BoolVar(&o.wait, "wait", false, "follow the jobs until they end")
	f.DurationVar(&o.timeout, "timeout", 0, "with --wait: end after this time; 0 is no bound")
	_ = cmd.MarkFlagRequired("filename")
	return cmd
}

var errEmpty = errors.New("the files have no objects")

func (o *options) run(ctx context.Context) error {
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
	default:
		return fmt.Errorf("--dry-run: want %s, %s or %s, have %q", dryRunNone, dryRunClient, dryRunServer, o.dryRun)
	}
	api, err := o.connect()
	if err != nil {
		return err
	}
	infos, err := o.read()
	if err != nil {
		return err
	}
	known, err := o.catalog(ctx, api)
	if err != nil {
		return err
	}
	plan, err := o.plan(known, infos)
	if err != nil {
		return err
	}
	created, failed := o.create(ctx, api, plan)
	if !o.wait || o.dryRun != dryRunNone || len(created) == 0 {
		return failed
	}
	err = o.follow(ctx, api, created)
	if failed != nil && err != nil {
		return fmt.Errorf("%w\n%v", failed, err) //nolint:errorlint // the exit code is that of the first
	}
	return errors.Join(failed, err)
}

// connect returns a client with the rights of the caller.
func (o *options) connect() (client.WithWatch, error) {
	config, err := o.cluster.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 300 // as kubectl
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// read the objects of the files. An object without a namespace gets that of the caller. Another one is an error if the
// caller names a namespace.
func (o *options) read() ([]*resource.Info, error) {
	namespace, named, err := o.cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := resource.NewBuilder(o.cluster).Unstructured().ContinueOnError().
		NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(named, &resource.FilenameOptions{Filenames: o.files}).Flatten().Do().Infos()
	if err == nil && len(infos) == 0 {
		err = errEmpty
	}
	return infos, err
}

// create the objects in the order of the files. It goes on after an error, and returns all errors.
func (o *options) create(ctx context.Context, api client.Client, plan []planned) (jobs []*followed, failed error) {
	options := []client.CreateOption{client.FieldOwner("kubectl-jobqueue")}
	suffix := ""
	switch o.dryRun {
	case dryRunClient:
		suffix = " (dry run)"
	case dryRunServer:
		options, suffix = append(options, client.DryRunAll), " (server dry run)"
	}
	for i := range plan {
		p := &plan[i]
		done := "submitted"
		if p.kind == nil {
			done = "created"
		}
		if o.dryRun != dryRunClient {
			if err := api.Create(ctx, p.object, options...); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", p, err))
				continue
			}
		}
		fmt.Fprintf(o.streams.Out, "%s %s%s\n", p, done, suffix)
		if p.kind != nil {
			jobs = append(jobs, p.followed())
		}
	}
	return jobs, failed
}

// followed is the job as the API server answered it.
func (p *planned) followed() *followed {
	name := p.object.GetName()
	if p.kind.OfPods() {
		name = podgroup.NameOf(p.object)
	}
	return &followed{
		name: p.String(), kind: p.kind, object: p.object,
		unit: types.NamespacedName{Namespace: p.object.GetNamespace(), Name: p.kind.UnitName(name)},
	}
}

// planned is an object that is about to be created. kind is nil for one that is no job.
type planned struct {
	resource string
	object   *unstructured.Unstructured
	kind     *jobKind
}

// String names the object as kubectl does.
func (p *planned) String() string {
	name := p.object.GetName()
	if name == "" {
		name = p.object.GetGenerateName() + "*"
	}
	return p.resource + "/" + name
}
