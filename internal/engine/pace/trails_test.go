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

func TestTrails(t *testing.T) {
	const gather = 100 * time.Millisecond
	at := func(d time.Duration) time.Time { return start.Add(d) }
	trail := NewTrails(20*time.Millisecond, time.Second)
	trail.Note(start, nil, nil, false)
	require.True(t, trail.Next(gather).IsZero())

	trail.Note(start, nil, []string{"lazy"}, false)
	require.Equal(t, at(120*time.Millisecond), trail.Next(gather), "what was gathered waits as long as its news")
	trail.Note(at(time.Millisecond), []string{"urgent"}, nil, false)
	require.Equal(t, at(21*time.Millisecond), trail.Next(gather))
	names, all := trail.Due(at(20*time.Millisecond - 1))
	require.Empty(t, names)
	require.False(t, all)
	names, all = trail.Due(at(21 * time.Millisecond))
	require.Equal(t, []string{"urgent", "lazy"}, names, "a step that there is anyway takes the lazy ones along")
	require.False(t, all)
	require.True(t, trail.Next(gather).IsZero())

	trail.Note(start, nil, nil, true)
	for _, d := range []time.Duration{20 * time.Millisecond, time.Second} {
		require.Equal(t, at(d), trail.Next(gather), "once the hook's lag is over, once when nodes have settled")
		_, all = trail.Due(at(d))
		require.True(t, all)
	}
	require.True(t, trail.Next(gather).IsZero())
}
