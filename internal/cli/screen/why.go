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
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/reasons"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Story is all that a reader may know of why a unit has not got what it asks for. Fields of the aggregated API are nil
// if it did not answer.
type Story struct {
	Unit *v1alpha1.QueueUnit
	Live *visibility.Unit
	// Missing says why there is no answer of the aggregated API.
	Missing string
	// Forecast is nil for a unit that is not in line.
	Forecast *visibility.Forecast
	Holders  []visibility.Unit
	Ahead    []visibility.WaitingUnit
	// Taking is what the unit takes now, Taken the preemption since which it waits; nil without one.
	Taking *answers.Taking
	Taken  *answers.Taken
	// OtherPods are pods of the namespace that use the quota and that no admitted unit accounts for.
	OtherPods     []string
	MoreOtherPods int
	// More are the units of which there are more than are listed.
	MoreHolders, MoreAhead int64
}

// Why writes the page that answers why a job waits.
func Why(out io.Writer, now time.Time, s *Story) error {
	p := &pageWriter{out: out}
	p.summary(now, s)
	p.reason(now, s)
	p.doubts(s)
	p.preemption(now, s)
	p.shortages(s)
	p.ahead(now, s)
	p.holders(s)
	p.checks(s)
	p.advice(s)
	if s.Missing != "" {
		p.printf("\nThe aggregated API gives no position, amounts, holders and units ahead: %s.\n", s.Missing)
	}
	return p.err
}

// pageWriter writes until the first error.
type pageWriter struct {
	out io.Writer
	err error
}

func (p *pageWriter) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

func (p *pageWriter) table(rows [][]string) {
	if p.err == nil {
		p.err = table(p.out, "  ", rows)
	}
}

func (p *pageWriter) summary(now time.Time, s *Story) {
	u, e := s.Unit, effective(s.Unit, s.Live)
	p.printf("%s in namespace %s: %s, created %s ago\n",
		answers.JobOf(u), u.Namespace, State(u), age(now, u.CreationTimestamp.Time))
	rows := [][]string{{"Queue:", e.Queue}, {"Quota:", e.Quota}}
	if len(u.Spec.Quotas) > 1 {
		rows = append(rows, []string{"Lists:", clean(strings.Join(u.Spec.Quotas, ", "))})
	}
	if path := u.Annotations[v1alpha1.QueuePathKey]; path != "" {
		rows = append(rows, []string{"Path:", clean(path)})
	}
	if l := s.Live; l != nil {
		if l.Status.Position > 0 {
			rows = append(rows, []string{"Position:", position(&l.Status)})
		}
		if f := s.Forecast; f != nil {
			if expected := expectation(now, &f.Status); expected != "" {
				rows = append(rows, []string{"Admitted:", expected})
			}
		}
		rows = append(rows, []string{"Priority:", fmt.Sprint(l.Status.Priority)})
	}
	rows = append(rows, []string{"Asks for:", e.Requested})
	if e.Held != "" {
		rows = append(rows, []string{"Holds:", e.Held})
	}
	if u.Observed() {
		rows = append(rows, []string{"Mode:", "Observe: the queue does nothing about the job"})
	}
	if !ptr.Deref(e.Preemptable, true) {
		rows = append(rows, []string{"Preemptable:", "no, as long as its queue has allowUnpreemptable"})
	}
	p.table(rows)
}

func (p *pageWriter) reason(now time.Time, s *Story) {
	reason, message := s.reason()
	if reason == "" {
		if state := State(s.Unit); state == "Pending" {
			p.printf("\nNo reason yet: the scheduler has not looked at the unit, or does not run.\n")
		}
		return
	}
	p.printf("\nReason: %s\n  %s\n", clean(reason), clean(message))
	if s.Live != nil && s.Live.Status.NotBefore != nil {
		at := s.Live.Status.NotBefore.Time
		p.printf("  Not before %s (in %s).\n", at.UTC().Format(time.RFC3339), age(at, now))
	}
	if s.Live != nil && s.Live.Status.LosesQuotaAt != nil {
		at := s.Live.Status.LosesQuotaAt.Time
		p.printf("  If nothing changes, the time-out %s takes the quota back at %s (in %s).\n",
			clean(s.Live.Status.LosesQuotaFor), at.UTC().Format(time.RFC3339), age(at, now))
	}
}

