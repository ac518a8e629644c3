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

// Package story asks for all that answers why a job waits.
package story

import (
	"context"
	"slices"
	"sync"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Of asks for everything that the caller may know of a unit, and leaves out the rest. It lists up to most units ahead,
// and as many pods without a job. Questions are asked at once: a forecast takes longer than all others together.
func Of(ctx context.Context, reader *answers.Reader, u *v1alpha1.QueueUnit, most int) *screen.Story {
	s := &screen.Story{Unit: u}
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() { s.Taking, s.Taken, _ = reader.PreemptionOf(ctx, u) })
	if u.Status.Attempts > 1 && unit.Phase(u.Status.Phase).Holds() {
		asked.Go(func() { s.Lost = lost(ctx, reader, u) })
	}
	live, err := reader.LiveUnit(ctx, u.Namespace, u.Name)
	if err != nil {
		s.Missing = err.Error()
		return s
	}
	s.Live = live
	if len(live.Status.Shortages) > 0 {
		asked.Go(func() { s.Quota, _ = reader.LocalQuota(ctx, u.Namespace, live.Status.Quota) })
	}
	if slices.ContainsFunc(live.Status.Shortages, func(x visibility.Shortage) bool { return !x.UsedByOthers.IsZero() }) {
		asked.Go(func() {
			s.OtherPods, s.MoreOtherPods, _ = answers.OtherPods(ctx, reader, u.Namespace, live.Status.Quota, most)
		})
	}
	if live.Status.Position > 0 {
		asked.Go(func() { s.Forecast, _ = reader.Forecast(ctx, u.Namespace, u.Name) })
	}
	if live.Status.Position > 1 {
		asked.Go(func() { s.Ahead, s.MoreAhead = ahead(ctx, reader, live, most) })
	}
	return s
}

// ahead returns the units before a waiting one, up to most of them, and how many more there are.
func ahead(
	ctx context.Context, reader *answers.Reader, live *visibility.Unit, most int,
) (units []visibility.WaitingUnit, more int64) {
	line, err := reader.Line(ctx, live.Namespace, live.Status.Queue, most)
	if err != nil {
		return nil, 0
	}
	for _, w := range line.Items {
		if w.Position < live.Status.Position {
			units = append(units, w)
		}
	}
	return units, int64(live.Status.Position) - 1 - int64(len(units))
}

// lost is the last eviction of a unit; nil if the record has none.
func lost(ctx context.Context, reader *answers.Reader, u *v1alpha1.QueueUnit) *visibility.Record {
	q := &answers.RecordQuery{
		Namespace: u.Namespace, Job: answers.JobOf(u), Event: visibility.RecordEvicted, Limit: 1,
	}
	found, err := reader.Records(ctx, q)
	if err != nil || len(found.Items) == 0 || found.Items[0].UID != string(u.UID) {
		return nil
	}
	return &found.Items[0]
}
