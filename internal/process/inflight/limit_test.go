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

package inflight

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// answers feeds a limit with n writes of one kind that took so long each, one after the other.
func answers(l *Limit, now *time.Time, n int, took time.Duration, beside int) {
	for range n {
		begun := *now
		*now = begun.Add(took)
		l.Take(Answer{Kind: "PATCH jobs", Begun: begun, Ended: *now, InFlight: beside})
	}
}

func TestALimitFollowsTheLatency(t *testing.T) {
	const usual, prompt, slow, long = 5 * time.Millisecond, Prompt, 60 * time.Millisecond, 300 * time.Millisecond
	for name, c := range map[string]struct {
		took   []time.Duration // 200 writes each
		flying int
		want   int
	}{
		"prompt":                              {[]time.Duration{usual}, 32, 20},
		"prompt for long":                     {[]time.Duration{usual, usual, usual}, 32, 32},
		"prompt, and few are under way":       {[]time.Duration{usual}, 1, 4},
		"slow always: nobody is in the way":   {[]time.Duration{long, long, long}, 32, 32},
		"slower than usual":                   {[]time.Duration{usual, slow}, 32, 2},
		"slower than usual, and prompt still": {[]time.Duration{usual, prompt}, 32, 28},
		"slower than usual, and prompt again": {[]time.Duration{usual, slow, usual}, 32, 20},
	} {
		t.Run(name, func(t *testing.T) {
			l, now := NewLimit(2, 32), start
			for _, took := range c.took {
				answers(&l, &now, 200, took, c.flying)
			}
			require.Equal(t, c.want, l.Writes())
		})
	}
}

func TestARefusalForWantOfCapacityShrinksTheLimit(t *testing.T) {
	l, now := NewLimit(2, 32), start
	answers(&l, &now, 1000, time.Millisecond, 32)
	before := l.Writes()
	l.Take(Answer{Begun: now, Ended: now.Add(time.Millisecond), InFlight: 1, Overloaded: true})
	require.Less(t, l.Writes(), before)
}

// One burst of slow answers says one thing: writes that were in flight together shrink the limit once.
func TestWritesOfOneBurstShrinkTheLimitOnce(t *testing.T) {
	l, now := NewLimit(2, 32), start
	answers(&l, &now, 1000, time.Millisecond, 32)
	for range 32 {
		l.Take(Answer{Kind: "PATCH jobs", Begun: now, Ended: now.Add(time.Second), InFlight: 32})
	}
	require.Equal(t, 22, l.Writes())
}

// A kind that always takes long, as a webhook looks at it, is no reason to hold others up.
func TestEachKindHasATimeOfItsOwn(t *testing.T) {
	l, now := NewLimit(2, 32), start
	for range 1000 {
		l.Take(Answer{Kind: "POST queueunits", Begun: now, Ended: now.Add(200 * time.Millisecond), InFlight: 32})
		l.Take(Answer{Kind: "PATCH jobs", Begun: now, Ended: now.Add(5 * time.Millisecond), InFlight: 32})
		now = now.Add(time.Millisecond)
	}
	require.Equal(t, 32, l.Writes())
	for i := range 1000 { // and there is an end to what is remembered
		l.Take(Answer{Kind: fmt.Sprint(i), Begun: now, Ended: now.Add(time.Millisecond), InFlight: 32})
	}
	require.LessOrEqual(t, len(l.best), maxKinds+1)
}

// server is a model of one that serves all requests alike, so many a second of them.
type server struct {
	perSecond float64
	// others are requests of other clients, which send the next one once they have an answer.
	others int
}

// serve has a client with a limit send all that it may for a time. It returns how many of its writes were answered.
func (s *server) serve(l *Limit, now *time.Time, during time.Duration) (answered int) {
	const least = 3 * time.Millisecond // on a server that does nothing else
	for end := now.Add(during); now.Before(end); {
		n := l.Writes()
		took := max(least, time.Duration(float64(n+s.others)/s.perSecond*float64(time.Second)))
		for range n {
			l.Take(Answer{Kind: "PATCH jobs", Begun: *now, Ended: now.Add(took), InFlight: n})
		}
		*now = now.Add(took)
		answered += n
	}
	return answered
}

// However fast the server is, the process uses most of it alone, and a small part but never none with others.
// Afterwards the process uses most of it again.
func TestAProcessGivesWayAndComesBack(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		s := server{perSecond: rapid.Float64Range(50, 5000).Draw(t, "per second")}
		least := rapid.IntRange(1, 4).Draw(t, "least")
		l, now := NewLimit(least, 32), start
		s.serve(&l, &now, 10*time.Second)
		alone := func() {
			n := s.serve(&l, &now, 10*time.Second)
			require.GreaterOrEqual(t, float64(n), 0.8*10*min(s.perSecond, float64(least)/0.003), "it uses what nobody else does")
		}
		alone()
		s.others = rapid.IntRange(32, 200).Draw(t, "others")
		prompt := float64(32+s.others)/s.perSecond <= Prompt.Seconds()
		s.serve(&l, &now, 5*time.Second)
		during := 20 * time.Second // less than a best time counts
		n := s.serve(&l, &now, during)
		require.Positive(t, n, "it goes on")
		if !prompt {
			part := float64(n) / during.Seconds() / s.perSecond
			require.LessOrEqual(t, part, 0.5, "others have their part")
		}
		s.others = 0
		s.serve(&l, &now, 5*time.Second)
		alone()
	})
}

// No answers whatever lead out of the bounds.
func TestALimitStaysWithinItsBounds(t *testing.T) {
	effort.Check(t, func(t *rapid.T) {
		least, most := rapid.IntRange(-1, 50).Draw(t, "least"), rapid.IntRange(-1, 50).Draw(t, "most")
		l, now := NewLimit(least, most), start
		for range rapid.IntRange(0, 200).Draw(t, "answers") {
			took := time.Duration(rapid.Int64Range(-10, 10_000).Draw(t, "ms")) * time.Millisecond
			l.Take(Answer{
				Kind: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "kind"), Begun: now, Ended: now.Add(took),
				InFlight: rapid.IntRange(0, 64).Draw(t, "beside"), Overloaded: rapid.Bool().Draw(t, "overloaded"),
			})
			now = now.Add(time.Duration(rapid.Int64Range(0, 100_000).Draw(t, "pause")) * time.Millisecond)
			require.GreaterOrEqual(t, l.Writes(), max(1, least))
			require.LessOrEqual(t, l.Writes(), max(1, least, most))
			require.GreaterOrEqual(t, l.Reports(true), 1)
			require.LessOrEqual(t, l.Reports(false), l.Writes())
		}
	})
}
