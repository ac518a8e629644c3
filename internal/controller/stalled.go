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

package controller

import (
	"context"
	"errors"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobplan"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/jobpods"
	"github.com/koord-jobqueue/koord-jobqueue/internal/controller/stall"
)

// Pods and events of an admitted job that does not run are read from the API server, a page at a time. Nobody watches
// them: their number grows with the cluster, and few of them tell anything.

const (
	// stallsPerSecond is the pace of looks at all jobs together, and stallsAtOnce the burst.
	stallsPerSecond = 10
	stallsAtOnce    = 30
	// stallDelay is when a job is looked at for which there was no time.
	stallDelay = 5 * time.Second
)

// errStallPace: other jobs have used up the pace of looks.
var errStallPace = errors.New("looks at jobs that do not run have a pace")

// stalled finds out why an admitted job does not run.
func (o *observer) stalled(ctx context.Context, s *jobplan.Situation) (*stall.Finding, error) {
	if o.shared.Stalls != nil && !o.shared.Stalls.TryAccept() {
		return nil, errStallPace
	}
	admitted := s.Unit.Status.LastAllocateTime.Time
	tally := &stall.Tally{Admitted: admitted}
	if err := jobpods.Tally(ctx, o.live, o.kind, o.options.Predicate.QueuesPod, s.Job, tally); err != nil {
		return nil, err
	}
	if want := admittedPods(s); !o.kind.OfPods() && int64(tally.Pods()) < want {
		tally.Refusal = o.refusal(ctx, s.Job, admitted.Truncate(time.Second))
	}
	found := tally.Finding()
	return &found, nil
}

func admittedPods(s *jobplan.Situation) (pods int64) {
	for i := range s.Unit.Status.Admissions {
		pods += s.Unit.Status.Admissions[i].Replicas
	}
	return pods
}
