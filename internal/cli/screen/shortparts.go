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

package screen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen/shortage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/reasons"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// decides is the shortage that the holders are of. Where the end of no unit helps, it is that of the reason.
func (s *Story) decides() *shortage.Shortage {
	if s.Live == nil || len(s.Live.Status.Shortages) == 0 {
		return nil
	}
	list := s.Live.Status.Shortages
	choices := []func(x visibility.Shortage) bool{
		func(x visibility.Shortage) bool { return x.NeverFits },
		func(x visibility.Shortage) bool { return x.Rightful != nil },
		func(x visibility.Shortage) bool { return s.holds(&x) && x.Request.Cmp(x.Free) > 0 },
		func(x visibility.Shortage) bool { return s.holds(&x) },
		func(x visibility.Shortage) bool { return x.Binds },
	}
	for _, is := range choices {
		if at := slices.IndexFunc(list, is); at >= 0 {
			return &shortage.Shortage{Shortage: list[at]}
		}
	}
	return &shortage.Shortage{Shortage: list[0]}
}

// holds says whether the holders are those of a shortage.
func (s *Story) holds(x *visibility.Shortage) bool {
	h := s.Live.Status.Holders
	return h != nil && h.Level == x.Level && h.Resource == x.Resource
}

// mustEnd names the units that hold what is short, and sums up those that the reader may not know.
func (b *brief) mustEnd() {
	if t := b.Taking; t != nil {
		parts := make([]string, 0, len(t.Victims)+1)
		for i := range t.Victims {
			v := &t.Victims[i]
			parts = append(parts, fmt.Sprintf("%s of quota %s (%s)", key(v.Namespace, v.Job), v.Quota, v.State))
		}
		if t.Others > 0 {
			parts = append(parts, strings.Trim(others(t.Others), "()"))
		}
		b.add(TopicTakes, asSentence("from "+listed(parts)), "The job starts when their pods have ended.")
		return
	}
	x := b.held()
	if x == nil || b.shortage.NeverFits {
		return
	}
	switch holders := b.holders(x); {
	case len(holders) == 0:
	case x.Claimed():
		b.add(TopicEnd, asSentence("the jobs ahead wait for "+joined(holders)))
	case len(holders) == 1:
		b.add(TopicEnd, asSentence(holders[0]))
	default:
		verb := " must become free."
		if x.Resource == resources.Jobs {
			verb = " must end."
		}
		b.add(TopicEnd, x.Amount(x.Missing)+verb, asSentence("held by "+joined(holders)))
	}
}

// held is the shortage of the holders; nil if there is none.
func (b *brief) held() *shortage.Shortage {
	x := b.shortage
	if x == nil || b.Live.Status.Holders == nil {
		return nil
	}
	if !b.holds(&x.Shortage) { // more than its share, and too little at a level above
		at := slices.IndexFunc(b.Live.Status.Shortages, func(x visibility.Shortage) bool { return b.holds(&x) })
		x = &shortage.Shortage{Shortage: b.Live.Status.Shortages[max(0, at)]}
	}
	return x
}

