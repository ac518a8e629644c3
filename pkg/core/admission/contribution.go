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
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/accounts"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
)

// countsAs is how a unit counts that is in no group.
func countsAs(u *record) accounts.Count {
	switch u.stage {
	case stageAdmitted, stageEvicting, stageResizing, stageReleasing:
		return accounts.Admitted
	case stageAdmitting:
		return accounts.Pending
	case stageWaiting, stageTaking:
		return accounts.Parked
	default:
		return accounts.Nothing
	}
}

// contributionOf a unit with such pods to the accounts. If it waits in a group it counts as the group does.
func contributionOf(u *record, charges ledger.Charges) (c accounts.Contribution) {
	if u.stage == stageDone {
		return c
	}
	c.Of, c.As = accounts.Pair{Queue: u.spec.Queue, Quota: u.spec.Quota}, countsAs(u)
	switch {
	case u.holding:
		c.AskHeld(&u.spec, u.held, &charges)
	case u.stage.waits() && u.group != nil:
		c.AskWaiting(&u.spec, &u.group.Notes.pool, &charges)
	case u.stage.waits():
		c.Less = charges.Idle
	}
	return c
}
