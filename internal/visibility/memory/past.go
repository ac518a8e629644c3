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

// Package memory has what forecasts need of the past: runs, waits and admission checks, as the history has them, and
// the last answers. Answers are judged when their units are admitted, and later bounds are stretched by that.
package memory

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

const (
	// mostRuns, mostWaits of a queue, and mostChecks of each queue are read of the history.
	mostRuns   = 2000
	mostWaits  = 50
	mostChecks = 30
)

// Past is a part of the history.
type Past struct {
	// Runs that are over, the newest first.
	Runs []forecast.Ended
	// Waits are the last ones of a queue that ended with an admission.
	Waits []time.Duration
	// checks are the last times between a reservation and the admission after it, by queue.
	checks map[string][]time.Duration
	// admitted has attempts after which checks may be found.
	admitted map[attempt]time.Time
}

type attempt struct {
	uid    string
	number int64
}

// PastOf the history: the waits of one queue, if it is named, and the admission checks of all queues that have some.
func PastOf(h *history.Recorder, of string, queues []queue.Spec) *Past {
	p := &Past{checks: map[string][]time.Duration{}, admitted: map[attempt]time.Time{}}
	for i := range queues {
		if len(queues[i].AdmissionChecks) > 0 {
			p.checks[queues[i].Name] = nil
		}
	}
	h.Newest(func(n *history.Numbered) bool {
		switch r := n.Record; {
		case r.Observed:
		case r.Event == v1alpha1.RecordAdmitted:
			if _, checks := p.checks[r.Queue]; checks {
				p.admitted[attempt{r.UID, r.Attempt}] = r.Time
			}
			if r.Queue == of && len(p.Waits) < mostWaits {
				p.Waits = append(p.Waits, durationIn(r.Waited))
			}
		case r.Event == v1alpha1.RecordReserved:
			p.checked(r)
		case ended(r) && len(p.Runs) < mostRuns:
			p.Runs = append(p.Runs, forecast.Ended{
				User: r.Namespace, Queue: r.Queue, Size: r.Requested.Key(), Limit: durationIn(r.Limit), Ran: durationIn(r.Ran),
			})
		}
		return len(p.Runs) < mostRuns || of != "" && len(p.Waits) < mostWaits || !p.allChecks()
	})
	return p
}

// ended says that a record ends a run: the quota is given back. An eviction does so only if the job may not run again.
func ended(r *history.Record) bool {
	switch r.Event {
	case v1alpha1.RecordSucceeded, v1alpha1.RecordFailed, v1alpha1.RecordDeleted:
		return r.Ran > 0
	case v1alpha1.RecordEvicted:
		return r.Ran > 0 && r.Reason == string(unit.ReasonMaximumExecutionTime)
	default:
		return false
	}
}

func (p *Past) checked(reserved *history.Record) {
	admitted, passed := p.admitted[attempt{reserved.UID, reserved.Attempt}]
	if took := p.checks[reserved.Queue]; passed && len(took) < mostChecks {
		p.checks[reserved.Queue] = append(took, max(admitted.Sub(reserved.Time), 0))
	}
}

func (p *Past) allChecks() bool {
	for _, took := range p.checks {
		if len(took) < mostChecks {
			return false
		}
	}
	return true
}

// Drawn are the runs and checks, to draw from.
func (p *Past) Drawn() *forecast.Runs {
	runs := forecast.NewRuns(p.Runs)
	for name, took := range p.checks {
		runs.Checked(name, took...)
	}
	return runs
}

func durationIn(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
