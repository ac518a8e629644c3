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

// Package live tells open pages that they changed, as server-sent events. The server asks again while somebody looks,
// and sends one event for each change.
package live

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/utils/clock"
)

// Times of a stream.
const (
	// Ping keeps proxies from closing a stream, and shows a browser that the server is there.
	Ping = 15 * time.Second
	// Interval is the least time between two looks at the same page.
	Interval = 500 * time.Millisecond
	// share of the time that looks at one page may take: one in share.
	share = 4
)

// Stream sends changes of one page.
type Stream struct {
	Clock clock.WithTicker
	// State names the present state of the page; two equal states look alike. After the last one the stream ends, and the
	// browser opens another.
	State func(context.Context) (state string, last bool)
	// Done ends all streams, before the server stops.
	Done <-chan struct{}
}

// ServeHTTP writes events until the reader leaves. Last-Event-ID, or the parameter "have", is the state that the reader
// has: a change between two streams is not missed.
func (s *Stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	have := r.Header.Get("Last-Event-ID")
	if have == "" {
		have = r.URL.Query().Get("have")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	write := func(format string, args ...any) bool {
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil && out.Flush() == nil
	}
	if !write("retry: 1000\n: hello\n\n") {
		return
	}
	ping := s.Clock.NewTicker(Ping)
	defer ping.Stop()
	look := s.Clock.NewTimer(0)
	defer look.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-s.Done:
			write("event: end\ndata:\n\n")
			return
		case <-ping.C():
			if !write(": ping\n\n") {
				return
			}
		case <-look.C():
			begin := s.Clock.Now()
			state, last := s.State(r.Context())
			if state != have && r.Context().Err() == nil {
				have = state
				if !write("id: %s\nevent: change\ndata: %s\n\n", state, state) {
					return
				}
			}
			if last {
				return
			}
			look.Reset(max(Interval, share*s.Clock.Since(begin)))
		}
	}
}
