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

	"github.com/stretchr/testify/require"
)

// TestWritesThatInformLeaveRoomForDecisions: half of the workers while there is nothing else to write, few while
// decisions are being sent, and never none.
func TestWritesThatInformLeaveRoomForDecisions(t *testing.T) {
	for _, c := range []struct{ workers, alone, beside int }{{32, 16, 2}, {4, 2, 1}, {1, 1, 1}} {
		p := newPool(&Options{Config: Config{WriteConcurrency: c.workers}}, nil)
		for range 40 {
			p.submit(&Write{kind: writeQueueStatus})
		}
		decision := &Write{kind: writeAdmit, decision: &admitWrite{}}
		p.submit(decision)
		first, ok := p.next()
		require.True(t, ok)
		require.Same(t, decision, first, "decisions go first")
		informing := 0
		for ; p.informs(); informing++ {
			_, ok := p.next()
			require.True(t, ok)
		}
		require.Equal(t, c.beside, informing, "%d workers", c.workers)
		p.release(decision)
		for ; p.informs(); informing++ {
			_, ok := p.next()
			require.True(t, ok)
		}
		require.Equal(t, c.alone, informing, "%d workers", c.workers)
		p.release(&Write{kind: writeQueueStatus})
		require.True(t, p.informs())
	}
}
