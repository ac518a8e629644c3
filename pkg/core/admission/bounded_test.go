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
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/effort"
)

// Jobs of equal size preempt one another until no holder has a lower priority than a pending job. Priorities count as
// far as their namespaces allow. Until then each preempts only lower priorities, whatever their order in line.
func TestPrioritiesTakeAsFarAsNamespacesAllow(t *testing.T) {
	effort.Check(t, func(rt *rapid.T) {
		st := newStory(t)
		st.out = &strings.Builder{}
		room := rapid.IntRange(1, 4).Draw(rt, "room")
		st.line(fmt.Sprintf("quota root limit=cpu:%d", room))
		st.line(fmt.Sprintf("quota a parent=root min=cpu:%[1]d max=cpu:%[1]d", room))
		policy := rapid.SampledFrom([]string{"Priority", "Block"}).Draw(rt, "policy")
		within := rapid.SampledFrom([]string{"lower", ""}).Draw(rt, "within")
		st.line(fmt.Sprintf("queue q policy=%s within=%s", policy, within))
		for i := range rapid.IntRange(2, 8).Draw(rt, "units") {
			st.line(fmt.Sprintf("job j%[1]d uid=%[1]d", i))
			st.line(fmt.Sprintf("unit u%[1]d queue=q quota=a request=cpu:1 job=j%[1]d:%[1]d priority=%[2]d max-priority=%[3]d",
				i, rapid.IntRange(-1, 3).Draw(rt, "priority"), rapid.SampledFrom([]int{-1, 0, 1, 2, 9}).Draw(rt, "bound")))
			if rapid.Bool().Draw(rt, "decide") {
				decideBounded(rt, st)
			}
		}
		st.line("queue q within=lower") // from the beginning, or from now on
		for round, idle := 0, 0; idle < 3; round++ {
			require.Less(rt, round, 100, "preemption does not end")
			st.line(fmt.Sprintf("tick %ds", 2+40*idle)) // a unit that preempted in vain waits before the next time
			if idle++; decideBounded(rt, st) {
				idle = 0
			}
		}
		for _, waits := range st.units {
			for _, holds := range st.units {
				require.False(rt, waits.Phase.Waits() && holds.Phase.Holds() && counts(waits) > counts(holds),
					"%s waits with %d, and %s holds with %d", waits.Key, counts(waits), holds.Key, counts(holds))
			}
		}
	})
}

// counts is how much of a priority counts, said once more.
func counts(u unit.Unit) int32 {
	if u.MaxPriority < u.Priority {
		return u.MaxPriority
	}
	return u.Priority
}

// decideBounded decides, and says whether anything was done.
func decideBounded(rt *rapid.T, st *story) bool {
	st.out.Reset()
	st.line("decide confirm")
	for _, line := range strings.Split(st.out.String(), "\n") {
		by, from, preempts := strings.Cut(strings.TrimPrefix(line, "take for "), ": uid-")
		if !preempts || line == by {
			continue
		}
		from, _, _ = strings.Cut(from, "/")
		preemptor, victim := st.units[by], st.units[from]
		require.Greater(rt, counts(preemptor), counts(victim), line)
	}
	return !strings.Contains(st.out.String(), "nothing to do")
}
