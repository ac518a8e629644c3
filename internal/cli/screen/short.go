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
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen/shortage"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/reasons"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Line is a topic of a short answer, with one to three sentences about it. Names and messages of tenants in it have no
// control characters.
type Line struct{ Topic, Text string }

// The topics, in the order in which an answer has them. The job itself has none. TopicReason is of all reasons but
// shortages.
const (
	TopicReason = "Reason"
	TopicShort  = "What is short"
	TopicDoubt  = "May never run"
	TopicTaken  = "Lost its quota"
	TopicRuns   = "Still runs"
	TopicEnd    = "Who must end"
	TopicTakes  = "Takes back"
	TopicShare  = "Your share"
	TopicAhead  = "Ahead of you"
	TopicChecks = "Checks"
	TopicWhen   = "When"
	TopicHelps  = "What helps"
	TopicNo     = "Not known"
)

// Short says in a few lines why a unit has not got what it asks for. A topic without an answer is left out. Times are
// in the time zone of now.
func Short(now time.Time, s *Story) []Line {
	b := &brief{now: now, Story: s}
	b.shortage = s.decides()
	b.job()
	b.reason()
	b.doubts()
	b.lost()
	b.mustEnd()
	b.share()
	b.ahead()
	b.checks()
	b.when()
	b.helps()
	if s.Missing != "" {
		b.add(TopicNo, "Position, amounts, holders and jobs ahead: the aggregated API did not answer ("+s.Missing+").")
	}
	return b.lines
}

// brief is a short answer on its way.
type brief struct {
	*Story
	now   time.Time
	lines []Line
	// shortage is the one that decides; nil if the reason is none.
	shortage *shortage.Shortage
}

func (b *brief) add(topic string, sentences ...string) {
	var said []string
	for _, s := range sentences {
		if s = b.local(Clean(s)); s != "" {
			said = append(said, s)
		}
	}
	if len(said) > 0 {
		b.lines = append(b.lines, Line{topic, strings.Join(said, " ")})
	}
}

// timestamp is a time as messages have it.
var timestamp = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)

// local says the times in a message as those of the reader.
func (b *brief) local(message string) string {
	return timestamp.ReplaceAllStringFunc(message, func(text string) string {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return text
		}
		return dayTime(b.now, &metav1.Time{Time: t})
	})
}

func (b *brief) job() {
	u, e := b.Unit, effective(b.Unit, b.Live)
	text := fmt.Sprintf("%s in namespace %s: %s", answers.JobOf(u), u.Namespace, State(u))
	if e.Requested != "" {
		text += ", asks for " + e.Requested
	}
	if e.Held != "" {
		text += ", holds " + e.Held
	}
	for _, of := range [][2]string{{"quota", e.Quota}, {"queue", e.Queue}} {
		if of[1] != "" {
			text += fmt.Sprintf(", %s %s", of[0], of[1])
		}
	}
	text += ", created " + age(b.now, u.CreationTimestamp.Time) + " ago."
	observes := ""
	if u.Observed() {
		observes = "The queue does nothing about this job; below is why it would wait."
	}
	b.add("", text, observes)
}

// reason is in words of its own for a shortage, and in those of the scheduler or the controller for all others.
func (b *brief) reason() {
	reason, message := b.Story.reason()
	switch {
	case reason == "" && stateOf(b.Unit) == "Pending":
		b.add(TopicReason, "The scheduler has not examined the job yet. If that lasts, ask the operator whether it runs.")
		return
	case reason == "":
		return
	case b.shortage != nil && ownWords[unit.Reason(reason)]:
		live := &b.Live.Status
		also := listed(shortage.Others(live.Shortages, b.shortage))
		if also != "" {
			also = "Also missing: " + also + "."
		}
		b.add(TopicShort, b.shortage.Words(), also, asSentence(live.Remarks))
	default:
		b.add(TopicReason, asSentence(reason+": "+message), b.times())
	}
}

// ownWords are the reasons of shortages that the numbers explain in full.
var ownWords = map[unit.Reason]bool{
	unit.ReasonQuotaExceeded: true, unit.ReasonMinExceeded: true, unit.ReasonBlockedByHead: true,
	unit.ReasonExceedsMax: true, unit.ReasonExceedsMin: true, unit.ReasonExceedsGuaranteedShare: true,
	unit.ReasonHeldByOthers: true,
}

// times are when a back-off or a time-out is over.
func (b *brief) times() (text string) {
	if b.Live == nil {
		return ""
	}
	if at := b.Live.Status.NotBefore; at != nil {
		text = "Not before " + dayTime(b.now, at) + until(b.now, at) + "."
	}
	if at := b.Live.Status.LosesQuotaAt; at != nil {
		text = fmt.Sprintf("If nothing changes, the time-out %s takes the quota back at %s%s.",
			b.Live.Status.LosesQuotaFor, dayTime(b.now, at), until(b.now, at))
	}
	return text
}

