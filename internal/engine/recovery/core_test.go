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

package recovery

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/env"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

// start of the tests.
var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func explode(*admission.State) { panic("a bomb in the core") }

func testCore() *Core {
	return New(&env.Env{Log: logr.Discard(), Clock: clocktesting.NewFakeClock(start)}, admission.Config{})
}

func TestAPanicPutsTheUnitOfTheCallInQuarantine(t *testing.T) {
	c := testCore()
	before := c.Read()
	c.Call("team/a", explode)
	require.False(t, c.Sound())
	message, ok := c.Quarantine("team/a")
	require.True(t, ok)
	require.NotEmpty(t, message)
	c.Call("team/b", explode)
	_, ok = c.Quarantine("team/b")
	require.False(t, ok, "a panic of a state that is not sound says nothing")
	require.Equal(t, Panic, c.Renew(start))
	require.True(t, c.Sound())
	require.NotSame(t, before, c.Read())
	_, ok = c.Quarantine("team/a")
	require.True(t, ok)
	c.Acquit("team/a")
	_, ok = c.Quarantine("team/a")
	require.False(t, ok)
}

func TestPanicsOfNobodyWaitEverLonger(t *testing.T) {
	c, now := testCore(), start
	for _, wait := range []time.Duration{0, 2, 4, 8, 16, 32, 64, 64} {
		c.Call("", explode)
		require.Equal(t, wait*time.Second, c.Waits(now))
		now = now.Add(wait * time.Second)
		c.Renew(now)
	}
	_, ok := c.Decide(now)
	require.True(t, ok)
	c.Discard(Difference)
	require.Equal(t, time.Second, c.Waits(now), "a decision went well")
	require.Zero(t, c.Waits(now.Add(time.Hour)))
}
