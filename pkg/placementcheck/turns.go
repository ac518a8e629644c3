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

package placementcheck

import (
	"math"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/ordered"
)

// turns hold items by turns of their namespaces, and those of one namespace in the order in which they came. Checks,
// which have none, have a turn too.
type turns struct {
	items *ordered.Turns[item]
	came  map[item]ordered.Moment
	last  ordered.Moment
}

func newTurns() *turns {
	t := &turns{came: map[item]ordered.Moment{}}
	t.items = ordered.NewTurns(
		func(i item) ordered.Moment { return t.came[i] },
		func(a, b item) int { return strings.Compare(a.name, b.name) }, // no two come at the same time
		func(i item) string { return i.namespace })
	return t
}

// Push implements workqueue.Queue.
func (t *turns) Push(i item) {
	t.last++
	t.items.Move(i, t.last, func(at ordered.Moment) { t.came[i] = at })
}

// Pop implements workqueue.Queue.
func (t *turns) Pop() item {
	next, _ := t.items.Next(math.MaxInt64)
	t.items.Move(next, 0, func(ordered.Moment) { delete(t.came, next) })
	return next
}

// Touch implements workqueue.Queue: what is added again keeps its place.
func (t *turns) Touch(item) {}

// Len implements workqueue.Queue.
func (t *turns) Len() int { return len(t.came) }
