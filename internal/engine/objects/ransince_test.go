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

package objects

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// From when the time of a job counts: a unit of the stand-alone Koord-Queue says it in its condition alone.
func TestSinceWhenAJobRan(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	const ready = `"conditions":[{"type":"PodsReady","status":"True","reason":"PodsRunning",` +
		`"lastTransitionTime":"2026-01-01T00:05:00Z"}]`
	const lost = `"conditions":[{"type":"PodsReady","status":"False","reason":"PodsLost",` +
		`"lastTransitionTime":"2026-01-01T00:05:00Z"}]`
	for name, c := range map[string]struct {
		status string
		since  time.Time
	}{
		"it says so": {`"executionStartTime":"2026-01-01T00:04:00Z"`, at(4)},
		"and that its pods became ready once more": {`"executionStartTime":"2026-01-01T00:04:00Z",` + ready, at(4)},
		"and that they are not ready any more":     {`"executionStartTime":"2026-01-01T00:04:00Z",` + lost, at(4)},
		"the condition alone":                      {ready, at(5)},
		"the condition that they are not":          {lost, time.Time{}},
		"nothing":                                  {`"message":""`, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			u := unitIn(t, `{"kind":"QueueUnit","metadata":{"name":"a","namespace":"b","uid":"c"},"status":{"phase":"Running",`+
				c.status+`}}`)
			require.Empty(t, u.Invalid, u.InvalidMessage)
			require.True(t, c.since.Equal(u.RanSince), u.RanSince)
		})
	}
}
