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
	"slices"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/queue"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
	"github.com/koord-jobqueue/koord-jobqueue/test/harness/rulebook"
)

// Admission checks in the model: a unit with reserved quota is released after they have answered.

// labelsMeet is how selectors read labels here, for the state as well.
func labelsMeet(selector, labels string) bool { return selector == labels }

// checksOf are those that a unit has to pass: those of its queue, without those that select other labels.
func (m *model) checksOf(u *modelUnit) (checks []queue.AdmissionCheck) {
	for _, c := range m.queues[u.Queue].AdmissionChecks {
		if c.Selector == "" || labelsMeet(c.Selector, u.Labels) {
			checks = append(checks, c)
		}
	}
	return checks
}

func checkNames(checks []queue.AdmissionCheck) (names []string) {
	for _, c := range checks {
		names = append(names, c.Name)
	}
	return names
}

// askedOf are the checks that were asked about what a unit holds, with their answers.
func (u *modelUnit) askedOf() map[string]unit.CheckAnswer {
	answers := map[string]unit.CheckAnswer{}
	if u.Checks != nil {
		for _, a := range u.Checks.Answers {
			answers[a.Name] = a
		}
	}
	return answers
}

// refusedBy says whether a check sends a unit back: for good, or to be tried again after the longest named time.
// Rejection wins over retry.
func (m *model) refusedBy(u *modelUnit) (back modelEviction, refused bool) {
	asked := u.askedOf()
	for _, c := range m.checksOf(u) {
		switch asked[c.Name].State {
		case unit.CheckRejected:
			return modelEviction{reason: unit.ReasonCheckRejected, deactivates: unit.ReasonCheckRejected}, true
		case unit.CheckRetry:
			back.reason, back.backsOff = unit.ReasonCheckRetry, true
			back.wait = max(back.wait, asked[c.Name].RetryAfter)
		default:
		}
	}
	return back, back.backsOff
}

// askedOthers says that a reserved unit was asked other checks, or about another request, than its queue wants now. It
// also says so if nobody knows the checks of the queue. A check that was ready may be dropped.
func (m *model) askedOthers(u *modelUnit) bool {
	q, known := m.queues[u.Queue]
	checks, asked := m.checksOf(u), u.askedOf()
	if !known || q.Fault != nil || len(checks) > 0 && u.Sizes == nil && !u.held.Covers(u.Request) {
		return true
	}
	for _, c := range checks {
		if _, was := asked[c.Name]; !was {
			return true
		}
	}
	for name, a := range asked {
		if a.State != unit.CheckReady && !slices.Contains(checkNames(checks), name) {
			return true
		}
	}
	return false
}

// allReady: all checks that a unit has to pass say that it may go.
func (m *model) allReady(u *modelUnit) bool {
	asked := u.askedOf()
	for _, c := range m.checksOf(u) {
		if asked[c.Name].State != unit.CheckReady {
			return false
		}
	}
	return true
}

// overChecks says whether a unit loses its quota because of its checks. Before its release any of these causes counts.
// After it, only a check that takes back its answer counts, if the pods can be removed.
func (m *model) overChecks(u *modelUnit) (back modelEviction, goes bool) {
	reserved := u.Phase == unit.PhaseReserved
	back, refused := m.refusedBy(u)
	switch {
	case refused && (reserved || rulebook.Releases(u.Phase) && !m.keepsPods(u)):
		return back, true
	case !reserved:
	case m.askedOthers(u):
		return modelEviction{reason: unit.ReasonChecksChanged}, true
	case m.allReady(u) && u.Checks != nil && u.Checks.Conflict != "":
		return modelEviction{reason: unit.ReasonCheckConflict, backsOff: true}, true
	}
	return modelEviction{}, false
}

// passes says that a reserved unit may go as far as its own checks say.
func (m *model) passes(u *modelUnit) bool {
	_, goes := m.overChecks(u)
	return u.Phase == unit.PhaseReserved && !goes && m.allReady(u)
}

// cleared units were let go, or may be as far as their own checks say; and nothing takes them back.
func (m *model) cleared(u *modelUnit) bool {
	if u.at == "dequeuing" {
		return true
	}
	return (u.at == "admitted" || u.at == "resizing") && u.holds && (rulebook.Releases(u.Phase) || m.passes(u))
}

// mayGo says that each other gang of a group has a unit that is cleared. A unit that was admitted before waits for no
// gang that is over.
func (m *model) mayGo(u *modelUnit) bool {
	for _, gang := range gangsIn(u.GangGroup) {
		cleared, present := false, false
		for _, other := range m.units {
			if namespaceOf(other.Key) == namespaceOf(u.Key) && other.GangGroup == u.GangGroup &&
				slices.Contains(gangsIn(other.Gangs), gang) {
				cleared, present = cleared || m.cleared(other), present || other.at != "over"
			}
		}
		over := !present && u.Attempts > 1
		if !cleared && !over && !slices.Contains(gangsIn(u.Gangs), gang) {
			return false
		}
	}
	return true
}

// toLetGo says that a reserved unit has to be released now.
func (m *model) toLetGo(u *modelUnit) bool {
	_, goes := m.goes(u)
	return u.at == "admitted" && !u.Quarantined && !goes && m.passes(u) && m.mayGo(u) && !m.now.Before(u.refusedTo)
}

// checkEnds are the times at which a reserved unit loses its quota: when a check has not answered in time. After its
// own checks have answered, its gang group has as long as the slowest of them.
func (m *model) checkEnds(u *modelUnit) (ends []modelEnd) {
	checks, asked, slowest := m.checksOf(u), u.askedOf(), time.Duration(0)
	for _, c := range checks {
		if asked[c.Name].State != unit.CheckReady && c.Timeout > 0 {
			ends = append(ends, modelEnd{unit.ReasonCheckTimeout, u.Admitted.Add(c.Timeout)})
		}
		slowest = max(slowest, c.Timeout)
	}
	forEver := slices.ContainsFunc(checks, func(c queue.AdmissionCheck) bool { return c.Timeout <= 0 })
	if m.passes(u) && !m.mayGo(u) && slowest > 0 && !forEver {
		ends = append(ends, modelEnd{unit.ReasonCheckTimeout, u.Admitted.Add(slowest)})
	}
	return ends
}

// unanswered: a unit that was let go holds nothing, and checks have to answer for all that it asks for.
func (m *model) unanswered(u *modelUnit) bool {
	return rulebook.Releases(u.Phase) && u.says().IsZero() && !u.Request.IsZero() && len(m.checksOf(u)) > 0 &&
		!m.unfit(u) && !m.assigned(u.Key)
}

// unchecked: a unit asks for more than checks have answered for. Successors of long-deleted pods do not count.
func (m *model) unchecked(u *modelUnit) bool {
	if len(m.checksOf(u)) == 0 {
		return false
	}
	pods := m.podsOf(u, func(p Pod) bool { return !(p.Leaving && p.Assigned) })
	for _, k := range []string{"cpu", "gpu"} {
		held, _ := u.held.Get(k)
		if request, _ := u.Request.Get(k); max(request, pods[k]) > held {
			return true
		}
	}
	return false
}
