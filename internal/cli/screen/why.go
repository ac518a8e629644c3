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
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen/shortage"
)

// Story is all that a reader may know of why a unit has not got what it asks for. Fields of the aggregated API are nil
// if it did not answer.
type Story struct {
	Unit *v1alpha1.QueueUnit
	Live *visibility.Unit
	// Missing says why there is no answer of the aggregated API.
	Missing string
	// Quota is that of the unit.
	Quota *visibility.LocalQuota
	// Forecast is nil for a unit that is not in line.
	Forecast *visibility.Forecast
	Ahead    []visibility.WaitingUnit
	// Taking is what the unit takes now, Taken the preemption since which it waits; nil without one.
	Taking *answers.Taking
	Taken  *answers.Taken
	// Lost is the last eviction of a unit that was admitted again.
	Lost *visibility.Record
	// OtherPods are pods of the namespace that use the quota and that no admitted unit accounts for.
	OtherPods     []string
	MoreOtherPods int
	// MoreAhead is the number of units ahead that are not listed.
	MoreAhead int64
}

// Why writes why a job waits, in a few lines.
func Why(out io.Writer, now time.Time, s *Story) error { return writeShort(out, Short(now, s)) }

// WhyWide writes the same, and behind it the facts and up to most rows of each table.
func WhyWide(out io.Writer, now time.Time, s *Story, most int) error {
	p := &Writer{out: out}
	p.err = writeShort(out, Short(now, s))
	p.summary(now, s)
	p.reason(now, s)
	p.preemption(now, s)
	p.shortages(s)
	p.ahead(now, s)
	p.holders(now, s, most)
	p.checks(s)
	return p.err
}

// NewWriter writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Writer writes until the first error.
type Writer struct {
	out io.Writer
	err error
}

// Err is the first error.
func (p *Writer) Err() error { return p.err }

// Printf writes text. Names and messages of tenants in it go through Clean first.
func (p *Writer) Printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// Table writes rows in columns. The first row is the header.
func (p *Writer) Table(rows [][]string) {
	if p.err == nil {
		p.err = table(p.out, "  ", rows)
	}
}

func (p *Writer) summary(now time.Time, s *Story) {
	u, e := s.Unit, effective(s.Unit, s.Live)
	rows := [][]string{{"Queue:", e.Queue}, {"Quota:", e.Quota}}
	if len(u.Spec.Quotas) > 1 {
		rows = append(rows, []string{"Lists:", Clean(strings.Join(u.Spec.Quotas, ", "))})
	}
	if path := u.Annotations[v1alpha1.QueuePathKey]; path != "" {
		rows = append(rows, []string{"Path:", Clean(path)})
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
	p.Printf("\n")
	p.Table(rows)
}

func (p *Writer) reason(now time.Time, s *Story) {
	reason, message := s.reason()
	if reason == "" {
		return
	}
	p.Printf("\nReason: %s\n  %s\n", Clean(reason), Clean(message))
	if s.Live != nil && s.Live.Status.NotBefore != nil {
		at := s.Live.Status.NotBefore.Time
		p.Printf("  Not before %s (in %s).\n", at.UTC().Format(time.RFC3339), age(at, now))
	}
	if s.Live != nil && s.Live.Status.LosesQuotaAt != nil {
		at := s.Live.Status.LosesQuotaAt.Time
		p.Printf("  If nothing changes, the time-out %s takes the quota back at %s (in %s).\n",
			Clean(s.Live.Status.LosesQuotaFor), at.UTC().Format(time.RFC3339), age(at, now))
	}
}

// reason is that of the aggregated API, which has the amounts of this moment, or that of the object.
func (s *Story) reason() (reason, message string) {
	if s.Live != nil && s.Live.Status.Reason != "" {
		return s.Live.Status.Reason, s.Live.Status.Message
	}
	return reasonOf(s.Unit)
}

func (p *Writer) shortages(s *Story) {
	if s.Live == nil || len(s.Live.Status.Shortages) == 0 {
		return
	}
	rows := [][]string{{"QUOTA", "RESOURCE", "LIMIT", "USED", "RESERVED", "CLAIMED", "FREE", "ASKED", "MISSING", "NOTE"}}
	for i := range s.Live.Status.Shortages {
		x := &s.Live.Status.Shortages[i]
		bound, limit := shortage.Binding(x)
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
	p.Printf("\nToo little quota:\n")
	p.Table(rows)
	if len(s.OtherPods) > 0 {
		p.Printf("\nPods of namespace %s that use the quota without an admitted job:\n", s.Unit.Namespace)
		for _, name := range s.OtherPods {
			p.Printf("  %s\n", Clean(name))
		}
		p.more(int64(s.MoreOtherPods))
	}
}

func (p *Writer) ahead(now time.Time, s *Story) {
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
	p.Printf("\nAhead in the queue:\n")
	p.Table(rows)
	p.more(s.MoreAhead)
}

func (p *Writer) holders(now time.Time, s *Story, most int) {
	if s.Live == nil || s.Live.Status.Holders == nil {
		return
	}
	h := s.Live.Status.Holders
	rows := [][]string{{"JOB", "QUOTA", "HOLDS", "AGE"}}
	for i := range h.Units[:min(most, len(h.Units))] {
		u, since := &h.Units[i], none
		if u.Since != nil {
			since = age(now, u.Since.Time)
		}
		rows = append(rows, []string{nameOf(u), u.Quota, u.Held.String(), since})
	}
	if !h.Others.IsZero() {
		rows = append(rows, []string{"(" + othersOf(h) + ")", "", h.Others.String(), ""})
	}
	if len(rows) > 1 {
		p.Printf("\nHold %s at %s:\n", h.Resource, h.Level)
		p.Table(rows)
		p.more(int64(len(h.Units) - most))
	}
}

func (p *Writer) more(n int64) {
	if n > 0 {
		p.Printf("  and %d more\n", n)
	}
}

func (p *Writer) checks(s *Story) {
	if len(s.Unit.Status.AdmissionChecks) == 0 {
		return
	}
	rows := [][]string{{"CHECK", "STATE", "MESSAGE"}}
	for _, c := range s.Unit.Status.AdmissionChecks {
		rows = append(rows, []string{c.Name, string(c.State), c.Message})
	}
	p.Printf("\nAdmission checks:\n")
	p.Table(rows)
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
