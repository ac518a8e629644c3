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

package draw

import (
	"cmp"
	"time"
)

// Cause is what a job waits for, or that it runs.
type Cause string

// The causes, in the order of the rows.
const (
	Ahead     Cause = "jobs ahead"
	Quota     Cause = "quota"
	Hold      Cause = "on hold"
	Check     Cause = "admission checks"
	Placement Cause = "nodes for its pods"
	Runs      Cause = "runs"
)

// rows of a timeline, from above, with their classes.
var causes = []struct {
	cause Cause
	class string
}{{Ahead, "ahead"}, {Quota, "quota"}, {Hold, "hold"}, {Check, "check"}, {Placement, "placement"}, {Runs, "runs"}}

// Span is a time with one cause.
type Span struct {
	From, To time.Time
	Cause    Cause
	// Text says more, such as the quota that is short.
	Text string
}

// Event is a moment, such as an eviction.
type Event struct {
	At   time.Time
	Text string
}

// Timeline is the life of one job. Spans and events are in the order of time. A cause without a span has no row.
type Timeline struct {
	Title  string
	Spans  []Span
	Events []Event
}

// Sizes of a timeline.
const (
	timeWidth = 760
	timeTop   = 10
	timeLeft  = 150
	timeRight = 92 // for the sum of each row
	timeBar   = timeWidth - timeLeft - timeRight
	timeRow   = 26
	timeEvent = 18
	leastBar  = 2
	timeText  = 70
)

// Draw the timeline: a row for each cause, and a line for each event.
func (t *Timeline) Draw() *Picture {
	p := &Picture{Title: t.Title, width: timeWidth, Header: []string{"from", "to", "for", "cause", "more"}}
	from, to := t.bounds()
	x := func(when time.Time) float64 {
		return timeLeft + timeBar*float64(when.Sub(from))/float64(max(to.Sub(from), 1))
	}
	y := float64(timeTop + timeEvent*len(t.Events))
	bottom := y + float64(timeRow*t.rows())
	for _, tick := range ticks(to.Sub(from)) {
		at := x(from.Add(tick))
		p.line("grid", at, y, at, bottom)
		p.label("dim", "middle", at, bottom+16, span(tick))
	}
	for _, row := range causes {
		var sum time.Duration
		for _, s := range t.Spans {
			if s.Cause != row.cause {
				continue
			}
			sum += s.To.Sub(s.From)
			p.rect(row.class, x(s.From), y+4, max(x(s.To)-x(s.From), leastBar), timeRow-8,
				string(s.Cause)+" "+span(s.To.Sub(s.From))+" "+s.Text)
		}
		if sum > 0 {
			p.label("name", "start", 8, y+timeRow-9, string(row.cause))
			p.label("dim", "end", timeWidth-8, y+timeRow-9, span(sum))
			y += timeRow
		}
	}
	for i, e := range t.Events {
		p.event(&e, x(e.At), float64(timeTop+timeEvent*i), bottom)
	}
	p.height = int(bottom) + 24
	p.tabulate(t)
	return p
}

// event writes its text to the side with more room.
func (p *Picture) event(e *Event, x, y, bottom float64) {
	p.line("event", x, y, x, bottom)
	text := short(e.Text, timeText)
	if x > timeWidth/2 {
		p.label("dim", "end", x-5, y+12, text)
	} else {
		p.label("dim", "start", x+5, y+12, text)
	}
}

// tabulate spans and events in the order of time.
func (p *Picture) tabulate(t *Timeline) {
	events := t.Events
	event := func() {
		e := &events[0]
		p.Rows = append(p.Rows, []string{instant(e.At), "", "", "", e.Text})
		events = events[1:]
	}
	for _, s := range t.Spans {
		for len(events) > 0 && !events[0].At.After(s.From) {
			event()
		}
		p.Rows = append(p.Rows, []string{instant(s.From), instant(s.To), span(s.To.Sub(s.From)), string(s.Cause), s.Text})
	}
	for len(events) > 0 {
		event()
	}
}

func (t *Timeline) bounds() (from, to time.Time) {
	see := func(at time.Time) {
		if from.IsZero() || at.Before(from) {
			from = at
		}
		if at.After(to) {
			to = at
		}
	}
	for _, s := range t.Spans {
		see(s.From)
		see(s.To)
	}
	for _, e := range t.Events {
		see(e.At)
	}
	return from, to
}

// rows is the number of causes that have a time.
func (t *Timeline) rows() int {
	has := map[Cause]bool{}
	for _, s := range t.Spans {
		if s.To.After(s.From) {
			has[s.Cause] = true
		}
	}
	return len(has)
}

func instant(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

// span in two units at most.
func span(d time.Duration) string {
	units := []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.of {
			continue
		}
		text := number(float64(d/u.of)) + " " + u.name
		if i+1 < len(units) {
			if rest := d % u.of / units[i+1].of; rest > 0 {
				text += " " + number(float64(rest)) + " " + units[i+1].name
			}
		}
		return text
	}
	return number(d.Seconds()) + " s"
}

// steps between two ticks.
var steps = []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute,
	10 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour,
	30 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// ticks of an axis from 0: eight at most.
func ticks(length time.Duration) []time.Duration {
	step := cmp.Or(length/7, 1)
	for _, s := range steps {
		if length <= 7*s {
			step = s
			break
		}
	}
	var all []time.Duration
	for at := time.Duration(0); at <= length; at += step {
		all = append(all, at)
	}
	return all
}
