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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// While a unit preempts, its request is protected from pods outside of units, at each of its levels and at the top. The
// protection ends with its admission or when it gives up.
func TestPreemptedQuotaIsKept(t *testing.T) {
	st := newStory(t)
	st.out = &strings.Builder{}
	lines := func(text string) {
		for _, line := range strings.Split(text, "\n") {
			st.line(strings.TrimSpace(line))
		}
	}
	kept := func(level string) int64 {
		cpu, _ := ReservedAt(st.s, level).Get("cpu")
		return cpu / 1000
	}
	lines(`quota root limit=cpu:8 used=none
		quota org parent=root min=cpu:4 max=cpu:8
		quota a parent=org min=cpu:4 max=cpu:8
		quota b parent=root min=cpu:0 max=cpu:8
		queue qa reclaim=any
		queue qb
		job b1 uid=b1
		unit b1 queue=qb quota=b request=cpu:8 job=b1:b1
		decide confirm
		pod b1 p request=cpu:8 assigned
		quota root used=cpu:8
		quota b used=cpu:8`)
	require.Zero(t, kept("root"))
	lines(`job a1 uid=a1
		unit a1 queue=qa quota=a request=cpu:3 job=a1:a1
		decide`)
	for level, want := range map[string]int64{"root": 3, "org": 3, "a": 3, "b": 0} {
		require.Equal(t, want, kept(level), level)
	}
	lines(`settle a1 confirmed attempt=0
		decide confirm`)
	require.EqualValues(t, 3, kept("root"), "b1 is suspended, and its pod leaves")
	lines(`delete-pod b1 p
		quota root used=none
		quota b used=none
		decide`)
	require.EqualValues(t, 3, kept("a"), "by the admission")
	require.Zero(t, kept("root"))
	lines(`settle a1 confirmed attempt=1
		unit a1 active=false
		decide confirm`)
	require.Zero(t, kept("a"))
}
