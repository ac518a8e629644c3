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
	stageAdmitted stage = "Admitted" // the first admission is confirmed
)

// startup is when the stages were reached.
type startup struct{ begun, leading, deciding, admitted time.Time }

// reach tells operators how long it took to come to a stage.
func (e *Engine) reach(s stage, at time.Time) time.Duration {
	took := at.Sub(e.startup.begun)
	e.opts.Metrics.Set(metrics.StartupSeconds, took.Seconds(), string(s))
	return took
}

// noteSynced is called when everything that existed is applied, on a standby too.
func (e *Engine) noteSynced(now time.Time) {
	e.log.Info("All that existed is read", "queueUnits", len(e.units), "queues", len(e.queues), "sinceStart", e.reach(stageSynced, now))
}

// noteDeciding is called when decisions begin; leading is when this replica was told to lead.
func (e *Engine) noteDeciding(now, leading time.Time) {
	e.startup.leading, e.startup.deciding = leading, now
	e.reach(stageLeading, leading)
	e.log.Info("Admission loop starts", "queueUnits", len(e.units), "queues", len(e.queues),
		"took", now.Sub(leading), "sinceStart", e.reach(stageDeciding, now))
}

// noteAdmission is called for every admission; the first one is told.
func (e *Engine) noteAdmission(now time.Time, w *Write) {
	if !e.startup.admitted.IsZero() {
		return
	}
	e.startup.admitted = now
	e.log.Info("First admission since the start", "queueUnit", w.key, "sinceDeciding", now.Sub(e.startup.deciding),
		"sinceLeading", now.Sub(e.startup.leading), "sinceStart", e.reach(stageAdmitted, now))
}
