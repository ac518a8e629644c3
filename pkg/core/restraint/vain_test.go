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
	v.Used(by)
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
