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

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/admission"
)

func explode(*admission.State) { panic("a bomb in the core") }

func testCore() *core {
	return newCore(&env{log: logr.Discard(), opts: Options{Clock: clocktesting.NewFakeClock(testStart)}})
}

func TestAPanicPutsTheUnitOfTheCallInQuarantine(t *testing.T) {
	c := testCore()
	before := c.read()
	c.call("team/a", explode)
	require.False(t, c.sound())
	message, ok := c.quarantine("team/a")
	require.True(t, ok)
	require.NotEmpty(t, message)
	c.call("team/b", explode)
	_, ok = c.quarantine("team/b")
	require.False(t, ok, "a panic of a state that is not sound says nothing")
	require.Equal(t, rebuildPanic, c.renew(testStart))
	require.True(t, c.sound())
	require.NotSame(t, before, c.read())
	_, ok = c.quarantine("team/a")
	require.True(t, ok)
	c.acquit("team/a")
	_, ok = c.quarantine("team/a")
	require.False(t, ok)
}

func TestPanicsOfNobodyWaitEverLonger(t *testing.T) {
	c, now := testCore(), testStart
	for _, wait := range []time.Duration{0, 2, 4, 8, 16, 32, 64, 64} {
		c.call("", explode)
		require.Equal(t, wait*time.Second, c.waits(now))
		now = now.Add(wait * time.Second)
		c.renew(now)
	}
	_, ok := c.decide(now)
	require.True(t, ok)
	c.discard(rebuildDifference)
	require.Equal(t, time.Second, c.waits(now), "a decision went well")
	require.Zero(t, c.waits(now.Add(time.Hour)))
}
