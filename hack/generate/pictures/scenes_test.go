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

package pictures

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// The example says what the core does. A change of these numbers changes docs/concepts.md.
func TestBorrowing(t *testing.T) {
	type held struct{ share, held, leaving, pending float64 }
	moments, c := borrowing()
	for i, want := range [][2]held{
		{{share: 10, held: 10}, {}},
		{{share: 6, held: 10, leaving: 10, pending: 1}, {share: 4, pending: 1}},
		{{share: 6, pending: 1}, {share: 4, held: 4}},
		{{share: 6, held: 5, pending: 1}, {share: 4, held: 4}},
		{{share: 5, held: 5, pending: 1}, {share: 5, held: 4, pending: 1}},
		{{share: 5, held: 6, pending: 1}, {share: 5, held: 4, pending: 1}},
	} {
		for j, l := range moments[i].tree.Levels[1:] {
			require.Equal(t, want[j], held{l.Share, l.Used + l.Reserved, l.Leaving, float64(l.Pending)}, "%d %s", i, l.Name)
		}
	}
	reason, _, _ := c.state.Why("ns/borrower")
	require.Equal(t, unit.ReasonExceedsGuaranteedShare, reason)
	for _, j := range c.order {
		require.Equal(t, j.Consumer.Name == "last", j.borrows, j.Key)
	}
}
