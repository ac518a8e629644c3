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

// Package screen writes answers as text. It reads nothing and has no clock: equal answers at equal times give equal
// text.
package screen

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitcondition"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// none stands for an empty cell.
const none = "-"

// table writes rows in columns. The first row is the header.
func table(out io.Writer, indent string, rows [][]string) error {
	return writeRows(printers.GetNewTabWriter(out), indent, rows)
}

// tabs aligns columns when it is flushed.
type tabs interface {
	io.Writer
	Flush() error
}

func writeRows(w tabs, indent string, rows [][]string) error {
	fill(rows)
	for _, row := range rows {
		if _, err := fmt.Fprintln(w, indent+strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return w.Flush()
}

// fill marks empty cells, and cleans the others.
func fill(rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = Clean(cmp.Or(row[i], none))
		}
	}
}

// Clean keeps names and messages of tenants from moving the cursor of the reader's terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// State is the state of a unit in one word of the glossary. That of an observed unit is what would be.
func State(u *v1alpha1.QueueUnit) string {
	state := stateOf(u)
	if u.Observed() && !unitstate.State(state).Over() {
		return observed(state)
	}
	return state
}

func observed(state string) string { return "Observed (" + state + ")" }

func stateOf(u *v1alpha1.QueueUnit) string {
	return string(unitstate.Of(unit.Phase(u.Status.Phase), u.Inactive()))
}

// StateLine is the state of a unit in one line, with the reason and the message if it waits.
func StateLine(u *v1alpha1.QueueUnit) string {
	line := State(u)
	over := u.Status.Phase == v1alpha1.PhaseSucceed || u.Status.Phase == v1alpha1.PhaseFailed
	if reason, message := reasonOf(u); reason != "" && !over {
		line += " (" + Clean(reason) + ": " + Clean(message) + ")"
	}
	return line
}

// reasonOf is why a unit has not got all that it asks for, as its conditions say.
func reasonOf(u *v1alpha1.QueueUnit) (reason, message string) {
	conditions := u.Status.Conditions
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionResizePending); c != nil && c.Status == "True" {
		return c.Reason, c.Message
	}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionQuotaReserved); c != nil && c.Status == "False" {
		return c.Reason, c.Message
	}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionPodsReady); c != nil && c.Status == "False" &&
		meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionAdmitted) &&
		(unitcondition.Stalled(c.Reason) || c.Reason == v1alpha1.ReasonPodsLost) {
		return c.Reason, c.Message
	}
	return "", ""
}

func age(now, since time.Time) string {
	if since.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(since))
}

// amounts are resources in the order of their names.
func amounts(list corev1.ResourceList) string {
	var parts []string
	for _, name := range sortedNames(list) {
		q := list[name]
		parts = append(parts, string(name)+": "+q.String())
	}
	return strings.Join(parts, ", ")
}

// Row is a unit of a list.
type Row struct {
	Namespace, Job, Queue, Quota, State, Reason, Asks, Holds, Unit string
	// Position in the queue; 0 if the unit is not in line, or if nobody says it.
	Position int32
	Attempts int64
	Created  time.Time
	// Admitted is zero for a unit that holds no quota.
	Admitted time.Time
	// Forecast is nil for a unit that holds quota, and for one that is admitted later than many others.
	Forecast *visibility.Forecast
}

// RowOf an answer of the aggregated API.
func RowOf(u *visibility.Unit) Row {
	s := &u.Status
	state := s.State
	if s.Observed && !unitstate.State(state).Over() {
		state = observed(state)
	}
	admitted := time.Time{}
	if s.AdmittedAt != nil {
		admitted = s.AdmittedAt.Time
	}
	return Row{
		Namespace: u.Namespace, Job: answers.JobName(s.Kind, s.Job, u.Name), Queue: s.Queue, Quota: s.Quota, State: state,
		Reason: s.Reason, Asks: amounts(s.Requested), Holds: amounts(s.Held), Unit: u.Name, Position: s.Position,
		Attempts: s.Attempts, Created: u.CreationTimestamp.Time, Admitted: admitted,
	}
}

