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
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

// History writes transitions as a table, the oldest first. The record was asked for since a time.
func History(out io.Writer, found *answers.Records, since time.Time, namespaces bool) error {
	header := []string{"TIME", "EVENT", "JOB", "QUEUE", "QUOTA", "ATTEMPT", "HOLDS", "WAITED", "RAN", "REASON"}
	if namespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	rows := [][]string{header}
	for i := range found.Items {
		r := &found.Items[i]
		cells := []string{
			instant(r.Time.Time), string(r.Event), answers.JobName(r.Kind, r.Job, r.Unit), r.Queue, r.Quota,
			strconv.FormatInt(r.Attempt, 10), amounts(r.Held), span(r.Waited), span(r.Ran), r.Reason,
		}
		if namespaces {
			cells = append([]string{r.Namespace}, cells...)
		}
		rows = append(rows, cells)
	}
	p := &Writer{out: out}
	if len(found.Items) > 0 {
		p.err = table(out, "", rows)
	} else {
		p.Printf("No transition is in the record.\n")
	}
	if found.Older {
		p.Printf("\nOlder records are left out. See --limit.\n")
	}
	p.completeness(found, since)
	return p.err
}

// completeness says from when on the record has everything, if that is later than what was asked for.
func (p *Writer) completeness(found *answers.Records, since time.Time) {
	if from := found.CompleteSince.Time; from.After(since) && !found.Older {
		p.Printf("\nThe record is complete since %s.\n", instant(from))
	}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func span(d *metav1.Duration) string {
	switch {
	case d == nil:
		return ""
	case d.Duration < time.Second:
		return d.Duration.String()
	}
	return duration.HumanDuration(d.Duration)
}

// Traces writes what the object of a unit says of its past, for readers without the aggregated API.
func Traces(out io.Writer, u *v1alpha1.QueueUnit, missing string) error {
	p := &Writer{out: out}
	rows := [][]string{{"TIME", "CONDITION", "REASON"}, {instant(u.CreationTimestamp.Time), "created", ""}}
	for _, c := range u.Status.Conditions {
		rows = append(rows, []string{instant(c.LastTransitionTime.Time), c.Type + "=" + string(c.Status), c.Reason})
	}
	p.Printf("%s in namespace %s: %s\n\n", answers.JobOf(u), u.Namespace, State(u))
	p.Table(rows)
	p.Printf("\nThe aggregated API gives all transitions: %s.\n", missing)
	return p.err
}

// Usage writes resource-hours by quota and namespace.
func Usage(out io.Writer, all []answers.Usage, found *answers.Records, from, to time.Time) error {
	p := &Writer{out: out}
	if len(all) == 0 {
		p.Printf("No job held quota from %s to %s.\n", instant(from), instant(to))
		p.completeness(found, from)
		return p.err
	}
	names := answers.Resources(all)
	header := []string{"QUOTA", "NAMESPACE", "JOBS"}
	total := make(map[corev1.ResourceName]float64, len(names))
	jobs := 0
	for _, name := range names {
		header = append(header, hoursOf(name))
	}
	rows := [][]string{header}
	row := func(quota, namespace string, jobs int, hours map[corev1.ResourceName]float64) {
		cells := []string{quota, namespace, strconv.Itoa(jobs)}
		for _, name := range names {
			amount := hours[name]
			if ofBytes(name) {
				amount /= 1 << 30
			}
			cells = append(cells, fmt.Sprintf("%.1f", amount))
		}
		rows = append(rows, cells)
	}
	for _, u := range all {
		row(u.Quota, u.Namespace, u.Jobs, u.Hours)
		jobs += u.Jobs
		for name, amount := range u.Hours {
			total[name] += amount
		}
	}
	if len(all) > 1 {
		row("(total)", "", jobs, total)
	}
	p.err = table(out, "", rows)
	p.Printf("\nFrom %s to %s. Hours count the quota that jobs held, used or not.\n", instant(from), instant(to))
	p.completeness(found, from)
	return p.err
}

func ofBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func hoursOf(name corev1.ResourceName) string {
	if ofBytes(name) {
		return strings.ToUpper(string(name)) + " GIB-HOURS"
	}
	return strings.ToUpper(string(name)) + "-HOURS"
}
