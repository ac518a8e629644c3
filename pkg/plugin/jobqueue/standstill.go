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

package jobqueue

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// standstillPulse is how often a leader takes note that it is running.
const standstillPulse = 200 * time.Millisecond

// errStoodStill is the answer to requests of a leader that stood still.
var errStoodStill = errors.New("this process stood still for so long that another one may lead")

// standstill keeps a leader that stood still (SIGSTOP, a frozen machine) from going on beside its successor (I1, I3). Leader
// election does not: it counts the time for renewing the lease anew when the process goes on, and until that is over both
// decide. So a process that finds itself to have stood still for the whole of that time ends at once, as it does when
// it loses its lease; and as anything may run before it finds that, requests look at the time themselves.
type standstill struct {
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

func newStandstill(clk clock.WithTicker, limit time.Duration) *standstill {
	return &standstill{clock: clk, limit: limit, end: func(stood time.Duration) {
		klog.Background().Error(errStoodStill, "Ending", "stood", stood, "limit", limit)
		klog.FlushAndExit(time.Second, 1)
	}}
}

// run watches a leader until the context ends.
func (s *standstill) run(ctx context.Context) {
	if s.limit == 0 {
		return
	}
	ticker := s.clock.NewTicker(standstillPulse)
	defer ticker.Stop()
	for {
		if stood, over := s.pulse(); over {
			s.end(stood)
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
func (s *standstill) pulse() (stood time.Duration, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stood, over = s.check(); !over {
		s.last = s.clock.Now()
	}
	return stood, over
}

// check says for how long the process stood still, and whether that was too long. It is once and for all.
func (s *standstill) check() (stood time.Duration, over bool) {
	if s.limit == 0 || s.last.IsZero() {
		return 0, false
	}
	stood = s.clock.Since(s.last)
	s.over = s.over || stood > s.limit
	return stood, s.over
}

// wrap refuses requests of a leader that stood still.
func (s *standstill) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		s.mu.Lock()
		_, over := s.check()
		s.mu.Unlock()
		if over {
			return nil, errStoodStill
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is of http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }
