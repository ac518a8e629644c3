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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// Expected bounds the request of the pods of a unit that are still expected. A unit holds an estimate. Without a bound,
// a unit whose pods ask for less would hold the difference until its end, and nobody could use it. The zero value
// bounds nothing.
//
// The bound depends only on the present pods, so it is the same after a restart (I8). If a pod goes, its unit holds the
// estimate for its successor again.
type Expected struct {
	// Pods is the number of pods that the unit has when all are there; above zero, or nothing is bounded.
	Pods int64
	// Each is the most that one pod asks for. A resource that it does not name is bounded only once all pods are there.
	Each resources.List
}

// Bound reduces the held amount beyond the present pods to the most that the expected pods can need. there is the
// number of present pods.
func (x Expected) Bound(beyond resources.List, there int64) resources.List {
	if x.Pods <= 0 || beyond.Len() == 0 {
		return beyond
	}
	missing := x.Pods - there
	if missing <= 0 {
		return resources.List{}
	}
	var bounded map[string]int64 // made when there is something to bound
	for _, it := range beyond.Items() {
		each, ok := x.Each.Get(it.Name)
		if !ok {
			continue
		}
		if most := saturatingTimes(each, missing); most < it.Amount {
			if bounded == nil {
				bounded = amountsOf(beyond)
			}
			bounded[it.Name] = most
		}
	}
	if bounded == nil {
		return beyond
	}
	return resources.FromMap(bounded)
}

func amountsOf(list resources.List) map[string]int64 {
	amounts := make(map[string]int64, list.Len())
	for _, it := range list.Items() {
		amounts[it.Name] = it.Amount
	}
	return amounts
}

// Same says whether both say the same of every resource.
func (x Expected) Same(o Expected) bool { return x.Pods == o.Pods && x.Each.Same(o.Each) }

// saturatingTimes multiplies what is not negative.
func saturatingTimes(amount, times int64) int64 {
	if amount > 0 && times > math.MaxInt64/amount {
		return math.MaxInt64
	}
	return max(amount, 0) * times
}
