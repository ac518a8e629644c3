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

package quota

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of quotas that are gone nothing stays, whether runtime limits or not.
func TestNothingStaysOfQuotas(t *testing.T) {
	for _, byRuntime := range []bool{true, false} {
		live := newRealPlugin(t)
		live.args.EnableRuntimeQuota = byRuntime
		w := newWorld(t, live)
		w.setNode("node", cpu("100"), false)
		w.quiet()
		names := func() (names []string) {
			w.adapter.protection.limits.Range(func(name, _ any) bool {
				names = append(names, name.(string))
				return true
			})
			return names
		}
		before, stale := names(), len(w.adapter.stale)
		for _, name := range []string{"a", "b", "c"} {
			w.setQuota(elasticQuota(name, "10", "40"), false)
		}
		w.quiet()
		require.Len(t, names(), len(before)+3)
		for _, name := range []string{"a", "b", "c"} {
			w.adapter.noteRequests(name)
			w.deleteQuota(name, true)
		}
		w.quiet()
		require.ElementsMatch(t, before, names(), "limits, by runtime: %t", byRuntime)
		require.Empty(t, w.adapter.specs, "by runtime: %t", byRuntime)
		require.LessOrEqual(t, len(w.adapter.stale), stale, "by runtime: %t", byRuntime)
		require.NotContains(t, w.adapter.last, "a")
		require.NotContains(t, w.adapter.trees, "a")
	}
}
