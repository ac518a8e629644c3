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

package pages

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/web/charts"
)

// columnsOf a period.
const columnsOf = 24

type historyBody struct {
	Since, Quota  string
	Admissions    *charts.Columns
	AdmissionRows []countRow
	Waits         []waitRow
	Usage         []usageRow
	Resources     []string
	Older         bool
	// CompleteSince is set if the record does not reach as far as the period.
	CompleteSince *time.Time
	Empty         bool
}

type countRow struct {
	From  time.Time
	Count int
}

type waitRow struct {
	Queue, Quota     string
	Count, Evictions int
	Median, Most     string
	Meter            *charts.Bar
	p95              time.Duration
}

type usageRow struct {
	Quota, Namespace string
	Jobs             int
	Hours            []hours
}

// hours of a resource, compared with other quotas.
type hours struct {
	Text  string
	Meter *charts.Bar
}

func historyPage(q *question) (*view, error) {
	period, label := periodOf(q.query.Get("since"), "24h")
	body := &historyBody{Since: label, Quota: q.query.Get("quota")}
	from := q.now.Add(-period)
	type read struct {
		records *answers.Records
		units   []v1alpha1.QueueUnit
	}
	found, note, err := scoped(q, func(namespace string) (read, error) {
		records, err := q.Records(q.Context, &answers.RecordQuery{
			Namespace: namespace, Quota: body.Quota, Since: from, Limit: mostRecords,
		})
		if err != nil {
			return read{}, err
		}
		units, err := q.Admitted(q.Context, namespace, mostRecords)
		if apierrors.IsForbidden(err) && namespace == "" { // the record of all is enough
			units, err = nil, nil
		}
		return read{records, units}, err
	})
	if err != nil {
		return nil, err
	}
	body.Older = found.records.Older
	if since := found.records.CompleteSince.Time; since.After(from) {
		body.CompleteSince = &since
	}
	body.admissions(found.records.Items, from, q.now)
	body.waits(found.records.Items)
	body.usage(answers.UsageOf(found.records.Items, found.units, from, q.now))
	body.Empty = len(found.records.Items) == 0 && len(body.Usage) == 0
	return &view{Title: "History and usage", Nav: "/history", Template: "history", Body: body, Note: note}, nil
}

func (b *historyBody) admissions(records []visibility.Record, from, to time.Time) {
	counts := make([]int, columnsOf)
	step := to.Sub(from) / columnsOf
	for i := range records {
		r := &records[i]
		if at := r.Time.Sub(from); r.Event == visibility.RecordAdmitted && at >= 0 {
			counts[min(int(at/step), columnsOf-1)]++
		}
	}
	values := make([]charts.Amount, 0, columnsOf)
	for i, n := range counts {
		at := from.Add(time.Duration(i) * step)
		values = append(values, charts.Amount{Name: at.UTC().Format("Jan 2 15:04"), Number: float64(n), Text: thousands(n)})
		if n > 0 {
			b.AdmissionRows = append(b.AdmissionRows, countRow{at, n})
		}
	}
	b.Admissions = charts.NewColumns("Admissions in the last "+b.Since, values)
	b.Admissions.Begin, b.Admissions.End = values[0].Name+" UTC", "now"
}

// waits by queue and quota: the median, and the wait that 95 of 100 were within.
func (b *historyBody) waits(records []visibility.Record) {
	type key struct{ queue, quota string }
	waits, evictions := map[key][]time.Duration{}, map[key]int{}
	for i := range records {
		r := &records[i]
		of := key{r.Queue, r.Quota}
		switch {
		case r.Event == visibility.RecordEvicted:
			evictions[of]++
			waits[of] = slices.Clip(waits[of])
		case r.Event == visibility.RecordAdmitted && r.Waited != nil:
			waits[of] = append(waits[of], r.Waited.Duration)
		}
	}
	for of, all := range waits {
		slices.Sort(all)
		row := waitRow{Queue: of.queue, Quota: of.quota, Count: len(all), Evictions: evictions[of]}
		if len(all) > 0 {
			row.p95 = all[(len(all)-1)*95/100]
			row.Median, row.Most = lasting(all[(len(all)-1)/2]), lasting(row.p95)
		}
		b.Waits = append(b.Waits, row)
	}
	slices.SortFunc(b.Waits, func(x, y waitRow) int {
		return cmp.Or(cmp.Compare(x.Queue, y.Queue), cmp.Compare(x.Quota, y.Quota))
	})
	longest := time.Duration(0)
	for i := range b.Waits {
		longest = max(longest, b.Waits[i].p95)
	}
	for i := range b.Waits {
		b.Waits[i].Meter = charts.NewMeter(b.Waits[i].p95.Seconds(), longest.Seconds())
	}
}

func lasting(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return duration.HumanDuration(d)
}

func (b *historyBody) usage(all []answers.Usage) {
	all = slices.DeleteFunc(all, func(u answers.Usage) bool { return b.Quota != "" && u.Quota != b.Quota })
	list := corev1.ResourceList{}
	for _, name := range answers.Resources(all) {
		list[name] = resource.Quantity{}
	}
	sorted := names(list)
	most := map[corev1.ResourceName]float64{}
	for _, name := range sorted {
		b.Resources = append(b.Resources, string(name))
		for _, u := range all {
			most[name] = max(most[name], u.Hours[name])
		}
	}
	for _, u := range all {
		row := usageRow{Quota: u.Quota, Namespace: u.Namespace, Jobs: u.Jobs}
		for _, name := range sorted {
			row.Hours = append(row.Hours, hours{number(name, u.Hours[name]), charts.NewMeter(u.Hours[name], most[name])})
		}
		b.Usage = append(b.Usage, row)
	}
}
