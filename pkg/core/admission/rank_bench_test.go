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

package admission

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The cost of ranking a queue does not depend on how many of its units ask for more than their quota can rightfully
// get. Each admission in any queue ranks it.
func BenchmarkRankBehindTooLargeUnits(b *testing.B) {
	for _, large := range []int{2, 2000} {
		b.Run(fmt.Sprintf("units=%d", large), func(b *testing.B) {
			st := newStory(b)
			st.out = &strings.Builder{}
			for _, line := range []string{
				"quota root total=cpu:30,gpu:9999 used=none", "quota a parent=root min=cpu:4 max=cpu:30 weight=cpu:1",
				"quota b parent=root min=cpu:20 max=cpu:30 weight=cpu:1", "queue q", "queue other",
				"unit full queue=other quota=b request=cpu:24", "unit fill queue=q quota=a request=cpu:6", "decide confirm",
				"unit waits queue=q quota=a request=cpu:5", "unit others queue=other quota=b request=cpu:24",
			} {
				st.line(line)
			}
			for i := range large {
				st.line(fmt.Sprintf("unit large%d queue=q quota=a priority=1 request=cpu:12,gpu:%d", i, i+1))
			}
			st.line("decide confirm")
			q := st.s.lines.byName["q"]
			require.True(b, st.s.roster.units[unitNamed("large0")].group.Notes.ask.TooLarge(st.s.lines.rights))
			for b.Loop() {
				st.s.lines.rankChanged(q)
			}
		})
	}
}
