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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/mail"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/measures"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/pace"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/recovery"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/unitbook"
)

// decisions turns plans of the core into writes, and takes their outcomes.
type decisions struct {
	*env.Env
	facts   *facts
	core    *recovery.Core
	units   *unitbook.Book
	box     *mail.Box
	writers *statuswrite.Writers
	reports reports
	reasons pace.Reasons
	startup *measures.Startup
	tally   *measures.Tally
	pace    pace.Decisions
	cycle   int64 // number of the last decision, by which log lines of it are found
}

// next is the time of the next decision or write if nothing comes before; zero for never.
func (d *decisions) next() time.Time {
	at := pace.Earliest(d.facts.statuses.Next(), d.reports.next(), d.reasons.Next())
	if d.core.Sound() {
		at = pace.Earliest(at, d.pace.Next())
	}
	return at
}

// handOut gives the writers what must be written, decisions first.
func (d *decisions) handOut(now time.Time, leading bool) {
	d.writers.Flush()
	if !leading {
		return
	}
	d.tell(now)
	d.reports.take(now, func(key string, x report) { d.writeReport(now, key, x) })
	d.facts.statuses.Refresh(now, d.facts.queues)
}
