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
	"testing"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// BenchmarkStart feeds an empty state with 5,000 quotas on three levels in the order of observation: by name, parents
// before or after their children. As at a start, a unit waits and one is admitted in each leaf before the quotas
// arrive.
func BenchmarkStart(b *testing.B) {
	const quotas, perParent = 5000, 50
	amount := resources.FromMap(map[string]int64{"cpu": 1000})
	limit := resources.FromMap(map[string]int64{"cpu": 1000 * 1000 * 1000})
	// The names decide the order.
	for _, parentsFirst := range []bool{true, false} {
		b.Run(fmt.Sprintf("parentsFirst=%v", parentsFirst), func(b *testing.B) {
			parent := func(i int) string {
				if parentsFirst {
					return fmt.Sprintf("a-parent-%04d", i/perParent)
				}
				return fmt.Sprintf("z-parent-%04d", i/perParent)
			}
			observed := map[string]Quota{"root": {Name: "root", Limit: limit, Max: limit}}
			for i := range quotas {
				name := fmt.Sprintf("leaf-%04d", i)
				observed[name] = Quota{Name: name, Parent: parent(i), Limit: limit, Max: limit, Min: limit}
				observed[parent(i)] = Quota{Name: parent(i), Parent: "root", Limit: limit, Max: limit, Min: limit}
			}
			for b.Loop() {
				s := New(Config{})
				for i := range quotas {
					name := fmt.Sprintf("leaf-%04d", i)
					s.UpsertQueue(epoch, queue.Spec{Name: name, Policy: "Priority", MaxPending: -1, MaxAdmitted: -1})
					for _, phase := range []unit.Phase{unit.PhaseDequeued, unit.PhaseEnqueued} {
						s.UpsertUnit(epoch, unit.Unit{
							Key: fmt.Sprintf("ns/%s-%s", name, phase), UID: fmt.Sprintf("%s-%s", name, phase), Queue: name, Quota: name,
							Created: epoch, Request: amount, Stated: unit.Stated{Held: amount}, Pods: 1, Active: true, Phase: phase,
						})
					}
				}
				for _, name := range keysOf(observed) {
					s.SetQuota(epoch, observed[name])
				}
				if n := len(byKind(s.Decide(epoch)).Admit); n != 256 {
					b.Fatal(n)
				}
			}
		})
	}
}
