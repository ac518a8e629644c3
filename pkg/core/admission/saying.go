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
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/words"
)

// nothingMore is for an admitted unit that waited for more than it held.
var nothingMore = &unit.Saying{}

// subject of a saying: the finding of a group and, if somebody else words it, the words.
type subject struct {
	unit.Finding
	words string
	// together: it is found of all units with which the head of the group is decided.
	together bool
}

// sayingOf is what a unit should be told; nil if that is nothing.
func sayingOf(r *roster, u *record) *unit.Saying {
	switch {
	case u.group != nil:
		return groupSaying(u.group)
	case u.waits() && !untold(u.parked):
		return unit.Say(u.parked, u.reader().Would(unitWords(r, u)))
	case !u.isAdmitted():
		return nil
	case u.overdue.Reason != "":
		return unit.Say(u.overdue.Reason, u.overdue.Message())
	case u.listener.Said() != nil && !u.listener.Said().Reason.OfPods():
		return nothingMore
	default:
		return nil
	}
}

func groupSaying(g *group) *unit.Saying {
	n := &g.Notes
	if n.saying == nil && n.subject != (subject{}) {
		n.saying = unit.Say(n.subject.Reason, headWords(g, n.subject))
	}
	return n.saying
}

// unitWords is about a unit that is parked by itself.
func unitWords(r *roster, u *record) string {
	if u.parked == unit.ReasonQueueOverflow {
		return fmt.Sprintf("queue %q has as many units in line as it may have, in all or of one namespace; this one comes "+
			"into line at its place", u.spec.Queue)
	}
	return whyParked(r, u)
}

// headWords is about what keeps the head of a group from going, and with it all of them.
func headWords(g *group, about subject) string {
	switch to := g.Head().reader(); {
	case about.words != "":
		return words.ToldBy(to, about.words)
	case about.together:
		own := func(l *capacity.Level) bool { return l.Name() == about.Level }
		return words.ToldTogether(to, about.Finding, !slices.ContainsFunc(g.Notes.ask.Route.Levels, own))
	default:
		return words.Told(to, about.Finding)
	}
}
