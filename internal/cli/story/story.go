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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
)

// Of asks for everything that the caller may know of a unit, and leaves out the rest. It lists up to most units ahead,
// and as many pods without a job.
func Of(ctx context.Context, reader *answers.Reader, unit *v1alpha1.QueueUnit, most int) *screen.Story {
	s := &screen.Story{Unit: unit}
	s.Taking, s.Taken, _ = reader.PreemptionOf(ctx, unit)
	live, err := reader.LiveUnit(ctx, unit.Namespace, unit.Name)
	if err != nil {
		s.Missing = err.Error()
		return s
	}
	s.Live = live
	if len(live.Status.Shortages) > 0 {
		s.Quota, _ = reader.LocalQuota(ctx, unit.Namespace, live.Status.Quota)
	}
	if slices.ContainsFunc(live.Status.Shortages, func(x visibility.Shortage) bool { return !x.UsedByOthers.IsZero() }) {
		s.OtherPods, s.MoreOtherPods, _ = answers.OtherPods(ctx, reader, unit.Namespace, live.Status.Quota, most)
	}
	if live.Status.Position == 0 {
		return s
	}
	s.Forecast, _ = reader.Forecast(ctx, unit.Namespace, unit.Name)
	if live.Status.Position == 1 {
		return s
	}
	if line, err := reader.Line(ctx, unit.Namespace, live.Status.Queue, most); err == nil {
		for _, w := range line.Items {
			if w.Position < live.Status.Position {
				s.Ahead = append(s.Ahead, w)
			}
		}
		s.MoreAhead = int64(live.Status.Position) - 1 - int64(len(s.Ahead))
	}
	return s
}
