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

// Package charts computes charts and has the templates that draw them as SVG. A chart is made at the server. It needs
// no script, and equal numbers give equal text. Colours are classes of the style sheet. A page with a chart has a table
// with the same numbers.
package charts

import (
	"embed"
	"math"
	"strconv"
	"time"
)

// Templates draw the charts: "bar", "meter", "steps", "timeline" and "columns".
//
//go:embed templates
var Templates embed.FS

// Percent of the width or height of a chart, with one decimal and without the sign.
type Percent float64

// String has as few digits as a screen can show.
func (p Percent) String() string {
	return strconv.FormatFloat(math.Round(float64(p)*10)/10, 'f', -1, 64)
}

// part of a whole in percent, between 0 and 100.
func part(of, whole float64) Percent {
	if whole <= 0 || math.IsNaN(of) {
		return 0
	}
	return Percent(min(max(of/whole, 0), 1) * 100)
}

// Span is a coloured piece of a bar.
type Span struct {
	// Class is its colour, and Name its meaning.
	Class, Name string
	From, Width Percent
	// Value is the amount in words.
	Value string
}

// Mark is a line across a bar.
type Mark struct {
	Class, Name string
	At          Percent
	Value       string
}

// Amount is a number with its text.
type Amount struct {
	Class, Name string
	Number      float64
	Text        string
}

// Bar is one line with pieces and marks.
type Bar struct {
	Label string
	Spans []Span
	Marks []Mark
}

// NewMeter is a bar of one value among others, next to its number.
func NewMeter(value, greatest float64) *Bar {
	return &Bar{Spans: []Span{{Class: "used", Width: part(value, greatest)}}}
}

// overhang is how far a bar goes on behind its last mark.
const overhang = 1.1

// NewBar puts pieces one behind the other, up to a little behind the last mark. Without marks their sum is the width.
func NewBar(label string, pieces, marks []Amount) *Bar {
	sum, whole := 0.0, 0.0
	for _, p := range pieces {
		sum += max(p.Number, 0)
	}
	whole = sum
	last := 0.0
	for _, m := range marks {
		last = max(last, m.Number)
	}
	if last > 0 {
		whole = min(max(sum, last), last*overhang)
	}
	b := &Bar{Label: label}
	from := 0.0
	for _, p := range pieces {
		if p.Number = min(p.Number, whole-from); p.Number > 0 {
			b.Spans = append(b.Spans, Span{p.Class, p.Name, part(from, whole), part(p.Number, whole), p.Text})
			from += p.Number
		}
	}
	for _, m := range marks {
		b.Marks = append(b.Marks, Mark{m.Class, m.Name, part(m.Number, whole), m.Text})
	}
	return b
}

// Steps is an amount over time, as an area with a limit above it.
type Steps struct {
	Label string
	// Area has the corners of the amount, in percent of the width and from the top.
	Area string
	// Limit is the height of the limit from the top; absent without one.
	Limit *Percent
}

// NewSteps has one value for each of equal periods.
func NewSteps(label string, values []float64, limit float64) *Steps {
	whole := limit
	for _, v := range values {
		whole = max(whole, v)
	}
	s := &Steps{Label: label, Area: "0,100"}
	n := float64(len(values))
	for i, v := range values {
		top := (100 - part(v, whole)).String()
		s.Area += " " + part(float64(i), n).String() + "," + top + " " + part(float64(i+1), n).String() + "," + top
	}
	s.Area += " 100,100"
	if limit > 0 {
		height := 100 - part(limit, whole)
		s.Limit = &height
	}
	return s
}

// Stretch is a time with a cause.
type Stretch struct {
	Class, Cause string
	From, To     time.Time
}

// Timeline is a line of stretches.
type Timeline struct {
	Label string
	Spans []Span
}

// NewTimeline is as wide as the time from the first stretch to the end of the last.
func NewTimeline(label string, stretches []Stretch) *Timeline {
	t := &Timeline{Label: label}
	if len(stretches) == 0 {
		return t
	}
	begin := stretches[0].From
	whole := stretches[len(stretches)-1].To.Sub(begin).Seconds()
	for i := range stretches {
		s := &stretches[i]
		t.Spans = append(t.Spans, Span{
			Class: s.Class, Name: s.Cause,
			From: part(s.From.Sub(begin).Seconds(), whole), Width: part(s.To.Sub(s.From).Seconds(), whole),
		})
	}
	return t
}

// Columns is a value for each of equal periods.
type Columns struct {
	Label string
	Items []Column
	// Begin and End are the times at both ends, and Most is the greatest value.
	Begin, End, Most string
}

// Column is one of them.
type Column struct {
	Name, Value              string
	From, Width, Top, Height Percent
}

// NewColumns scales to the greatest value.
func NewColumns(label string, values []Amount) *Columns {
	c := &Columns{Label: label}
	greatest := 0.0
	for _, v := range values {
		if v.Number > greatest {
			greatest, c.Most = v.Number, v.Text
		}
	}
	n := float64(len(values))
	for i, v := range values {
		height := part(v.Number, greatest)
		c.Items = append(c.Items, Column{
			Name: v.Name, Value: v.Text, Height: height, Top: 100 - height,
			From: part(float64(i)+0.1, n), Width: part(0.8, n),
		})
	}
	return c
}
