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

// Package screen prints the progress of the playground to a terminal or a file.
package screen

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Screen is where a command writes, and what the other side understands.
type Screen struct {
	Out      io.Writer
	Terminal bool // lines can be rewritten in place
	color    bool
}

// New is the standard output.
func New(noColor bool) Screen {
	terminal := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("TERM") != "dumb"
	return Screen{
		Out:      os.Stdout,
		Terminal: terminal,
		color:    terminal && !noColor && os.Getenv("NO_COLOR") == "",
	}
}

// Printf writes text.
func (s Screen) Printf(format string, args ...any) { fmt.Fprintf(s.Out, format, args...) }

// Bold returns text in bold, if the screen has it.
func (s Screen) Bold(text string) string { return s.Style("1", text) }

// Style returns text with an escape code, if the screen has colours.
func (s Screen) Style(code, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Block keeps lines in their place on a terminal.
type Block struct {
	screen Screen
	width  func() int
	lines  int
}

// NewBlock has no lines yet.
func NewBlock(s Screen) *Block { return &Block{screen: s, width: terminalWidth} }

// Show replaces the block, or prints it below on a screen that is no terminal.
func (d *Block) Show(lines []string) {
	var out strings.Builder
	if d.screen.Terminal && d.lines > 0 {
		fmt.Fprintf(&out, "\x1b[%dA", d.lines)
	}
	for _, line := range lines {
		if d.screen.Terminal {
			line = "\x1b[K" + cut(line, d.width())
		}
		out.WriteString(line + "\n")
	}
	if d.screen.Terminal {
		out.WriteString("\x1b[J")
	} else {
		out.WriteString("\n")
	}
	d.lines = len(lines)
	d.screen.Printf("%s", out.String())
}

// cut shortens a line to width columns, escape sequences not counted.
func cut(line string, width int) string {
	var out strings.Builder
	columns, escape := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case columns >= width:
			continue
		default:
			columns++
		}
		out.WriteRune(r)
	}
	return out.String()
}

func terminalWidth() int {
	width, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 {
		const usual = 120
		return usual
	}
	return width
}
