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

package holding

import (
	"maps"
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Use is what one unit keeps from others in its quota.
type Use struct {
	Key, Quota string
	Amount     resources.List
	// Holds: it holds quota. Else its pods on nodes are all that is left of it, and are on their way out until LeavesBy.
	// Deleted: each of these is being deleted.
	Holds, Deleted bool
	LeavesBy       time.Time
}

// Use is that of one unit, if it holds quota or has pods on nodes.
func (b *Book) Use(key string) (use Use, some bool) {
	if at, held := b.places[key]; held {
		return Use{Key: key, Quota: at.Quota, Amount: b.ledger.Uses(key, at.Quota), Holds: true}, true
	}
	at, kept := b.remnants[key]
	if !kept {
		return use, false
	}
	by, deleted := b.leavesBy(key, &at)
	amount := b.ledger.Uses(key, at.Quota)
	return Use{Key: key, Quota: at.Quota, Amount: amount, LeavesBy: by, Deleted: deleted}, true
}

// Users are the keys of all units that hold quota or have pods on nodes.
func (b *Book) Users() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(b.places)), maps.Keys(b.remnants))
}
