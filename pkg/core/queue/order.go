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
)

// Rank is what the order of queues may depend on.
type Rank struct {
	Name     string
	Priority int32
	// ShareOfMin and ShareOfMax are the dominant shares of the quota that the queue's first eligible unit
	// draws on: the greatest (used + outstanding) / min, and / max, over the resources. Use of a resource
	// without min is an infinite share of min.
	ShareOfMin, ShareOfMax float64
	// Head is the first eligible unit.
	Head Item
}

// Order says which queue is served first. It must be a pure function of its arguments.
type Order interface {
	// Compare is negative when a is served before b, and zero only for the same queue.
	Compare(a, b Rank) int
}

// FairOrder serves the higher priority first; among equals the queue with the smallest share of what it is
// guaranteed, then of what it may use at most, then the one whose head is older.
type FairOrder struct{}

// Compare implements Order.
func (FairOrder) Compare(a, b Rank) int { return CompareFairly(&a, &b) }

// CompareFairly is FairOrder, and copies nothing.
func CompareFairly(a, b *Rank) int {
	// One after the other: most often the first that is not equal is all that has to be fetched from memory.
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if c := cmp.Compare(a.ShareOfMin, b.ShareOfMin); c != 0 {
		return c
	}
	if c := cmp.Compare(a.ShareOfMax, b.ShareOfMax); c != 0 {
		return c
	}
	if c := a.Head.Created.Compare(b.Head.Created); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