// RowOfObject is what the object of a unit says itself.
func RowOfObject(u *v1alpha1.QueueUnit) Row {
	e := effective(u, nil)
	reason, _ := reasonOf(u)
	admitted := time.Time{}
	if at := u.Status.LastAllocateTime; at != nil && unit.Phase(u.Status.Phase).Holds() {
		admitted = at.Time
	}
	return Row{
		Namespace: u.Namespace, Job: answers.JobOf(u), Queue: e.Queue, Quota: e.Quota, State: State(u), Reason: reason,
		Asks: e.Requested, Holds: e.Held, Unit: u.Name, Attempts: u.Status.Attempts, Created: u.CreationTimestamp.Time,
		Admitted: admitted,
	}
}

// Table is a list that is written part by part. Columns keep their width from one part to the next.
type Table struct {
	out              tabs
	namespaces, wide bool
	begun            bool
}

// NewTable has a column of namespaces, and wide ones, if asked for.
func NewTable(out io.Writer, namespaces, wide bool) *Table {
	return &Table{out: printers.GetNewTabWriter(out), namespaces: namespaces, wide: wide}
}

// Write writes rows, and before the first of them the header.
func (t *Table) Write(now time.Time, rows []Row) error {
	lines := make([][]string, 0, 1+len(rows))
	if !t.begun {
		header := []string{"JOB", "QUEUE", "POSITION", "STATE", "REASON", "ASKS", "AGE"}
		if t.namespaces {
			header = append([]string{"NAMESPACE"}, header...)
		}
		if t.wide {
			header = append(header, "ADMITTED", "QUOTA", "HOLDS", "ATTEMPTS", "UNIT")
		}
		lines, t.begun = append(lines, header), true
	}
	for i := range rows {
		lines = append(lines, t.line(now, &rows[i]))
	}
	return writeRows(t.out, "", lines)
}

func (t *Table) line(now time.Time, r *Row) []string {
	place := ""
	if r.Position > 0 {
		place = fmt.Sprint(r.Position)
	}
	cells := []string{r.Job, r.Queue, place, r.State, r.Reason, r.Asks, age(now, r.Created)}
	if t.namespaces {
		cells = append([]string{r.Namespace}, cells...)
	}
	if t.wide {
		cells = append(cells, foreseen(now, r.Forecast), r.Quota, r.Holds, fmt.Sprint(r.Attempts), r.Unit)
	}
	return cells
}

// foreseen is when a unit will be admitted, in the time zone of now.
func foreseen(now time.Time, f *visibility.Forecast) string {
	switch {
	case f == nil:
		return ""
	case f.Status.About != nil:
		return "about " + dayTime(now, f.Status.About)
	case f.Status.Latest != nil:
		return "by " + dayTime(now, f.Status.Latest)
	default:
		return ""
	}
}

// effective is what the unit came to. The aggregated API has it of this moment; the object has it since its last write.
func effective(u *v1alpha1.QueueUnit, live *visibility.Unit) v1alpha1.Effective {
	e := v1alpha1.Effective{}
	if u.Status.Effective != nil {
		e = *u.Status.Effective
	}
	if live == nil {
		live = &visibility.Unit{}
	}
	e.Queue, e.Quota = cmp.Or(live.Status.Queue, e.Queue, u.Spec.Queue), cmp.Or(live.Status.Quota, e.Quota)
	e.Requested = cmp.Or(e.Requested, amounts(live.Status.Requested))
	e.Held = cmp.Or(e.Held, amounts(live.Status.Held))
	if unitstate.State(stateOf(u)).Over() { // the amount is that of its last admission
		e.Held = ""
	}
	return e
}

// position in the queue; the number of units in line is not part of every answer.
func position(s *visibility.UnitStatus) string {
	switch {
	case s.Position == 0:
		return ""
	case s.Waiting == 0:
		return fmt.Sprint(s.Position)
	}
	return fmt.Sprintf("%d of %d", s.Position, s.Waiting)
}
