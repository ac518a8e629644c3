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

package export

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
	"time"

	"github.com/koord-jobqueue/koord-jobqueue/internal/replay"
	"github.com/koord-jobqueue/koord-jobqueue/internal/replay/measure"
	"github.com/koord-jobqueue/koord-jobqueue/internal/trace"
)

// Schedule is what a policy did.
type Schedule struct {
	Policy string
	Holds  []replay.Hold
}

// Sizes of the plot, in its units.
const (
	left, right, width = 70, 20, 960
	top, panel, space  = 55, 200, 50
	plotWidth          = width - left - right
	point              = 6 // between two points of a line: shorter changes of the use would hide the rest
	height             = top + 2*panel + 2*space
)

// Colours of the lines. They differ on white and on black.
var colours = []string{"#3b82f6", "#f97316", "#16a34a", "#a855f7", "#e11d48", "#0891b2", "#a16207", "#64748b"}

const style = `<style>
text { font: 12px sans-serif; fill: #333 }
rect { fill: #fff }
.grid { stroke: #ccc }
polyline { fill: none; stroke-width: 1.2; stroke-linejoin: round }
@media (prefers-color-scheme: dark) { text { fill: #ddd } rect { fill: #111 } .grid { stroke: #444 } }
</style>
`

// Plot writes the number of waiting jobs and the use of the machine over time as SVG, with a line for each schedule.
func Plot(out io.Writer, w *trace.Workload, schedules []Schedule) error {
	from, to := w.Jobs[0].Submit, w.Jobs[len(w.Jobs)-1].Submit
	for _, s := range schedules {
		for _, h := range s.Holds {
			to = max(to, h.End)
		}
	}
	longest := 1.0
	lines := make([][]measure.Point, len(schedules))
	for i, s := range schedules {
		lines[i] = measure.Series(w, s.Holds, from, to, plotWidth/point)
		for _, p := range lines[i] {
			longest = max(longest, p.Waiting)
		}
	}
	b := bufio.NewWriter(out)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d">`+"\n",
		width, height, width, height)
	fmt.Fprintf(b, "<title>Waiting jobs and use of %d processors</title>\n%s", w.Processors, style)
	fmt.Fprintf(b, `<rect width="%d" height="%d"/>`+"\n", width, height)
	legend(b, schedules)
	axes(b, top, "waiting jobs", longest, "")
	axes(b, top+panel+space, "use", 100, " %")
	timeAxis(b, to-from)
	for i, points := range lines {
		polyline(b, i, top, points, func(p measure.Point) float64 { return p.Waiting / longest })
		polyline(b, i, top+panel+space, points, func(p measure.Point) float64 { return p.Use })
	}
	fmt.Fprintln(b, "</svg>")
	return b.Flush()
}

func legend(b io.Writer, schedules []Schedule) {
	x := left
	for i, s := range schedules {
		fmt.Fprintf(b, `<line x1="%d" y1="18" x2="%d" y2="18" stroke="%s" stroke-width="3"/>`, x, x+20, colour(i))
		fmt.Fprintf(b, `<text x="%d" y="22">%s</text>`+"\n", x+26, html.EscapeString(s.Policy))
		x += 50 + 8*len(s.Policy)
	}
}

func colour(i int) string { return colours[i%len(colours)] }

// axes draws the lines of a panel at round values from 0 to the most.
func axes(b io.Writer, y int, title string, most float64, unit string) {
	fmt.Fprintf(b, `<text x="%d" y="%d">%s</text>`+"\n", left, y-6, title)
	for _, v := range ticks(most) {
		at := float64(y) + panel*(1-v/most)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, left, at, left+plotWidth, at)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%g%s</text>`+"\n", left-8, at+4, v, unit)
	}
}

// timeAxis is below both panels, in hours or days.
func timeAxis(b io.Writer, length time.Duration) {
	unit, name := 24*time.Hour, "days"
	if length < 3*unit {
		unit, name = time.Hour, "hours"
	}
	most := float64(length) / float64(unit)
	for _, v := range ticks(most) {
		x := left + plotWidth*v/max(most, math.SmallestNonzeroFloat64)
		for _, y := range []int{top + panel, top + 2*panel + space} {
			fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%g</text>`+"\n", x, y+16, v)
		}
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">%s since the first submission</text>`+"\n",
		left+plotWidth/2, height-14, name)
}

// ticks are about five round numbers from 0 to the most.
func ticks(most float64) []float64 {
	if most <= 0 {
		return []float64{0}
	}
	step := math.Pow(10, math.Floor(math.Log10(most/5)))
	for _, factor := range []float64{10, 5, 2} {
		if most/(step*factor) >= 4 {
			step *= factor
			break
		}
	}
	var all []float64
	for i := 0.0; i*step <= most; i++ {
		all = append(all, math.Round(i*step*1e6)/1e6)
	}
	return all
}

func polyline(b io.Writer, i, y int, points []measure.Point, part func(measure.Point) float64) {
	var path strings.Builder
	for x, p := range points {
		fmt.Fprintf(&path, "%d,%.1f ", left+point*x+point/2, float64(y)+panel*(1-part(p)))
	}
	fmt.Fprintf(b, `<polyline stroke="%s" points="%s"/>`+"\n", colour(i), strings.TrimSpace(path.String()))
}
