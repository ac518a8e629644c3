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

package inflight

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// podsPerWrite is how many pods may start in a second for each write that may be in flight: 8 a second beside a busy
	// API server, and 128 on one that is prompt.
	podsPerWrite = 4
	// mostPods is what a job counts at most, so that one large job does not hold others up for long.
	mostPods = 64
)

// Starts is the pace at which jobs are resumed. Each pod of a job causes about ten writes of others: the job controller,
// the scheduler, the kubelet. The limit of writes says whether the API server keeps up with them. So a decision that
// releases many jobs does not have them all start at once. A job that does not start holds nobody up. Starts is safe for
// concurrent use; nil has every job start at once.
type Starts struct {
	clock  clock.PassiveClock
	writes func() int

	mu sync.Mutex
	// issued is the sum of the pods of all jobs that have a turn; served is how far the turns have come.
	issued, served float64
	at             time.Time
}

// NewStarts follows the limit of a Line.
func NewStarts(l *Line) *Starts { return &Starts{clock: l.clock, writes: l.writes} }

// writes is how many may be in flight now.
func (l *Line) writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit.Writes()
}

// Turn of a job. The zero Turn is none.
type Turn struct{ after float64 }

// Take the next turn for a job of so many pods. Turns come in the order in which they are taken.
func (s *Starts) Take(pods int64) Turn {
	if s == nil {
		return Turn{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.issued = max(s.issued, s.served)
	turn := Turn{after: s.issued}
	s.issued += float64(min(max(pods, 1), mostPods))
	return turn
}

// Wait is how long a turn is expected to be away still; zero once the job may start.
func (s *Starts) Wait(turn Turn) time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	perSecond := s.advance()
	if left := turn.after - s.served; left > 0 {
		return time.Duration(left/perSecond*float64(time.Second)) + 1
	}
	return 0
}

// advance lets turns come by what has passed since, at the pace of now, and returns that.
func (s *Starts) advance() (perSecond float64) {
	now := s.clock.Now()
	perSecond = podsPerWrite * float64(s.writes())
	if !s.at.IsZero() {
		s.served += perSecond * max(0, now.Sub(s.at).Seconds())
	}
	s.at = now
	return perSecond
}
