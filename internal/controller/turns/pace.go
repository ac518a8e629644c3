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

// Package turns limits how fast jobs are resumed, because each new pod causes about ten writes of others to the API
// server.
package turns

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	// podsPerWrite is the number of pods per second for each write in flight. That is 32 pods with a busy API server, and
	// 512 with a prompt one.
	podsPerWrite = 16
	// mostPods is what a job counts at most, so that one large job does not hold others up for long.
	mostPods = 64
)

// Pace is that at which jobs are resumed. Each pod of a job causes about ten writes of others: the job controller, the
// scheduler, the kubelet. The limit of writes says whether the API server keeps up with them. So a decision that
// releases many jobs does not have them all start at once. A job that does not start holds nobody up. A Pace is safe
// for concurrent use; nil has every job start at once.
type Pace struct {
	clock  clock.PassiveClock
	writes func() int

	mu sync.Mutex
	// issued is the sum of the pods of all jobs that have a turn; served is how far the turns have come.
	issued, served float64
	at             time.Time
}

// New pace, by how many writes may be in flight.
func New(clk clock.PassiveClock, writes func() int) *Pace { return &Pace{clock: clk, writes: writes} }

// Turn that a job has taken for one admission; the zero Turn is none.
type Turn struct {
	taken   bool
	unit    types.UID
	attempt int64
	after   float64
}

// May is an error until a job may be resumed for the admission that its unit tells of, if there is one. The job keeps
// its turn.
func (p *Pace) May(turn *Turn, u *v1alpha1.QueueUnit) error {
	if p == nil {
		return nil
	}
	next := Turn{taken: true}
	pods := int64(0)
	if u != nil {
		next.unit, next.attempt = u.UID, u.Status.Attempts
		for i := range u.Status.Admissions {
			pods += u.Status.Admissions[i].Replicas
		}
	}
	if !turn.taken || turn.unit != next.unit || turn.attempt != next.attempt {
		next.after = p.take(pods)
		*turn = next
	}
	if wait := p.wait(turn.after); wait > 0 {
		return laterError(wait)
	}
	return nil
}

// laterError says how long the turn of a job is away.
type laterError time.Duration

// Error is of error.
func (e laterError) Error() string {
	return fmt.Sprintf("the turn of the job is expected in %s", time.Duration(e))
}

// AskAgain says when to ask for a turn once more, if that is what the error is about. The pace may have changed by
// then, so it is asked before the turn is expected, and seldom for one that is far away.
func AskAgain(err error) (time.Duration, bool) {
	const often, parts, seldom = 20 * time.Millisecond, 4, 2 * time.Second
	var later laterError
	if !errors.As(err, &later) {
		return 0, false
	}
	return min(max(time.Duration(later)/parts, often), seldom), true
}

// take the next turn for a job of so many pods. Turns come in the order in which they are taken.
func (p *Pace) take(pods int64) (after float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	after = max(p.issued, p.served)
	p.issued = after + float64(min(max(pods, 1), mostPods))
	return after
}

// wait is how long a turn is expected to be away still; zero once the job may start.
func (p *Pace) wait(after float64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	perSecond := p.advance()
	if left := after - p.served; left > 0 {
		return time.Duration(left/perSecond*float64(time.Second)) + 1
	}
	return 0
}

// advance lets turns come by what has passed since, at the pace of now, and returns that.
func (p *Pace) advance() (perSecond float64) {
	now := p.clock.Now()
	perSecond = podsPerWrite * float64(p.writes())
	if !p.at.IsZero() {
		p.served += perSecond * max(0, now.Sub(p.at).Seconds())
	}
	p.at = now
	return perSecond
}
