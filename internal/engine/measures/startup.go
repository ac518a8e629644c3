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

package measures

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/metrics"
)

// stage of the start of an engine; a metric label. They come in this order, but that a replica may lead before it has
// read everything, and that a standby has Synced alone.
type stage string

const (
	stageSynced   stage = "Synced"   // all that existed is read and applied
	stageLeading  stage = "Leading"  // Lead was called
	stageDeciding stage = "Deciding" // all units are listed consistently, and decisions begin
	stageAdmitted stage = "Admitted" // the admissions of the first decision are confirmed, if there are any
)

// Startup is when the stages were reached.
type Startup struct {
	*env.Env
	begun, leading, deciding, decided time.Time
	admitted                          bool
}

func NewStartup(v *env.Env) *Startup { return &Startup{Env: v, begun: v.Clock.Now()} }

// reach tells operators how long it took to come to a stage.
func (s *Startup) reach(to stage, at time.Time) time.Duration {
	took := at.Sub(s.begun)
	s.Metrics.Set(metrics.StartupSeconds, took.Seconds(), string(to))
	return took
}

// NoteSynced is called when everything that existed is applied, on a standby too.
func (s *Startup) NoteSynced(now time.Time, units, queues int) {
	s.Log.Info("All that existed is read", "queueUnits", units, "queues", queues, "sinceStart", s.reach(stageSynced, now))
}

// NoteDeciding is called when decisions begin; leading is when this replica was told to lead.
func (s *Startup) NoteDeciding(now, leading time.Time, units, queues int) {
	s.leading, s.deciding = leading, now
	s.reach(stageLeading, leading)
	s.Log.Info("Admission loop starts", "queueUnits", units, "queues", queues,
		"took", now.Sub(leading), "sinceStart", s.reach(stageDeciding, now))
}

// NoteDecision is called for every decision.
func (s *Startup) NoteDecision(now time.Time) {
	if s.decided.IsZero() {
		s.decided = now
	}
}

// noteAdmission is called for every admission, and records the first one. If that was decided later than the first
// decision, it waited for something other than the start.
func (s *Startup) noteAdmission(now time.Time, w *statuswrite.Write) {
	if s.admitted {
		return
	}
	s.admitted = true
	if w.Decided.After(s.decided) {
		return
	}
	s.Log.Info("First admission since the start", "queueUnit", w.Key, "sinceDeciding", now.Sub(s.deciding),
		"sinceLeading", now.Sub(s.leading), "sinceStart", s.reach(stageAdmitted, now))
}
