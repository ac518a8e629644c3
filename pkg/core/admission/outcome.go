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

package admission

import (
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// settling is the end of a write in flight: what came of it, and the object as it was seen in the meantime.
type settling struct {
	now        time.Time
	base       time.Duration // of the back-off
	outcome    transition.Outcome
	remembered *unit.Unit
}

// end moves a unit to where it belongs after its write. If the object itself says what the write does, that counts,
// whatever the write seemed to come to.
func (s *settling) end(u *record) {
	w, seen := u.flight, s.remembered
	if seen != nil && seen.Attempts == w.Attempt() && w.AppliedTo(seen.Phase, &seen.Stated) {
		u.land(s.now)
		return
	}
	if s.outcome == transition.Confirmed {
		u.land(s.now)
		if seen != nil && !w.Kind().Reserves() && transition.Older(seen, w) {
			w.Apply(s.now, seen) // only its other fields can be news; of an admission see isOlder
		}
		return
	}
	u.fail(s.outcome != transition.Refused)
	if s.outcome == transition.Refused {
		u.refuse(s.now, s.base, unit.ReasonWriteRefused,
			"the API server refuses "+w.Kind().Doing+"; it is tried again later")
	}
}
