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

package reclaim

import (
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Obstacle is why a request does not get its right.
type Obstacle struct {
	// Level has too little of Resource even if all possible victims are gone.
	Level, Resource string
	// Protected is the amount that protected units hold, by their protection. Pods is the amount that pods use whose unit
	// holds no quota.
	Protected [holders.Protections]int64
	Pods      int64
	// Until is when the first protection ends; zero if time ends none.
	Until time.Time
	// Bounded: it would have a right to somebody with the priority that its object names.
	Bounded bool
	// GroupBorrowed: it would reclaim if its gang group had not borrowed.
	GroupBorrowed bool
	// InVain is how often in a row units of the same namespace and quota preempted in vain. They do not preempt again
	// before Until.
	InVain int
	// Unsure: a set of others is enough if pods go of which that is not known yet.
	Unsure bool
	// DryRun has the victims that the request would have, in a queue that only tries.
	DryRun DryRun
}

// Some says that there is any.
func (o *Obstacle) Some() bool { return o.Pods > 0 || o.Protected != [holders.Protections]int64{} }

// Finding is the obstacle as the reason of a pending unit. It is zero if only writes in flight are in the way.
func (o *Obstacle) Finding() unit.Finding {
	lasting := *o
	if lasting.Protected[holders.InFlight] = 0; !lasting.Some() {
		return unit.Finding{}
	}
	return unit.Finding{Reason: unit.ReasonHeldByOthers, Level: o.Level, Resource: o.Resource}
}

// obstacle is found when no possible victim is left.
func (p *pick[T]) obstacle() (o Obstacle) {
	level, i := p.s.lacking()
	if level == nil {
		return o
	}
	o.Level, o.Resource = level.Name(), p.s.tree.Resource(i)
	o.Pods = level.Limit().InUse(o.Resource) - p.s.in.Index.Held().At(level, i)
	p.s.in.Index.Leaving(p.s.in.sure, func(route *capacity.Route, amount []int64) {
		if slices.Contains(route.Levels, level) {
			o.Pods -= amount[i]
		}
	})
	for _, l := range p.s.in.Index.Leaves() {
		if l.Wide() || p.s.right.reaches(l.Route()) {
			l.Classes(func(c *holders.Class[T]) {
				o.Bounded = o.Bounded || p.bounded(c)
				n, by, until := c.Protected(p.s.in.Now)
				if held := c.Held(i); n > 0 && held > 0 && p.s.right.covers(c) {
					o.Protected[by] += n * held
					o.Until = ordered.Earlier(o.Until, until)
				}
			})
		}
	}
	return o
}

// bounded says that only a bound on the priority keeps the request from holders of a class. With the priority that its
// object names it would have the right to them.
func (p *pick[T]) bounded(c *holders.Class[T]) bool {
	if p.s.Named <= p.s.Priority || p.s.right.covers(c) || p.of.first(c.First(p.s.in.Now)) == nil {
		return false
	}
	defer func(counts int32) { p.s.Priority = counts }(p.s.Priority)
	p.s.Priority = p.s.Named
	return p.s.right.covers(c)
}
