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
)

// Writer writes until the first error.
type Writer struct {
	out io.Writer
	err error
}

// NewWriter writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Err is the first error.
func (p *Writer) Err() error { return p.err }

// Printf writes text. Names and messages of tenants in it go through Clean first.
func (p *Writer) Printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// Table writes rows in columns. The first row is the header.
func (p *Writer) Table(rows [][]string) {
	if p.err == nil {
		p.err = table(p.out, "  ", rows)
	}
}