// doubts are what the controller said of the job when it queued it.
func (p *pageWriter) doubts(s *Story) {
	words := s.Unit.Annotations[v1alpha1.AnnotationDoubts]
	if words == "" || State(s.Unit) != "Pending" {
		return
	}
	p.printf("\nThe job may never run. When it was queued:\n")
	for line := range strings.SplitSeq(words, "\n") {
		p.printf("  %s\n", clean(line))
	}
}

// reason is that of the aggregated API, which has the amounts of this moment, or that of the object.
func (s *Story) reason() (reason, message string) {
	if s.Live != nil && s.Live.Status.Reason != "" {
		return s.Live.Status.Reason, s.Live.Status.Message
	}
	return reasonOf(s.Unit)
}

func (p *pageWriter) shortages(s *Story) {
	if s.Live == nil || len(s.Live.Status.Shortages) == 0 {
		return
	}
	rows := [][]string{{"QUOTA", "RESOURCE", "LIMIT", "USED", "RESERVED", "CLAIMED", "FREE", "ASKED", "MISSING", "NOTE"}}
	for i := range s.Live.Status.Shortages {
		x := &s.Live.Status.Shortages[i]
		bound, limit := binding(x)
		claimed, note := none, none
		if x.ClaimedAhead != nil {
			claimed = x.ClaimedAhead.String()
		}
		switch {
		case x.NeverFits:
			note = "never fits"
		case x.Binds:
			note = "decides"
		}
		rows = append(rows, []string{
			x.Level, x.Resource, limit.String() + " (" + bound + ")", x.Used.String(), x.Reserved.String(), claimed,
			x.Free.String(), x.Request.String(), x.Missing.String(), note,
		})
	}
	p.printf("\n")
	reason, _ := s.reason()
	for i := range s.Live.Status.Shortages {
		if x := &s.Live.Status.Shortages[i]; x.Binds || len(s.Live.Status.Shortages) == 1 {
			for line := range strings.Lines(sentence(x, reason)) {
				p.printf("%s\n", clean(strings.TrimSuffix(line, "\n")))
			}
		}
	}
	p.printf("\nToo little quota:\n")
	p.table(rows)
	if len(s.OtherPods) > 0 {
		p.printf("\nPods of namespace %s that use the quota without an admitted job:\n", s.Unit.Namespace)
		for _, name := range s.OtherPods {
			p.printf("  %s\n", clean(name))
		}
		p.more(int64(s.MoreOtherPods))
	}
}

// bounds are the limits of a level in words.
var bounds = map[string]string{
	"max": "its max", "min": "its min, for jobs that are not preemptible", "runtime": "its fair share of this moment",
	"total": "all that the cluster has", "rightful": "what it can get while others use what they are guaranteed",
}

// binding is the limit that a shortage is about. A unit that never fits asks for more than max, or min, and not for
// more than the share of a moment.
func binding(x *visibility.Shortage) (bound string, limit resource.Quantity) {
	if x.NeverFits && x.Bound != "min" && x.Max != nil {
		return "max", *x.Max
	}
	return x.Bound, x.Limit
}

// sentence says in words what the row of the shortage says in columns that is the reason.
func sentence(x *visibility.Shortage, reason string) string {
	bound, amount := binding(x)
	limit := fmt.Sprintf("%s of %s (%s)", amount.String(), x.Resource, cmp.Or(bounds[bound], bound))
	if x.NeverFits {
		return fmt.Sprintf("The job asks for %s. Quota %s never gives more than %s.", x.Request.String(), x.Level, limit)
	}
	text := fmt.Sprintf("Quota %s has a limit of %s: pods use %s, and admitted jobs reserve %s more.\n",
		x.Level, limit, x.Used.String(), x.Reserved.String())
	if !x.UsedByOthers.IsZero() {
		text += fmt.Sprintf("Pods without an admitted job use %s of that.\n", x.UsedByOthers.String())
	}
	if x.ClaimedAhead != nil {
		text += fmt.Sprintf("Units ahead claim %s. ", x.ClaimedAhead.String())
	}
	if reason == string(unit.ReasonExceedsGuaranteedShare) { // free quota does not help
		return text + fmt.Sprintf("The job asks for %s. It is admitted when other quotas use less than they are guaranteed.",
			x.Request.String())
	}
	return text + fmt.Sprintf("The job asks for %s, so %s must become free.", x.Request.String(), x.Missing.String())
}

