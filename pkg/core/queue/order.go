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

package queue

import (
	"cmp"
	"strings"
	"time"
)

// Rank is what the order of queues may depend on.
type Rank struct {
	Name     string
	Priority int32
	// Overdue is since when the first unit waits at the front of the queue, if that is longer than claimAfter; else zero.
	Overdue time.Time
	// ShareOfMin and ShareOfLimit are the dominant shares of the quota of the queue's first eligible unit. These are the
	// greatest (used + outstanding) / min, and / limit, over the resources. The limit is the runtime, or max without
	// runtimes. ShareOfMin is 1 if the quota uses its min or more, or a resource without min.
	ShareOfMin, ShareOfLimit float64
	// Head is the first eligible unit.
	Head Item
}

// Order says which queue is served first. It must be a pure function of its arguments.
type Order interface {
	// Compare is negative when a is served before b, and zero only for the same queue.
	Compare(a, b Rank) int
}

// FairOrder compares queues by these rules, each only among equals of the one before:
//   - The higher priority of the first unit is first.
//   - The queue whose first unit has been overdue longest is first. Otherwise the use of others could keep it behind
//     them without end.
//   - The queue whose quota uses the smallest part of its min is first.
//   - Quotas that use their min are ordered by the used part of their limit, then by the older head.
type FairOrder struct{}

// Compare implements Order.
func (FairOrder) Compare(a, b Rank) int { return CompareFairly(&a, &b) }

// CompareFairly is FairOrder, and copies nothing.
func CompareFairly(a, b *Rank) int {
	// One after the other: most often the first that is not equal is all that has to be fetched from memory.
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if a.Overdue != b.Overdue {
		return compareOverdue(a, b)
	}
	if c := cmp.Compare(a.ShareOfMin, b.ShareOfMin); c != 0 {
		return c
	}
	if c := cmp.Compare(a.ShareOfLimit, b.ShareOfLimit); c != 0 {
		return c
	}
	if c := a.Head.Created.Compare(b.Head.Created); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// compareOverdue has those first that wait for longer, and last those that do not for long.
func compareOverdue(a, b *Rank) int {
	switch {
	case a.Overdue.IsZero():
		return 1
	case b.Overdue.IsZero():
		return -1
	default:
		return a.Overdue.Compare(b.Overdue)
	}
}
