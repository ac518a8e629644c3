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

package results

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/replay/measure"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// mostUsers is how many users have a row of their own.
const mostUsers = 10

// Replayed is what a policy did with a workload.
type Replayed struct {
	Policy  string
	Figures *measure.Figures
	Shaken  []*measure.Figures // the same of the workload when it was shaken
}

// figure is a column of the table of policies.
type figure struct {
	header string
	of     func(*measure.Figures) float64
	text   func(float64) string
}

func figures(all []Replayed) []figure {
	columns := []figure{
		{"MEAN WAIT (s)", func(f *measure.Figures) float64 { return f.Mean }, integer},
		{"LONGEST (s)", func(f *measure.Figures) float64 { return f.Longest }, integer},
		{"SLOWDOWN", func(f *measure.Figures) float64 { return f.Slowdown }, decimals},
		{"USE", func(f *measure.Figures) float64 { return f.Use }, partOf},
		{"LOSS", func(f *measure.Figures) float64 { return f.Loss }, partOf},
		{"FAIRNESS", func(f *measure.Figures) float64 { return f.Fairness }, decimals},
	}
	if slices.ContainsFunc(all, func(r Replayed) bool { return r.Figures.Evictions > 0 }) {
		columns = append(columns,
			figure{"EVICTIONS", func(f *measure.Figures) float64 { return float64(f.Evictions) }, integer},
			figure{"LOST (h)", func(f *measure.Figures) float64 { return f.Lost / 3600 }, integer})
	}
	return columns
}

// Replays writes the figures of policies on one workload: a table of all jobs, one by size, and one by user.
func Replays(out io.Writer, w *trace.Workload, all []Replayed) error {
	p := screen.NewWriter(out)
	work := 0.0
	for i := range w.Jobs {
		work += float64(w.Jobs[i].Size) * w.Jobs[i].Run.Seconds()
	}
	period := w.Jobs[len(w.Jobs)-1].Submit - w.Jobs[0].Submit
	p.Printf("Jobs: %s, submitted within %.1f days. Processors: %s.", integer(float64(len(w.Jobs))), period.Hours()/24,
		integer(float64(w.Processors)))
	if period > 0 {
		p.Printf(" The jobs ask for %s of them in this time.", partOf(work/(float64(w.Processors)*period.Seconds())))
	}
	p.Printf("\n\n")
	columns := figures(all)
	rows := [][]string{{"POLICY"}}
	for _, c := range columns {
		rows[0] = append(rows[0], c.header)
	}
	for _, r := range all {
		cells := []string{r.Policy}
		for _, c := range columns {
			cells = append(cells, c.cell(r))
		}
		rows = append(rows, cells)
	}
	p.Table(rows)
	p.Printf("\nMean wait by size:\n")
	p.Table(groupRows("SIZE", all, func(f *measure.Figures) []measure.Waits { return f.BySize }))
	if len(all[0].Figures.ByUser) > 1 {
		p.Printf("\nMean wait by user:\n")
		p.Table(groupRows("USER", all, func(f *measure.Figures) []measure.Waits { return f.ByUser }))
	}
	for _, r := range all {
		if r.Figures.Unstarted > 0 {
			p.Printf("\n%s never starts %s jobs. They are not in its figures.\n", screen.Clean(r.Policy),
				integer(float64(r.Figures.Unstarted)))
		}
	}
	return p.Err()
}

// cell is the figure, or its mean and range if the workload was shaken.
func (c figure) cell(r Replayed) string {
	if len(r.Shaken) == 0 {
		return c.text(c.of(r.Figures))
	}
	values := make([]float64, len(r.Shaken))
	for i, f := range r.Shaken {
		values[i] = c.of(f)
	}
	spread := measure.RangeOf(values)
	low, high := c.text(spread.Low), c.text(spread.High)
	if low == high {
		return low
	}
	return fmt.Sprintf("%s (%s to %s)", c.text(spread.Mean), low, high)
}

// groupRows are the mean waits of groups of jobs, in the order of the first policy. Groups beyond some are one row.
func groupRows(title string, all []Replayed, of func(*measure.Figures) []measure.Waits) [][]string {
	header := []string{title, "JOBS"}
	for _, r := range all {
		header = append(header, strings.ToUpper(r.Policy)+" (s)")
	}
	rows := [][]string{header}
	first := of(all[0].Figures)
	shown := first[:min(len(first), mostUsers)]
	row := func(name string, jobs int, belongs func(string) bool) {
		cells := []string{name, integer(float64(jobs))}
		for _, r := range all {
			cells = append(cells, integer(meanOf(of(r.Figures), belongs)))
		}
		rows = append(rows, cells)
	}
	names := map[string]bool{}
	for _, g := range shown {
		names[g.Name] = true
		row(g.Name, g.Jobs, func(name string) bool { return name == g.Name })
	}
	if n := len(first) - len(shown); n > 0 {
		jobs := 0
		for _, g := range first[len(shown):] {
			jobs += g.Jobs
		}
		row(fmt.Sprintf("(%d others)", n), jobs, func(name string) bool { return !names[name] })
	}
	return rows
}

func meanOf(groups []measure.Waits, belongs func(string) bool) float64 {
	sum, jobs := 0.0, 0.0
	for _, g := range groups {
		if belongs(g.Name) {
			sum += g.Mean * float64(g.Jobs)
			jobs += float64(g.Jobs)
		}
	}
	return sum / jobs
}

func partOf(part float64) string { return grouped(100*part, 1, " %") }

func decimals(x float64) string { return grouped(x, 2, "") }

func integer(x float64) string { return grouped(x, 0, "") }

// grouped is a number with a comma for each thousand.
func grouped(x float64, digits int, unit string) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	text := strconv.FormatFloat(x, 'f', digits, 64)
	end := strings.IndexByte(text, '.')
	if end < 0 {
		end = len(text)
	}
	for i := end - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text + unit
}

// ReplayProgress says how far a replay is.
func ReplayProgress(out io.Writer, policy string, jobs, all int, passed time.Duration) {
	fmt.Fprintf(out, "%s: %s of %s jobs after %.0f s\n", screen.Clean(policy), integer(float64(jobs)),
		integer(float64(all)), passed.Seconds())
}
