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

// Package coreplay replays workloads with the core, on virtual time: a cluster with one quota and one queue, as
// koord-scheduler would admit their jobs.
package coreplay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// Policies of a queue. As one of a replay each is written in small letters.
const (
	Priority = "Priority"
	Block    = "Block"
)

// Policies are the core with each policy of a queue.
func Policies(config admission.Config) (list []replay.Policy) {
	for _, policy := range []string{Priority, Block} {
		list = append(list, replay.Policy{
			Name: strings.ToLower(policy),
			Replay: func(w *trace.Workload, started func(int) error) ([]replay.Hold, error) {
				s := newSchedule(w, config, policy)
				err := s.play(started, func(int, time.Time) {})
				return s.holds, err
			},
		})
	}
	return list
}

// origin of the times of a workload; the core knows times for some 290 years after it.
var origin = time.Date(1971, 1, 1, 0, 0, 0, 0, time.UTC)

const name = "trace"

// schedule is a workload that the core plays, and what each job of it has held.
type schedule struct {
	world  *virtual.World
	config admission.Config
	jobs   []trace.Job
	holds  []replay.Hold
	// started is told of each job that starts.
	started func(job int, at time.Time)
}

func newSchedule(w *trace.Workload, config admission.Config, policy string) *schedule {
	total := amount(w.Processors)
	facts := &virtual.Facts{
		Config: config,
		Quotas: []admission.Quota{
			{Name: "root", Limit: total, Max: total}, {Name: name, Parent: "root", Limit: total, Max: total},
		},
		Queues: []queue.Spec{{Name: name, Policy: policy, MaxPending: -1, MaxAdmitted: -1}},
	}
	s := &schedule{jobs: w.Jobs, config: config}
	s.started = func(int, time.Time) {}
	s.world = virtual.New(facts, origin, s.run, s)
	return s
}

// play tells of each job that was submitted before anything is decided about it.
func (s *schedule) play(started func(int) error, submitted func(job int, at time.Time)) error {
	for i := range s.jobs {
		at := origin.Add(s.jobs[i].Submit)
		s.world.At(at, func(state *admission.State) {
			state.UpsertUnit(at, unitOf(i, &s.jobs[i], at))
			submitted(i, at)
		})
	}
	for s.world.Step() {
		if err := started(len(s.holds)); err != nil {
			return err
		}
	}
	return nil
}

func amount(processors int64) resources.List {
	return resources.FromMap(map[string]int64{"processors": processors})
}

func unitOf(index int, j *trace.Job, at time.Time) unit.Unit {
	key := fmt.Sprintf("user-%s/%08d", j.User, index)
	return unit.Unit{
		Key: key, UID: key, Queue: name, Quota: name, Created: at, Request: amount(j.Size), Pods: j.Size, Active: true,
		Phase: unit.PhaseEnqueued, Stated: unit.Stated{MaximumExecution: j.Limit},
	}
}

// jobOf is the index of the job of a unit.
func jobOf(u *unit.Unit) int {
	_, number, _ := strings.Cut(u.Key, "/")
	index, err := strconv.Atoi(number)
	if err != nil {
		panic(err) // unitOf has named it
	}
	return index
}

func (s *schedule) run(u *unit.Unit, _ time.Time) (time.Duration, bool) {
	return s.jobs[jobOf(u)].Run, true
}

// Admitted implements virtual.Watcher.
func (s *schedule) Admitted(now time.Time, u *unit.Unit) {
	job, at := jobOf(u), now.Sub(origin)
	s.started(job, now)
	s.holds = append(s.holds, replay.Hold{Job: job, Start: at, End: at + s.jobs[job].Run, Size: s.jobs[job].Size})
}

// Evicted implements virtual.Watcher: no queue of a workload preempts.
func (s *schedule) Evicted(time.Time, *unit.Unit) {}

// Ended implements virtual.Watcher.
func (s *schedule) Ended(time.Time, *unit.Unit) {}
