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

// Package reasons lists the reasons why a unit is pending or evicted, with the meaning of each and what helps. The
// command line, the events of jobs and docs/operators/reasons.md read the list.
package reasons

import (
	"regexp"
	"slices"
	"strings"

	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Row explains a reason.
type Row struct {
	Reason unit.Reason
	// Meaning is Markdown. Its links start from docs/operators.
	Meaning string
	// Advice says without Markdown what a person can do.
	Advice string
	// Ordinary: the unit waits for its turn or for a queue on hold, and its job gets an event of type Normal.
	Ordinary bool
}

// link is one in Markdown.
var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// Plain is the meaning without Markdown.
func (r Row) Plain() string {
	return strings.ReplaceAll(link.ReplaceAllString(r.Meaning, "$1"), "`", "")
}

// Table has a row for each reason, in the order of their names.
func Table() []Row { return slices.Clone(rows) }

// Of returns the row of a reason; one without meaning and advice if the reason is of another version.
func Of(reason string) Row {
	at, found := slices.BinarySearchFunc(rows, reason, func(r Row, name string) int {
		return strings.Compare(string(r.Reason), name)
	})
	if !found {
		return Row{Reason: unit.Reason(reason)}
	}
	return rows[at]
}
