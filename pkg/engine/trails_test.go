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

package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTrails(t *testing.T) {
	c := &Config{TrailingCheck: 20 * time.Millisecond, TotalSettles: time.Second}
	const gather = 100 * time.Millisecond
	at := func(d time.Duration) time.Time { return testStart.Add(d) }
	var trail trails
	trail.note(testStart, nil, false, c)
	require.True(t, trail.next(gather).IsZero())

	trail.note(testStart, []entry[string, urgency]{{"lazy", newsGathered}}, false, c)
	require.Equal(t, at(120*time.Millisecond), trail.next(gather), "what was gathered waits as long as its news")
	trail.note(at(time.Millisecond), []entry[string, urgency]{{"urgent", newsUrgent}}, false, c)
	require.Equal(t, at(21*time.Millisecond), trail.next(gather))
	names, all := trail.due(at(20*time.Millisecond - 1))
	require.Empty(t, names)
	require.False(t, all)
	names, all = trail.due(at(21 * time.Millisecond))
	require.Equal(t, []string{"urgent", "lazy"}, names, "a step that there is anyway takes the lazy ones along")
	require.False(t, all)
	require.True(t, trail.next(gather).IsZero())

	trail.note(testStart, nil, true, c)
	for _, d := range []time.Duration{20 * time.Millisecond, time.Second} {
		require.Equal(t, at(d), trail.next(gather), "once the hook's lag is over, once when nodes have settled")
		_, all = trail.due(at(d))
		require.True(t, all)
	}
	require.True(t, trail.next(gather).IsZero())
}
