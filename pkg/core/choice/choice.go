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

package choice

import (
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/eligibility"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
)

// Asks are those of a unit in other quotas than its own, where these are for queueing and may ever hold as much. They
// are for the whole unit: it is not admitted in part there.
func Asks(tree *capacity.Tree, own *decide.Ask, whole resources.List, names []string) (asks []decide.Ask) {
	for _, a := range Listed(tree, names) {
		a.Request, a.Total, a.Jobs, a.NonPreemptible, a.Blocking = whole, whole, own.Jobs, own.NonPreemptible, own.Blocking
		if a.Route.Broken != "" || a.Leaf().Spec().Closed || !eligibility.Possible(&a, whole) {
			continue
		}
		a.Need, a.Limits = tree.Need(whole, a.Jobs), a.Route.Limits(a.NonPreemptible)
		asks = append(asks, a)
	}
	return asks
}

// Listed are asks for nothing in these quotas, which eligibility looks at.
func Listed(tree *capacity.Tree, names []string) (asks []decide.Ask) {
	for _, name := range names {
		asks = append(asks, decide.Ask{Route: tree.Route(name)})
	}
	return asks
}

// Other is the ask with which the last head of a pass is admitted in place of its own. It is nil for its own ask, or if
// the head fits in no quota. fits says that the head fits in its own.
func Other[T any](
	p *decide.Pass[T], rights *rightful.Book, own *decide.Ask, fits bool, others []decide.Ask,
) (other *decide.Ask) {
	if len(others) == 0 || fits && !borrows(rights, own) {
		return nil
	}
	for i := range others {
		o := &others[i]
		if !p.FitsElsewhere(o) {
			continue
		}
		if !borrows(rights, o) {
			return o
		}
		if other == nil && !fits {
			other = o
		}
	}
	return other
}

// borrows says that a unit which gets what it asks for goes beyond the min of a quota on its path, the top aside.
func borrows(rights *rightful.Book, a *decide.Ask) bool {
	below := a.Route.Levels[:max(1, len(a.Route.Levels)-1)]
	return slices.ContainsFunc(below, func(l *capacity.Level) bool { return !rights.Promises(l, a.Need) })
}
