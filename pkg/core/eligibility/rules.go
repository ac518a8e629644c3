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

package eligibility

import (
	"fmt"
	"maps"
	"slices"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/capacity"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Facts are all that a rule about a group may look at.
type Facts struct {
	// Queue that the units name as QueueName, empty unless QueueKnown.
	QueueName  string
	QueueKnown bool
	Queue      *queue.Spec
	// Policies that there are, by name. PolicyFault says in words why that of the queue could not be made.
	Policies    map[string]queue.Factory
	PolicyFault string
	// Ask of each unit of the group. Unchecked: it is for more than admission checks answered for.
	Ask       *decide.Ask
	Unchecked bool
	// Listed are the other quotas that the units list themselves: asks with a route alone.
	Listed []decide.Ask
}

// quota that the units name. It is there unless the route is broken.
func (f Facts) quota() string { return f.Ask.Leaf().Name() }

// Exclusion is why no unit of a group may be admitted. Without a reason nothing keeps them out.
type Exclusion struct {
	unit.Finding
	// Message is the finding in words. If the finding has a level, numbers replace the words: a unit would hold Total of
	// the resource, and the level can have Most.
	Message     string
	Total, Most int64
}

func excluded(reason unit.Reason, format string, values ...any) Exclusion {
	return Exclusion{Finding: unit.Finding{Reason: reason}, Message: fmt.Sprintf(format, values...)}
}

// rule has the name of what holds, as in queueIsKnown. It returns what follows if that does not hold.
type rule func(f Facts) Exclusion

// rules are in order: the first broken rule gives the reason. The quota comes first. A missing quota has no default
// queue either, and its owner has to create the quota.
var rules = []rule{
	quotaIsKnown, quotaIsOpen, queueIsKnown, queueAcceptsQuota, listIsOpen, policyIsKnown, isWithinMax, isWithinMin,
	isChecked, checksAreAnswered, queueIsNotHeld,
}

// Check says what keeps all units of a group from being admitted.
func Check(f Facts) Exclusion {
	for _, r := range rules {
		if x := r(f); x.Reason != "" {
			return x
		}
	}
	return Exclusion{}
}

func quotaIsKnown(f Facts) Exclusion {
	if broken := f.Ask.Route.Broken; broken != "" {
		return excluded(unit.ReasonUnknownQuota, "%s", broken)
	}
	return Exclusion{}
}

func quotaIsOpen(f Facts) Exclusion {
	if f.Ask.Leaf().Spec().Closed {
		return excluded(unit.ReasonQuotaNotNamed,
			"quota %q is not for queueing; name a quota of your own, by its label or that of the namespace", f.quota())
	}
	return Exclusion{}
}

func queueIsKnown(f Facts) Exclusion {
	switch {
	case f.QueueKnown:
		return Exclusion{}
	case f.QueueName == "":
		return excluded(unit.ReasonUnknownQueue, "the unit names no queue")
	default:
		return excluded(unit.ReasonUnknownQueue, "queue %q does not exist", f.QueueName)
	}
}

func queueAcceptsQuota(f Facts) Exclusion {
	if accepted := f.Queue.Quotas; accepted != nil && !slices.Contains(accepted, f.quota()) {
		return excluded(unit.ReasonQuotaNotInQueue, "queue %q does not accept quota %q", f.QueueName, f.quota())
	}
	return Exclusion{}
}

// listIsOpen holds for each quota that a unit lists what holds for its own. Nobody gets a quota by listing it.
func listIsOpen(f Facts) Exclusion {
	for i := range f.Listed {
		other := f
		other.Ask = &f.Listed[i]
		for _, r := range []rule{quotaIsKnown, quotaIsOpen, queueAcceptsQuota} {
			if x := r(other); x.Reason != "" {
				return x
			}
		}
	}
	return Exclusion{}
}

func policyIsKnown(f Facts) Exclusion {
	if f.PolicyFault != "" {
		return excluded(unit.ReasonInternalError, "%s", f.PolicyFault)
	}
	if _, ok := f.Policies[f.Queue.Policy]; !ok {
		return excluded(unit.ReasonUnknownPolicy, "queue %q has policy %q; known are: %s",
			f.QueueName, f.Queue.Policy, unit.Quoted(slices.Sorted(maps.Keys(f.Policies))))
	}
	return Exclusion{}
}

func isWithinMax(f Facts) Exclusion { return aboveMax(f.Ask, f.Ask.Total) }

// isWithinMin keeps a non-preemptible unit that is larger than min out of the line: it would claim without end.
func isWithinMin(f Facts) Exclusion { return aboveMin(f.Ask, f.Ask.Total) }

// isChecked keeps from units what checks of their queue did not answer for.
func isChecked(f Facts) Exclusion {
	if f.Unchecked {
		return excluded(unit.ReasonCheckNeeded, "%s more, %s in all, is not what admission checks answered for; a job that "+
			"is suspended and admitted again is checked again", f.Ask.Request, f.Ask.Total)
	}
	return Exclusion{}
}

// checksAreAnswered keeps from units what nobody would answer for.
func checksAreAnswered(f Facts) Exclusion {
	if fault := f.Queue.Fault; fault != nil {
		return excluded(fault.Reason, "%s", fault.Message)
	}
	return Exclusion{}
}

func queueIsNotHeld(f Facts) Exclusion {
	if f.Queue.Held {
		return excluded(unit.ReasonQueueHeld, "queue %q is held", f.QueueName)
	}
	return Exclusion{}
}

// Possible says whether a unit that asks like this may ever hold so much. The limits of its quotas need not repeat
// their max and min.
func Possible(a *decide.Ask, total resources.List) bool {
	return aboveMax(a, total).Reason == "" && aboveMin(a, total).Reason == ""
}

func aboveMax(a *decide.Ask, total resources.List) Exclusion {
	return above(a, total, unit.ReasonExceedsMax, func(q *capacity.Quota) resources.List { return q.Max })
}

func aboveMin(a *decide.Ask, total resources.List) Exclusion {
	if !a.NonPreemptible {
		return Exclusion{}
	}
	return above(a, total, unit.ReasonExceedsMin, func(q *capacity.Quota) resources.List { return q.Min })
}

// above finds the first level whose bound is below what a unit would hold, even if nothing else were in use.
func above(a *decide.Ask, total resources.List, reason unit.Reason, of func(*capacity.Quota) resources.List) Exclusion {
	for _, l := range a.Route.Levels {
		bound := of(l.Spec())
		for _, it := range total.Items() {
			if most, ok := bound.Get(it.Name); ok && it.Amount > most {
				found := unit.Finding{Reason: reason, Level: l.Name(), Resource: it.Name}
				return Exclusion{Finding: found, Total: it.Amount, Most: most}
			}
		}
	}
	return Exclusion{}
}
