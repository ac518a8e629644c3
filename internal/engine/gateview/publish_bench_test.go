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

package gateview

import (
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkPublish: the snapshot after one unit was admitted, and after it is gone, with many others in it.
func BenchmarkPublish(b *testing.B) {
	for _, admitted := range []int{100, 10_000, 100_000} {
		b.Run(fmt.Sprintf("admitted=%d", admitted), func(b *testing.B) {
			next := *newSnapshot()
			for i := range admitted {
				key := fmt.Sprintf("%s/u%d", "team", i)
				next.units = next.units.Set(key, types.UID(key))
				next.consumers = next.consumers.Set(key, true)
			}
			var view atomic.Pointer[Snapshot]
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for _, with := range []bool{true, false} {
					s := next
					if with {
						s.units = s.units.Set("team/new", types.UID("new"))
						s.consumers = s.consumers.Set("new", true)
					} else {
						s.units, s.consumers = s.units.Delete("team/new"), s.consumers.Delete("new")
					}
					view.Store(&s)
					next = s
				}
			}
		})
	}
}
