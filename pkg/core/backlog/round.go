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

package backlog

// Round is a look at all units of a group, from where one was made last around to there. Units may come and go during
// the round; those that stay are looked at. The zero Round has not begun.
type Round[U Unit] struct {
	// at is the last unit that was looked at, and end the last one to look at. A zero unit is before the first.
	at, end U
	// behindEnd: the units behind at when the round began were all looked at.
	behindEnd bool
}

// Begin a round, or have one that is made go around once more.
func (r *Round[U]) Begin() { r.end, r.behindEnd = r.at, false }

// Go looks at the next units of the group, so many at most, and says at how many and whether the round is over. seat
// makes a copy of a unit that has its place and keeps it.
func Go[U Unit, N any](r *Round[U], g *Group[U, N], most int, seat func(U) U, visit func(U)) (looked int, over bool) {
	var last, none U
	look := func(u U) bool {
		if r.behindEnd && g.Line().Before(r.end, u) {
			over = true
			return false
		}
		last = u
		looked++
		visit(u)
		return looked < most
	}
	if r.at == none {
		g.Walk(look)
	} else {
		g.WalkFrom(r.at, look)
	}
	if last != none {
		r.at = seat(last)
	}
	switch {
	case over || looked >= most:
	case r.end == none || r.behindEnd:
		over = true
	default:
		r.at, r.behindEnd = none, true
	}
	return looked, over
}
