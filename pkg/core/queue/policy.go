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
	"math"
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

// Factory makes a policy with the threshold of its queue.
type Factory func(threshold int32) Policy

// Builtin lists the policies that need no registration, by the name that Queue.spec.queuePolicy uses.
func Builtin() map[string]Factory {
	return map[string]Factory{
		"Priority":    func(int32) Policy { return builtin{byPriority: true, blocksFrom: math.MaxInt64} },
		"FIFO":        func(int32) Policy { return builtin{blocksFrom: math.MinInt64} },
		"Block":       func(int32) Policy { return builtin{byPriority: true, blocksFrom: math.MinInt64} },
		"Intelligent": func(threshold int32) Policy { return builtin{byPriority: true, blocksFrom: int64(threshold)} },
	}
}

// builtin has the higher priority first, if byPriority is set, and then the older unit. Units block from a priority on.
type builtin struct {
	byPriority bool
	blocksFrom int64
}

func (p builtin) Blocks(priority int32) bool { return int64(priority) >= p.blocksFrom }

func (p builtin) Compare(a, b Item) int {
	if c := p.keys(&a).Compare(p.keys(&b)); c != 0 {
		return c
	}
	if c := a.Created.Compare(b.Created); c != 0 {
		return c
	}
	if c := strings.Compare(a.UID, b.UID); c != 0 {
		return c
	}
	return strings.Compare(a.Key, b.Key)
}

func (p builtin) keys(it *Item) (k Keys) {
	if p.byPriority {
		k.first = -int64(it.Priority)
	}
	k.second = it.Created.Unix() // a creation time has whole seconds
	return k
}

// Keys are two numbers by which a built-in policy orders units first. They decide most comparisons of two units.
type Keys struct{ first, second int64 }

// KeysOf a unit in the order of a policy. In a policy of others all units have the same keys.
func KeysOf(p Policy, it Item) (k Keys) {
	if p, is := p.(builtin); is {
		k = p.keys(&it)
	}
	return k
}

// Compare is negative or positive if the policy has the same answer, and zero if the policy has to be asked.
func (k Keys) Compare(o Keys) int {
	if k.first != o.first {
		return cmp.Compare(k.first, o.first)
	}
	return cmp.Compare(k.second, o.second)
}
