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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func settleAdmission(u *record, now time.Time, base time.Duration, remembered *unit.Unit, o Outcome) {
	if remembered != nil && remembered.Phase.Holds() {
		// The object itself says so, whatever the write seemed to come to.
		o = OutcomeConfirmed
	}
	switch o {
	case OutcomeConfirmed:
		u.becomeAdmitted(now)
	case OutcomeRefused:
		u.becomeWaiting()
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses the admission of this unit; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.becomeWaiting()
	}
}

func settleEviction(u *record, now time.Time, base time.Duration, remembered *unit.Unit, o Outcome) {
	switch o {
	case OutcomeConfirmed:
		u.becomeEvicted()
		if remembered != nil && remembered.Phase.Holds() && remembered.Attempts <= u.attempt {
			// Older than the eviction: only its other fields can be news.
			requeue(remembered, &u.eviction.Loss)
		}
	case OutcomeRefused:
		u.stayAdmitted(false)
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses the eviction of this unit; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.stayAdmitted(true)
	}
}

func settleResize(u *record, now time.Time, base time.Duration, remembered *unit.Unit, o Outcome) {
	switch o {
	case OutcomeConfirmed:
		if u.becomeResized(); remembered != nil {
			remembered.ResizePending = 0 // what it asks for by now it began to ask for since
		}
	case OutcomeRefused:
		u.stayAdmitted(false)
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses to change what this unit holds; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.stayAdmitted(true)
	}
	u.tenure.next = resources.List{}
}

func settleRelease(u *record, now time.Time, base time.Duration, o Outcome) {
	switch o {
	case OutcomeConfirmed:
		u.becomeReleased(now)
	case OutcomeRefused:
		u.stayAdmitted(false)
		u.refuse(now, base, unit.ReasonWriteRefused,
			"the API server refuses the release of this unit; it is tried again later")
	case OutcomeRefuted, OutcomeUnknown:
		u.stayAdmitted(true)
	}
}
