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

// Package rawjson reads JSON where it lies: once, from front to back, without making values of what nobody asks for. It is
// for text that a JSON encoder wrote and of which little is needed. What is skipped is not checked.
package rawjson

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Reader reads one text. After the first thing that is not as asked for it has failed: it stays where it is, reads nothing
// more and ends all loops. Objects and lists are walked as
//
//	for r.Object(); r.Member(); {
//		switch string(r.Key) {
//		case "name":
//			name = r.Text()
//		default:
//			r.Skip()
//		}
//	}
//
// where every value has to be read or skipped. The slices that it returns belong to the text.
type Reader struct {
	// Key of the member that Member came to last.
	Key []byte

	text   []byte
	at     int
	first  bool // in what was opened last nothing was read
	failed bool
}

// NewReader reads the text.
func NewReader(text []byte) Reader { return Reader{text: text} }

// Failed says whether something was not as asked for.
func (r *Reader) Failed() bool { return r.failed }

// Fail makes the reader fail.
func (r *Reader) Fail() { r.failed = true }

// AtEnd says whether all was read but white space.
func (r *Reader) AtEnd() bool { return r.peek() == 0 && !r.failed }

// peek returns the next byte that is no white space, without passing it; 0 at the end and after a failure.
func (r *Reader) peek() byte {
	if r.failed {
		return 0
	}
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

func (r *Reader) expect(c byte) bool {
	if r.peek() != c {
		r.failed = true
		return false
	}
	r.at++
	return true
}

// Object goes into an object, Array into a list.
func (r *Reader) Object() { r.first = r.expect('{') }

// Array goes into a list.
func (r *Reader) Array() { r.first = r.expect('[') }

// Member goes to the value of the next member of the object; false at the end of it.
func (r *Reader) Member() bool {
	if !r.next('}') {
		return false
	}
	r.Key = r.Text()
	return r.expect(':')
}

// Item goes to the next item of the list; false at the end of it.
func (r *Reader) Item() bool { return r.next(']') }

func (r *Reader) next(end byte) bool {
	first := r.first
	r.first = false
	switch {
	case r.peek() == end && !r.failed:
		r.at++
		return false
	case r.failed:
		return false
	case first:
		return true
	}
	return r.expect(',')
}

// Text reads a string.
func (r *Reader) Text() []byte {
	if !r.expect('"') {
		return nil
	}
	start := r.at
	n := bytes.IndexByte(r.text[start:], '"')
	if n < 0 {
		r.failed = true
		return nil
	}
	text := r.text[start : start+n]
	if bytes.IndexByte(text, '\\') >= 0 {
		return r.escaped(start - 1)
	}
	r.at = start + n + 1
	if !utf8.Valid(text) {
		r.failed = true
	}
	return text
}

func (r *Reader) escaped(start int) []byte {
	r.at = start
	var text string
	if err := json.Unmarshal(r.Skip(), &text); err != nil {
		r.failed = true
	}
	return []byte(text)
}

// Integer reads a number without fraction and exponent that fits.
func (r *Reader) Integer() int64 {
	n, err := strconv.ParseInt(string(r.scalar()), 10, 64)
	if err != nil {
		r.failed = true
	}
	return n
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	switch string(r.scalar()) {
	case "true":
		return true
	case "false":
	default:
		r.failed = true
	}
	return false
}

// scalar passes what is neither a string nor an object nor a list.
func (r *Reader) scalar() []byte {
	r.peek()
	start := r.at
	for r.at < len(r.text) {
		switch r.text[r.at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n', '"', '{', '[', ':':
			return r.text[start:r.at]
		}
		r.at++
	}
	return r.text[start:r.at]
}

// Composite says whether an object or a list comes next.
func (r *Reader) Composite() bool {
	c := r.peek()
	return c == '{' || c == '['
}

// Skip passes a value and returns its text.
func (r *Reader) Skip() []byte {
	c := r.peek()
	start := r.at
	switch c {
	case '{', '[':
		r.skipNested()
	case '"':
		r.skipText()
	default:
		if len(r.scalar()) == 0 {
			r.failed = true
		}
	}
	if r.failed {
		return nil
	}
	return r.text[start:r.at]
}

// skipText passes a string, from its opening quote on.
func (r *Reader) skipText() {
	for at := r.at + 1; ; {
		n := bytes.IndexByte(r.text[at:], '"')
		if n < 0 {
			r.failed = true
			return
		}
		end := at + n
		back := end
		for back > at && r.text[back-1] == '\\' {
			back--
		}
		at = end + 1
		if (end-back)%2 == 0 {
			r.at = at
			return
		}
	}
}

// skipNested passes an object or a list, from its opening bracket on.
func (r *Reader) skipNested() {
	for depth := 0; r.at < len(r.text); {
		switch r.text[r.at] {
		case '"':
			if r.skipText(); r.failed {
				return
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				r.at++
				return
			}
		}
		r.at++
	}
	r.failed = true
}