func (b *brief) doubts() {
	if words := b.Unit.Annotations[v1alpha1.AnnotationDoubts]; words != "" && stateOf(b.Unit) == "Pending" {
		b.add(TopicDoubt, asSentence(strings.ReplaceAll(strings.TrimSpace(words), "\n", "; ")))
	}
}

// lost says why the unit was evicted, and if it was admitted again.
func (b *brief) lost() {
	if r := b.Lost; r != nil {
		ran := ""
		if r.Ran != nil {
			ran = " after " + lasting(r.Ran.Duration)
		}
		text := fmt.Sprintf("%s ago%s, %s: %s", age(b.now, r.Time.Time), ran, r.Reason, reasons.Of(r.Reason).Plain())
		b.add(TopicTaken, asSentence(text), "The job was admitted again.")
	}
	if c := b.evicted(); c != nil {
		to := ""
		if b.Taken != nil && b.Taken.Taker != nil {
			t := b.Taken.Taker
			to = fmt.Sprintf("The quota went to %s of quota %s.", key(t.Namespace, t.Job), t.Quota)
		}
		text := fmt.Sprintf("%s ago, %s: %s", age(b.now, c.LastTransitionTime.Time), c.Reason, c.Message)
		b.add(TopicTaken, asSentence(text), to)
	}
	if c := b.Unit.Status.Conditions; meta.IsStatusConditionTrue(c, v1alpha1.ConditionCannotSuspend) {
		stuck := meta.FindStatusCondition(c, v1alpha1.ConditionCannotSuspend)
		b.add(TopicRuns, asSentence(stuck.Reason+": "+stuck.Message), reasons.Of(stuck.Reason).Advice)
	}
}

// evicted is the condition of a unit that waits since its eviction; nil for any other.
func (b *brief) evicted() *metav1.Condition {
	c := meta.FindStatusCondition(b.Unit.Status.Conditions, v1alpha1.ConditionEvicted)
	if c == nil || c.Status != metav1.ConditionTrue || !unit.Phase(b.Unit.Status.Phase).Waits() {
		return nil
	}
	return c
}

func (b *brief) checks() {
	var parts []string
	for _, c := range b.Unit.Status.AdmissionChecks {
		part := fmt.Sprintf("%s is %s", c.Name, c.State)
		if c.Message != "" {
			part += " (" + c.Message + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		b.add(TopicChecks, listed(parts)+".")
	}
}

// when is the forecast. A unit that never fits has none.
func (b *brief) when() {
	if b.Forecast == nil {
		return
	}
	f := &b.Forecast.Status
	switch times := timesOf(b.now, f); {
	case times != "":
		b.add(TopicWhen, asSentence(times))
	case f.Endless > 0:
		b.add(TopicWhen, asSentence("no time is known: "+endless(b.Forecast)))
	}
}

// mostListed is the number of names in one sentence.
const mostListed = 3

// listed are the first parts in one sentence, and how many follow.
func listed(parts []string) string {
	if n := len(parts); n > mostListed {
		parts = append(parts[:mostListed:mostListed], fmt.Sprintf("%d more", n-mostListed))
	}
	return joined(parts)
}

func joined(parts []string) string {
	if n := len(parts); n > 1 {
		return strings.Join(parts[:n-1], ", ") + " and " + parts[n-1]
	}
	return strings.Join(parts, "")
}

// asSentence begins and ends words as a sentence. A word such as a reason or a name keeps its letters.
func asSentence(words string) string {
	words = strings.TrimRight(strings.TrimSpace(words), ".;: ")
	if words == "" {
		return ""
	}
	if first, _, _ := strings.Cut(words, " "); strings.ToLower(first) == first && !strings.ContainsAny(first, "/\".:") {
		words = strings.ToUpper(words[:1]) + words[1:]
	}
	return words + "."
}

// columns is the width of a short answer on a terminal, and margin that of its topics.
const columns, margin = 110, 17

// writeShort writes lines, with topics in a column of their own.
func writeShort(out io.Writer, lines []Line) error {
	for _, l := range lines {
		indent := 0
		if l.Topic != "" {
			indent = margin
		}
		text := wrapped(l.Text, columns-indent)
		if l.Topic != "" {
			text[0] = fmt.Sprintf("  %-*s%s", margin-2, l.Topic, text[0])
		}
		for i := range text[1:] {
			text[i+1] = strings.Repeat(" ", indent) + text[i+1]
		}
		if _, err := fmt.Fprintln(out, strings.Join(text, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// wrapped are the lines of a text. A word that is longer than a line has one of its own.
func wrapped(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
