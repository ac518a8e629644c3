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

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// client writes and reads raw JSON: this process shares the cores with what it measures, so it decodes nothing that it
// does not need.
type client struct {
	writes *rest.RESTClient
	// streams has connections of its own, so that a watch never waits behind writes.
	streams *rest.RESTClient
	workers int
}

func newClient(config *rest.Config, workers int) (*client, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.Unversioned)
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.UserAgent = "jobqueue-perf"
	writes, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.DisableCompression = true // another transport, see rest.TLSConfigFor's cache
	streams, err := rest.RESTClientFor(config)
	return &client{writes: writes, streams: streams, workers: workers}, err
}

func unitsPath(namespace string) string {
	return "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/" + namespace + "/queueunits"
}

func (c *client) create(ctx context.Context, path string, body []byte) error {
	return c.writes.Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

// patchStatus merges into the status of an object.
func (c *client) patchStatus(ctx context.Context, path, name string, body []byte) error {
	return c.writes.Patch(types.MergePatchType).AbsPath(path, name, "status").Body(body).Do(ctx).Error()
}

// get reads from the API server or, with base set, from another process.
func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	return c.streams.Get().AbsPath(path).SetHeader("Accept", "*/*").DoRaw(ctx)
}

// each calls f for every number below n, with all workers, until one fails.
func (c *client) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(c.workers)
	for i := 0; i < n && within.Err() == nil; i++ {
		group.Go(func() error { return f(within, i) })
	}
	return cmp.Or(group.Wait(), context.Cause(ctx))
}

func jobsPath(namespace string) string { return "/apis/batch/v1/namespaces/" + namespace + "/jobs" }

const (
	ceilingNamespace = "perf-ceiling"
	unitNamespace    = "perf"
)

// ceiling is how many writes the machine does in a second with nothing else at work.
type ceiling struct {
	When                string  `json:"when"`
	CreatesPerSecond    float64 `json:"createsPerSecond"`
	StatusPatchesSecond float64 `json:"statusPatchesPerSecond"`
}

// measureCeiling writes units as the run does, and their status as the scheduler does, with nobody who reads them.
func (r *run) measureCeiling(ctx context.Context, when string) error {
	if r.CeilingWrites == 0 {
		return nil
	}
	n := r.CeilingWrites
	path := unitsPath(ceilingNamespace)
	name := func(i int) string { return fmt.Sprintf("%s-%06d", when, i) }
	begin := time.Now()
	err := r.client.each(ctx, n, func(ctx context.Context, i int) error {
		return r.client.create(ctx, path, unitBody(name(i), "ceiling", 0, "1"))
	})
	if err != nil {
		return fmt.Errorf("write ceiling: %w", err)
	}
	created := time.Now()
	status := admittedBody()
	err = r.client.each(ctx, n, func(ctx context.Context, i int) error {
		return r.client.patchStatus(ctx, path, name(i), status)
	})
	if err != nil {
		return fmt.Errorf("write ceiling: %w", err)
	}
	patched := time.Now()
	c := ceiling{
		When:                when,
		CreatesPerSecond:    float64(n) / created.Sub(begin).Seconds(),
		StatusPatchesSecond: float64(n) / patched.Sub(created).Seconds(),
	}
	r.ceilings = append(r.ceilings, c)
	r.screen.line(fmt.Sprintf("write ceiling %s the run: %.0f creates/s, %.0f status patches/s", when,
		c.CreatesPerSecond, c.StatusPatchesSecond))
	// The scheduler is not to see them.
	return r.client.writes.Delete().AbsPath(path).Do(ctx).Error()
}

// generate creates the units, each at its time, and finishes those whose time is over. When the
// last one has been created it makes a reading.
func (r *run) generate(ctx context.Context, created chan<- reading) error {
	var finishing sync.WaitGroup
	errs := make(chan error, r.Workers)
	for range r.Workers {
		finishing.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case i := <-r.watch.over:
					if err := r.finish(ctx, i); err != nil && ctx.Err() == nil {
						errs <- err
						return
					}
				}
			}
		})
	}
	err := r.client.each(ctx, len(r.units), func(ctx context.Context, i int) error {
		// Each worker waits for the time of its unit; units are in the order of time.
		if !controlplane.Sleep(ctx, time.Until(r.begin.Add(r.units[i].At))) {
			return ctx.Err()
		}
		late := time.Since(r.begin.Add(r.units[i].At))
		r.watch.sent(late)
		return r.create(ctx, i)
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it ended because the context did
		}
		return fmt.Errorf("create units: %w", err)
	}
	created <- r.read()
	ended := make(chan struct{})
	go func() { finishing.Wait(); close(ended) }()
	select {
	case <-ended:
	case err := <-errs:
		return fmt.Errorf("finish units: %w", err)
	}
	return nil
}

func (r *run) create(ctx context.Context, i int) error {
	u := r.units[i]
	c := &r.Workload.Classes[u.Class]
	if r.Jobs {
		job := jobSpec{
			name: r.watch.name(i), quota: queueName(u.Queue), suspend: true, pods: 1, cpu: c.CPU.String(),
			runTime: runtimeOf(r.Workload, u), priority: strconv.Itoa(int(c.Priority)),
		}
		return r.client.create(ctx, jobsPath(unitNamespace), job.body())
	}
	return r.controller.create(ctx, unitsPath(unitNamespace),
		unitBody(r.watch.name(i), queueName(u.Queue), c.Priority, c.CPU.String()))
}

func (r *run) finish(ctx context.Context, i int) error {
	return r.controller.patchStatus(ctx, unitsPath(unitNamespace), r.watch.name(i), finishedBody)
}

// warmUp has one unit admitted, so that connections, caches and quotas are there before the clock starts.
func (r *run) warmUp(ctx context.Context) error {
	begin := time.Now()
	c := &r.Workload.Classes[0]
	const name = "warm-up"
	path := unitsPath(unitNamespace) // a unit without a job also where the others are Jobs
	if err := r.client.create(ctx, path, unitBody(name, queueName(0), c.Priority, c.CPU.String())); err != nil {
		return err
	}
	select {
	case <-r.watch.warm:
	case <-time.After(stall):
		return errors.New("the first unit was not admitted; see the log of the scheduler:\n" +
			r.cp.LogTail("koord-scheduler", 20))
	case <-ctx.Done():
		return ctx.Err()
	}
	r.screen.line(fmt.Sprintf("the first unit is admitted %.1fs after its creation", time.Since(begin).Seconds()))
	if err := r.client.patchStatus(ctx, path, name, finishedBody); err != nil {
		return err
	}
	if err := r.client.writes.Delete().AbsPath(path, name).Do(ctx).Error(); err != nil {
		return err
	}
	controlplane.Sleep(ctx, time.Second)
	return nil
}

// fromProcess reads from the plain HTTP service of a process.
func fromProcess(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return response, nil
}
