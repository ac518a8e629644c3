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
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// When writes when a unit will be admitted, in the time zone of now.
func When(out io.Writer, now time.Time, f *visibility.Forecast) error {
	p, s := &Writer{out: out}, &f.Status
	if expected := expectation(now, s); expected != "" {
		p.Printf("%s\n", expected)
	} else {
		p.Printf("no time is known: %s: %s\n", Clean(s.Reason), Clean(s.Message))
	}
	if m := s.Moved; m != nil {
		p.Printf("the latest time was %s before: %s\n", dayTime(now, &m.From), Clean(cmp.Or(causes[m.Cause], m.Cause)))
	}
	if basis := restsOn(f); basis != "" {
		p.Printf("%s\n", basis)
	}
	switch {
	case s.MedianWait == nil:
	case s.Waits == 1:
		p.Printf("the last wait of this queue was %s\n", lasting(s.MedianWait.Duration))
	default:
		p.Printf("the median of the last %s of this queue is %s\n",
			number(int(s.Waits), "wait"), lasting(s.MedianWait.Duration))
	}
	return p.err
}

// causes of a later bound, in words.
var causes = map[string]string{
	"UnitChanged":          "the job has another priority, queue, quota or request",
	"ArrivalAhead":         "more jobs are ahead",
	"QuotaChanged":         "a quota was changed",
	"CapacityChanged":      "the cluster became smaller",
	"HolderBeyondItsLimit": "a job holds quota for longer than its time limit",
	"Other":                "the cause is not known",
}

// expectation is the first line; empty without a time.
func expectation(now time.Time, s *visibility.ForecastStatus) string {
	line := timesOf(now, s)
	if line != "" && s.Ahead != nil {
		line += "; " + number(int(*s.Ahead), "job") + " ahead"
	}
	return line
}

// timesOf a forecast; empty if it has none.
func timesOf(now time.Time, s *visibility.ForecastStatus) (line string) {
	switch {
	case s.About != nil:
		line = "about " + dayTime(now, s.About) + until(now, s.About)
		if s.Latest != nil {
			line += ", at the latest " + dayTime(now, s.Latest)
		} else {
			line += ", no latest time"
		}
	case s.Latest != nil:
		line = "at the latest " + dayTime(now, s.Latest) + until(now, s.Latest)
	case s.NotBefore != nil:
		line = "not before " + dayTime(now, s.NotBefore) + until(now, s.NotBefore)
	default:
		return ""
	}
	return line
}

// restsOn says which runs a forecast knows something about, and which not.
func restsOn(f *visibility.Forecast) string {
	s := &f.Status
	var parts []string
	if s.Limits > 0 {
		parts = append(parts, "time limits of "+number(int(s.Limits), "job"))
	}
	if s.Past > 0 {
		parts = append(parts, "past runs of "+number(int(s.Past), "job"))
	}
	if s.Checks != nil {
		parts = append(parts, lasting(s.Checks.Duration)+" for admission checks")
	}
	switch {
	case s.Endless > 0 && len(parts) == 0:
		return endless(f)
	case s.Endless > 0:
		parts = append(parts, number(int(s.Endless), "job")+" without either"+endlessNames(f))
	case len(parts) == 0:
		return ""
	}
	return "rests on: " + strings.Join(parts, ", ")
}

// endless says that some jobs have neither a limit nor past runs.
func endless(f *visibility.Forecast) string {
	return "nothing says for how long " + number(int(f.Status.Endless), "job") + " will hold quota" + endlessNames(f)
}

func endlessNames(f *visibility.Forecast) string {
	if len(f.Status.EndlessJobs) == 0 {
		return ""
	}
	return " (" + Clean(f.Namespace+"/"+strings.Join(f.Status.EndlessJobs, ", "+f.Namespace+"/")) + ")"
}

// dayTime names the day if that is not today.
func dayTime(now time.Time, t *metav1.Time) string {
	at := t.In(now.Location())
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	return at.Format("Mon 2 Jan 15:04")
}

func until(now time.Time, t *metav1.Time) string {
	d := t.Sub(now)
	if d < time.Second {
		return " (now)"
	}
	return " (in " + lasting(d) + ")"
}

// lasting is a time in its two largest units.
func lasting(d time.Duration) string {
	d = d.Round(time.Second)
	if d < time.Minute {
		return fmt.Sprintf("%d s", d/time.Second)
	}
	d = d.Round(time.Minute)
	const day = 24 * time.Hour
	large, small, names := d/day, d%day/time.Hour, [2]string{"d", "h"}
	switch {
	case d < time.Hour:
		large, small, names = 0, d/time.Minute, [2]string{"h", "min"}
	case d < day:
		large, small, names = d/time.Hour, d%time.Hour/time.Minute, [2]string{"h", "min"}
	}
	var parts []string
	if large > 0 {
		parts = append(parts, fmt.Sprint(int64(large), " ", names[0]))
	}
	if small > 0 {
		parts = append(parts, fmt.Sprint(int64(small), " ", names[1]))
	}
	return strings.Join(parts, " ")
}
