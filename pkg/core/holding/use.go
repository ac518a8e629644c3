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
	"slices"
	"strings"
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

// Stays says that it holds nothing, and that nobody gives back what its pods use.
func (u *Use) Stays(now time.Time) bool { return !u.Holds && !now.Before(u.LeavesBy) }

// Uses are those of all units that hold quota or have pods on nodes, by their keys. They cost O(n log n).
func (b *Book) Uses() []Use {
	uses := make([]Use, 0, len(b.places)+len(b.remnants))
	for key, at := range b.places {
		uses = append(uses, Use{Key: key, Quota: at.Quota, Amount: b.ledger.Uses(key, at.Quota), Holds: true})
	}
	for key, at := range b.remnants {
		by, deleted := b.leavesBy(key, &at)
		amount := b.ledger.Uses(key, at.Quota)
		uses = append(uses, Use{Key: key, Quota: at.Quota, Amount: amount, LeavesBy: by, Deleted: deleted})
	}
	slices.SortFunc(uses, func(a, b Use) int { return strings.Compare(a.Key, b.Key) })
	return uses
}
