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

package reclaim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// However much tenants ask for, what is remembered of a dry run has a bound, and so has the work to count victims.
func TestDryRunsAreBounded(t *testing.T) {
	holds := make([]string, MostHolds)
	for i := range holds {
		holds[i] = fmt.Sprintf("uid-%d/1", i)
	}
	d := NewDryRun(holds)
	require.Equal(t, MostHolds, d.Units)
	require.Equal(t, holds[:100], d.Holds)
	require.Less(t, cap(d.Holds), 200, "the rest is not kept")

	var v Victims
	added := 1
	for v.Add(d) {
		added++
	}
	require.Equal(t, 100, added)
	require.Equal(t, 100, v.Len(), "each unit counts once")
}
