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

package statuswrite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/transition"
)

// TestWritesThatInformLeaveRoomForDecisions: half of what may be in flight while there is nothing else to write, one
// while decisions are being sent, and never none.
func TestWritesThatInformLeaveRoomForDecisions(t *testing.T) {
	for _, c := range []struct{ most, alone int }{{32, 4}, {4, 2}, {1, 2}} {
		p := newPool(Options{Concurrency: c.most}, nil)
		for range 40 {
			p.submit(&Write{Kind: QueueStatus})
		}
		decision := &Write{Kind: Admit, Decision: &transition.Admit{}}
		p.submit(decision)
		first, ok := p.next()
		require.True(t, ok)
		require.Same(t, decision, first, "decisions go first")
		informing := 0
		for ; p.ready() != nil; informing++ {
			_, ok := p.next()
			require.True(t, ok)
		}
		require.Equal(t, 1, informing, "at most %d in flight", c.most)
		p.release(decision)
		for ; p.ready() != nil; informing++ {
			_, ok := p.next()
			require.True(t, ok)
		}
		require.Equal(t, c.alone, informing, "at most %d in flight", c.most)
		p.release(&Write{Kind: QueueStatus})
		require.NotNil(t, p.ready())
	}
}

// TestASlowAPIServerHasFewWritesInFlight: what may be in flight follows from how long writes take.
func TestASlowAPIServerHasFewWritesInFlight(t *testing.T) {
	p := newPool(Options{Concurrency: 32}, nil)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	answered := func(took time.Duration) {
		now = now.Add(took)
		p.learn(&Result{Write: &Write{}, Outcome: transition.Confirmed, Took: took, AtOnce: 32}, now.Add(-took))
	}
	fly := func() (n int) {
		for range 40 {
			p.submit(&Write{Kind: Admit, Decision: &transition.Admit{}})
		}
		for ; p.ready() != nil; n++ {
			_, _ = p.next()
		}
		p.high, p.highBusy = nil, 0
		return n
	}
	for range 1000 {
		answered(3 * time.Millisecond)
	}
	require.Equal(t, 32, fly())
	for range 10 {
		answered(300 * time.Millisecond)
	}
	require.Equal(t, leastWrites, fly())
}
