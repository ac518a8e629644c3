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

package telling

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Listener is what a schedule keeps of a unit, with the unit. The zero Listener was told nothing and is not due.
type Listener struct {
	// at is when it should be told something; zero for never.
	at ordered.Moment
	// report is nil if it was told nothing. Very many are so.
	report *report
	// found: it should be told something that a round found.
	found bool
}

// report is the last written reason of a unit, and its time. Until a write is confirmed it counts in place of the
// object's. said is nil without a reason.
type report struct {
	said *unit.Saying
	at   ordered.Moment
}

// Said is what the unit was told last; nil for nothing.
func (l *Listener) Said() *unit.Saying {
	if l.report == nil {
		return nil
	}
	return l.report.said
}

// SaidAt is when the unit was told something last; zero for never.
func (l *Listener) SaidAt() time.Time {
	if l.report == nil {
		return time.Time{}
	}
	return l.report.at.Time()
}

// Forget what the unit was told: that was about something that is over.
func (l *Listener) Forget() { l.report = nil }
