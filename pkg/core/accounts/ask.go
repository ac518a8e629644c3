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

package accounts

import (
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/growth"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ledger"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// AskHeld has a unit with such pods ask for what it holds and no pod uses.
func (c *Contribution) AskHeld(in *unit.Unit, held resources.List, charges *ledger.Charges) {
	c.Asks = asks(in, true, held, charges)
	if charges.Idle.Len() > 0 {
		c.Less = charges.All.Sub(held.Max(charges.Assigned)).Floor0()
	}
}

// AskWaiting has a unit with such pods that waits in a pool ask for what it needs.
func (c *Contribution) AskWaiting(in *unit.Unit, pool *Pool, charges *ledger.Charges) {
	c.Asks, c.Less, c.Pool, c.As = asks(in, false, in.Request, charges), charges.Idle, pool, Nothing
}

// Observe has an observed unit that waits in a pool count there. It asks for nothing beyond its pods, and nobody keeps
// those.
func (c *Contribution) Observe(pool *Pool) { c.Pool, c.As = pool, Nothing }

func asks(in *unit.Unit, holding bool, want resources.List, charges *ledger.Charges) resources.List {
	return growth.Expected(in, holding).Bound(want.Sub(charges.All).Floor0(), charges.Pods)
}
