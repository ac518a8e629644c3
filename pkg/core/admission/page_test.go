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

package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// checkPage: in any part of the queue, a page has the units of First, and the same answer about the head of a group.
func (w *world) checkPage(t require.TestingT, queue string, first []Waiting) {
	skip, n := len(first)/3, 1+len(first)/2
	page, waiting := w.s.Page(queue, skip, n)
	require.Equal(t, len(first), waiting)
	require.Len(t, page, min(n, len(first)-skip))
	for i, p := range page {
		want := first[skip+i]
		require.Equal(t, want.Unit.Key, p.Key)
		require.Equal(t, want.Position, p.Position)
		require.NotEmpty(t, p.Reason)
		if u := w.s.roster.units[p.Key]; u.group.Head() == u {
			require.Equal(t, want.Reason, p.Reason, p.Key)
		}
	}
}

func TestPageOfWhatIsNotThere(t *testing.T) {
	s := scaleOf(10, 1, 1, "Priority").state()
	for _, c := range []struct {
		queue         string
		skip, n       int
		units, length int
	}{
		{"q0", 0, 100, 10, 10},
		{"q0", 4, 3, 3, 10},
		{"q0", 9, 3, 1, 10},
		{"q0", 10, 3, 0, 10},
		{"q0", 0, 0, 0, 10},
		{"none", 0, 100, 0, 0},
	} {
		page, waiting := s.Page(c.queue, c.skip, c.n)
		require.Len(t, page, c.units, "%+v", c)
		require.Equal(t, c.length, waiting, "%+v", c)
	}
}

// A tenant reads that something is claimed ahead of its unit, and not by which unit of whom.
func TestMessagesNameNoUnitOfOtherNamespaces(t *testing.T) {
	for _, c := range []struct {
		head  string
		named bool
	}{
		{"mine/head", true},
		{"theirs/head", false},
	} {
		s := New(Config{})
		cpu := func(n int64) resources.List { return resources.FromMap(map[string]int64{"cpu": n}) }
		s.SetQuota(epoch, Quota{Name: "root", Limit: cpu(100), Max: cpu(100)})
		s.SetQuota(epoch, Quota{Name: "team", Parent: "root", Limit: cpu(10), Max: cpu(10), Used: cpu(5)})
		s.UpsertQueue(epoch, queue.Spec{Name: "q", Policy: "Block", MaxPending: -1, MaxAdmitted: -1})
		for i, u := range []struct {
			key string
			cpu int64
		}{{c.head, 8}, {"mine/unit", 1}} {
			s.UpsertUnit(epoch, unit.Unit{
				Key: u.key, UID: u.key, Queue: "q", Quota: "team", Request: cpu(u.cpu), Pods: 1, Active: true,
				Created: epoch.Add(time.Duration(i) * time.Second),
			})
		}
		s.Decide(epoch)
		e, ok := s.Explain("mine/unit")
		require.True(t, ok)
		require.Equal(t, unit.ReasonBlockedByHead, e.Reason)
		require.Equal(t, c.head, e.Shortages[0].ClaimedBy)
		require.Contains(t, e.Message, "claimed ahead 8m")
		if c.named {
			require.Contains(t, e.Message, c.head)
		} else {
			require.NotContains(t, e.Message, "theirs")
		}
	}
}

// BenchmarkPage: what a page costs the goroutine that decides, wherever in the queue it is.
func BenchmarkPage(b *testing.B) {
	for _, policy := range []string{"Priority", "Block"} {
		s := scaleOf(100_000, 1, 8, policy).state()
		s.Decide(epoch)
		for _, n := range []int{100, 500} {
			for _, skip := range []int{0, 50_000, 99_000} {
				b.Run(fmt.Sprintf("policy=%s/waiting=100000/units=%d/after=%d", policy, n, skip), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						s.Page("q0", skip, n)
					}
				})
			}
		}
	}
}
