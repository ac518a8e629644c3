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
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestDue(t *testing.T) {
	d := NewDue(dueAt, byKey)
	move := func(u *dueUnit, at time.Time) { d.Move(u, MomentOf(at), func(m Moment) { u.at = m }) }
	a, b := &dueUnit{key: "a"}, &dueUnit{key: "b"}
	move(b, epoch)
	move(a, epoch)
	first, _ := d.First()
	require.Same(t, a, first, "by key")
	move(a, epoch.Add(time.Second))
	first, _ = d.First()
	require.Same(t, b, first)
	move(b, time.Time{})
	move(b, time.Time{})
	require.Equal(t, 1, d.Len())
	require.Equal(t, epoch.Add(time.Second), a.at.Time())
	require.Zero(t, b.at.Time())
}

// Units of one moment are kept apart.
func TestDueAtOnce(t *testing.T) {
	d := NewDue(dueAt, byKey)
	move := func(u *dueUnit, at Moment) { d.Move(u, at, func(m Moment) { u.at = m }) }
	units := map[string]*dueUnit{}
	for _, key := range []string{"c", "a", "d", "b"} {
		units[key] = &dueUnit{key: key}
		move(units[key], 7)
	}
	move(units["b"], 0)
	var order string
	for u, some := d.First(); some; u, some = d.First() {
		order += u.key
		move(u, 0)
	}
	require.Equal(t, "acd", order)
	require.Zero(t, d.Len())
}

// People may write any time into an object.
func TestMoments(t *testing.T) {
	for _, at := range []time.Time{
		epoch, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC),
	} {
		require.Positive(t, MomentOf(at), at)
	}
	require.Greater(t, MomentOf(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)), MomentOf(epoch))
	require.Less(t, MomentOf(time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)), MomentOf(epoch))
	require.Zero(t, MomentOf(time.Time{}))
	require.EqualValues(t, 1, MomentOf(time.Unix(0, 0)), "some moment, though its nanoseconds are zero")
	require.EqualValues(t, time.Second, MomentOf(time.Unix(1, 0)))
	last := time.Unix(math.MaxInt64/int64(time.Second), 999_999_999)
	require.EqualValues(t, math.MaxInt64, MomentOf(last), "its nanoseconds are no int64")
}
