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

package quotaplan

import (
	"maps"
	"slices"
)

// Order sorts names so that each comes after the one above it, as parents says; names with an empty parent are at the
// top. Names of a cycle, and of what lies below one or deeper than MaxDepth, are lost. A parent must be a key.
func Order(parents map[string]string) (order, lost []string) {
	for _, name := range slices.Sorted(maps.Keys(parents)) {
		levels := 0
		for at := name; at != "" && levels <= MaxDepth; at = parents[at] {
			levels++
		}
		if levels > MaxDepth {
			lost = append(lost, name)
		}
	}
	placed := make(map[string]bool, len(parents))
	var place func(string)
	place = func(name string) {
		if name == "" || placed[name] {
			return
		}
		place(parents[name])
		placed[name] = true
		order = append(order, name)
	}
	for _, name := range slices.Sorted(maps.Keys(parents)) {
		if _, found := slices.BinarySearch(lost, name); !found {
			place(name)
		}
	}
	return order, lost
}
