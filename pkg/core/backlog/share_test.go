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

package backlog

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
)

// The first so many units, sorted, are inside, whatever came and went; and what is told to have moved has.
func TestShareEqualsASortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		line := NewLine[*testUnit, int](queue.Builtin()["Priority"](0))
		size := rapid.IntRange(0, 4).Draw(t, "size")
		share := line.NewShare(size)
		var known []*testUnit
		side := map[*testUnit]bool{}
		number := 0
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			for range rapid.IntRange(1, 4).Draw(t, "changes at once") {
				if len(known) == 0 || rapid.IntRange(0, 2).Draw(t, "add") > 0 {
					u := drawUnit(t, number)
					number++
					side[u] = share.Add(u)
					known = append(known, u)
					continue
				}
				at := rapid.IntRange(0, len(known)-1).Draw(t, "at")
				share.Remove(known[at])
				delete(side, known[at])
				known = slices.Delete(known, at, at+1)
			}
			for _, u := range share.Settle() {
				side[u] = !side[u]
			}
			slices.SortFunc(known, func(a, b *testUnit) int {
				if line.Before(a, b) {
					return -1
				}
				return 1
			})
			require.Equal(t, len(known), share.Len())
			var outside []*testUnit
			share.Outside(func(u *testUnit) bool { outside = append(outside, u); return true })
			for i, u := range known {
				inside, there := share.Inside(u)
				require.True(t, there)
				require.Equal(t, i < size, inside, "unit %d of %d", i, size)
				require.Equal(t, inside, side[u])
			}
			require.Equal(t, append([]*testUnit(nil), known[min(size, len(known)):]...), outside)
		}
		_, there := share.Inside(drawUnit(t, -1))
		require.False(t, there)
	})
}

func drawUnit(t *rapid.T, number int) *testUnit {
	return &testUnit{item: queue.Item{
		Priority: rapid.Int32Range(0, 2).Draw(t, "priority"), UID: fmt.Sprint(number), Key: fmt.Sprint(number),
	}}
}
