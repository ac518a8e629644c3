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

package unit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSaturatingTimes(t *testing.T) {
	require.EqualValues(t, math.MaxInt64-1, saturatingTimes(3, math.MaxInt64/3), "exact as long as it can be")
	require.EqualValues(t, math.MaxInt64, saturatingTimes(3, math.MaxInt64/3+1))
	require.EqualValues(t, 0, saturatingTimes(-3, 5))
}
