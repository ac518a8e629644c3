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

package runner

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// screen shows what happens: lines, and between them one that is rewritten on a terminal and rare elsewhere.
type screen struct {
	out      io.Writer
	terminal bool
	begin    time.Time

	mu   sync.Mutex
	open bool // the last line has no end yet
	next time.Time
}

func newScreen(out io.Writer, terminal bool) *screen {
	return &screen{out: out, terminal: terminal, begin: time.Now()}
}

func (s *screen) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.begin).Seconds(), text)
}

// close ends a line that is being rewritten. mu is held.
func (s *screen) close() {
	if s.open {
		fmt.Fprintln(s.out)
	}
	s.open = false
}

func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// follow shows every second how many units have come how far, until stop.
func (s *screen) follow(ctx context.Context, now func() counts, total int) (stop func()) {
	begin := time.Now()
	ctx, stop = context.WithCancel(ctx)
	go func() {
		for controlplane.Sleep(ctx, time.Second) {
			s.progress(time.Since(begin), now(), total)
		}
	}()
	return stop
}

func (s *screen) progress(since time.Duration, n counts, total int) {
	s.status(fmt.Sprintf("%5.0fs: %d of %d units created, %d admitted, %d ended, %d waiting",
		since.Seconds(), n.created, total, n.admitted, n.ended, n.created-n.admitted))
}

// status replaces the line that is rewritten, unless it has just been.
func (s *screen) status(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.next) {
		return
	}
	if s.terminal {
		s.next, s.open = now.Add(200*time.Millisecond), true
		fmt.Fprintf(s.out, "\r\x1b[K%s", text)
		return
	}
	s.next = now.Add(10 * time.Second)
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.begin).Seconds(), text)
}
