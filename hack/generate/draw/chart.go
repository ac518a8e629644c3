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
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Line is one amount over time. Points have equal distances; NaN is a gap.
type Line struct {
	Name   string
	Points []float64
}

// Chart has lines over time, from 0 up.
type Chart struct {
	Title string
	// Unit of all amounts; "s" shows times, and "%" parts of 1.
	Unit  string
	Lines []Line
}

// Charts are next to each other and share a time.
type Charts struct {
	Title string
	// Length of the time, from the first point of each line to the last one.
	Length time.Duration
	// Rows of charts.
	Rows [][]*Chart
}

// Sizes of charts.
const (
	chartsWidth = 760
	chartSpace  = 14
	chartLeft   = 46 // for the amounts
	chartTop    = 24 // for the title
	chartHeight = 90
	chartLabel  = 15
	chartLines  = 6 // with names of their own, and colours
)

// Draw the charts.
func (c *Charts) Draw() *Picture {
	p := &Picture{
		Title: c.Title, width: chartsWidth, height: 6, Header: []string{"chart", "line", "first", "last", "least", "most"},
	}
	for _, row := range c.Rows {
		width := (chartsWidth - chartSpace) / float64(max(len(row), 1))
		bottom := 0
		for i, chart := range row {
			end := p.chart(chart, chartSpace+width*float64(i), float64(p.height), width-chartSpace, c.Length)
			bottom = max(bottom, int(end))
			p.Rows = append(p.Rows, chart.table()...)
		}
		p.height = max(bottom, p.height) + chartSpace
	}
	return p
}

// chart at a place, and where it ends below.
func (p *Picture) chart(c *Chart, x, y, width float64, length time.Duration) (end float64) {
	p.label("name", "start", x, y+14, short(c.Title, int(width/charWidth)))
	x, y, width = x+chartLeft, y+chartTop, width-chartLeft
	most := c.most()
	for _, part := range []float64{0, 0.5, 1} {
		at := y + chartHeight*(1-part)
		p.line("grid", x, at, x+width, at)
		p.label("dim", "end", x-5, at+4, c.amount(most*part))
	}
	p.label("dim", "start", x, y+chartHeight+16, span(0))
	p.label("dim", "end", x+width, y+chartHeight+16, span(length))
	end = y + chartHeight + 2*chartLabel
	for i, line := range c.Lines {
		class := fmt.Sprint("line", min(i, chartLines))
		for _, points := range line.paths(x, y, width, most) {
			fmt.Fprintf(&p.shapes, `<polyline class="%s" points="%s"/>`+"\n", class, points)
		}
		if i < chartLines {
			p.line(class, x, end, x+18, end)
			p.label("dim", "start", x+24, end+4, short(line.Name, int((width-24)/charWidth)))
			end += chartLabel
		}
	}
	if more := len(c.Lines) - chartLines; more > 0 {
		p.label("dim", "start", x+24, end+4, fmt.Sprintf("and %d more", more))
		end += chartLabel
	}
	return end
}

// most of all points, rounded up to a number that is easy to read, and not 0.
func (c *Chart) most() float64 {
	most := 0.0
	for _, l := range c.Lines {
		for _, v := range l.Points {
			if v > most { // NaN is not
				most = v
			}
		}
	}
	if most == 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(most)))
	for _, factor := range []float64{1, 2, 4, 5} {
		if most <= factor*power {
			return factor * power
		}
	}
	return 10 * power
}

// paths are the coordinates of the points, without the gaps. A point between two gaps has a path of its own.
func (l *Line) paths(x, y, width, most float64) (paths []string) {
	var path []string
	end := func() {
		if len(path) == 1 {
			path = append(path, path[0])
		}
		if len(path) > 0 {
			paths = append(paths, strings.Join(path, " "))
		}
		path = nil
	}
	for i, v := range l.Points {
		if math.IsNaN(v) {
			end()
			continue
		}
		at := x + width*float64(i)/float64(max(len(l.Points)-1, 1))
		path = append(path, fmt.Sprintf("%g,%g", tenth(at), tenth(y+chartHeight*(1-v/most))))
	}
	end()
	return paths
}

// amount in the unit of the chart, with three digits.
func (c *Chart) amount(v float64) string {
	switch {
	case c.Unit == "%":
		return fmt.Sprintf("%.3g %%", v*100)
	case c.Unit == "s" && v > 0 && v < 1:
		return fmt.Sprintf("%.3g ms", v*1000)
	case c.Unit != "":
		return fmt.Sprintf("%.3g %s", v, c.Unit)
	}
	return fmt.Sprintf("%.3g", v)
}

// table has a row for each line.
func (c *Chart) table() (rows [][]string) {
	for _, l := range c.Lines {
		var some []float64
		for _, v := range l.Points {
			if !math.IsNaN(v) {
				some = append(some, v)
			}
		}
		row := []string{c.Title, l.Name}
		if len(some) == 0 {
			row = append(row, "", "", "", "")
		} else {
			for _, v := range []float64{some[0], some[len(some)-1], slices.Min(some), slices.Max(some)} {
				row = append(row, c.amount(v))
			}
		}
		rows = append(rows, row)
	}
	return rows
}
