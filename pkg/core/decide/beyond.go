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

package decide

import (
	"iter"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/rightful"
)

type part = rightful.Part

// parts of a request, in the order of the limits.
func (a *Ask) parts(need []int64) iter.Seq[part] {
	return func(yield func(part) bool) {
		for _, lim := range a.Limits {
			if !yield(part{Limit: lim, Need: need, Leaf: lim.Level() == a.Leaf()}) {
				return
			}
		}
	}
}

// parts of what all asks of the bundle request together.
func (g *Bundle) parts() iter.Seq[part] {
	if !g.together() {
		return g.Asks[0].parts(g.Asks[0].Need)
	}
	return slices.Values(g.sums)
}

// path has the levels on which the bundle draws.
func (g *Bundle) path() []*capacity.Level {
	if !g.together() {
		return g.Asks[0].Route.Levels
	}
	var levels []*capacity.Level
	for i := range g.sums {
		if lim := g.sums[i].Limit; !lim.IsMin() {
			levels = append(levels, lim.Level())
		}
	}
	return levels
}

// TooLarge says that a request can never rightfully be had.
func (a *Ask) TooLarge(rights *rightful.Book) bool {
	return a.Route.Shared && rights.TooLarge(a.parts(a.Need))
}

// promise says whether each level below the top promises a unit what it needs. That is found out once.
type promise struct{ known, kept bool }

func (p *promise) to(rights *rightful.Book, a *Ask, need []int64) bool {
	if !p.known {
		levels := a.Route.Levels
		p.known, p.kept = true, !slices.ContainsFunc(levels[:len(levels)-1], func(l *capacity.Level) bool {
			return !rights.Promises(l, need)
		})
	}
	return p.kept
}
