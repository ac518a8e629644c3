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
	v.Judge(now, "a", Preemption{By: by, Preempts: true, InLine: true, Lost: true})
	v.Judge(now, "a", Preemption{By: by, Holds: true})
	v.Judge(now, "a", Preemption{By: by, Holds: true, OnNode: true})
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
	waits, gone := Preemption{By: a, InLine: true}, Preemption{By: a}
	preempts := Preemption{By: a, Preempts: true, InLine: true}
	preemptsOthers := Preemption{By: a, Preempts: true, InLine: true, Lost: true}
	done := Preemption{By: a, InLine: true, Lost: true}  // preempts nobody any more
	other := Preemption{By: b, InLine: true, Lost: true} // its quota is another one
	gets, holds, runs := Preemption{By: a, Holds: true, Lost: true}, Preemption{By: a, Holds: true},
		Preemption{By: a, Holds: true, OnNode: true}
	for name, c := range map[string]struct {
		is                 []Preemption
		givesUp, blameless bool
		inVain             bool
		ends               bool // nothing is left to judge
	}{
		"preempts nobody":                     {is: []Preemption{waits, holds, runs, gone}, ends: true},
		"gives up before anybody has lost":    {is: []Preemption{preempts, waits}, ends: true},
		"gives up what nobody had lost":       {is: []Preemption{preempts}, givesUp: true, ends: true},
		"preempts":                            {is: []Preemption{preempts}},
		"preempts on":                         {is: []Preemption{preempts, preemptsOthers, preempts}},
		"gives up and fits":                   {is: []Preemption{preempts, done, waits}},
		"gives up":                            {is: []Preemption{preempts, done}, givesUp: true, inVain: true, ends: true},
		"gives up, others are to blame":       {is: []Preemption{preempts, done}, givesUp: true, blameless: true, ends: true},
		"gives up and goes":                   {is: []Preemption{preempts, done, gone}, inVain: true, ends: true},
		"goes":                                {is: []Preemption{preempts, {By: a, Lost: true}}, inVain: true, ends: true},
		"gets it":                             {is: []Preemption{preempts, gets, holds}},
		"gets it and runs":                    {is: []Preemption{preempts, gets, holds, runs, gone}, ends: true},
		"gives up, gets it and runs":          {is: []Preemption{preempts, done, holds, runs, gone}, ends: true},
		"gets it and gives it back":           {is: []Preemption{preempts, done, holds, waits}, inVain: true, ends: true},
		"gets it, gives it back and preempts": {is: []Preemption{preempts, done, holds, preempts}, inVain: true, ends: true},
		"is of another quota when it is lost": {is: []Preemption{preempts, other}, givesUp: true, inVain: true, ends: true},
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

// Units that preempted together, as those of a gang group do, give up together. That is one time.
func TestWhoGivesUpTogetherIsNotedOnce(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	v, by := &Vain{}, Beneficiary{"ns", "a"}
	for i := range 8 {
		v.Judge(now, fmt.Sprint(i), Preemption{By: by, Preempts: true, InLine: true, Lost: true})
	}
	for i := range 8 {
		v.GiveUp(now.Add(time.Duration(i)*time.Second), fmt.Sprint(i), false)
	}
	until, times := v.Until(now, by)
	require.Equal(t, 1, times)
	require.Equal(t, firstPause, until.Sub(now))
}
