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

package telling

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/backlog"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type testUnit struct {
	key string
	// age orders units that came at the same time, and those of the line.
	age      int
	listener Listener
	group    *testGroup
}

type (
	testGroup = backlog.Group[*testUnit, testNotes]
	testNotes struct {
		topic  Topic[*testUnit]
		reason unit.Reason
	}
)

func (u *testUnit) Item() queue.Item {
	return queue.Item{Key: u.key, Created: epoch.Add(time.Duration(u.age) * time.Second)}
}

func (u *testUnit) namespace() string {
	namespace, _, _ := strings.Cut(u.key, "/")
	return namespace
}

// crowd is one group of units, each of which is told the reason of the group.
type crowd struct {
	*Schedule[*testUnit, testNotes]
	line  *backlog.Line[*testUnit, testNotes]
	group *testGroup
	came  int
}

func newCrowd(after, every time.Duration) *crowd {
	return &crowd{
		line: backlog.NewLine[*testUnit, testNotes](queue.Builtin()["FIFO"](0)),
		Schedule: New(&Config[*testUnit, testNotes]{
			After: after, Every: every, Namespace: (*testUnit).namespace,
			Compare:  func(a, b *testUnit) int { return cmp.Compare(a.age, b.age) },
			Listener: func(u *testUnit) *Listener { return &u.listener },
			Group:    func(u *testUnit) *testGroup { return u.group },
			Topic:    func(g *testGroup) *Topic[*testUnit] { return &g.Notes.topic },
			Seat:     func(u *testUnit) *testUnit { return &testUnit{key: u.key, age: u.age} },
			Saying: func(u *testUnit) *unit.Saying {
				if u.group.Notes.reason == "" {
					return nil
				}
				return &unit.Saying{Reason: u.group.Notes.reason}
			},
		}),
	}
}

// join brings n units of a namespace.
func (c *crowd) join(now time.Time, namespace string, n int) {
	for i := range n {
		u := &testUnit{key: fmt.Sprintf("%s/u%06d", namespace, i), age: c.came}
		c.came++
		c.group, _ = c.line.Join(u, backlog.Key{})
		u.group = c.group
		c.Joined(now, u)
	}
}

func (c *crowd) says(now time.Time, reason unit.Reason) {
	c.group.Notes.reason = reason
	c.Changed(now, c.group, reason)
}

// keys of those that are told something now, so many at most.
func (c *crowd) keys(now time.Time, most int) (keys []string) {
	for _, u := range c.Tell(now, most) {
		keys = append(keys, u.key)
	}
	return keys
}

// As many units as requested get a reason at once, each one time, and the longest waiting first.
func TestThoseThatWaitLongestAreToldFirst(t *testing.T) {
	c := newCrowd(5*time.Second, time.Minute)
	c.join(epoch, "ns", 100)
	c.says(epoch, unit.ReasonQuotaExceeded)
	require.Empty(t, c.Tell(epoch, 20))
	now := epoch.Add(5 * time.Second)
	require.Equal(t, now, c.At(epoch))
	for portion := range 5 {
		told := c.Tell(now, 20)
		require.Len(t, told, 20)
		for i, u := range told {
			require.Equal(t, 20*portion+i, u.age)
			require.Equal(t, &unit.Saying{Reason: unit.ReasonQuotaExceeded}, u.listener.Said())
		}
	}
	require.Zero(t, c.At(now), "nothing moves")
	require.Empty(t, c.Tell(now.Add(time.Hour), 20))
	require.Zero(t, c.Len())
}

// A reason that changes is told to all units of the group, however far behind the first they are, and the same again to
// nobody.
func TestAReasonThatChangesIsToldToAll(t *testing.T) {
	c := newCrowd(0, 10*time.Second)
	c.join(epoch, "ns", 3*mostLooked)
	c.says(epoch, unit.ReasonQuotaExceeded)
	require.Len(t, c.Tell(epoch, 3*mostLooked), 3*mostLooked)
	require.Zero(t, c.At(epoch))

	now := epoch.Add(time.Minute)
	c.says(now, unit.ReasonBlockedByHead)
	seen := map[string]bool{}
	for c.At(now).Equal(now) {
		for _, key := range c.keys(now, 7) {
			require.False(t, seen[key])
			seen[key] = true
		}
	}
	require.Len(t, seen, 3*mostLooked)

	// The reason changes there and back before the next write is allowed: nothing is written, and the round ends.
	c.says(now, unit.ReasonQuotaExceeded)
	c.says(now, unit.ReasonBlockedByHead)
	for range 10 {
		now = now.Add(10 * time.Second)
		require.Empty(t, c.Tell(now, 1))
	}
	require.Zero(t, c.At(now))
}

