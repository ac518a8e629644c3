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
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/controlplane"
)

// StartupReport is how long a scheduler takes to admit, from a cold start and when the leader changes.
type StartupReport struct {
	Waiting int `json:"waiting"`
	Holding int `json:"holding"`
	// Freed units ended before each step, so that as many can be admitted.
	Freed int           `json:"freed"`
	Steps []StartupStep `json:"steps"`
	// Violations are units that were admitted twice or lost what they held, and quotas that were passed.
	Violations []string `json:"violations"`
}

// StartupStep is one replica's way to its first admission. Seconds of a cold start count from the start of its process,
// and those of a change from the signal to the former leader. A standby that reached a stage before the signal has a
// negative number.
type StartupStep struct {
	Kind string `json:"kind"`
	// API: the API server answered and has all that the scheduler needs. Synced: everything that existed was read and
	// applied. Lease: it was won. Deciding: all units were listed consistently. Seen: the first admission, by our watch.
	// Full: as many were admitted as had been freed.
	API      float64 `json:"apiSeconds"`
	Synced   float64 `json:"syncedSeconds"`
	Lease    float64 `json:"leaseSeconds"`
	Deciding float64 `json:"decidingSeconds"`
	Seen     float64 `json:"firstAdmissionSeconds"`
	Full     float64 `json:"fullSeconds"`
	// LeaderEnded is when the process of the leader before was gone.
	LeaderEnded float64 `json:"leaderEndedSeconds,omitempty"`
	// SyncedToFirst and LeaseToFirst are from there to the first admission.
	SyncedToFirst float64 `json:"syncedToFirstAdmissionSeconds"`
	LeaseToFirst  float64 `json:"leaseToFirstAdmissionSeconds"`
	CPUSeconds    float64 `json:"cpuSeconds"`
	PeakRSSBytes  int64   `json:"peakRSSBytes"`
	// Before are the processor time and memory of the leader before, when it was asked to end.
	BeforeCPUSeconds   float64 `json:"leaderCPUSeconds,omitempty"`
	BeforePeakRSSBytes int64   `json:"leaderPeakRSSBytes,omitempty"`
}

// Log messages of the scheduler at each stage.
const (
	logAPI      = "The API server answers and has all that is needed"
	logSynced   = "All that existed is read"
	logLease    = "Successfully acquired lease"
	logDeciding = "Admission loop starts"
)

const (
	coldStart    = "cold start"
	leaderKilled = "leader killed"
	leaderEnded  = "leader asked to end"
)

// measureStartup starts and ends schedulers on a store that it fills first.
func (s *store) measureStartup(ctx context.Context, o *StandingOptions) (*StartupReport, error) {
	if err := s.fillUp(ctx, o.StartupWaiting); err != nil {
		return nil, err
	}
	if err := s.admit(ctx); err != nil {
		return nil, err
	}
	if err := s.cp.StopComponent(controlplane.Scheduler); err != nil {
		return nil, err
	}
	x := &StartupReport{Waiting: o.StartupWaiting, Holding: s.capacity, Freed: o.Freed, Violations: []string{}}
	step, leader, err := s.coldStart(ctx, o.Freed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", coldStart, err)
	}
	x.Steps = append(x.Steps, *step)
	for i := range 2 * o.Changes {
		kind := []string{leaderKilled, leaderEnded}[i%2]
		step, next, err := s.changeLeader(ctx, kind, leader,
			controlplane.Component(fmt.Sprintf("koord-scheduler-%d", i+2)), o.Freed)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		x.Steps, leader = append(x.Steps, *step), next
	}
	if err := s.quiet(ctx, leader); err != nil {
		return nil, err
	}
	found, total, err := s.check(ctx)
	if err != nil {
		return nil, err
	}
	x.Violations = append(x.Violations, found...)
	s.line("%d things are wrong with %d units", total, s.held.state().counts.created)
	return x, s.cp.StopComponent(leader)
}

// free ends as many units, so that others can be admitted.
func (s *store) free(ctx context.Context, n int) error {
	s.held.forget()
	names := s.held.some(s.random, n)
	return s.client.each(ctx, len(names), func(ctx context.Context, i int) error { return s.endUnit(ctx, names[i]) })
}

func (s *store) startReplica(ctx context.Context, name controlplane.Component) error {
	return s.cp.StartScheduler(ctx, controlplane.SchedulerOptions{Name: name, LeaderElect: true, NoWait: true})
}

func (s *store) coldStart(ctx context.Context, freed int) (*StartupStep, controlplane.Component, error) {
	const name = controlplane.Component("koord-scheduler-1")
	if err := s.free(ctx, freed); err != nil {
		return nil, "", err
	}
	begin := time.Now()
	if err := s.startReplica(ctx, name); err != nil {
		return nil, "", err
	}
	step := &StartupStep{Kind: coldStart}
	return step, name, s.finishStep(ctx, step, name, begin)
}

