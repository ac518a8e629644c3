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

package inspection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// Scheduler is the scheduler of a control plane, which one of its replicas leads.
type Scheduler struct {
	ControlPlane *controlplane.ControlPlane
	Replicas     []controlplane.Component
}

// Leader returns the replica that leads, "" if none does now. Only the leader serves the plugin's answers.
func (s Scheduler) Leader(ctx context.Context) controlplane.Component {
	for _, c := range s.Replicas {
		if body, err := Get(ctx, s.ControlPlane.URL(c)+"/apis/v1/__services__"); err == nil && body != "" {
			return c
		}
	}
	return ""
}

// atRest are the metrics of a leader that must be zero when nothing is left.
var atRest = []string{
	"scheduler_jobqueue_ledger_outstanding", "scheduler_jobqueue_pending_units", "scheduler_jobqueue_admitted_units",
	"scheduler_jobqueue_parked_units", "scheduler_jobqueue_panics_total", "scheduler_jobqueue_ledger_differences",
}

// Left says what the leader still counts when all is over.
func (s Scheduler) Left(ctx context.Context) (found []checker.Violation, err error) {
	leads := s.Leader(ctx)
	if leads == "" {
		return nil, errors.New("no scheduler leads")
	}
	err = Metrics(ctx, s.ControlPlane.URL(leads), func(name, labels string, value float64) {
		if slices.Contains(atRest, name) && value != 0 {
			found = append(found, checker.Violation{
				Rule: checker.LeftBehind, Subject: "metric " + name, Message: fmt.Sprintf("%s is %g", labels, value),
			})
		}
	})
	return found, err
}

// Settled polls until nothing is left, as the history and the leader say, and returns what still is after the patience.
func (s Scheduler) Settled(
	ctx context.Context, patience time.Duration, history func() []checker.Violation,
) (found []checker.Violation, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		counted, err := s.Left(ctx)
		if err == nil {
			if found = append(history(), counted...); len(found) == 0 {
				return nil, nil
			}
		}
		if !controlplane.Sleep(ctx, time.Second) {
			// The last findings count if the last look was cut short.
			if len(found) > 0 {
				err = nil
			}
			return found, err
		}
	}
}

// Audit lets the leader compare its state with the API objects once more. A difference or a failure is a violation;
// with earlier also one of an earlier audit.
func (s Scheduler) Audit(ctx context.Context, patience time.Duration, earlier bool) ([]checker.Violation, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		leads := s.Leader(ctx)
		clean, other, err := Audits(ctx, s.ControlPlane.URL(leads))
		if leads == "" || err != nil || s.ControlPlane.Signal(leads, syscall.SIGUSR1) != nil {
			controlplane.Sleep(ctx, time.Second)
			continue
		}
		if earlier {
			other = 0
		}
		// Another leader counts for itself, and has not been asked.
		for ctx.Err() == nil && s.Leader(ctx) == leads {
			nowClean, nowOther, err := Audits(ctx, s.ControlPlane.URL(leads))
			switch {
			case err == nil && nowOther > other:
				return []checker.Violation{{Rule: Unclean, Subject: "ledger", Message: fmt.Sprintf(
					"%g audits of the leader found differences or failed; see its log", nowOther-other)}}, nil
			case err == nil && nowClean > clean:
				return nil, nil
			}
			controlplane.Sleep(ctx, 200*time.Millisecond)
		}
	}
	return nil, fmt.Errorf("the scheduler has not audited its state within %s: %w", patience, ctx.Err())
}
