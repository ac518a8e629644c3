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

package engine

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/mailru/easyjson/jlexer"
)

// textLexer walks through JSON where it lies, without making values of what nobody asks for. Its errors end all loops:
//
//	for r.Delim('{'); r.member(); r.WantComma() {
//		switch string(r.key) {
//		case "name":
//			name = r.text()
//		default:
//			r.skip()
//		}
//	}
//
// where every value has to be read or skipped; readObject does it by a table. What it returns belongs to the text. jlexer
// takes some numbers and strings that are no JSON; here they fail.
type textLexer struct {
	jlexer.Lexer
	key []byte // of the member that member came to last
}

func newTextLexer(text []byte) textLexer { return textLexer{Lexer: jlexer.Lexer{Data: text}} }

// fail makes it fail, if it has not yet.
func (r *textLexer) fail() { r.AddError(errOdd) }

// atEnd says whether all was read but white space.
func (r *textLexer) atEnd() bool {
	r.Consumed()
	return r.Ok()
}

// member goes to the value of the next member of the object; false at the end of it.
func (r *textLexer) member() bool {
	if !r.until('}') {
		return false
	}
	r.key = r.text()
	r.WantColon()
	return r.Ok()
}

// item goes to the next item of the list; false at the end of it.
func (r *textLexer) item() bool { return r.until(']') }

func (r *textLexer) until(end byte) bool {
	if r.IsDelim(end) {
		r.Delim(end)
		return false
	}
	return true
}

// text reads a string.
func (r *textLexer) text() []byte {
	raw := r.Raw()
	if len(raw) < 2 || raw[0] != '"' {
		r.fail()
		return nil
	}
	if text := raw[1 : len(raw)-1]; plain(text) {
		return text
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		r.fail()
	}
	return []byte(text)
}

// plain says whether a string means what it says.
func plain(text []byte) bool {
	return !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == '\\' || c == utf8.RuneError })
}

// integer reads a number without fraction and exponent that fits.
func (r *textLexer) integer() int64 {
	n, err := strconv.ParseInt(string(r.skip()), 10, 64)
	if err != nil {
		r.fail()
	}
	return n
}

// time reads a time as metav1.Time does.
func (r *textLexer) time() time.Time {
	t, err := time.Parse(time.RFC3339, string(r.text()))
	if err != nil {
		r.fail()
	}
	return t.Local()
}

func (r *textLexer) int32() int32 {
	n := r.integer()
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.fail()
	}
	return int32(n) //nolint:gosec // checked
}

func (r *textLexer) lexer() *textLexer { return r }

// field of an object: its name, and what reads its value.
type field[R any] struct {
	name string
	read func(r R)
}

// readObject reads an object by its fields, at most 64, none of which may come twice; other reads or passes what they do not
// name.
func readObject[R interface{ lexer() *textLexer }](r R, fields []field[R], other func(r R)) {
	seen, l := uint64(0), r.lexer()
	for l.Delim('{'); l.member(); l.WantComma() {
		i := 0
		for i < len(fields) && fields[i].name != string(l.key) {
			i++
		}
		if i == len(fields) {
			other(r)
			continue
		}
		if seen&(1<<i) != 0 {
			l.fail()
		}
		seen |= 1 << i
		fields[i].read(r)
	}
}

// composite says whether an object or a list comes next.
func (r *textLexer) composite() bool { return r.IsDelim('{') || r.IsDelim('[') }

// skip passes a value and returns its text.
func (r *textLexer) skip() []byte {
	checked := r.composite() // by Raw
	raw := r.Raw()
	if !checked && !json.Valid(raw) {
		r.fail()
		return nil
	}
	return raw
}
