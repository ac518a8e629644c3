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
	"strings"
	"time"
)

// Item is what the order of a unit may depend on. It is fixed when the unit enters and changes through an
// explicit event only (I5).
type Item struct {
	Priority int32
	// Created is the enqueue time. It survives requeueing.
	Created time.Time
	// UID breaks ties, because Created has a resolution of one second; Key breaks those that are left.
	UID, Key string
}

// Policy is the order of one queue. It must be a pure function of its arguments.
type Policy interface {
	// Compare is negative when a is served before b, and zero only for the same unit.
	Compare(a, b Item) int
	// Blocks says whether a unit of this priority that does not fit claims what it waits for, so that
	// nothing behind it takes it.
	Blocks(priority int32) bool
}

// Keyed is an interface that a Policy may also implement, so that units are compared quickly: smaller keys, the first
// before the second, are served first, and units with the same keys are compared by the policy. Keys must not
// contradict it.
type Keyed interface {
	Keys(priority int32, created time.Time) Keys
}

// Keys of a unit; see Keyed.
type Keys struct{ First, Second int64 }

// Factory makes a policy with the threshold of its queue.
type Factory func(threshold int32) Policy

// Builtin lists the policies that need no registration, by the name that Queue.spec.queuePolicy uses.
func Builtin() map[string]Factory {
	return map[string]Factory{
		"Priority":    func(int32) Policy { return priorityOrder{} },
		"FIFO":        func(int32) Policy { return fifoOrder{} },
		"Block":       func(int32) Policy { return blockOrder{} },
		"Intelligent": func(threshold int32) Policy { return intelligentOrder{threshold: threshold} },
	}
}

// priorityOrder lets units pass a unit that does not fit.
type priorityOrder struct{}

func (priorityOrder) Compare(a, b Item) int { return comparePriority(a, b) }
func (priorityOrder) Blocks(int32) bool     { return false }

// Keys implements Keyed.
func (priorityOrder) Keys(priority int32, created time.Time) Keys {
	return byPriority(priority, created)
}

// fifoOrder knows no priority; its first unit blocks.
type fifoOrder struct{}

func (fifoOrder) Compare(a, b Item) int { return compareAge(a, b) }
func (fifoOrder) Blocks(int32) bool     { return true }

// Keys implements Keyed.
func (fifoOrder) Keys(_ int32, created time.Time) Keys { return Keys{Second: created.Unix()} }

// blockOrder is priorityOrder whose first unit blocks.
type blockOrder struct{}

func (blockOrder) Compare(a, b Item) int { return comparePriority(a, b) }
func (blockOrder) Blocks(int32) bool     { return true }

// Keys implements Keyed.
func (blockOrder) Keys(priority int32, created time.Time) Keys { return byPriority(priority, created) }

// intelligentOrder blocks for units at or above the threshold only.
type intelligentOrder struct{ threshold int32 }

func (intelligentOrder) Compare(a, b Item) int        { return comparePriority(a, b) }
func (p intelligentOrder) Blocks(priority int32) bool { return priority >= p.threshold }

// Keys implements Keyed.
func (intelligentOrder) Keys(priority int32, created time.Time) Keys {
	return byPriority(priority, created)
}

// byPriority are the keys of comparePriority; seconds are all that creation times have.
func byPriority(priority int32, created time.Time) Keys {
	return Keys{First: -int64(priority), Second: created.Unix()}
}

func comparePriority(a, b Item) int {
	switch {
	case a.Priority > b.Priority:
		return -1
	case a.Priority < b.Priority:
		return 1
	}
	return compareAge(a, b)
}

func compareAge(a, b Item) int {
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	if c := strings.Compare(a.UID, b.UID); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}