// changeLeader has a standby take over: the leader ends, then units end, which only its successor can make use of.
func (s *store) changeLeader(
	ctx context.Context, kind string, leader, standby controlplane.Component, freed int,
) (*StartupStep, controlplane.Component, error) {
	if err := s.startReplica(ctx, standby); err != nil {
		return nil, "", err
	}
	if _, err := s.awaitLog(ctx, standby, logSynced); err != nil {
		return nil, "", err
	}
	if err := s.quiet(ctx, standby); err != nil {
		return nil, "", err
	}
	step := &StartupStep{Kind: kind}
	var err error
	if step.BeforeCPUSeconds, step.BeforePeakRSSBytes, err = usage(s.cp.PID(leader)); err != nil {
		return nil, "", err
	}
	begin := time.Now()
	if kind == leaderKilled {
		err = s.cp.Kill(leader)
	} else {
		err = s.cp.StopComponent(leader)
	}
	if err != nil {
		return nil, "", err
	}
	step.LeaderEnded = time.Since(begin).Seconds()
	if err := s.free(ctx, freed); err != nil {
		return nil, "", err
	}
	return step, standby, s.finishStep(ctx, step, standby, begin)
}

// finishStep waits until the cluster is full again and reads when the replica came to its stages.
func (s *store) finishStep(ctx context.Context, step *StartupStep, name controlplane.Component, begin time.Time) error {
	if err := s.awaitFull(ctx); err != nil {
		return fmt.Errorf("%w\n%s", err, s.cp.LogTail(name, 20))
	}
	step.Full = time.Since(begin).Seconds()
	for _, stage := range []struct {
		marker string
		to     *float64
	}{{logAPI, &step.API}, {logSynced, &step.Synced}, {logLease, &step.Lease}, {logDeciding, &step.Deciding}} {
		at, err := s.awaitLog(ctx, name, stage.marker)
		if err != nil {
			return err
		}
		*stage.to = at.Sub(begin).Seconds()
	}
	step.Seen = s.held.state().firstAdmission.Sub(begin).Seconds()
	step.SyncedToFirst, step.LeaseToFirst = step.Seen-step.Synced, step.Seen-step.Lease
	var err error
	step.CPUSeconds, step.PeakRSSBytes, err = usage(s.cp.PID(name))
	s.line("%s: lease after %.2fs, decides after %.2fs, first admission after %.2fs", step.Kind, step.Lease,
		step.Deciding, step.Seen)
	return err
}

// awaitLog waits until a replica logs something, and says when it did.
func (s *store) awaitLog(ctx context.Context, name controlplane.Component, marker string) (time.Time, error) {
	begin := time.Now()
	for {
		content, err := os.ReadFile(s.cp.LogPath(name))
		if err != nil {
			return time.Time{}, err
		}
		if at, ok := loggedAt(content, marker, begin); ok {
			return at, nil
		}
		if time.Since(begin) > stall || s.cp.PID(name) == 0 {
			return time.Time{}, fmt.Errorf("%s does not log %q; its end:\n%s", name, marker, s.cp.LogTail(name, 20))
		}
		if !controlplane.Sleep(ctx, 100*time.Millisecond) {
			return time.Time{}, ctx.Err()
		}
	}
}

var klogHeader = regexp.MustCompile(`^[IWEF](\d{4} \d\d:\d\d:\d\d\.\d{6}) `)

// loggedAt finds the first line with the marker. Lines of klog have no year: it is that of now, or the one before.
func loggedAt(content []byte, marker string, now time.Time) (time.Time, bool) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		header := klogHeader.FindSubmatch(lines.Bytes())
		if header == nil || !bytes.Contains(lines.Bytes(), []byte(marker)) {
			continue
		}
		at, err := time.ParseInLocation("0102 15:04:05.000000", string(header[1]), time.Local)
		if err != nil {
			return time.Time{}, false
		}
		at = at.AddDate(now.Year(), 0, 0)
		if at.After(now.AddDate(0, 1, 0)) {
			at = at.AddDate(-1, 0, 0)
		}
		return at, true
	}
	return time.Time{}, false
}

func (x *StartupReport) print(t *tabwriter.Writer) {
	fmt.Fprintf(t, "\nstart and change of the leader with %d units waiting and %d holding quota, "+
		"of which %d end before each; seconds\n", x.Waiting, x.Holding, x.Freed)
	fmt.Fprintf(t, "step\tleader gone\tAPI\tsynced\tlease\tdecides\tfirst admission\tall admitted\tsynced to first\t"+
		"lease to first\tCPU s\tpeak MiB\tleader's peak MiB\n")
	for _, s := range x.Steps {
		gone, before := "", ""
		if s.Kind != coldStart {
			gone, before = fmt.Sprintf("%.2f", s.LeaderEnded), fmt.Sprint(s.BeforePeakRSSBytes>>20)
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%d\t%s\n", s.Kind, gone, s.API,
			s.Synced, s.Lease, s.Deciding, s.Seen, s.Full, s.SyncedToFirst, s.LeaseToFirst, s.CPUSeconds, s.PeakRSSBytes>>20,
			before)
	}
	printViolations(t, x.Violations)
}
