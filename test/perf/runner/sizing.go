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
	"context"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// SizingOptions say how many jobs wait while the processes are measured, from few to many.
type SizingOptions struct {
	Setting
	Waiting []int
}

// SizingReport is how much memory the processes of a cluster need for so many jobs that wait.
type SizingReport struct {
	Scenario     string       `json:"scenario"`
	Cores        int          `json:"cores"`
	Steps        []SizingStep `json:"steps"`
	LoadAverages []string     `json:"loadAverages"`
}

// SizingStep is with one number of jobs.
type SizingStep struct {
	Waiting int `json:"waiting"`
	// Seconds are from the first creation of the step until each job has its unit.
	Seconds float64 `json:"seconds"`
	// PeakRSSBytes are by process, of all its life; of scheduler and controller also after a restart with all jobs there.
	PeakRSSBytes map[string]int64 `json:"peakRSSBytes"`
	Store        StoreSize        `json:"store"`
	// RestartSeconds are from the start of scheduler and controller until the next job runs, which has a quota of its own.
	RestartSeconds float64 `json:"restartSeconds"`
}

const (
	probeQuota = "probe"
	// holdersOfSizing are jobs that hold the quota for which the others wait.
	holdersOfSizing = 10
)

// restarted are the processes that each step restarts.
var restarted = []controlplane.Component{controlplane.Scheduler, controlplane.Controller}

// Sizing has more and more Jobs wait on one control plane.
func Sizing(ctx context.Context, o SizingOptions) (_ *SizingReport, err error) {
	screen := o.begin()
	defer screen.end()
	s, err := startStage(ctx, screen, stageOptions{
		Options: Options{Setting: o.Setting},
		quota:   stageQuota, cores: holdersOfSizing, nodes: 2, nodeCores: 2 * holdersOfSizing,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.cp.Stop()) }()
	amount := map[string]any{"cpu": "1"}
	err = s.cp.ApplyObjects(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "ElasticQuota",
		"metadata": map[string]any{"name": probeQuota, "namespace": unitNamespace, "labels": map[string]any{
			v1alpha1.LabelQuotaParent:                   "koordinator-root-quota",
			"quota.scheduling.koordinator.sh/is-parent": "false",
		}},
		"spec": map[string]any{"min": amount, "max": amount},
	}})
	if err != nil {
		return nil, err
	}
	x := &SizingReport{Scenario: "sizing", Cores: goruntime.NumCPU()}
	if err := s.startBoth(ctx); err != nil {
		return nil, err
	}
	made := 0
	for i, waiting := range o.Waiting {
		step, err := s.size(ctx, i, made, waiting+holdersOfSizing)
		if err != nil {
			return nil, fmt.Errorf("%d jobs: %w", waiting, err)
		}
		step.Waiting, made = waiting, waiting+holdersOfSizing
		x.Steps = append(x.Steps, step)
	}
	s.noteLoad()
	x.LoadAverages = s.loads
	return x, nil
}

func (s *stage) startBoth(ctx context.Context) error {
	if err := s.cp.StartScheduler(ctx, controlplane.SchedulerOptions{}); err != nil {
		return err
	}
	return s.cp.StartController(ctx, controlplane.ControllerOptions{})
}

// size creates jobs until there are so many, and measures.
func (s *stage) size(ctx context.Context, step, made, all int) (x SizingStep, err error) {
	begin := time.Now()
	err = s.client.each(ctx, all-made, func(ctx context.Context, i int) error {
		job := jobSpec{
			name: fmt.Sprintf("job-%06d", made+i), quota: stageQuota, suspend: true, pods: 1, cpu: "1", runTime: 24 * time.Hour,
		}
		return s.client.create(ctx, jobsPath(unitNamespace), job.body())
	})
	if err != nil {
		return x, fmt.Errorf("create jobs: %w", err)
	}
	for units, last := 0, time.Now(); units < all+step; { // includes those of the earlier probes
		now, err := s.client.count(ctx, unitsPath(unitNamespace))
		if err != nil {
			return x, err
		}
		if now > units {
			last = time.Now()
		}
		units = now
		s.screen.status(fmt.Sprintf("%d of %d jobs have a unit", units-step, all))
		if time.Since(last) > stall || !controlplane.Sleep(ctx, time.Second) {
			return x, fmt.Errorf("%d of %d jobs have a unit", units-step, all)
		}
	}
	x.Seconds = round(time.Since(begin).Seconds(), 1)
	before := s.read()
	for _, c := range restarted {
		if err := s.cp.StopComponent(c); err != nil {
			return x, err
		}
	}
	begin = time.Now()
	if err := s.startBoth(ctx); err != nil {
		return x, err
	}
	if err := s.probe(ctx, fmt.Sprintf("probe-%d", step)); err != nil {
		return x, err
	}
	x.RestartSeconds = round(time.Since(begin).Seconds(), 1)
	after := s.read()
	if err := errors.Join(before.err, after.err); err != nil {
		return x, err
	}
	x.PeakRSSBytes = after.peak
	delete(x.PeakRSSBytes, self)
	for _, c := range restarted {
		x.PeakRSSBytes[string(c)] = max(before.peak[string(c)], after.peak[string(c)])
	}
	x.Store, err = s.readStore(ctx)
	s.screen.line(fmt.Sprintf("%d jobs: measured", all))
	return x, err
}

// probe submits a job and waits until it is resumed.
func (s *stage) probe(ctx context.Context, name string) error {
	job := jobSpec{name: name, quota: probeQuota, suspend: true, pods: 1, cpu: "1", runTime: time.Second}
	if err := s.client.create(ctx, jobsPath(unitNamespace), job.body()); err != nil {
		return err
	}
	for begin := time.Now(); ; {
		found, err := s.kube.BatchV1().Jobs(unitNamespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case found.Spec.Suspend == nil || !*found.Spec.Suspend:
			return nil
		case time.Since(begin) > 5*stall || !controlplane.Sleep(ctx, 100*time.Millisecond):
			return fmt.Errorf("%s is not resumed", name)
		}
	}
}

// Print writes the table.
func (x *SizingReport) Print(out io.Writer) {
	fmt.Fprintf(out, "peak memory in MiB, %d cores, load averages %v\n\n", x.Cores, x.LoadAverages)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := []controlplane.Component{
		controlplane.Scheduler, controlplane.Controller, controlplane.APIServer, controlplane.ControllerManager,
		controlplane.Etcd,
	}
	fmt.Fprint(table, "waiting\t")
	for _, c := range columns {
		fmt.Fprintf(table, "%s\t", c)
	}
	fmt.Fprintln(table, "etcd's file\trestart to next job s\t")
	for i := range x.Steps {
		s := &x.Steps[i]
		fmt.Fprintf(table, "%d\t", s.Waiting)
		for _, c := range columns {
			fmt.Fprintf(table, "%d\t", s.PeakRSSBytes[string(c)]>>20)
		}
		fmt.Fprintf(table, "%d\t%.1f\t\n", s.Store.Bytes>>20, s.RestartSeconds)
	}
	_ = table.Flush()
}
