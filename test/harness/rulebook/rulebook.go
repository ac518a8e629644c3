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

// Package rulebook says which phases and which order are right, for all checkers. It takes nothing from the product.
package rulebook

import (
	"slices"
	"time"
)

// Waits says that a unit in this phase has a place in its queue. A phase that neither waits, holds nor is over is of
// another version.
func Waits[P ~string](phase P) bool {
	return slices.Contains([]P{"", "Enqueued", "SchedFailed", "TimeoutBackoff", "Preempted"}, phase)
}

// Holds says that a unit in this phase holds quota.
func Holds[P ~string](phase P) bool {
	return Releases(phase) || phase == "Reserved" || phase == "SchedReady"
}

// Releases says that pods of a unit in this phase may start.
func Releases[P ~string](phase P) bool {
	return slices.Contains([]P{"SchedSucceed", "Dequeued", "Running"}, phase)
}

// Over says that a unit in this phase is over.
func Over[P ~string](phase P) bool { return phase == "Succeed" || phase == "Failed" }

// Follows says that a process, "scheduler" or "controller", may change a phase so (I9).
func Follows[P, W ~string](from, to P, by W) bool {
	switch {
	case by == "controller" && to == "Running":
		return slices.Contains([]P{"", "Enqueued", "Dequeued", "SchedSucceed"}, from)
	case by == "controller":
		return Over(to) && !Over(from)
	case by != "scheduler":
		return false
	}
	switch to {
	case "Enqueued":
		return slices.Contains([]P{"", "Preempted", "TimeoutBackoff"}, from) || !Waits(from) && !Over(from)
	case "Reserved":
		return Waits(from)
	case "Dequeued":
		return Waits(from) || from == "Reserved"
	case "TimeoutBackoff":
		return Releases(from) || from == "Reserved"
	}
	return false
}

// Unit is what the order of a queue depends on.
type Unit struct {
	Priority int32
	Created  time.Time
	UID      string
}

// Ahead says which invariant has a queue with a built-in policy serve a before b: I4 for a greater priority, I5 for a
// greater age. It is empty if b is first.
func Ahead(policy string, a, b Unit) (invariant string) {
	switch {
	case policy != "FIFO" && a.Priority != b.Priority:
		if a.Priority > b.Priority {
			return "I4"
		}
	case a.Created.Before(b.Created), a.Created.Equal(b.Created) && a.UID < b.UID:
		return "I5"
	}
	return ""
}
