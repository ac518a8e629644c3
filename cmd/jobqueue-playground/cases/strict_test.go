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

package cases

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestVerdictOfStrict(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(placed, other *story)
		want   string
	}{
		{"as it should be", func(_, _ *story) {}, ""},
		{"a pod hangs", func(placed, _ *story) { placed.made["1"] = storyStart.Add(-hangs) }, "1 of 3 cases"},
		{"a pod without a node", func(placed, _ *story) { placed.made["3"] = storyStart }, "1 of 3 cases"},
		{"another reason", func(placed, _ *story) { placed.lost[0] = "Unschedulable" }, "1 of 3 cases"},
		{"not ended", func(placed, _ *story) { placed.complete = false }, "1 of 3 cases"},
		{"not fragmented", func(placed, _ *story) { placed.lost, placed.attempts = nil, 1 }, "they were not fragmented"},
		{"nothing hangs", func(_, other *story) { other.made = nil }, "no pod of the jobs without the check"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			stories := strict().Stories()
			for i := range fragments {
				lived(stories, fmt.Sprintf("fragment-%d", i), 0)
			}
			var placed, other *story
			for i := range largeJobs {
				placed, other = lived(stories, fmt.Sprintf("placed-%d", i), 1), lived(stories, fmt.Sprintf("other-%d", i), 2)
			}
			placed.lost, placed.attempts = []string{"CheckRetry", "CheckRetry"}, 3
			for i := range strictPods {
				placed.made[fmt.Sprint(i)] = storyStart
				other.made[fmt.Sprint(i)] = storyStart.Add(-time.Minute)
			}
			tc.change(placed, other)
			v := stories.Verdict(true)
			if tc.want == "" {
				require.NoError(t, v.Err())
				return
			}
			require.ErrorContains(t, v.Err(), tc.want)
		})
	}
}
