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

package backlog

import (
	"cmp"
	"math"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// Due is what is to be done about units at a time, the earliest first, then by age, then by key. The time of a unit is
// kept with the unit, by whoever owns it.
type Due[U comparable] struct {
	at    func(U) Moment
	units *queue.Tree[U]
}

// Moment is a time on the wall in nanoseconds, zero for none.
type Moment int64

// MomentOf a time. People may write any time into an object: what nanoseconds cannot say is the first or the last
// moment.
func MomentOf(t time.Time) Moment {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() <= 0:
		return 1
	case t.Unix() >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return Moment(t.UnixNano())
}

// Time of a moment.
func (m Moment) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(m)).UTC()
}

// NewDue returns an empty list. at tells the time of a unit, born its age and its key, which do not change while it has
// a time.
func NewDue[U comparable](at func(U) Moment, born func(U) queue.Item) *Due[U] {
	return &Due[U]{at: at, units: queue.NewTree(func(a, b U) int {
		if c := cmp.Compare(at(a), at(b)); c != 0 || a == b {
			return c
		}
		x, y := born(a), born(b)
		if c := x.Created.Compare(y.Created); c != 0 {
			return c
		}
		return strings.Compare(x.Key, y.Key)
	})}
}

// Move gives a unit another time; set stores it. Zero takes the unit out.
func (d *Due[U]) Move(u U, to Moment, set func(Moment)) {
	from := d.at(u)
	if from == to {
		return
	}
	if from != 0 {
		d.units.Delete(u)
	}
	set(to)
	if to != 0 {
		d.units.Insert(u)
	}
}

// First is the unit whose time comes first; false if there is none.
func (d *Due[U]) First() (U, bool) { return d.units.Min() }

// Len is the number of units.
func (d *Due[U]) Len() int { return d.units.Len() }
