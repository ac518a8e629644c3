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

package restraint

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestVain(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	v, by := &Vain{}, Beneficiary{"ns", "a"}
	wait := func() time.Duration {
		until, _ := v.Until(now, by)
		if until.IsZero() {
			return 0
		}
		return until.Sub(now)
	}
	require.Zero(t, wait())
	for _, want := range []time.Duration{30, 60, 120, 240, 480, 960, 1920, 3600, 3600} {
		v.Note(now, by)
		require.Equal(t, want*time.Second, wait())
		now = now.Add(wait())
		require.Zero(t, wait())
	}
	v.Judge(now, "a", Taking{By: by, Takes: true, InLine: true, Lost: true})
	v.Judge(now, "a", Taking{By: by, Holds: true})
	v.Judge(now, "a", Taking{By: by, Holds: true, OnNode: true})
	v.Note(now, by)
	require.Equal(t, firstPause, wait())
	v.Note(now, by)
	now = now.Add(wait() + longestPause)
	v.Note(now, by)
	require.Equal(t, firstPause, wait(), "long ago")
	_, times := v.Until(now, Beneficiary{"ns", "b"})
	require.Zero(t, times)
}

// Nobody grows what is remembered without bound.
func TestVainIsBounded(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	v := &Vain{}
	for i := range 2 * mostPauses {
		now = now.Add(time.Millisecond)
		v.Note(now, Beneficiary{fmt.Sprint(i), "a"})
		require.LessOrEqual(t, len(v.of), mostPauses)
	}
	until, times := v.Until(now, Beneficiary{fmt.Sprint(2*mostPauses - 1), "a"})
	require.Equal(t, now.Add(firstPause), until)
	require.Equal(t, 1, times)
}

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a, b := Beneficiary{"ns", "a"}, Beneficiary{"ns", "b"}
	waits, gone := Taking{By: a, InLine: true}, Taking{By: a}
	takes, takesOthers := Taking{By: a, Takes: true, InLine: true}, Taking{By: a, Takes: true, InLine: true, Lost: true}
	done := Taking{By: a, InLine: true, Lost: true}  // it takes nothing any more
	other := Taking{By: b, InLine: true, Lost: true} // its quota is another one
	gets, holds, runs := Taking{By: a, Holds: true, Lost: true}, Taking{By: a, Holds: true},
		Taking{By: a, Holds: true, OnNode: true}
	for name, c := range map[string]struct {
		is                 []Taking
		givesUp, blameless bool
		inVain             bool
		ends               bool // nothing is to be judged any more
	}{
		"takes nothing":                       {is: []Taking{waits, holds, runs, gone}, ends: true},
		"gives up before anybody has lost":    {is: []Taking{takes, waits}, ends: true},
		"gives up what nobody had lost":       {is: []Taking{takes}, givesUp: true, ends: true},
		"takes":                               {is: []Taking{takes}},
		"takes on":                            {is: []Taking{takes, takesOthers, takes}},
		"gives up and fits":                   {is: []Taking{takes, done, waits}},
		"gives up":                            {is: []Taking{takes, done}, givesUp: true, inVain: true, ends: true},
		"gives up, others are to blame":       {is: []Taking{takes, done}, givesUp: true, blameless: true, ends: true},
		"gives up and goes":                   {is: []Taking{takes, done, gone}, inVain: true, ends: true},
		"goes":                                {is: []Taking{takes, {By: a, Lost: true}}, inVain: true, ends: true},
		"gets it":                             {is: []Taking{takes, gets, holds}},
		"gets it and runs":                    {is: []Taking{takes, gets, holds, runs, gone}, ends: true},
		"gives up, gets it and runs":          {is: []Taking{takes, done, holds, runs, gone}, ends: true},
		"gets it and gives it back":           {is: []Taking{takes, done, holds, waits}, inVain: true, ends: true},
		"gets it, gives it back and takes":    {is: []Taking{takes, done, holds, takes}, inVain: true, ends: true},
		"is of another quota when it is lost": {is: []Taking{takes, other}, givesUp: true, inVain: true, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := &Vain{}
			for _, is := range c.is {
				v.Judge(now, "u", is)
			}
			require.Equal(t, c.ends && !c.givesUp, !v.Gains("u"))
			if c.givesUp {
				v.GiveUp(now, "u", c.blameless)
			}
			_, noted := v.Until(now, a)
			require.Equal(t, c.inVain, noted == 1)
			require.Equal(t, noted, v.Noted())
			require.Zero(t, v.Noted())
			_, noted = v.Until(now, b)
			require.Zero(t, noted)
			require.Equal(t, !c.ends, v.Gains("u"))
		})
	}
}

// Units that took together, as those of a gang group do, give up together. That is one time.
func TestWhoGivesUpTogetherIsNotedOnce(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	v, by := &Vain{}, Beneficiary{"ns", "a"}
	for i := range 8 {
		v.Judge(now, fmt.Sprint(i), Taking{By: by, Takes: true, InLine: true, Lost: true})
	}
	for i := range 8 {
		v.GiveUp(now.Add(time.Duration(i)*time.Second), fmt.Sprint(i), false)
	}
	until, times := v.Until(now, by)
	require.Equal(t, 1, times)
	require.Equal(t, firstPause, until.Sub(now))
}
