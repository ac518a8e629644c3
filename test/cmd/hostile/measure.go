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

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/checker"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// attacked are the processes that must live on, and how much memory they may take: the limits of their Deployments.
var attacked = map[controlplane.Component]struct {
	short string
	most  int64
}{
	controlplane.Scheduler:  {"scheduler", 2 << 30},
	controlplane.Controller: {"controller", 1 << 30},
}

// memory is a rule: a process that takes more than its Deployment allows is killed.
const memory checker.Rule = "Memory"

// watch follows the processes of a control plane, and starts those again that end.
type watch struct {
	cp *controlplane.ControlPlane

	mu       sync.Mutex
	peak     map[string]int64 // by short name
	restarts int
	problems []string
}

func newWatch(cp *controlplane.ControlPlane) *watch { return &watch{cp: cp, peak: map[string]int64{}} }

func (w *watch) run(ctx context.Context) {
	const pace = 500 * time.Millisecond
	for {
		select {
		case <-ctx.Done():
			return
		case exit := <-w.cp.Exits():
			w.ended(ctx, exit)
		case <-time.After(pace):
			w.sample()
		}
	}
}

// ended restarts an attacked process as often as allowed. Without the other processes there is nothing to measure.
func (w *watch) ended(ctx context.Context, exit controlplane.Exit) {
	w.mu.Lock()
	if _, ok := attacked[exit.Component]; !ok {
		w.problems = append(w.problems, fmt.Sprintf("%s ended by itself: %v", exit.Component, exit.Err))
		w.mu.Unlock()
		return
	}
	w.restarts++
	w.mu.Unlock()
	if err := w.cp.Restart(ctx, exit.Component); err != nil && ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.problems = append(w.problems, err.Error())
	}
}

// sample takes the peak that the kernel has for each process that runs.
func (w *watch) sample() {
	for component, a := range attacked {
		pid := w.cp.PID(component)
		if pid == 0 {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // the process has just ended
		}
		w.mu.Lock()
		w.peak[a.short] = max(w.peak[a.short], peakOf(string(status)))
		w.mu.Unlock()
	}
}

// peakOf reads the most memory that a process ever had, in bytes, of its status in /proc.
func peakOf(status string) int64 {
	for line := range strings.Lines(status) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "VmHWM:" {
			kilobytes, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return kilobytes << 10
			}
		}
	}
	return 0
}

// conclude says what it saw.
func (w *watch) conclude() (peak map[string]int64, restarts int, problems []string, found []checker.Violation) {
	w.sample()
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.peak), w.restarts, w.problems, tooMuch(w.peak)
}

// tooMuch says which processes took more memory than they may.
func tooMuch(peak map[string]int64) (found []checker.Violation) {
	for component, a := range attacked {
		if peak[a.short] > a.most {
			found = append(found, checker.Violation{Rule: memory, Subject: string(component), Message: fmt.Sprintf(
				"took %d MiB of %d", peak[a.short]>>20, a.most>>20)})
		}
	}
	return found
}
