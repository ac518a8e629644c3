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

import "github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"

// Count is one of Counts: the one that a unit is in.
type Count uint8

const (
	// Nothing: the unit is in no count.
	Nothing Count = iota
	Pending
	Admitted
	Parked
)

// Pair of a queue and a quota.
type Pair struct{ Queue, Quota string }

// Contribution is what a unit adds to the accounts. The zero value adds nothing.
type Contribution struct {
	Of Pair
	// As is Nothing if the unit is in a pool.
	As Count
	// Pool, unless nil, says how the unit counts, and whether the quota has to have what it asks for.
	Pool *Pool
	// Asks is what the unit asks for beyond its pods, growth aside. A unit outside of a pool holds quota, and adds Asks to
	// what the pods of its quota request. Less is taken from that: the gate keeps the pods of a pending unit, and pods
	// beyond what is held.
	Asks, Less resources.List
}

func (c *Contribution) same(o *Contribution) bool {
	return c.Of == o.Of && c.As == o.As && c.Pool == o.Pool && c.Asks.Same(o.Asks) && c.Less.Same(o.Less)
}

// Pool is of units of one queue and quota that count alike: as pending if it is open, as parked if not. A new one is
// not open.
type Pool struct {
	open   bool
	units  int
	demand resources.Sum
}

func (p *Pool) as() Count {
	if p.open {
		return Pending
	}
	return Parked
}
