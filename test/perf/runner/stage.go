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
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// stage is a control plane on which real Jobs run, with one quota for all of them.
type stage struct {
	*run
	kube kubernetes.Interface
}

// stageOptions say how large it is.
type stageOptions struct {
	Options
	// quota is its name; cores are its min and its max.
	quota string
	cores int64
	// nodeCores and nodes have room for more than the quota allows, so that no pod ever lacks a node.
	nodeCores, nodes int
}

// startStage brings everything up but scheduler and controller. The caller stops it.
func startStage(ctx context.Context, screen *screen, o stageOptions) (*stage, error) {
	s, err := openStage(ctx, screen, o.Options, controlplane.Options{
		Components: controlplane.Full(), Nodes: o.nodes, NodeCPU: fmt.Sprint(o.nodeCores), NodePods: "10000",
	})
	if err != nil {
		return nil, err
	}
	amount := map[string]any{"cpu": fmt.Sprint(o.cores)}
	err = s.cp.ApplyObjects(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]any{"name": o.quota, "namespace": unitNamespace, "labels": map[string]any{
			v1alpha1.LabelQuotaParent:                   "koordinator-root-quota",
			"quota.scheduling.koordinator.sh/is-parent": "false",
		}},
		"spec": map[string]any{"min": amount, "max": amount},
	}})
	if err != nil {
		return nil, errors.Join(err, s.cp.Stop())
	}
	return s, nil
}

// openStage starts the components with what a user installs, and has no quota yet.
func openStage(ctx context.Context, screen *screen, o Options, c controlplane.Options) (_ *stage, err error) {
	s := &stage{run: &run{Options: o, screen: screen}}
	if err := s.open(ctx, c); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cp.Stop())
		}
	}()
	// The API server encodes an event once for all who watch in the same way, and the others read protobuf.
	config := rest.CopyConfig(s.cp.RESTConfig(controlplane.Admin))
	config.ContentType, config.UserAgent = runtime.ContentTypeProtobuf, "jobqueue-perf"
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	return s, s.cp.ApplyObjects(ctx, namespace(unitNamespace))
}

// follow delivers what changes from now on until the context ends, with the time of its arrival. An error that a new
// watch does not mend is sent to failed.
func follow[L metav1.ListInterface](
	ctx context.Context, failed chan<- error,
	list func(context.Context, metav1.ListOptions) (L, error), watcher cache.WatchFuncWithContext,
	take func(watch.EventType, runtime.Object, time.Time),
) error {
	all, err := list(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, all.GetResourceVersion(),
		&cache.ListWatch{WatchFuncWithContext: watcher})
	if err != nil {
		return err
	}
	go func() {
		for e := range w.ResultChan() {
			now := time.Now()
			switch e.Type {
			case watch.Bookmark:
			case watch.Error:
				failed <- fmt.Errorf("watch: %v", e.Object)
				return
			default:
				take(e.Type, e.Object, now)
			}
		}
	}()
	return nil
}

// followPods follows those of all namespaces.
func (s *stage) followPods(
	ctx context.Context, failed chan<- error, take func(watch.EventType, *corev1.Pod, time.Time),
) error {
	pods := s.kube.CoreV1().Pods("")
	return follow(ctx, failed, pods.List, pods.Watch, func(t watch.EventType, o runtime.Object, now time.Time) {
		if pod, ok := o.(*corev1.Pod); ok {
			take(t, pod, now)
		}
	})
}

// followJobs follows those of all namespaces.
func (s *stage) followJobs(
	ctx context.Context, failed chan<- error, take func(watch.EventType, *batchv1.Job, time.Time),
) error {
	jobs := s.kube.BatchV1().Jobs("")
	return follow(ctx, failed, jobs.List, jobs.Watch, func(t watch.EventType, o runtime.Object, now time.Time) {
		if job, ok := o.(*batchv1.Job); ok {
			take(t, job, now)
		}
	})
}

// Attempts are what the scheduler counts of its attempts to schedule a pod.
type Attempts struct {
	// ByResult counts those that came to an end: scheduled, unschedulable, error.
	ByResult map[string]int `json:"byResult"`
	// RefusedByQuota are those that PreFilter refused as Unschedulable: without gangs, devices and reservations only
	// ElasticQuota does. RefusedByGate are those that slipped past the gate and were refused there as unresolvable.
	RefusedByQuota int `json:"refusedByQuota"`
	RefusedByGate  int `json:"refusedByGate"`
}

// since is what came after an earlier reading.
func (a Attempts) since(before Attempts) Attempts {
	d := Attempts{
		ByResult:       map[string]int{},
		RefusedByQuota: a.RefusedByQuota - before.RefusedByQuota, RefusedByGate: a.RefusedByGate - before.RefusedByGate,
	}
	for result, n := range a.ByResult {
		d.ByResult[result] = n - before.ByResult[result]
	}
	return d
}

func (a *Attempts) String() string {
	var all []string
	for _, result := range slices.Sorted(maps.Keys(a.ByResult)) {
		all = append(all, fmt.Sprintf("%d %s", a.ByResult[result], result))
	}
	return fmt.Sprintf("%s; refused by quota %d, by the gate %d", strings.Join(all, ", "),
		a.RefusedByQuota, a.RefusedByGate)
}

func (s *stage) readAttempts(ctx context.Context) (Attempts, error) {
	a := Attempts{ByResult: map[string]int{}}
	response, err := fromProcess(ctx, s.cp.URL(controlplane.Scheduler)+"/metrics")
	if err != nil {
		return a, err
	}
	defer response.Body.Close() //nolint:errcheck // read only
	var all bytes.Buffer
	if _, err := all.ReadFrom(response.Body); err != nil {
		return a, err
	}
	const total, points = "scheduler_schedule_attempts_total", "scheduler_framework_extension_point_duration_seconds"
	results, err := parseMetrics(bytes.NewReader(all.Bytes()), total)
	if err != nil {
		return a, err
	}
	for _, x := range results[total] {
		a.ByResult[string(x.Metric["result"])] += int(x.Value)
	}
	durations, err := parseMetrics(bytes.NewReader(all.Bytes()), points)
	if err != nil {
		return a, err
	}
	for _, x := range durations[points+"_count"] {
		if x.Metric["extension_point"] != "PreFilter" {
			continue
		}
		switch x.Metric["status"] {
		case "Unschedulable":
			a.RefusedByQuota += int(x.Value)
		case "UnschedulableAndUnresolvable":
			a.RefusedByGate += int(x.Value)
		}
	}
	return a, nil
}
