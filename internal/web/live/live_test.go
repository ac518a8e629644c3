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

package live

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	testclock "k8s.io/utils/clock/testing"
)

// reader has the lines of a stream.
type reader struct {
	*testing.T
	clock *testclock.FakeClock
	lines chan string
}

// newReader asks with a header Last-Event-ID, or with a parameter if the header is empty.
func newReader(t *testing.T, s *Stream, last, have string) *reader {
	t.Helper()
	c := testclock.NewFakeClock(time.Unix(0, 0))
	s.Clock = c
	server := httptest.NewServer(s)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"?have="+have, nil)
	require.NoError(t, err)
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	response, err := server.Client().Do(request) //nolint:bodyclose // the reader of the lines closes it
	require.NoError(t, err)
	require.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
	r := &reader{t, c, make(chan string, 100)}
	go func() {
		defer close(r.lines)
		defer func() { _ = response.Body.Close() }()
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			if lines.Text() != "" {
				r.lines <- lines.Text()
			}
		}
	}()
	r.expect("retry: 1000", ": hello")
	return r
}

// expect moves the clock until the lines have come.
func (r *reader) expect(wants ...string) {
	r.Helper()
	for _, want := range wants {
		var got string
		require.Eventually(r, func() bool {
			select {
			case got = <-r.lines:
				return true
			default:
				r.clock.Step(Interval)
				return false
			}
		}, 10*time.Second, time.Millisecond, want)
		require.Equal(r, want, got)
	}
}

func TestStream(t *testing.T) {
	var state atomic.Value
	state.Store("a")
	done := make(chan struct{})
	s := &Stream{State: func(context.Context) (string, bool) { return state.Load().(string), false }, Done: done}
	r := newReader(t, s, "", "a")
	r.expect(": ping") // nothing has changed for 15 seconds
	state.Store("b")
	r.expect("id: b", "event: change", "data: b", ": ping")
	close(done)
	r.expect("event: end", "data:")
}

// A change between two streams, or between a page and its stream, is told at once.
func TestResume(t *testing.T) {
	s := &Stream{State: func(context.Context) (string, bool) { return "b", false }}
	newReader(t, s, "a", "b").expect("id: b", "event: change", "data: b")
	newReader(t, s, "", "a").expect("id: b", "event: change", "data: b")
	newReader(t, s, "b", "a").expect(": ping")
}

// The last state is told, and ends the stream.
func TestLastState(t *testing.T) {
	r := newReader(t, &Stream{State: func(context.Context) (string, bool) { return "b", true }}, "", "a")
	r.expect("id: b", "event: change", "data: b")
	_, open := <-r.lines
	require.False(t, open)
}
