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

package watchdog

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

// leaderAt is a watchdog, and a client that it watches.
func leaderAt(clk *clocktesting.FakeClock, limit time.Duration) (g *Timer, send func() error) {
	g = New(clk, limit)
	rt := g.Wrap(
		roundTripper(func(*http.Request) (*http.Response, error) { return &http.Response{Body: http.NoBody}, nil }),
	)
	return g, func() error {
		response, err := rt.RoundTrip(&http.Request{})
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
}

func TestALeaderThatStoodStillSendsNothing(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	g, send := leaderAt(clk, 6*time.Second)
	clk.Step(time.Hour)
	require.NoError(t, send(), "what does not lead may stand still")
	_, over := g.pulse()
	require.False(t, over)
	clk.Step(6 * time.Second)
	require.NoError(t, send())
	_, over = g.pulse()
	require.False(t, over)

	// The request comes before the process has found out.
	clk.Step(7 * time.Second)
	require.ErrorIs(t, send(), ErrStoodStill)
	stood, over := g.pulse()
	require.True(t, over)
	require.Equal(t, 7*time.Second, stood)
	require.ErrorIs(t, send(), ErrStoodStill, "there is no way back")
}

func TestALeaderThatStoodStillEnds(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	g, _ := leaderAt(clk, 6*time.Second)
	ended := make(chan time.Duration, 1)
	g.end = func(stood time.Duration) { ended <- stood }
	_, _ = g.pulse()
	clk.Step(28 * time.Second)
	g.run(t.Context())
	require.Equal(t, 28*time.Second, <-ended)
}

func TestWithoutLeaderElectionAProcessMayStandStill(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Unix(0, 0))
	g, send := leaderAt(clk, 0)
	g.Lead(context.Background())
	clk.Step(time.Hour)
	require.NoError(t, send())
}