// holders are units with their amounts, the largest first, then all others together, then pods.
func (b *brief) holders(x *shortage.Shortage) (parts []string) {
	h := b.Live.Status.Holders
	more, rest := 0, resource.Quantity{}
	for i := range h.Units {
		u := &h.Units[i]
		if len(h.Units) > mostListed && i >= mostListed-1 {
			more++
			rest.Add(u.Held)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", nameOf(u), u.Held.String()))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("%d more jobs (%s)", more, rest.String()))
	}
	if !h.Others.IsZero() {
		parts = append(parts, fmt.Sprintf("%s (%s)", othersOf(h), h.Others.String()))
	}
	if !x.UsedByOthers.IsZero() {
		parts = append(parts, fmt.Sprintf("pods without an admitted job (%s)", x.UsedByOthers.String()))
	}
	return parts
}

// mostNamed is the number of units that the server names.
const mostNamed = 100

// othersOf are the units that are not listed.
func othersOf(h *visibility.Holders) string {
	if len(h.Units) >= mostNamed {
		return "other jobs"
	}
	return "jobs of other namespaces"
}

// nameOf is NAMESPACE/NAME of the job, or of the unit if it stands for none.
func nameOf(u *visibility.Holder) string {
	if u.Job != "" {
		return u.Namespace + "/" + u.Job
	}
	return u.Namespace + "/" + u.Name
}

// share is said where the limit of the quota follows what others ask for.
func (b *brief) share() {
	x, q := b.shortage, b.Quota
	if x == nil || x.NeverFits || q == nil || x.Resource == resources.Jobs {
		return
	}
	name := corev1.ResourceName(x.Resource)
	now, limited := q.Status.Limit[name]
	most, bounded := q.Status.Max[name]
	if !limited || bounded && now.Cmp(most) >= 0 {
		return
	}
	used, least := q.Status.Used[name], q.Status.Min[name]
	used = used.DeepCopy()
	used.Add(q.Status.Reserved[name])
	text := fmt.Sprintf("Quota %s has a share of %s now (min %s", q.Name, x.Amount(now), least.String())
	if bounded {
		text += ", max " + most.String()
	}
	text += fmt.Sprintf(") and uses %s.", used.String())
	b.add(TopicShare, text, b.borrows(q.Name, used.Cmp(now) >= 0))
}

// borrows says under which condition the job goes beyond the share of its quota.
func (b *brief) borrows(quota string, full bool) string {
	x := b.shortage
	mid := x.Level != quota && x.Bound == "runtime"
	switch {
	case x.Rightful != nil || x.Claimed():
		return ""
	case x.Beyond:
		return "That is less than its share, so the job may go beyond it."
	case full:
		return "Above its share it gets only what no other job could use."
	case mid:
		return fmt.Sprintf("Quota %s uses its whole share. Above that it gets only what no other job could use.", x.Level)
	}
	return ""
}

// ahead says who comes first, and how much of what the job needs is claimed.
func (b *brief) ahead() {
	if b.Live == nil || b.Live.Status.Position == 0 {
		return
	}
	n, claims := int(b.Live.Status.Position)-1, b.claims(b.Live.Status.Queue)
	if n == 0 {
		b.add(TopicAhead, "Nobody in queue "+b.Live.Status.Queue+".", claims)
		return
	}
	var parts []string
	for i := range b.Ahead {
		w := &b.Ahead[i]
		who := "a job of another namespace"
		if w.Name != "" {
			who = w.Namespace + "/" + cmp.Or(w.Job, w.Name)
		}
		if len(parts) < mostListed {
			parts = append(parts, fmt.Sprintf("%s (%s)", who, amounts(w.Requested)))
		}
	}
	text := number(n, "job")
	if len(parts) > 0 {
		if more := n - len(parts); more > 0 {
			parts = append(parts, fmt.Sprintf("%d more", more))
		}
		text += ": " + strings.Join(parts, ", ")
	}
	b.add(TopicAhead, asSentence(text), claims)
}

// claims are those that bind the job, as far as a shortage says so.
func (b *brief) claims(queue string) string {
	if b.shortage == nil {
		return ""
	}
	list := b.Live.Status.Shortages
	at := slices.IndexFunc(list, func(x visibility.Shortage) bool { return x.ClaimedAhead != nil })
	switch {
	case at < 0 && b.Live.Status.Position > 1:
		return "They claim nothing of what the job needs."
	case at < 0:
		return ""
	}
	x := &shortage.Shortage{Shortage: list[at]}
	if b.shortage.ClaimedAhead != nil {
		x = b.shortage
	}
	who, first := "Jobs ahead", ""
	if x.ClaimedIn != "" && x.ClaimedIn != queue {
		who = "Jobs of queue " + x.ClaimedIn
	}
	named := func(w visibility.WaitingUnit) bool { return w.Namespace+"/"+w.Name == x.ClaimedBy }
	if x.ClaimedBy != "" && !slices.ContainsFunc(b.Ahead, named) {
		first = "; the first is " + x.ClaimedBy
	}
	return fmt.Sprintf("%s claim %s at %s%s.", who, x.Amount(*x.ClaimedAhead), x.Level, first)
}

// helps has advice about what is short, or that of the table of reasons.
func (b *brief) helps() {
	reason, _ := b.Story.reason()
	advice := reasons.Of(reason).Advice
	switch {
	case b.Taking != nil:
	case b.shortage == nil || !ownWords[unit.Reason(reason)]:
		c := b.evicted()
		switch evicted := c != nil; {
		case evicted && reason == string(unit.ReasonBackoff):
			b.add(TopicHelps, reasons.Of(c.Reason).Advice, strings.TrimPrefix(advice, "Wait. "))
		case evicted && reason == string(unit.ReasonInactive):
			b.add(TopicHelps, cmp.Or(reasons.Of(c.Reason).Advice, advice))
		default:
			b.add(TopicHelps, strings.ReplaceAll(advice, " JOB ", " "+answers.JobOf(b.Unit)+" "))
		}
	default:
		b.add(TopicHelps, b.remedies(reason, advice)...)
	}
}

// remedies are what makes the room that is missing.
func (b *brief) remedies(reason, advice string) []string {
	x := b.shortage
	switch {
	case x.NeverFits:
		return []string{advice, shortage.Raises(b.Live.Status.Shortages)}
	case x.Rightful != nil, reason == string(unit.ReasonHeldByOthers):
		return []string{advice}
	case x.Claimed():
		_, name, known := strings.Cut(x.ClaimedBy, "/")
		if known {
			advice += " kubectl jobqueue why " + name + " says for what that job waits."
		}
		return []string{advice}
	}
	return b.room(reason)
}

func (b *brief) room(reason string) []string {
	x, list := b.shortage, b.Live.Status.Shortages
	raise := shortage.Raises(list)
	said := []string{b.strayPods(), b.enough(), raise}
	switch {
	case reason == string(unit.ReasonMinExceeded):
		said = append(said, "Make the job preemptible, or ask for a larger min.")
	case x.Bound == "total":
		nodes := "More nodes help."
		if x.Unusable != nil {
			nodes = "More nodes help, and nodes that take pods again."
		}
		said = append(said, nodes)
	case b.Quota != nil && raise == "" && x.IsShare():
		said = append(said, fmt.Sprintf("A larger min of quota %s gives it a larger share.", b.Quota.Name))
	}
	if amount := shortage.Fits(list); amount != "" && (b.Quota == nil || !x.IsShare() || x.Level == b.Quota.Name) {
		said = append(said, "A job of at most "+amount+" fits now.")
	}
	return said
}

// strayPods of the namespace use the quota, and no admitted job accounts for them.
func (b *brief) strayPods() string {
	if len(b.OtherPods) == 0 {
		return ""
	}
	text := "Delete pods that no admitted job accounts for: " + listed(b.OtherPods)
	if b.MoreOtherPods > 0 {
		text += fmt.Sprintf(", and %d more", b.MoreOtherPods)
	}
	return text + "."
}

// enough names a unit whose end alone makes the room, where several hold it.
func (b *brief) enough() string {
	x, h := b.shortage, b.Live.Status.Holders
	alone := len(b.Live.Status.Shortages) == 1 && x.ClaimedAhead == nil && x.Resource != resources.Jobs
	if h == nil || !alone || len(b.holders(x)) < 2 {
		return ""
	}
	var names []string
	for i := range h.Units {
		if u := &h.Units[i]; u.Held.Cmp(x.Missing) >= 0 {
			names = append(names, nameOf(u))
		}
	}
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1:
		return "The end of " + names[0] + " is enough."
	default:
		return "The end of one of these is enough: " + listed(names) + "."
	}
}
