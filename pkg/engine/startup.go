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

package engine

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/metrics"
)

// stage of the start of an engine; a metric label. They come in this order, but that a replica may lead before it has
// read everything, and that a standby has Synced alone.
type stage string

const (
	stageSynced   stage = "Synced"   // all that existed is read and applied
	stageLeading  stage = "Leading"  // Lead was called
	stageDeciding stage = "Deciding" // all units are listed consistently, and decisions begin
	stageAdmitted stage = "Admitted" // what the first decision admitted is confirmed, if it admitted anything
)

// startup is when the stages were reached.
type startup struct {
	*env
	begun, leading, deciding, decided time.Time
	admitted                          bool
}

// reach tells operators how long it took to come to a stage.
func (s *startup) reach(to stage, at time.Time) time.Duration {
	took := at.Sub(s.begun)
	s.opts.Metrics.Set(metrics.StartupSeconds, took.Seconds(), string(to))
	return took
}

// noteSynced is called when everything that existed is applied, on a standby too.
func (s *startup) noteSynced(now time.Time, units, queues int) {
	s.log.Info("All that existed is read", "queueUnits", units, "queues", queues, "sinceStart", s.reach(stageSynced, now))
}

// noteDeciding is called when decisions begin; leading is when this replica was told to lead.
func (s *startup) noteDeciding(now, leading time.Time, units, queues int) {
	s.leading, s.deciding = leading, now
	s.reach(stageLeading, leading)
	s.log.Info("Admission loop starts", "queueUnits", units, "queues", queues,
		"took", now.Sub(leading), "sinceStart", s.reach(stageDeciding, now))
}

// noteDecision is called for every decision.
func (s *startup) noteDecision(now time.Time) {
	if s.decided.IsZero() {
		s.decided = now
	}
}

// noteAdmission is called for every admission; the first one is told. One that was decided later than the first
// decision waited for something else than the start.
func (s *startup) noteAdmission(now time.Time, w *Write) {
	if s.admitted {
		return
	}
	s.admitted = true
	if w.decided.After(s.decided) {
		return
	}
	s.log.Info("First admission since the start", "queueUnit", w.key, "sinceDeciding", now.Sub(s.deciding),
		"sinceLeading", now.Sub(s.leading), "sinceStart", s.reach(stageAdmitted, now))
}
