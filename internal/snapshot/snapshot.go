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

// Package snapshot writes the facts that a scheduler decides by as a document, and reads it back. A world that goes on
// from what was read admits the same units at the same times.
//
// A document is JSON, in the clear or compressed by gzip. Amounts are in the units of the core: thousandths of a cpu,
// bytes, devices. It leaves out what a world has no use for: pods, admission checks, timeouts, messages and labels.
package snapshot

import (
	"encoding/json"
	"io"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/forecast"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/virtual"
)

// version of the document.
const version = 1

// Snapshot is what a scheduler knew at a time.
type Snapshot struct {
	At    time.Time
	Facts *virtual.Facts
	// Runs that were over, the newest first.
	Runs []forecast.Ended
	// Extended says that the scheduler has policies or an order of queues of its own, which no document holds.
	Extended bool
}

// Write the document.
func Write(out io.Writer, s *Snapshot) error {
	d := document{
		Version: version, At: s.At.UTC(), Extended: s.Extended,
		Config: config{
			ClaimTimeout: span(s.Facts.Config.ClaimTimeout), ClaimAfter: span(s.Facts.Config.ClaimAfter),
			PartialAdmission: s.Facts.Config.PartialAdmission,
		},
	}
	for i := range s.Facts.Quotas {
		d.Quotas = append(d.Quotas, quotaOf(&s.Facts.Quotas[i]))
	}
	for i := range s.Facts.Queues {
		d.Queues = append(d.Queues, queueOf(&s.Facts.Queues[i]))
	}
	for _, u := range s.Facts.Units {
		d.Units = append(d.Units, unitOf(u))
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		d.Runs = append(d.Runs, run{r.User, r.Queue, r.Size, span(r.Limit), span(r.Ran)})
	}
	return json.NewEncoder(out).Encode(&d)
}
