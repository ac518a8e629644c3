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
	"cmp"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// spot is a unit in the trees of its queue. It carries the keys of the queue's policy, so that comparing two of many
// units seldom has to look at the units themselves.
type spot struct {
	keys queue.Keys
	unit *unit
}

// item is what the order of the unit may depend on.
func (u *unit) item() queue.Item {
	return queue.Item{Priority: u.spec.Priority, Created: u.spec.Created, UID: u.spec.UID, Key: u.spec.Key}
}

// setPolicy changes the order of a queue without units in line.
func (q *unitLine) setPolicy(policy queue.Policy) {
	q.policy = policy
	q.keyed, _ = policy.(queue.Keyed)
	q.trees()
}

func (q *unitLine) spot(u *unit) spot {
	if q.keyed == nil {
		return spot{unit: u}
	}
	return spot{keys: q.keyed.Keys(u.spec.Priority, u.spec.Created), unit: u}
}

// compare is the order of the queue.
func (q *unitLine) compare(a, b spot) int {
	if c := cmp.Compare(a.keys.First, b.keys.First); c != 0 {
		return c
	}
	if c := cmp.Compare(a.keys.Second, b.keys.Second); c != 0 {
		return c
	}
	if a.unit == b.unit {
		return 0
	}
	return q.policy.Compare(a.unit.item(), b.unit.item())
}
