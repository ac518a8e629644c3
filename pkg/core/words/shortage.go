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

package words

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/reclaim"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Shortages is about the shortage that binds, with its numbers, and names the others of the list.
func Shortages(to Reader, list []decide.Shortage, binding *decide.Shortage) string {
	return to.shortage(binding) + others(list)
}

// Remarks are the part of a message behind the sentence about the shortage that binds. They are empty without one.
func Remarks(to Reader, list []decide.Shortage, binding *decide.Shortage, message string) string {
	if binding == nil {
		return ""
	}
	_, behind, _ := strings.Cut(message, Shortages(to, list, binding))
	return strings.TrimPrefix(behind, "; ")
}

func (to Reader) shortage(sh *decide.Shortage) string {
	format := func(amount int64) string { return resources.Format(sh.Resource, amount) }
	where := to.limit(sh.Level, sh.Kind == decide.LimitMin)
	used := format(sh.Used)
	if sh.UsedByOthers > 0 {
		used += fmt.Sprintf(" (%s by pods that no unit accounts for)", format(sh.UsedByOthers))
	}
	numbers := fmt.Sprintf("(%s, used %s, reserved %s)", bound(sh), used, format(sh.Outstanding))
	if sh.TooLarge {
		request := to.request(format(sh.Request))
		if held := sh.Total - sh.Request; held > 0 { // the unit runs, and grows
			request += fmt.Sprintf(" more than the %s that it holds", format(held))
		}
		return fmt.Sprintf("%s: %s: request %s, but at most %s while other quotas use what they are guaranteed (%s); it is "+
			"admitted when they use less", where, sh.Resource, request, format(sh.Rightful), bound(sh))
	}
	if sh.Overspent {
		return fmt.Sprintf("%s: %s: over its %s by %s %s; nothing is admitted until that is freed",
			where, sh.Resource, sh.Kind, format(sh.Missing), numbers)
	}
	var claims string
	if sh.Claimed > 0 {
		if unit.InNamespace(sh.ClaimedBy, to.Namespace) {
			claims = fmt.Sprintf(", claimed ahead %s by %q", format(sh.Claimed), sh.ClaimedBy)
		} else {
			claims = ", claimed ahead " + format(sh.Claimed)
		}
		if sh.ClaimedIn != "" {
			claims += fmt.Sprintf(" of queue %q", sh.ClaimedIn)
		}
	}
	return fmt.Sprintf("%s: %s: request %s, free %s%s %s; %s must be freed",
		where, sh.Resource, to.request(format(sh.Request)), format(sh.Free), claims, numbers, format(sh.Missing))
}

// bound names the limit as what it is.
func bound(sh *decide.Shortage) string {
	limit := fmt.Sprintf("%s %s", sh.Kind, resources.Format(sh.Resource, sh.Limit))
	if sh.Kind == decide.LimitRightful {
		limit = fmt.Sprintf("%s beyond its share", resources.Format(sh.Resource, sh.Limit))
	}
	if sh.Guaranteed > 0 {
		limit += fmt.Sprintf(", guaranteed to others %s", resources.Format(sh.Resource, sh.Guaranteed))
	}
	if sh.Kind == decide.LimitRuntime && sh.HasMax {
		limit += " of max " + resources.Format(sh.Resource, sh.Max)
	}
	return limit + unusable(sh)
}

// unusable continues a limit that would be greater if all nodes took pods.
func unusable(sh *decide.Shortage) string {
	if sh.Unusable == 0 {
		return ""
	}
	free := resources.Format(sh.Resource, sh.Unusable) + " that is free on nodes that take no pods"
	switch sh.Kind {
	case decide.LimitTotal:
		return ", without " + free
	case decide.LimitRuntime, decide.LimitRightful:
		return ", a share of the total without " + free
	default:
		return ""
	}
}

// othersNamed bounds the length of a sentence.
const othersNamed = 3

// others names the shortages other than the one that binds.
func others(list []decide.Shortage) string {
	var b strings.Builder
	n := 0
	for i := range list {
		sh := &list[i]
		if sh.Binds {
			continue
		}
		if n++; n > othersNamed {
			continue
		}
		separator := ", "
		if n == 1 {
			separator = "; also "
		}
		fmt.Fprintf(&b, "%s%s of %s at %q", separator, resources.Format(sh.Resource, sh.Missing), sh.Resource, sh.Level)
		if sh.Kind == decide.LimitMin {
			b.WriteString(" (non-preemptible)")
		}
	}
	if n > othersNamed {
		fmt.Fprintf(&b, " and %d more", n-othersNamed)
	}
	return b.String()
}

// NoLoan continues a sentence about a shortage of runtime. It is empty without an obstacle.
func NoLoan(o decide.NoLoan) string {
	switch {
	case o.Level == nil:
		return ""
	case o.Missing > 0:
		return fmt.Sprintf("; not lent: %s of %s would be missing at %q",
			resources.Format(o.Resource, o.Missing), o.Resource, o.Level.Name())
	case o.Claimed:
		return fmt.Sprintf("; not lent: blocked units ahead claim what is free at %q", o.Level.Name())
	default:
		return fmt.Sprintf("; not lent: units within their share wait at %q", o.Level.Name())
	}
}

// Never is about a request above what its quota, or a level above it, may ever have: its max or, non-preemptible, its
// min.
func Never(to Reader, found unit.Finding, request, most int64) string {
	kind := decide.LimitMax
	if found.Reason == unit.ReasonExceedsMin {
		kind = decide.LimitMin
	}
	return fmt.Sprintf("%s: %s: request %s is above %s %s, so it can never fit",
		to.limit(found.Level, kind == decide.LimitMin), found.Resource,
		to.request(resources.Format(found.Resource, request)), kind, resources.Format(found.Resource, most))
}

