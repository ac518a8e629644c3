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

// Package watchdog ends a leader that was paused for longer than its lease can have lived. Causes of such a pause are
// SIGSTOP, a frozen cgroup or a swapping host.
package watchdog

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// pulseEvery is how often a leader takes note that it is running.
const pulseEvery = 200 * time.Millisecond

// ErrStoodStill is the answer to requests of a leader that stood still.
var ErrStoodStill = errors.New("this process stood still for so long that another one may lead")

// Timer ends a leader that was paused before it can act while its successor leads (I1, I3). Leader election does not:
// after a pause it counts the time for renewing the lease from zero, and until that is over both leaders decide. A
// process that was paused for that whole time ends at once, as after the loss of its lease. Any code may run before the
// process notices the pause, so requests check the time themselves.
type Timer struct {
	clock clock.WithTicker
	// limit is the time in which leader election has to renew a lease. It is zero without leader election: then nobody
	// takes over.
	limit time.Duration
	// end ends the process.
	end func(stood time.Duration)

	mu sync.Mutex
	// last is when the process was last seen to run; zero while it does not lead.
	last time.Time
	over bool
}

// New returns a timer that watches nothing yet. limit is the renewDeadline of leader election, zero without one.
func New(clk clock.WithTicker, limit time.Duration) *Timer {
	return &Timer{clock: clk, limit: limit, end: func(stood time.Duration) {
		klog.Background().Error(ErrStoodStill, "Ending", "stood", stood, "limit", limit)
		klog.FlushAndExit(time.Second, 1)
	}}
}

// Lead watches from now on, when this process has come to lead, until the context ends.
func (t *Timer) Lead(ctx context.Context) {
	if t.limit == 0 {
		return
	}
	_, _ = t.pulse()
	go t.run(ctx)
}

func (t *Timer) run(ctx context.Context) {
	ticker := t.clock.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		if stood, over := t.pulse(); over {
			t.end(stood)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// pulse takes note that the process runs, unless it stood still.
func (t *Timer) pulse() (stood time.Duration, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if stood, over = t.check(); !over {
		t.last = t.clock.Now()
	}
	return stood, over
}

// check says for how long the process stood still, and whether that was too long. It is once and for all.
func (t *Timer) check() (stood time.Duration, over bool) {
	if t.limit == 0 || t.last.IsZero() {
		return 0, false
	}
	stood = t.clock.Since(t.last)
	t.over = t.over || stood > t.limit
	return stood, t.over
}

// Wrap refuses requests of a leader that stood still; it is for rest.Config.Wrap.
func (t *Timer) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		t.mu.Lock()
		_, over := t.check()
		t.mu.Unlock()
		if over {
			return nil, ErrStoodStill
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is of http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
