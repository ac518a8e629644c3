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
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// unitCheck says why a unit must not be in its queue now, from the unit and its consumer. An empty reason passes.
type unitCheck func(s *State, now time.Time, u *unit) (Reason, string)

// unitChecks in order: the first that fails gives the reason.
var unitChecks = []unitCheck{
	checkDecoded,
	checkPods,
	checkRequest,
	checkPhase,
	checkActive,
	checkAdopting,
	checkConsumerNamespace,
	checkConsumerLive,
	checkDuplicate,
}

// timeChecks come after the checks of the group: they pass by themselves.
var timeChecks = []unitCheck{checkBackoff, checkRefused}

// groupCheck says why no unit of a group is eligible.
type groupCheck func(s *State, g *group) (Reason, string)

// The quota comes first: the default queue of a quota that does not exist does not exist either, and the quota is what
// its owner has to make.
var groupChecks = []groupCheck{
	checkQuotaKnown,
	checkQueueKnown,
	checkQuotaInQueue,
	checkPolicyKnown,
	checkMax,
	checkMin,
	checkQueueOpen,
}

func (s *State) checkUnit(now time.Time, u *unit) (Reason, string) {
	for _, check := range unitChecks {
		if reason, message := check(s, now, u); reason != "" {
			return reason, message
		}
	}
	for _, check := range timeChecks {
		if reason, message := check(s, now, u); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

func (s *State) checkGroup(g *group) (Reason, string) {
	for _, check := range groupChecks {
		if reason, message := check(s, g); reason != "" {
			return reason, message
		}
	}
	return "", ""
}

// checkAdmitted says why an admitted unit must lose its admission. gone means that its job is known not to
// exist, so that nothing can use what it holds.
func (s *State) checkAdmitted(u *unit) (reason Reason, message string, gone bool) {
	if reason, message = checkConsumerNamespace(s, time.Time{}, u); reason != "" {
		return reason, message, false
	}
	reason, message = checkConsumerLive(s, time.Time{}, u)
	// A consumer that nobody has reported yet is no reason: informers of two kinds race.
	if reason == ReasonConsumerUIDMismatch || (reason != "" && u.consumerGone) {
		return reason, message, true
	}
	if reason, message = checkActive(s, time.Time{}, u); reason != "" {
		return reason, message, false
	}
	reason, message = checkDuplicate(s, time.Time{}, u)
	return reason, message, false
}

func checkDecoded(_ *State, _ time.Time, u *unit) (Reason, string) {
	return u.spec.Invalid, u.spec.InvalidMessage
}

func checkPods(_ *State, _ time.Time, u *unit) (Reason, string) {
	if u.spec.Pods == 0 && u.spec.Request.IsZero() {
		return ReasonNoPods, "the unit asks for nothing: no request and no pods"
	}
	return "", ""
}

func checkRequest(_ *State, _ time.Time, u *unit) (Reason, string) {
	if u.spec.Pods < 0 {
		return ReasonInvalidRequest, fmt.Sprintf("the number of pods is negative: %d", u.spec.Pods)
	}
	for _, it := range u.spec.Request.Items() {
		if it.Amount < 0 {
			return ReasonInvalidRequest, fmt.Sprintf("resource %q: negative amount %s", it.Name, resources.Format(it.Name, it.Amount))
		}
		if it.Amount > resources.Greatest {
			return ReasonInvalidRequest, fmt.Sprintf("resource %q: absurd amount %s", it.Name, resources.Format(it.Name, it.Amount))
		}
	}
	return "", ""
}

func checkPhase(_ *State, _ time.Time, u *unit) (Reason, string) {
	if p := u.spec.Phase; !p.Waits() && !p.Holds() && !p.Terminal() {
		return ReasonUnknownPhase, fmt.Sprintf("phase %q is not known to this version", p)
	}
	return "", ""
}

func checkActive(_ *State, _ time.Time, u *unit) (Reason, string) {
	if !u.spec.Active {
		return ReasonInactive, "the unit is held: spec.active is false"
	}
	return "", ""
}

func checkAdopting(_ *State, _ time.Time, u *unit) (Reason, string) {
	if u.spec.Adopting {
		return ReasonAdopting, "the job runs already; its unit waits to be marked as running"
	}
	return "", ""
}

func checkConsumerNamespace(_ *State, _ time.Time, u *unit) (Reason, string) {
	if own := namespaceOf(u.spec.Key); u.spec.consumerNamespace != "" && u.spec.consumerNamespace != own {
		return ReasonConsumerOtherNamespace, fmt.Sprintf("consumerRef names namespace %q; the unit is in %q",
			u.spec.consumerNamespace, own)
	}
	return "", ""
}

func checkConsumerLive(s *State, _ time.Time, u *unit) (Reason, string) {
	if !u.spec.ConsumerManaged || u.spec.consumer() == (Consumer{}) {
		return "", ""
	}
	return s.consumers.check(u)
}

func checkDuplicate(s *State, _ time.Time, u *unit) (Reason, string) {
	if u.spec.Misnamed {
		return ReasonDuplicateUnit, fmt.Sprintf("the unit of %s has another name", u.spec.consumer().describe())
	}
	if w := s.consumers.winner(u); w != nil && w != u {
		return ReasonDuplicateUnit, fmt.Sprintf("unit %q stands for the same %s", w.spec.Key, u.spec.consumer().describe())
	}
	return "", ""
}

func checkBackoff(_ *State, now time.Time, u *unit) (Reason, string) {
	if now.Before(u.spec.RequeueAt) {
		return ReasonBackoff, "waits until " + u.spec.RequeueAt.UTC().Format(time.RFC3339) + " before it is tried again"
	}
	return "", ""
}

func checkRefused(_ *State, now time.Time, u *unit) (Reason, string) {
	if now.Before(u.refusedUntil) {
		return u.refusal, u.refusalMessage
	}
	return "", ""
}

func checkQueueKnown(_ *State, g *group) (Reason, string) {
	if g.queue.known {
		return "", ""
	}
	if g.key.queue == "" {
		return ReasonUnknownQueue, "the unit names no queue"
	}
	return ReasonUnknownQueue, fmt.Sprintf("queue %q does not exist", g.key.queue)
}

func checkQuotaInQueue(_ *State, g *group) (Reason, string) {
	if g.queue.spec.Quotas == nil {
		return "", ""
	}
	for _, name := range g.queue.spec.Quotas {
		if name == g.key.quota {
			return "", ""
		}
	}
	return ReasonQuotaNotInQueue, fmt.Sprintf("queue %q does not accept quota %q; it accepts: %s",
		g.key.queue, g.key.quota, quoted(g.queue.spec.Quotas))
}

func checkPolicyKnown(s *State, g *group) (Reason, string) {
	if g.queue.fault != "" {
		return ReasonInternalError, g.queue.fault
	}
	if _, ok := s.policies[g.queue.spec.Policy]; ok {
		return "", ""
	}
	names := make([]string, 0, len(s.policies))
	for name := range s.policies {
		names = append(names, name)
	}
	sort.Strings(names)
	return ReasonUnknownPolicy, fmt.Sprintf("queue %q has policy %q; known are: %s",
		g.key.queue, g.queue.spec.Policy, quoted(names))
}

func checkQuotaKnown(s *State, g *group) (Reason, string) {
	if _, broken := s.pathTo(g.leaf); broken != "" {
		return ReasonUnknownQuota, broken
	}
	return "", ""
}

func checkMax(s *State, g *group) (Reason, string) {
	path, _ := s.pathTo(g.leaf)
	for _, l := range path {
		if over := beyondAll(g.request, l.spec.Max); over != "" {
			return ReasonExceedsMax, neverFits(&l.main, g, over, "max", l.spec.Max)
		}
	}
	return "", ""
}

// checkMin keeps a non-preemptible unit that is larger than what is promised out of the line: it would claim for ever.
func checkMin(s *State, g *group) (Reason, string) {
	if !g.key.nonPreemptible {
		return "", ""
	}
	path, _ := s.pathTo(g.leaf)
	for _, l := range path {
		if over := beyondAll(g.request, l.spec.Min); over != "" {
			return ReasonExceedsMin, neverFits(&l.min, g, over, "min", l.spec.Min)
		}
	}
	return "", ""
}

// beyondAll names the first resource of which more is asked for than a bound would allow if nothing were in use.
func beyondAll(request, bound resources.List) string {
	for _, it := range request.Items() {
		if most, ok := bound.Get(it.Name); ok && it.Amount > most {
			return it.Name
		}
	}
	return ""
}

func neverFits(gt *gate, g *group, resource, bound string, amounts resources.List) string {
	request, _ := g.request.Get(resource)
	most, _ := amounts.Get(resource)
	return fmt.Sprintf("%s: %s: request %s is above %s %s, so it can never fit", gt.name(g), resource,
		resources.Format(resource, request), bound, resources.Format(resource, most))
}

func checkQueueOpen(_ *State, g *group) (Reason, string) {
	if g.queue.spec.Held {
		return ReasonQueueHeld, fmt.Sprintf("queue %q is held", g.key.queue)
	}
	return "", ""
}

// checkKeys joins the equivalence keys of the extensions' checks.
func (s *State) checkKeys(u *unit) (keys, fault string) {
	if len(s.cfg.Checks) == 0 {
		return "", ""
	}
	defer func() {
		if r := recover(); r != nil {
			s.panics++
			fault = fmt.Sprintf("internal error while the unit was examined: %v", r)
		}
	}()
	var b strings.Builder
	for _, check := range s.cfg.Checks {
		b.WriteString(strconv.Quote(check.Key(u.spec.unit())))
	}
	return b.String(), ""
}

// tryPolicy asks the policy about the unit alone, before others are compared with it: a policy that cannot cope with a
// unit is to fail over that one, not over whatever is compared with it first.
func (s *State) tryPolicy(u *unit) (fault string) {
	defer func() {
		if r := recover(); r != nil {
			s.panics++
			fault = fmt.Sprintf("internal error while the unit was put in order: %v", r)
		}
	}()
	q := s.queue(u.spec.Queue)
	q.spot(u)
	q.policy.Compare(u.item(), u.item())
	q.policy.Blocks(u.spec.Priority)
	return ""
}

func namespaceOf(key string) string {
	namespace, _, found := strings.Cut(key, "/")
	if !found {
		return ""
	}
	return namespace
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strconv.Quote(name)
	}
	return strings.Join(out, ", ")
}