// changes are what would let the job go on, with numbers.
func changes(s *Story) (lines []string) {
	if s.Live == nil {
		return nil
	}
	if text := raises(s.Live.Status.Shortages); text != "" {
		lines = append(lines, text)
	}
	for i := range s.Holders {
		h := &s.Holders[i]
		if freed := amounts(helpful(h.Status.Held, s)); freed != "" && h.Name != "" {
			lines = append(lines, fmt.Sprintf("The end of %s frees %s.", key(h.Namespace, h.Name), freed))
		}
	}
	return lines
}

// raises is the sentence about greater quotas. It is empty if these are not enough: if the cluster has too little, or a
// share at some level is too small. Of a job that never fits only what it never gets counts. The rest may come free.
func raises(all []visibility.Shortage) string {
	never := slices.ContainsFunc(all, func(x visibility.Shortage) bool { return x.NeverFits })
	decides := never
	var parts []string
	for i := range all {
		x := &all[i]
		if never && !x.NeverFits {
			continue
		}
		bound, limit := binding(x)
		if x.Bound == "total" || bound != "max" && bound != "min" {
			return ""
		}
		decides = decides || x.Binds
		enough := limit.DeepCopy()
		if enough.Add(x.Missing); bound != x.Bound {
			enough = x.Request
		}
		parts = append(parts, fmt.Sprintf("%s of %s of quota %s from %s to %s",
			bound, x.Resource, x.Level, limit.String(), enough.String()))
	}
	if !decides { // something else keeps the job from its turn
		return ""
	}
	return "An operator raises " + strings.Join(parts, ", and ") + "."
}

// helpful is the part of another job's quota that the job is short of. A shortage of min needs quota of non-preemptible
// jobs, and it is not known whether the other job is one.
func helpful(held corev1.ResourceList, s *Story) corev1.ResourceList {
	freed := corev1.ResourceList{}
	if reason, _ := s.reason(); reason == string(unit.ReasonExceedsGuaranteedShare) { // free quota does not help
		return freed
	}
	for i := range s.Live.Status.Shortages {
		x := &s.Live.Status.Shortages[i]
		if x.NeverFits {
			return nil
		}
		if amount, ok := held[corev1.ResourceName(x.Resource)]; ok && x.Bound != "min" {
			freed[corev1.ResourceName(x.Resource)] = amount
		}
	}
	return freed
}

func (p *pageWriter) ahead(now time.Time, s *Story) {
	if len(s.Ahead) == 0 {
		return
	}
	rows := [][]string{{"POSITION", "UNIT", "ASKS", "REASON", "AGE"}}
	for i := range s.Ahead {
		w := &s.Ahead[i]
		since := none
		if w.QueuedAt != nil {
			since = age(now, w.QueuedAt.Time)
		}
		rows = append(rows, []string{fmt.Sprint(w.Position), key(w.Namespace, w.Name), amounts(w.Requested), w.Reason, since})
	}
	p.printf("\nAhead in the queue:\n")
	p.table(rows)
	p.more(s.MoreAhead)
}

func (p *pageWriter) holders(s *Story) {
	if len(s.Holders) == 0 {
		return
	}
	rows := [][]string{{"UNIT", "PHASE", "HOLDS"}}
	for i := range s.Holders {
		h := &s.Holders[i]
		rows = append(rows, []string{key(h.Namespace, h.Name), h.Status.Phase, amounts(h.Status.Held)})
	}
	p.printf("\nHold this quota:\n")
	p.table(rows)
	p.more(s.MoreHolders)
}

func (p *pageWriter) more(n int64) {
	if n > 0 {
		p.printf("  and %d more\n", n)
	}
}

func (p *pageWriter) checks(s *Story) {
	if len(s.Unit.Status.AdmissionChecks) == 0 {
		return
	}
	rows := [][]string{{"CHECK", "STATE", "MESSAGE"}}
	for _, c := range s.Unit.Status.AdmissionChecks {
		rows = append(rows, []string{c.Name, string(c.State), c.Message})
	}
	p.printf("\nAdmission checks:\n")
	p.table(rows)
}

func (p *pageWriter) advice(s *Story) {
	reason, _ := s.reason()
	lines := changes(s)
	if text := reasons.Of(reason).Advice; text != "" {
		lines = append([]string{text}, lines...)
	}
	if len(lines) > 0 {
		p.printf("\nWhat helps:\n")
	}
	for _, line := range lines {
		p.printf("  %s\n", clean(line))
	}
}

// key names a unit. A reader of one namespace does not learn the names of units elsewhere.
func key(namespace, name string) string {
	if name == "" {
		return "(another namespace)"
	}
	return namespace + "/" + name
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return strings.Compare(string(a), string(b))
	})
}
