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
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

const (
	// perPage is the number of waiting units on a page.
	perPage = 50
	// answerSize is the size of one answer of the aggregated API, and mostLooked how many units a filter looks at.
	answerSize = 500
	mostLooked = 5000
	// mostAdmitted units of a queue on its page.
	mostAdmitted = 50
)

type queuesBody struct{ Rows []visibility.Queue }

func queuesPage(q *question) (*view, error) {
	queues, note, err := scoped(q, func(namespace string) ([]visibility.Queue, error) {
		return q.Queues(q.Context, namespace)
	})
	if err != nil {
		return nil, err
	}
	return &view{Title: "Queues", Nav: "/queues", Template: "queues", Body: &queuesBody{queues}, Note: note}, nil
}

// lineFilter selects waiting units; empty fields select all.
type lineFilter struct{ Namespace, Quota, Kind, Reason, Text string }

func (f *lineFilter) all() bool { return *f == lineFilter{} }

func (f *lineFilter) selects(w *visibility.WaitingUnit) bool {
	return (f.Namespace == "" || w.Namespace == f.Namespace) && (f.Quota == "" || w.Quota == f.Quota) &&
		(f.Kind == "" || strings.EqualFold(w.Kind, f.Kind) || strings.EqualFold(shortKind(w.Kind), f.Kind)) &&
		(f.Reason == "" || strings.EqualFold(w.Reason, f.Reason)) &&
		(f.Text == "" || strings.Contains(w.Name, f.Text) || strings.Contains(w.Job, f.Text))
}

// shortKind is the first part of Kind.version.group.
func shortKind(kind string) string {
	kind, _, _ = strings.Cut(kind, ".")
	return kind
}

type queueBody struct {
	Name     string
	Queue    *visibility.Queue
	Filter   lineFilter
	Rows     []waitingRow
	Total    int
	From, To int
	// Previous and Next are URLs; empty at an end.
	Previous, Next string
	// Looked is how many units a filter looked at; 0 without a filter.
	Looked   int
	Admitted []admittedRow
	More     bool
	NoUnits  string
}

type waitingRow struct {
	*visibility.WaitingUnit
	Link, Job, Kind, Asks, Since, About string
}

type admittedRow struct {
	screen.Row
	Link, Since string
}

func queuePage(q *question) (*view, error) {
	name := q.PathValue("name")
	body := &queueBody{Name: name, Filter: lineFilter{
		q.query.Get("namespace"), q.query.Get("quota"), q.query.Get("kind"), q.query.Get("reason"), q.query.Get("text"),
	}}
	from, _ := strconv.Atoi(q.query.Get("from"))
	body.From = max(from, 0)
	if err := body.line(q); err != nil {
		return nil, err
	}
	queues, err := q.Queues(q.Context, "")
	note := ""
	if apierrors.IsForbidden(err) && q.Namespace() != "" {
		queues, err = q.Queues(q.Context, q.Namespace())
		note = ofOneNamespace(q)
	}
	if err == nil {
		if i := slices.IndexFunc(queues, func(x visibility.Queue) bool { return x.Name == name }); i >= 0 {
			body.Queue = &queues[i]
		}
	}
	note = alsoJobs(note, body.admitted(q))
	return &view{Title: "Queue " + name, Nav: "/queues", Template: "queue", Body: body, Note: note}, nil
}

// line reads one page. With a filter it looks at up to mostLooked units.
func (b *queueBody) line(q *question) error {
	var found []visibility.WaitingUnit
	at, size := b.From, perPage
	if !b.Filter.all() {
		size = answerSize
	}
	for {
		list, err := q.Line(q.Context, q.Namespace(), b.Name, at, size)
		if err != nil {
			return err
		}
		b.Total = at + len(list.Items)
		if n := list.RemainingItemCount; n != nil {
			b.Total += int(*n)
		}
		for i := range list.Items {
			at++
			if b.Filter.selects(&list.Items[i]) {
				found = append(found, list.Items[i])
			}
			if len(found) == perPage {
				break
			}
		}
		if len(list.Items) < size || len(found) == perPage || at-b.From >= mostLooked {
			break
		}
	}
	b.To = at
	b.turn(q.query)
	b.rows(q, found)
	return nil
}

// rows of units, with the forecasts of the queue.
func (b *queueBody) rows(q *question, found []visibility.WaitingUnit) {
	var forecasts map[string]*visibility.Forecast
	if len(found) > 0 {
		forecasts = q.Forecasts(q.Context, b.Name)
	}
	for i := range found {
		w := &found[i]
		row := waitingRow{WaitingUnit: w, Asks: amounts(w.Requested), Kind: shortKind(w.Kind), Job: cmp.Or(w.Job, w.Name)}
		if w.Name != "" {
			row.Link = jobLink(w.Namespace, w.Name)
		}
		if w.QueuedAt != nil {
			row.Since = age(q.now, w.QueuedAt.Time)
		}
		if f := forecasts[w.Namespace+"/"+w.Name]; f != nil {
			row.About = screen.Expectation(q.now, &f.Status)
		}
		b.Rows = append(b.Rows, row)
	}
}

// turn makes the links to the pages before and behind.
func (b *queueBody) turn(query url.Values) {
	link := func(from int) string {
		values := url.Values{}
		for key := range query {
			values.Set(key, query.Get(key))
		}
		values.Set("from", fmt.Sprint(from))
		return "?" + values.Encode()
	}
	if b.From > 0 {
		b.Previous = link(max(b.From-perPage, 0))
		if !b.Filter.all() { // nobody knows where the page before began
			b.Previous = link(0)
		}
	}
	if b.To < b.Total {
		b.Next = link(b.To)
	}
	if !b.Filter.all() {
		b.Looked = b.To - b.From
	}
}

// admittedStates are those of units that hold quota.
var admittedStates = []unitstate.State{unitstate.Reserved, unitstate.Admitted, unitstate.Running}

// admitted jobs of the queue, in all namespaces that the caller may see.
func (b *queueBody) admitted(q *question) (note string) {
	rows, more, note, err := jobsOf(q, &unitlist.Query{Queue: b.Name, States: admittedStates}, mostAdmitted)
	if err != nil {
		b.NoUnits = err.Error()
		return note
	}
	b.More = more
	for i := range rows {
		b.Admitted = append(b.Admitted, admittedRow{
			rows[i], jobLink(rows[i].Namespace, rows[i].Unit), age(q.now, rows[i].Admitted),
		})
	}
	return note
}

// alsoJobs is the note of a page of which the jobs may have a wider scope than the rest.
func alsoJobs(note, ofJobs string) string {
	switch {
	case note == "":
		return ofJobs
	case ofJobs == "":
		return note + " Jobs are listed from all namespaces that you may see."
	}
	return note
}

// jobsOf are rows of a list. The namespace of the query is that of the URL. Without the aggregated API, and without the
// right to all namespaces, it is that of the caller.
func jobsOf(q *question, query *unitlist.Query, limit int) (rows []screen.Row, more bool, note string, err error) {
	query.Labels = labels.Everything()
	rows, note, err = scoped(q, func(namespace string) (rows []screen.Row, err error) {
		query.Namespace = namespace
		rows, more, err = q.Jobs(q.Context, query, limit)
		return rows, err
	})
	return rows, more, note, err
}

func jobLink(namespace, unit string) string {
	return "/jobs/" + url.PathEscape(namespace) + "/" + url.PathEscape(unit)
}
