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

	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/statuswrite"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

func TestReportsAreTakenWhenTheyAreDue(t *testing.T) {
	r := reports{}
	require.True(t, r.next().IsZero())
	r["b"], r["a"] = report{at: testStart}, report{at: testStart}
	r.again(testStart, "c", &statuswrite.Write{Said: unit.Saying{Reason: "Failed", Message: "why"}, Tries: 2})
	require.Equal(t, testStart, r.next())
	var taken []string
	take := func(now time.Time) []string {
		taken = nil
		r.take(now, func(key string, x report) { taken = append(taken, key+string(x.Reason)) })
		return taken
	}
	require.Equal(t, []string{"a", "b"}, take(testStart))
	require.Equal(t, report{
		Saying: unit.Saying{Reason: "Failed", Message: "why"}, tries: 3, at: testStart.Add(4 * time.Second),
	}, r["c"])
	require.Empty(t, take(testStart.Add(4*time.Second-1)))
	require.Equal(t, []string{"cFailed"}, take(testStart.Add(4*time.Second)))
	require.Empty(t, r)
}
