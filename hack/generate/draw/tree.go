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
	"strings"
)

// Level is one quota of a tree: its amounts of one resource, in the unit of the tree.
type Level struct {
	Name string
	// Depth is 0 at the top. A level comes after the one above it.
	Depth int
	// Min, Share and Max bound the quota; NaN is none. Share is the runtime of this moment.
	Min, Share, Max float64
	// Used by pods, and Reserved for admitted jobs beyond that.
	Used, Reserved float64
	// Leaving is the part of both that evicted jobs still hold.
	Leaving float64
	// Claimed is kept for a pending job.
	Claimed float64
	// Pending is the number of jobs that wait.
	Pending int
}

// Tree is a tree of quotas at one moment.
type Tree struct {
	Title string
	// Unit of all amounts, as cpu or GiB of memory.
	Unit   string
	Levels []Level
}

// Sizes of a tree.
const (
	treeWidth  = 760
	treeTop    = 30 // for the legend
	treeTitle  = 22
	treeEnd    = 4
	treeBars   = 180
	treeBar    = 280 // width of the longest bar
	treeWords  = 42
	treeRow    = 34
	barHeight  = 16
	treeIndent = 14
	treeName   = 26
)

// legend of a tree, with classes of parts of a bar.
var treeLegend = []struct{ class, text string }{
	{"used", "used"}, {"borrowed", "beyond min"}, {"reserved", "reserved"}, {"leaving", "evicted, still held"},
	{"claimed", "claimed"},
}

// Draw the tree: a bar for each level, all on one scale.
func (t *Tree) Draw() *Picture { return Trees(t.Title, &Tree{Unit: t.Unit, Levels: t.Levels}) }

// Trees draws several trees on one scale, such as one at several moments. Each has its title above.
func Trees(title string, trees ...*Tree) *Picture {
	p := &Picture{
		Title: title, width: treeWidth, height: treeTop,
		Header: []string{"quota", "min", "share", "max", "used", "reserved", "beyond min", "evicted, still held", "claimed",
			"pending jobs"},
	}
	if len(trees) > 1 {
		p.Header = append([]string{"moment"}, p.Header...)
	}
	p.treeLegend()
	longest := 0.0
	for _, t := range trees {
		longest = max(longest, longestOf(t.Levels))
	}
	scale := treeBar / cmp.Or(longest, 1)
	for _, t := range trees {
		if t.Title != "" {
			p.label("name", "start", 8, float64(p.height+14), t.Title)
			p.height += treeTitle
		}
		for j := range t.Levels {
			row := t.row(&t.Levels[j])
			if len(trees) > 1 {
				row = append([]string{t.Title}, row...)
			}
			p.Rows = append(p.Rows, row)
			p.level(&t.Levels[j], float64(p.height+6), scale)
			p.height += treeRow
		}
	}
	p.height += treeEnd
	return p
}

func (p *Picture) treeLegend() {
	x := 8.0
	for _, l := range treeLegend {
		p.rect(l.class, x, 10, 12, 12, l.text)
		p.label("dim", "start", x+17, 20, l.text)
		x += 17 + widthOf(l.text) + 16
	}
	for _, mark := range []string{"min", "share"} {
		p.line(mark, x+4, 8, x+4, 24)
		p.label("dim", "start", x+10, 20, mark)
		x += 10 + widthOf(mark) + 16
	}
}

func longestOf(levels []Level) float64 {
	longest := 0.0
	for i := range levels {
		l := &levels[i]
		for _, v := range []float64{l.Min, l.Share, l.Max, l.Used + l.Reserved} {
			if v > longest { // NaN is not
				longest = v
			}
		}
	}
	return longest
}

// beyond is how much of used and reserved is beyond the min.
func (l *Level) beyond() float64 {
	if l.Min >= 0 {
		return max(l.Used+l.Reserved-l.Min, 0)
	}
	return 0
}

func (p *Picture) level(l *Level, y, scale float64) {
	x := 8 + float64(treeIndent*l.Depth)
	if l.Depth > 0 {
		p.line("branch", x-8, y-treeRow/2+8, x-8, y+barHeight/2)
		p.line("branch", x-8, y+barHeight/2, x-2, y+barHeight/2)
	}
	p.label("name", "start", x, y+barHeight-4, short(l.Name, treeName-2*l.Depth))
	end := l.Max
	if !(end >= 0) {
		end = l.Used + l.Reserved
	}
	p.rect("track", treeBars, y, end*scale, barHeight, bound("max", l.Max))
	from := 0.0
	part := func(class, name string, amount float64) {
		if amount > 0 {
			p.rect(class, treeBars+from, y, amount*scale, barHeight, name+" "+number(amount))
			from += amount * scale
		}
	}
	// All of it is used or reserved. The part that leaves is drawn last.
	leaving := min(l.Leaving, l.Used+l.Reserved)
	stays := l.Used + l.Reserved - leaving
	reserved := min(l.Reserved, stays)
	within := stays - reserved
	if l.Min >= 0 {
		within = min(within, l.Min)
	}
	part("used", "used", within)
	part("borrowed", "used beyond min", stays-reserved-within)
	part("reserved", "reserved", reserved)
	part("leaving", "held by evicted jobs", leaving)
	if claimed := min(l.Claimed, end); claimed > 0 { // of the free part first
		p.rect("claimed", treeBars+min(from, (end-claimed)*scale), y, claimed*scale, barHeight, "claimed "+number(claimed))
	}
	for _, mark := range []struct {
		class string
		value float64
	}{{"min", l.Min}, {"share", l.Share}} {
		if mark.value >= 0 {
			x := treeBars + mark.value*scale
			p.line(mark.class, x, y-4, x, y+barHeight+4)
		}
	}
	p.label("dim", "start", treeBars+treeBar+12, y+barHeight-4, short(l.words(), treeWords))
}

func bound(name string, v float64) string {
	if v >= 0 {
		return name + " " + number(v)
	}
	return "no " + name
}

// words to the right of a bar.
func (l *Level) words() string {
	text := number(l.Used+l.Reserved) + " held"
	if l.Max >= 0 {
		text = number(l.Used+l.Reserved) + " of " + number(l.Max)
	}
	for _, part := range []struct {
		amount float64
		name   string
	}{{l.beyond(), "beyond min"}, {l.Claimed, "claimed"}, {float64(l.Pending), "pending"}} {
		if part.amount > 0 {
			text += ", " + number(part.amount) + " " + part.name
		}
	}
	return text
}

func (t *Tree) row(l *Level) []string {
	cell := func(v float64) string {
		if !(v >= 0) {
			return ""
		}
		return strings.TrimSpace(number(v) + " " + t.Unit)
	}
	some := func(v float64) string {
		if v == 0 {
			return ""
		}
		return cell(v)
	}
	row := []string{
		l.Name, cell(l.Min), cell(l.Share), cell(l.Max), cell(l.Used), cell(l.Reserved), some(l.beyond()),
		some(l.Leaving), some(l.Claimed), "",
	}
	if l.Pending > 0 {
		row[len(row)-1] = number(float64(l.Pending))
	}
	return row
}
