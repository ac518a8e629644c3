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

package main

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	core "github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// evictions counts how often units lost what they held.
type evictions struct {
	counts map[eviction]int
	last   map[string]time.Time // UID of a unit -> when its last one began
}

// eviction says whose unit lost what it held, and why.
type eviction struct{ namespace, reason string }

func newEvictions() evictions {
	return evictions{counts: map[eviction]int{}, last: map[string]time.Time{}}
}

// note takes the next state of a unit.
func (e *evictions) note(u *v1alpha1.QueueUnit) {
	evicted := meta.FindStatusCondition(u.Status.Conditions, v1alpha1.ConditionEvicted)
	if evicted == nil || evicted.Status != metav1.ConditionTrue {
		delete(e.last, string(u.UID))
		return
	}
	if last, known := e.last[string(u.UID)]; known && last.Equal(evicted.LastTransitionTime.Time) {
		return
	}
	e.last[string(u.UID)] = evicted.LastTransitionTime.Time
	e.counts[eviction{u.Namespace, evicted.Reason}]++
}

// byName is for the summary.
func (e *evictions) byName() map[string]int {
	names := map[string]int{}
	for what, n := range e.counts {
		names[what.String()] = n
	}
	return names
}

func (e eviction) String() string { return e.namespace + " " + e.reason }

// The loans that are taken back: of the tenant who attacks, and of the one who borrows honestly in both rounds.
var (
	takenOfHostile = eviction{hostileNamespace, string(core.ReasonReclaimed)}.String()
	takenOfHonest  = eviction{honestNamespace, string(core.ReasonReclaimed)}.String()
)
