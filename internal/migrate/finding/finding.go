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

// Package finding has the findings of a migration: a setting that cannot be expressed, the choice in its place, and the
// reason.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Severity says what a finding means for the jobs of the object.
type Severity string

// Severities, the gravest first.
const (
	// Error: something that jobs need was left out.
	Error Severity = "Error"
	// Warning: the objects behave differently from those that they were made of.
	Warning Severity = "Warning"
	// Info: the objects behave alike, and a person has something to know or to do.
	Info Severity = "Info"
)

// Finding is one thing about one field of one object.
type Finding struct {
	Severity Severity
	// Reason is a stable code.
	Reason Reason
	// Object is its kind and name, as ClusterQueue/team-a or LocalQueue/research/default.
	Object string
	// Field is the path of the field; empty for the object as a whole.
	Field string
	// Message is a sentence with the numbers.
	Message string
}

// maxText is the longest text of a finding that comes from an input, in runes.
const maxText = 300

// clean bounds a text and replaces what a terminal would not print.
func clean(text string) string {
	var b strings.Builder
	n := 0
	for _, r := range text {
		if n++; n > maxText {
			b.WriteString("…")
			break
		}
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// List collects findings. The zero value is empty.
type List struct {
	findings []Finding
	// left is the number of findings beyond the bound.
	left int
}

// maxFindings is the greatest number of findings of one run.
const maxFindings = 5000

// Add a finding about a field of an object.
func (l *List) Add(severity Severity, reason Reason, object, field, format string, args ...any) {
	if len(l.findings) >= maxFindings {
		l.left++
		return
	}
	l.findings = append(l.findings, Finding{
		Severity: severity, Reason: reason, Object: clean(object), Field: clean(field),
		Message: clean(fmt.Sprintf(format, args...)),
	})
}

// Sorted returns the findings, the gravest first, and those of one object together.
func (l *List) Sorted() []Finding {
	grave := map[Severity]int{Error: 0, Warning: 1, Info: 2}
	sorted := slices.Clone(l.findings)
	slices.SortStableFunc(sorted, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(grave[a.Severity], grave[b.Severity]), cmp.Compare(a.Object, b.Object),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Reason, b.Reason))
	})
	if l.left > 0 {
		sorted = append(sorted, Finding{Severity: Error, Reason: TooMany, Object: "input",
			Message: fmt.Sprintf("%d findings beyond the first %d are not listed", l.left, maxFindings)})
	}
	return sorted
}
