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

package audit

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// suspicion is a difference that may only be on its way to us. It is confirmed if it is still there some seconds later.
type suspicion struct {
	Difference
	// again says, in the engine's goroutine, whether the difference is still there. exists, if set, asks the API whether
	// the object is unchanged.
	again  func() bool
	exists func(ctx context.Context) (bool, error)
}

// audit is one run. It asks the parts of the engine within ask, except the sources.
type audit struct {
	Parts
	auditor *Auditor
	// ask runs a function in the engine's goroutine; settle waits.
	ask    func(func()) error
	settle func() bool

	result   Result
	kinds    map[DifferenceKind]int
	suspects []suspicion
	listed   map[string]types.UID
	version  string // of the list
}

func (a *audit) run(ctx context.Context) (Result, error) {
	start := a.Clock.Now()
	err := a.compare(ctx)
	if err == nil && a.result.Found > 0 {
		err = a.repair(ctx)
	}
	a.result.At, a.result.Took = start, a.Clock.Since(start)
	if err != nil {
		a.Metrics.Inc(metrics.AuditsTotal, "Failed")
		return a.result, fmt.Errorf("comparing the state of admission with the API: %w", err)
	}
	a.tell(ctx)
	return a.result, nil
}

func (a *audit) compare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		a.compareUnits, a.compareUnlisted, a.compareSums, a.compareUsed, a.comparePods, a.confirm,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	slices.SortFunc(a.result.Differences, func(x, y Difference) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Object, y.Object), cmp.Compare(x.Field, y.Field))
	})
	return nil
}

// found takes a difference for real.
func (a *audit) found(d Difference) {
	a.result.Found++
	a.kinds[d.Kind]++
	if len(a.result.Differences) < auditKept {
		a.result.Differences = append(a.result.Differences, d)
	}
}

func (a *audit) suspect(s suspicion) {
	if len(a.suspects) < auditSuspects {
		a.suspects = append(a.suspects, s)
	}
}

// confirm looks at the suspicions once more, when what was on its way has had the time to arrive.
func (a *audit) confirm(ctx context.Context) error {
	if len(a.suspects) == 0 {
		return nil
	}
	if !a.settle() {
		return ctx.Err()
	}
	var still []suspicion
	err := a.ask(func() {
		for _, s := range a.suspects {
			if s.again() {
				still = append(still, s)
			}
		}
	})
	for _, s := range still {
		if s.exists != nil {
			there, err := s.exists(ctx)
			if err != nil {
				return err
			}
			if !there {
				continue
			}
		}
		a.found(s.Difference)
	}
	return err
}

// repair lists all units once more and has the state rebuilt from them, as at start. It happens in one step of the
// engine, in which all quotas are observed before anything is decided; what is in flight counts as held.
func (a *audit) repair(ctx context.Context) error {
	units, version, err := a.Sources.ListUnits(ctx)
	if err != nil {
		return err
	}
	var pods []*corev1.Pod
	if a.PodCache != nil {
		for _, obj := range a.PodCache.GetStore().List() {
			if pod, ok := obj.(*corev1.Pod); ok && a.Managed.Concerns(pod) {
				pods = append(pods, pod)
			}
		}
	}
	a.result.Rebuilt = true
	return a.ask(func() { a.Relist(units, version, pods) })
}

// tell says what was found in the log and in metrics, and keeps it for Auditor.Last.
func (a *audit) tell(ctx context.Context) {
	m, log := a.Metrics, klog.FromContext(ctx)
	for _, kind := range differenceKinds {
		m.Set(metrics.LedgerDifferences, float64(a.kinds[kind]), string(kind))
	}
	r := &a.result
	if r.Found == 0 {
		m.Inc(metrics.AuditsTotal, "Clean")
		log.V(2).Info("The state of admission agrees with the API",
			"queueUnits", r.Units, "pods", r.Pods, "levels", r.Levels, "took", r.Took)
	} else {
		m.Inc(metrics.AuditsTotal, "Differences")
		for _, d := range r.Differences {
			log.Error(nil, "The state of admission differs",
				"kind", d.Kind, "object", d.Object, "field", d.Field, "engine", d.Engine, "source", d.Source)
		}
		log.Error(nil, "The state of admission differed from the API and is rebuilt", "differences", r.Found,
			"queueUnits", r.Units, "pods", r.Pods, "levels", r.Levels, "took", r.Took)
	}
	kept := *r
	a.auditor.last.Store(&kept)
}