// NeverTogether is Never about the requests of a gang group.
func NeverTogether(to Reader, found unit.Finding, request, most int64) string {
	return fmt.Sprintf("%s: %s: the jobs of its gang group ask together for %s, and there are never more than %s",
		to.limit(found.Level, found.Reason == unit.ReasonExceedsMin), found.Resource,
		resources.Format(found.Resource, request), resources.Format(found.Resource, most))
}

// Others continues the sentence about a unit with what its list has behind its own quota. lacks are the shortages in
// the quotas that could ever have room for it.
func Others(names []string, lacks map[string][]decide.Shortage) string {
	parts := make([]string, 0, len(names))
	for _, name := range names {
		list, possible := lacks[name]
		switch {
		case !possible:
			parts = append(parts, fmt.Sprintf("%q can never hold it", name))
		case len(list) == 0:
			parts = append(parts, fmt.Sprintf("%q fits", name))
		default:
			parts = append(parts, room(name, list))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "; of its list: " + strings.Join(parts, ", ")
}

// room is the free amount that a quota, or a level above it, has. A share of a quota without pending units says
// nothing: other limits come first, and without one the max of the quota counts.
func room(name string, list []decide.Shortage) string {
	share := func(sh decide.Shortage) bool {
		return sh.Kind == decide.LimitRuntime || sh.Kind == decide.LimitRightful
	}
	sh := list[max(0, slices.IndexFunc(list, func(sh decide.Shortage) bool { return !share(sh) }))]
	all, where := sh.Limit, fmt.Sprintf("%q", name)
	if share(sh) && sh.HasMax {
		all = sh.Max
	}
	if sh.Level != name {
		where += fmt.Sprintf(" level %q", sh.Level)
	}
	free := max(0, resources.SaturatingSub(all, resources.SaturatingAdd(sh.Used, sh.Outstanding)))
	text := fmt.Sprintf("%s has %s of %s %s free", where, resources.Format(sh.Resource, free),
		resources.Format(sh.Resource, all), sh.Resource)
	if sh.Claimed > 0 {
		text += fmt.Sprintf(" (%s claimed ahead)", resources.Format(sh.Resource, sh.Claimed))
	}
	return text
}

// request says of an amount whether the unit could be more.
func (to Reader) request(amount string) string {
	if to.Least {
		return "of its least size " + amount
	}
	return amount
}

// limit names a limit of a level.
func (to Reader) limit(level string, isMin bool) string {
	where := fmt.Sprintf("quota %q", to.Quota)
	if level != to.Quota {
		where += fmt.Sprintf(" level %q", level)
	}
	if isMin {
		where += ": non-preemptible"
	}
	return where
}

// protected are those that nobody takes, in words, by their protection.
var protected = [...]string{
	holders.NotSuspendable: "jobs that cannot be suspended", holders.NonPreemptible: "non-preemptible jobs",
	holders.Adopted: "jobs that ran before they were queued", holders.ByItsQueue: "jobs of queues that keep them",
	holders.ByItself: "jobs that their owners keep from preemption",
	holders.InFlight: "jobs whose status is being written", holders.ByRunTime: "jobs that have just begun",
}

// obstacle continues the sentence about a unit that may take what others hold and cannot.
func obstacle(o *reclaim.Obstacle) string {
	if o.DryRun.Units > 0 {
		return fmt.Sprintf("; units that would lose what they hold for it, without dryRun in its queue: %d", o.DryRun.Units)
	}
	if o.InVain > 0 {
		return fmt.Sprintf("; it may take from others again from %s, "+
			"since jobs of its namespace and quota took %d times in a "+
			"row and had no pod on a node", o.Until.UTC().Format(time.RFC3339), o.InVain)
	}
	if o.GroupBorrowed {
		return "; it takes back no min while a job of its gang group has borrowed quota"
	}
	var parts []string
	for p, amount := range o.Protected {
		if amount > 0 {
			parts = append(parts, fmt.Sprintf("%s by %s", resources.Format(o.Resource, amount), protected[p]))
		}
	}
	if o.Pods > 0 {
		parts = append(parts, resources.Format(o.Resource, o.Pods)+" by pods that no unit accounts for")
	}
	if len(parts) == 0 {
		return ""
	}
	said := fmt.Sprintf("; no job can be suspended for it now: at %q %s is held: %s", o.Level, o.Resource,
		strings.Join(parts, ", "))
	if !o.Until.IsZero() {
		said += "; the first may be from " + o.Until.UTC().Format(time.RFC3339)
	}
	return said
}

// bounded continues the sentence about a unit whose priority does not count in full where it would take.
func bounded(o *reclaim.Obstacle, in *unit.Unit) string {
	if !o.Bounded || in.PreemptionPriority() == in.Priority {
		return ""
	}
	return fmt.Sprintf("; its priority %d counts as %d when it takes from others, "+
		"by koord-queue/max-priority of its namespace", in.Priority, in.PreemptionPriority())
}

// NoNodes is about a unit that may take what others hold, and whose pods would find no node even then.
func NoNodes(why string) string {
	return "the job may take what others hold, and its pods would find no node even then: " + why
}

// TakesBack continues the sentence about a unit that takes what so many units hold, or may and cannot. It is empty for
// one that may not.
func TakesBack(units int, o *reclaim.Obstacle, in *unit.Unit) string {
	switch units {
	case 0:
		return obstacle(o) + bounded(o, in)
	case 1:
		return "; one unit loses what it holds for it"
	default:
		return fmt.Sprintf("; %d units lose what they hold for it", units)
	}
}
