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

// Package draw makes pictures of the documentation: a timeline of a job by cause, a tree of quotas, and charts. Equal
// values give equal bytes. A picture is a file of its own, which a page of Markdown shows as an image. So its names are
// part of it, and it has a fixed width. Each picture has a title, and a table that says the same.
//
// Charts of the page of kubectl jobqueue web are others: internal/web/charts.
package draw

import (
	"bytes"
	_ "embed"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// style has the colours of all pictures, for light and dark screens.
//
//go:embed draw.css
var style string

// Picture is what one drawing shows.
type Picture struct {
	Title string
	// Table says the same as the drawing. Each row has as many cells as the header.
	Header []string
	Rows   [][]string

	width, height int
	shapes        bytes.Buffer
}

// File is the picture with its colours and a background.
func (p *Picture) File() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" class="draw" role="img" viewBox="0 0 %d %d" width="%d" `+
		`height="%d">`+"\n", p.width, p.height, p.width, p.height)
	fmt.Fprintf(&out, "<title>%s</title>\n<desc>%s</desc>\n", escape(p.Title), escape(p.text()))
	fmt.Fprintf(&out, "<style>\n%s</style>\n", style)
	fmt.Fprintf(&out, "<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", p.width, p.height)
	out.Write(p.shapes.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// text of the table: a line for each row.
func (p *Picture) text() string {
	lines := make([]string, 0, len(p.Rows))
	for _, row := range p.Rows {
		var cells []string
		for i, cell := range row[1:] {
			if cell != "" {
				cells = append(cells, p.Header[i+1]+" "+cell)
			}
		}
		lines = append(lines, row[0]+": "+strings.Join(cells, ", ")+".")
	}
	return strings.Join(lines, "\n")
}

// escape makes text fit for XML.
func escape(text string) string {
	var out bytes.Buffer
	if err := xml.EscapeText(&out, []byte(text)); err != nil {
		return "" // a buffer takes all
	}
	return strings.ReplaceAll(out.String(), "&#xA;", "\n")
}

// short cuts a text to a number of characters.
func short(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// charWidth is about the width of a character of the font.
const charWidth = 6.6

func widthOf(text string) float64 { return charWidth * float64(utf8.RuneCountInString(text)) }

// number with two places at most.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

func tenth(v float64) float64 { return math.Round(v*10) / 10 }

func (p *Picture) rect(class string, x, y, width, height float64, title string) {
	fmt.Fprintf(&p.shapes, `<rect class="%s" x="%g" y="%g" width="%g" height="%g"><title>%s</title></rect>`+"\n",
		class, tenth(x), tenth(y), tenth(width), tenth(height), escape(title))
}

func (p *Picture) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&p.shapes, `<line class="%s" x1="%g" y1="%g" x2="%g" y2="%g"/>`+"\n", class, tenth(x1), tenth(y1),
		tenth(x2), tenth(y2))
}

// label writes text at its left end, its middle or its right end: start, middle, end.
func (p *Picture) label(class, anchor string, x, y float64, text string) {
	fmt.Fprintf(&p.shapes, `<text class="%s" text-anchor="%s" x="%g" y="%g">%s</text>`+"\n", class, anchor,
		tenth(x), tenth(y), escape(text))
}
