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

package ordered

import (
	"cmp"
	"math"
	"time"
)

// Due holds values for each of which something is due at a time, the earliest first. The owner of a value keeps its
// time with the value.
type Due[U comparable] struct {
	at     func(U) Moment
	values *Tree[U]
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

// NewDue returns an empty list. at returns the time of a value. compare orders values of the same time. It is zero for
// equal values only, and must not change while they have a time.
func NewDue[U comparable](at func(U) Moment, compare func(a, b U) int) *Due[U] {
	return &Due[U]{at: at, values: NewTree(func(a, b U) int {
		if c := cmp.Compare(at(a), at(b)); c != 0 || a == b {
			return c
		}
		return compare(a, b)
	})}
}

// Move gives a value another time; set stores it. Zero takes the value out.
func (d *Due[U]) Move(u U, to Moment, set func(Moment)) {
	from := d.at(u)
	if from == to {
		return
	}
	if from != 0 {
		d.values.Delete(u)
	}
	set(to)
	if to != 0 {
		d.values.Insert(u)
	}
}

// First is the value whose time comes first; false if there is none.
func (d *Due[U]) First() (U, bool) { return d.values.Min() }

// Until visits the values whose time is over by then, in order. A visit must not change any time.
func (d *Due[U]) Until(then Moment, visit func(U)) {
	d.values.Walk(func(u U) bool {
		over := d.at(u) <= then
		if over {
			visit(u)
		}
		return over
	})
}

// Len is the number of values.
func (d *Due[U]) Len() int { return d.values.Len() }

// Earlier of two times, of which zero is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