// A reason that changes again and again while the round is made still comes to everybody.
func TestARoundGoesOnWhereItWas(t *testing.T) {
	c := newCrowd(0, 0)
	c.join(epoch, "ns", 100)
	c.says(epoch, unit.ReasonQuotaExceeded)
	require.Len(t, c.Tell(epoch, 1000), 100)
	now, seen := epoch, map[string]bool{}
	for i := range 50 {
		now = now.Add(time.Second)
		c.says(now, []unit.Reason{unit.ReasonQueueHeld, unit.ReasonQuotaExceeded}[i%2])
		for _, key := range c.keys(now, 4) {
			seen[key] = true
		}
	}
	require.Len(t, seen, 100)
}

// A reason that changes in the middle of a round is told to those as well that the round has passed.
func TestARoundGoesAroundOnceMore(t *testing.T) {
	const many = 3 * mostLooked
	c := newCrowd(0, 0)
	c.join(epoch, "ns", many)
	c.says(epoch, unit.ReasonQuotaExceeded)
	told := c.Tell(epoch, many)
	require.Len(t, told, many)
	now := epoch.Add(time.Second)
	c.says(now, unit.ReasonQueueHeld)
	require.Len(t, c.Tell(now, 1), 1)
	c.says(now, unit.ReasonBlockedByHead)
	require.Len(t, c.Tell(now, many), many)
	for _, u := range told {
		require.Equal(t, unit.ReasonBlockedByHead, u.listener.Said().Reason)
	}
}

// A reason that is often over at once is told to a group when it has lasted.
func TestAFleetingReasonIsToldLater(t *testing.T) {
	c := newCrowd(5*time.Second, 0)
	c.join(epoch, "ns", 2)
	c.says(epoch, unit.ReasonQuotaExceeded)
	now := epoch.Add(time.Minute)
	require.Len(t, c.Tell(now, 9), 2)
	c.says(now, unit.ReasonUnknownQuota)
	require.Equal(t, now.Add(5*time.Second), c.At(now))
	require.Empty(t, c.Tell(now, 9))
	require.Len(t, c.Tell(now.Add(5*time.Second), 9), 2)
}

// Units that are to be told something before there is a reason are told when there is one.
func TestAReasonThatIsNotKnownYetIsToldLater(t *testing.T) {
	c := newCrowd(0, 0)
	c.join(epoch, "ns", 2)
	c.Changed(epoch, c.group, "")
	require.Empty(t, c.Tell(epoch, 9))
	require.Zero(t, c.At(epoch))
	c.says(epoch, unit.ReasonQuotaExceeded)
	require.Equal(t, epoch, c.At(epoch))
	require.Len(t, c.Tell(epoch, 9), 2)
}

// However many units of one namespace are due, a unit of another one gets its reason soon. That holds when it arrives,
// and when the reason of all changes.
func TestUnitsOfOneNamespaceDoNotDelayTheReasonsOfAnother(t *testing.T) {
	const many = 3000
	c := newCrowd(5*time.Second, time.Second)
	c.join(epoch, "ns", many)
	c.join(epoch, "other", 2)
	c.says(epoch, unit.ReasonQuotaExceeded)
	now := epoch.Add(5 * time.Second)
	toldOthers := func(calls int) (others []string) {
		for range calls {
			keys := c.keys(now, 1)
			require.Len(t, keys, 1)
			if strings.HasPrefix(keys[0], "other/") {
				others = append(others, keys[0])
			}
		}
		return others
	}
	require.Equal(t, []string{"other/u000000", "other/u000001"}, toldOthers(4), "by turns, whoever came first")
	require.Empty(t, toldOthers(many-2))

	now = now.Add(time.Minute)
	c.says(now, unit.ReasonQueueHeld)
	found := []string{"other/u000000", "other/u000001"}
	require.Equal(t, found, toldOthers(many/mostLooked+6), "as soon as they are found")
}
