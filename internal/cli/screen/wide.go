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
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen/shortage"
)

// Part is a list of facts about a unit: lines of text, a table, or both. Names and messages of tenants in it have no
// control characters.
type Part struct {
	// Title ends with a colon if a table follows; empty for the summary.
	Title string
	Text  []string
	// Header of the table; nil if the first cell of a row names the second one.
	Header []string
	Rows   [][]string
	// More is the number of rows or lines that are left out.
	More int64
}

// Wide has the facts behind a short answer, and up to most rows of each table. Times are in UTC.
func Wide(now time.Time, s *Story, most int) []Part {
	all := []*Part{
		summary(now, s), reasonPart(now, s), takingPart(s), takenPart(now, s), shortageTable(s), otherPods(s),
		aheadTable(now, s), holderTable(now, s, most), checkTable(s),
	}
	var parts []Part
	for _, p := range all {
		if p == nil {
			continue
		}
		for i := range p.Text {
			p.Text[i] = Clean(p.Text[i])
		}
		p.Title = Clean(p.Title)
		fill(p.Rows)
		parts = append(parts, *p)
	}
	return parts
}

func summary(now time.Time, s *Story) *Part {
	u, e := s.Unit, effective(s.Unit, s.Live)
	rows := [][]string{{"Queue:", e.Queue}, {"Quota:", e.Quota}}
	if len(u.Spec.Quotas) > 1 {
		rows = append(rows, []string{"Lists:", strings.Join(u.Spec.Quotas, ", ")})
	}
	if path := u.Annotations[v1alpha1.QueuePathKey]; path != "" {
		rows = append(rows, []string{"Path:", path})
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
	return &Part{Rows: rows}
}

func reasonPart(now time.Time, s *Story) *Part {
	reason, message := s.reason()
	if reason == "" {
		return nil
	}
	p := &Part{Title: "Reason: " + reason, Text: []string{message}}
	if s.Live != nil && s.Live.Status.NotBefore != nil {
		at := s.Live.Status.NotBefore.Time
		p.Text = append(p.Text, fmt.Sprintf("Not before %s (in %s).", at.UTC().Format(time.RFC3339), age(at, now)))
	}
	if s.Live != nil && s.Live.Status.LosesQuotaAt != nil {
		at := s.Live.Status.LosesQuotaAt.Time
		p.Text = append(p.Text, fmt.Sprintf("If nothing changes, the time-out %s takes the quota back at %s (in %s).",
			s.Live.Status.LosesQuotaFor, at.UTC().Format(time.RFC3339), age(at, now)))
	}
	return p
}

func takingPart(s *Story) *Part {
	t := s.Taking
	if t == nil {
		return nil
	}
	p := &Part{Title: "Preempts, to be admitted:", Header: []string{"VICTIM", "QUOTA", "STATE"}}
	for i := range t.Victims {
		v := &t.Victims[i]
		p.Rows = append(p.Rows, []string{key(v.Namespace, v.Job), v.Quota, string(v.State)})
	}
	if t.Others > 0 {
		p.Rows = append(p.Rows, []string{others(t.Others), "", ""})
	}
	return p
}

func takenPart(now time.Time, s *Story) *Part {
	t := s.Taken
	if t == nil {
		return nil
	}
	p := &Part{Title: fmt.Sprintf("Preempted %s ago: %s", age(now, t.Time.Time), t.Reason), Text: []string{t.Message}}
	if t.Taker != nil {
		p.Text = append(p.Text, fmt.Sprintf("The quota went to %s of quota %s.", key(t.Taker.Namespace, t.Taker.Job),
			t.Taker.Quota))
	}
	p.Text = append(p.Text, fmt.Sprintf("Evictions so far, for any reason: %d.", t.Evictions))
	return p
}

func shortageTable(s *Story) *Part {
	if s.Live == nil || len(s.Live.Status.Shortages) == 0 {
		return nil
	}
	p := &Part{Title: "Too little quota:", Header: []string{
		"QUOTA", "RESOURCE", "LIMIT", "USED", "RESERVED", "CLAIMED", "FREE", "ASKED", "MISSING", "NOTE"}}
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
		p.Rows = append(p.Rows, []string{
			x.Level, x.Resource, limit.String() + " (" + bound + ")", x.Used.String(), x.Reserved.String(), claimed,
			x.Free.String(), x.Request.String(), x.Missing.String(), note,
		})
	}
	return p
}

func otherPods(s *Story) *Part {
	if len(s.OtherPods) == 0 {
		return nil
	}
	return &Part{
		Title: "Pods of namespace " + s.Unit.Namespace + " that use the quota without an admitted job:",
		Text:  slices.Clone(s.OtherPods), More: int64(s.MoreOtherPods),
	}
}

func aheadTable(now time.Time, s *Story) *Part {
	if len(s.Ahead) == 0 {
		return nil
	}
	p := &Part{
		Title: "Ahead in the queue:", Header: []string{"POSITION", "UNIT", "ASKS", "REASON", "AGE"}, More: s.MoreAhead,
	}
	for i := range s.Ahead {
		w := &s.Ahead[i]
		since := none
		if w.QueuedAt != nil {
			since = age(now, w.QueuedAt.Time)
		}
		p.Rows = append(p.Rows,
			[]string{fmt.Sprint(w.Position), key(w.Namespace, w.Name), amounts(w.Requested), w.Reason, since})
	}
	return p
}

func holderTable(now time.Time, s *Story, most int) *Part {
	if s.Live == nil || s.Live.Status.Holders == nil {
		return nil
	}
	h := s.Live.Status.Holders
	p := &Part{
		Title:  fmt.Sprintf("Hold %s at %s:", h.Resource, h.Level),
		Header: []string{"JOB", "QUOTA", "HOLDS", "AGE"}, More: int64(max(len(h.Units)-most, 0)),
	}
	for i := range h.Units[:min(most, len(h.Units))] {
		u, since := &h.Units[i], none
		if u.Since != nil {
			since = age(now, u.Since.Time)
		}
		p.Rows = append(p.Rows, []string{nameOf(u), u.Quota, u.Held.String(), since})
	}
	if !h.Others.IsZero() {
		p.Rows = append(p.Rows, []string{"(" + othersOf(h) + ")", "", h.Others.String(), ""})
	}
	if len(p.Rows) == 0 {
		return nil
	}
	return p
}

func checkTable(s *Story) *Part {
	if len(s.Unit.Status.AdmissionChecks) == 0 {
		return nil
	}
	p := &Part{Title: "Admission checks:", Header: []string{"CHECK", "STATE", "MESSAGE"}}
	for _, c := range s.Unit.Status.AdmissionChecks {
		p.Rows = append(p.Rows, []string{c.Name, string(c.State), c.Message})
	}
	return p
}
