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

package submission

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/kinds"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/jobkind"
	"github.com/koord-jobqueue/koord-jobqueue/internal/jobs/managedjobs"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/submit"
)

type jobKind = jobkind.Kind

// Reasons why nothing is created.
var (
	errNoJob = errors.New("the files have no job of a kind that can be queued; see kubectl jobqueue kinds list")
	// errUnmanaged: nobody would resume such a job.
	errUnmanaged = errors.New("no queue of this cluster manages jobs of this kind; " +
		"ask an operator, or create the job with kubectl create")
)

// catalog has the kinds of jobs, and what labels them.
type catalog struct {
	kinds  []jobKind
	driver submit.Driver
	// unread is why the configuration of the cluster is not known. Then each kind counts as managed.
	unread  error
	managed func(schema.GroupVersionKind) bool
}

// catalog reads the configuration of managed jobs. The built-in kinds are known without the right to read it, and if it
// is that of a later release.
func (o *options) catalog(ctx context.Context, api client.Client) (*catalog, error) {
	c := &catalog{kinds: jobkind.Builtin(), managed: func(schema.GroupVersionKind) bool { return true }}
	driver := submit.Options{Driver: "koord", SchedulerName: o.scheduler}
	text, err := o.configuration(ctx, api)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, err
	}
	var m managedjobs.Jobs
	if c.unread = err; err == nil {
		m, c.unread = managedjobs.Parse(text)
	}
	switch {
	case c.unread != nil && o.managed != "":
		return nil, c.unread
	case c.unread == nil:
		p, err := managedjobs.NewPredicate(m)
		if err != nil {
			return nil, err
		}
		c.kinds, c.managed = kinds.WithBuiltin(p.Kinds()), p.ManagesKind
		if driver.Kinds, err = described(m); err != nil {
			return nil, err
		}
		if o.scheduler == "" {
			driver.SchedulerName = schedulerOf(p.Schedulers())
		}
	}
	c.driver, err = submit.New(driver)
	return c, err
}

// configuration is the value of the key of the ConfigMap.
func (o *options) configuration(ctx context.Context, api client.Client) (string, error) {
	if o.managed != "" {
		text, err := os.ReadFile(o.managed)
		return string(text), err
	}
	cm := &corev1.ConfigMap{}
	err := api.Get(ctx, types.NamespacedName{Namespace: o.queueNamespace, Name: managedjobs.ConfigMap}, cm)
	return cm.Data[managedjobs.Key], err
}

// schedulerOf the profiles is empty for the usual one.
func schedulerOf(profiles []string) string {
	if len(profiles) == 0 || slices.Contains(profiles, "koord-scheduler") {
		return ""
	}
	return profiles[0]
}

// described are the kinds of a configuration that it describes.
func described(m managedjobs.Jobs) (all []submit.Kind, err error) {
	for _, entry := range m.Kinds {
		if entry.Descriptor == nil {
			continue
		}
		text, err := yaml.Marshal(entry.Descriptor)
		if err != nil {
			return nil, err
		}
		kind, err := submit.ReadKind(text, jobkind.CompileCondition)
		if err != nil {
			return nil, fmt.Errorf("kind %s: %w", entry, err)
		}
		all = append(all, kind)
	}
	return all, nil
}

// plan labels the jobs. The error is of all jobs that cannot be queued.
func (o *options) plan(c *catalog, infos []*resource.Info) ([]planned, error) {
	plan, found := make([]planned, 0, len(infos)), false
	var failed error
	for _, info := range infos {
		object := info.Object.(*unstructured.Unstructured)
		p := planned{resource: info.Mapping.Resource.GroupResource().String(), object: object}
		i := slices.IndexFunc(c.kinds, func(k jobKind) bool { return k.GVK == object.GroupVersionKind() })
		switch {
		case i < 0:
		case c.managed(object.GroupVersionKind()):
			p.kind = &c.kinds[i]
		case c.kinds[i].CanBeSuspended():
			failed = errors.Join(failed, fmt.Errorf("%s: %w", &p, errUnmanaged))
		}
		if p.kind != nil {
			found = true
			if err := o.label(c, &p); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", &p, err))
			}
		}
		plan = append(plan, p)
	}
	if failed == nil && !found {
		failed = errNoJob
		if c.unread != nil {
			failed = fmt.Errorf("%w; described kinds are not known here (%w): name their file with --managed-jobs",
				errNoJob, c.unread)
		}
	}
	return plan, failed
}

// label the object and its pod templates.
func (o *options) label(c *catalog, p *planned) error {
	job, err := o.job(p)
	if err != nil {
		return err
	}
	labelled, _, err := c.driver.Label(job, p.object.Object)
	if err != nil {
		return err
	}
	p.object.Object = labelled
	return nil
}

// job is what the flags say, and the object where they say nothing.
func (o *options) job(p *planned) (submit.Job, error) {
	said, err := readSaid(p)
	if err != nil {
		return submit.Job{}, err
	}
	job := submit.Job{Queue: said.queue, Quota: said.quota}
	if o.queue != "" {
		job.Queue = o.queue
	}
	switch {
	case o.quota != "":
		job.Quota = o.quota
	case said.path != "" && job.Queue != "":
		return job, fmt.Errorf("%w: it names its quota by a path, so it waits in the queue of the quota", submit.ErrConflict)
	case said.path != "":
		job = submit.Job{Queue: said.path}
	case len(said.quotas) > 0:
		job.Quota, job.Quotas = "", said.quotas
	case said.quota == "":
		job.NoQuota = true
	}
	return job, nil
}

// said is what an object says about quota and queue.
type said struct {
	quota, queue, path string
	quotas             []string
}

func readSaid(p *planned) (s said, err error) {
	if p.kind.OfPods() {
		labels := p.object.GetLabels()
		return said{
			quota: jobkind.FirstOf(labels, v1alpha1.QuotaLabels[:]...), queue: labels[v1alpha1.QueueNameKey],
			path: labels[v1alpha1.QueuePathKey],
		}, nil
	}
	job := jobs.Open(p.kind, p.object)
	if s.quota, err = job.Quota(); err != nil {
		return s, err
	}
	if s.path, err = jobs.QueuePath(job); err != nil {
		return s, err
	}
	s.queue = job.Queue()
	if list := p.object.GetAnnotations()[v1alpha1.AnnotationQuotaNames]; list != "" {
		for _, name := range strings.Split(list, ",") {
			s.quotas = append(s.quotas, strings.TrimSpace(name))
		}
	}
	return s, nil
}
