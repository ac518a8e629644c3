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

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// WaitsForGroup is told to a unit of a gang group that is not complete in line.
const WaitsForGroup = "it is admitted together with the other jobs of its gang group (annotation " +
	"gang.scheduling.koordinator.sh/groups), and not all of them can be: each of the gangs needs a job that waits in a " +
	"queue with room for all of them"

// WithGroup begins a sentence about what the jobs of a gang group lack together.
const WithGroup = "with the other jobs of its gang group: "

// Told is about what keeps a head in line, and with it all units that are decided alike.
func Told(to Reader, found unit.Finding) string {
	return to.more(at(to, found, to.level(found.Level)))
}

// ToldTogether is Told about what is found of a gang group. foreign: the unit itself does not draw on the level.
func ToldTogether(to Reader, found unit.Finding, foreign bool) string {
	level := to.level(found.Level)
	if foreign {
		level = fmt.Sprintf("quota %q, on which another of them draws,", found.Level)
	}
	return to.more(together(to, found, level))
}

// ToldBy is Told in the words of somebody else.
func ToldBy(to Reader, message string) string { return to.more(message) }

// more says of a unit that holds quota already that it runs.
func (to Reader) more(words string) string {
	if to.Holds {
		return "the job runs with what it holds and asks for more: " + words
	}
	return to.Would(words)
}

// Would says of an observed unit that it would wait.
func (to Reader) Would(words string) string {
	if to.Observed {
		return "would wait: " + words
	}
	return words
}

func together(to Reader, found unit.Finding, level string) string {
	switch found.Reason {
	case unit.ReasonWaitingForGroup:
		return WaitsForGroup
	case unit.ReasonExceedsMax:
		what := "use as much " + found.Resource
		if found.Resource == resources.Jobs {
			what = "have as many admitted jobs"
		}
		return fmt.Sprintf("%s may never %s as the jobs of its gang group ask for together", level, what)
	case unit.ReasonExceedsMin:
		return fmt.Sprintf("%s is not guaranteed as much %s as the jobs of its gang group ask for together that are "+
			"non-preemptible: that is above its min", level, found.Resource)
	default:
		return WithGroup + at(to, found, level)
	}
}

func at(to Reader, found unit.Finding, level string) string {
	what := "too little " + found.Resource
	if found.Resource == resources.Jobs {
		what = "as many admitted jobs as it may have"
	}
	switch found.Reason {
	case unit.ReasonQueueFull:
		return fmt.Sprintf("queue %q has no place left, in all or for its namespace, in addition to those of units ahead",
			to.Queue)
	case unit.ReasonExceedsMax:
		return fmt.Sprintf("%s may never use as much %s as the job asks for: that is above its max", level, found.Resource)
	case unit.ReasonExceedsMin:
		return fmt.Sprintf("%s is not guaranteed as much %s as the job asks for: that is above its min, and the job is "+
			"non-preemptible", level, found.Resource)
	case unit.ReasonExceedsGuaranteedShare:
		return fmt.Sprintf("%s can get less %s than the job asks for while other quotas use what they are guaranteed",
			level, found.Resource)
	case unit.ReasonMinExceeded:
		return fmt.Sprintf("%s has %s left of its min, which bounds what is non-preemptible", level, what)
	case unit.ReasonBlockedByHead:
		return fmt.Sprintf("%s has %s in addition to what jobs ahead wait for", level, what)
	case unit.ReasonHeldByOthers:
		return fmt.Sprintf("%s has %s left; the job may take what others hold, and none of theirs can be suspended now",
			level, what)
	default:
		if found.Resource == resources.Jobs {
			return fmt.Sprintf("%s has %s", level, what)
		}
		return fmt.Sprintf("%s has %s left", level, what)
	}
}

// level names a level of the quota tree to a reader who uses a quota.
func (to Reader) level(name string) string {
	if name == to.Quota {
		return fmt.Sprintf("quota %q", name)
	}
	return fmt.Sprintf("quota %q, above quota %q,", name, to.Quota)
}

// QueueFull says that a queue has as many admitted units as it may, some of them only by pods that are left.
func QueueFull(queue string, admitted int, most int32, byPods int) string {
	return fmt.Sprintf("queue %q has %d admitted units, as many as it may have (%d)%s", queue, admitted, most,
		leftPods(byPods))
}

// FullFor says the same of the units of one namespace.
func FullFor(namespace, queue string, admitted int, most int32, byPods int) string {
	return fmt.Sprintf("queue %q has %d admitted units of namespace %q, as many as it may have of each namespace (%d)%s",
		queue, admitted, namespace, most, leftPods(byPods))
}

func leftPods(units int) string {
	if units == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of the queue have given back their admission, and pods of theirs still run", units)
}
