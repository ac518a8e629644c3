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

package rightful

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNoPartOfManyIsLost(t *testing.T) {
	for _, part := range []int{0, 1, lastBit - 1, lastBit, lastBit + 1, 1000} {
		s := set(0).with(part)
		require.NotZero(t, s, "part %d", part)
		require.True(t, s.has(part), "part %d", part)
		require.Equal(t, part == 0, s.has(0), "part %d", part)
	}
}
