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

package pace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThePaceOfReasons(t *testing.T) {
	now := start
	p := NewReasons(20, now)
	require.True(t, p.Next().IsZero(), "nobody wants any")
	p.Want(now)
	require.Equal(t, now, p.Next())
	require.Equal(t, 20, p.Allowance(now))
	p.Spend(20)
	require.Zero(t, p.Allowance(now))
	require.WithinDuration(t, now.Add(50*time.Millisecond), p.Next(), time.Microsecond)
	for range 20 {
		now = now.Add(50 * time.Millisecond)
		require.Equal(t, 1, p.Allowance(now))
		p.Spend(0) // to look costs as much
	}
	require.Equal(t, 20, p.Allowance(now.Add(time.Hour)), "what is not used is not kept for longer than a second")
}

// Little's law: requests under way, over how long one takes, is how many the API server takes in a second. Reasons are
// a tenth of that.
func TestReasonsAreATenthOfWhatTheAPIServerTakes(t *testing.T) {
	for _, c := range []struct {
		took   time.Duration
		beside int
		want   float64
	}{
		{2 * time.Millisecond, 1, 20}, // 500 a second
		{50 * time.Millisecond, 1, 2},
		{50 * time.Millisecond, 5, 10},
		{4 * time.Second, 1, 0.025},
		{0, 1, 20}, // nobody measured
	} {
		p := NewReasons(20, start)
		p.Seen(c.took, c.beside)
		require.InDelta(t, c.want, p.rate(), 1e-9, "%s beside %d", c.took, c.beside)
	}
	p := NewReasons(20, start)
	for range 50 {
		p.Seen(100*time.Millisecond, 1)
	}
	p.Spend(20)
	p.Want(start)
	require.WithinDuration(t, start.Add(time.Second), p.Next(), time.Millisecond)
	for range 50 {
		p.Seen(time.Millisecond, 1)
	}
	require.InDelta(t, 20, p.rate(), 1, "it recovers")
}
