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

package shares

import (
	"math"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Dominant are the dominant shares of a quota: the greatest (used + outstanding) / min, at most 1, and / limit, over
// the resources. Use of a resource without min is all of min.
func Dominant(
	used resources.List, outstanding *resources.Sum, least, limits resources.List,
) (ofMin, ofLimit float64) {
	take := func(name string, inUse int64) {
		if inUse <= 0 {
			return
		}
		if guaranteed, _ := least.Get(name); guaranteed > 0 {
			ofMin = min(1, max(ofMin, float64(inUse)/float64(guaranteed)))
		} else {
			ofMin = 1
		}
		switch limit, ok := limits.Get(name); {
		case !ok:
		case limit > 0:
			ofLimit = max(ofLimit, float64(inUse)/float64(limit))
		default:
			ofLimit = math.Inf(1)
		}
	}
	for _, it := range used.Items() {
		take(it.Name, resources.SaturatingAdd(it.Amount, outstanding.Get(it.Name)))
	}
	for i := range outstanding.Len() {
		if name, amount := outstanding.At(i); amount > 0 {
			if _, counted := used.Get(name); !counted {
				take(name, amount)
			}
		}
	}
	return ofMin, ofLimit
}
