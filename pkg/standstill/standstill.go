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

// Package standstill ends a leader that stood still (SIGSTOP, a cgroup that is frozen, a host that swaps) for longer than its lease may have lived.
package standstill

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

// Guard keeps a leader that stood still from going on beside its successor (I1, I3). Leader
// election does not: it counts the time for renewing the lease anew when the process goes on, and until that is over both
// decide. So a process that finds itself to have stood still for the whole of that time ends at once, as it does when
// it loses its lease; and as anything may run before it finds that, requests look at the time themselves.
type Guard struct {
	clock clock.WithTicker
	// limit is the time in which leader election has to renew a lease; zero without leader election: then nobody takes over.
	limit time.Duration
	// end ends the process.
	end func(stood time.Duration)

	mu sync.Mutex
	// last is when the process was last seen to run; zero while it does not lead.
	last time.Time
	over bool
}

// New returns a guard that watches nothing yet. limit is the renewDeadline of leader election, zero without one.
func New(clk clock.WithTicker, limit time.Duration) *Guard {
	return &Guard{clock: clk, limit: limit, end: func(stood time.Duration) {
		klog.Background().Error(ErrStoodStill, "Ending", "stood", stood, "limit", limit)
		klog.FlushAndExit(time.Second, 1)
	}}
}

// Lead watches from now on, when this process has come to lead, until the context ends.
func (g *Guard) Lead(ctx context.Context) {
	if g.limit == 0 {
		return
	}
	_, _ = g.pulse()
	go g.run(ctx)
}

func (g *Guard) run(ctx context.Context) {
	ticker := g.clock.NewTicker(pulseEvery)
	defer ticker.Stop()
	for {
		if stood, over := g.pulse(); over {
			g.end(stood)
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
func (g *Guard) pulse() (stood time.Duration, over bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if stood, over = g.check(); !over {
		g.last = g.clock.Now()
	}
	return stood, over
}

// check says for how long the process stood still, and whether that was too long. It is once and for all.
func (g *Guard) check() (stood time.Duration, over bool) {
	if g.limit == 0 || g.last.IsZero() {
		return 0, false
	}
	stood = g.clock.Since(g.last)
	g.over = g.over || stood > g.limit
	return stood, g.over
}

// Wrap refuses requests of a leader that stood still; it is for rest.Config.Wrap.
func (g *Guard) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		g.mu.Lock()
		_, over := g.check()
		g.mu.Unlock()
		if over {
			return nil, ErrStoodStill
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is of http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
