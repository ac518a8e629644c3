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
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// Story is all that a reader may know of why a unit has not got what it asks for. Fields of the aggregated API are nil
// if it did not answer.
type Story struct {
	Unit *v1alpha1.QueueUnit
	Live *visibility.Unit
	// Missing says why there is no answer of the aggregated API.
	Missing string
	// Quota is that of the unit.
	Quota *visibility.LocalQuota
	// Forecast is nil for a unit that is not in line.
	Forecast *visibility.Forecast
	Ahead    []visibility.WaitingUnit
	// Taking is what the unit takes now, Taken the preemption since which it waits; nil without one.
	Taking *answers.Taking
	Taken  *answers.Taken
	// Lost is the last eviction of a unit that was admitted again.
	Lost *visibility.Record
	// OtherPods are pods of the namespace that use the quota and that no admitted unit accounts for.
	OtherPods     []string
	MoreOtherPods int
	// MoreAhead is the number of units ahead that are not listed.
	MoreAhead int64
}

// Why writes why a job waits, in a few lines.
func Why(out io.Writer, now time.Time, s *Story) error { return writeShort(out, Short(now, s)) }

// WhyWide writes the same, and behind it the facts and up to most rows of each table.
func WhyWide(out io.Writer, now time.Time, s *Story, most int) error {
	p := &Writer{out: out}
	p.err = writeShort(out, Short(now, s))
	for _, part := range Wide(now, s, most) {
		writePart(p, &part)
	}
	return p.err
}

func writePart(p *Writer, part *Part) {
	p.Printf("\n")
	if part.Title != "" {
		p.Printf("%s\n", part.Title)
	}
	for _, line := range part.Text {
		p.Printf("  %s\n", line)
	}
	rows := part.Rows
	if part.Header != nil {
		rows = append([][]string{part.Header}, rows...)
	}
	if len(rows) > 0 {
		p.Table(rows)
	}
	if part.More > 0 {
		p.Printf("  and %d more\n", part.More)
	}
}

// reason is that of the aggregated API, which has the amounts of this moment, or that of the object.
func (s *Story) reason() (reason, message string) {
	if s.Live != nil && s.Live.Status.Reason != "" {
		return s.Live.Status.Reason, s.Live.Status.Message
	}
	return reasonOf(s.Unit)
}

// key names a unit. A reader of one namespace does not learn the names of units elsewhere.
func key(namespace, name string) string {
	if name == "" {
		return "(another namespace)"
	}
	return namespace + "/" + name
}

func sortedNames(list corev1.ResourceList) []corev1.ResourceName {
	return slices.SortedFunc(maps.Keys(list), func(a, b corev1.ResourceName) int {
		return strings.Compare(string(a), string(b))
	})
}
