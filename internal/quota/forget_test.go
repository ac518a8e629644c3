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
		for _, name := range []string{"a", "b", "c"} {
			w.setQuota(elasticQuota(name, "10", "40"), false)
		}
		w.quiet()
		w.ask("job", "a", "10")
		require.Equal(t, []string{"a"}, reservedIn(w.adapter))
		w.finish(w.jobs["default/job"])
		for _, name := range []string{"a", "b", "c"} {
			w.adapter.noteMoreRequested(name)
			w.deleteQuota(name, true)
		}
		w.quiet()
		require.Empty(t, reservedIn(w.adapter), "by runtime: %t", byRuntime)
		require.Empty(t, w.adapter.more, "by runtime: %t", byRuntime)
	}
}

func reservedIn(a *Adapter) (names []string) {
	a.protection.reservations.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	return names
}
