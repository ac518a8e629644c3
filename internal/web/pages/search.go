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
	"strings"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/unitlist"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
)

const (
	// mostSearched units are looked at, and mostFound of a kind are listed.
	mostSearched = 2000
	mostFound    = 50
	// maxText bounds what is searched for, in bytes.
	maxText = 253
)

type searchBody struct {
	Text           string
	Queues, Quotas []string
	Jobs           []jobHit
	// Bound says that more units exist than were looked at.
	Bound           bool
	Looked          int
	NoJobs, NoOther string
}

type jobHit struct {
	screen.Row
	Link string
}

// searchPage looks for a part of a name.
func searchPage(q *question) (*view, error) {
	text := strings.ToLower(strings.TrimSpace(q.query.Get("q")))
	body := &searchBody{Text: text[:min(len(text), maxText)]}
	v := &view{Title: "Search", Nav: "/search", Template: "search", Body: body}
	if body.Text == "" {
		return v, nil
	}
	queues, note, err := scoped(q, func(namespace string) ([]visibility.Queue, error) {
		return q.Queues(q.Context, namespace)
	})
	if err != nil {
		body.NoOther = err.Error()
	}
	for i := range queues {
		body.Queues = body.hit(body.Queues, queues[i].Name)
	}
	quotas, _, err := scoped(q, func(namespace string) ([]visibility.Quota, error) {
		return q.Quotas(q.Context, namespace)
	})
	if err != nil {
		body.NoOther = err.Error()
	}
	for i := range quotas {
		body.Quotas = body.hit(body.Quotas, quotas[i].Name)
	}
	v.Note = alsoJobs(note, body.jobs(q))
	return v, nil
}

func (b *searchBody) hit(found []string, name string) []string {
	if len(found) < mostFound && strings.Contains(strings.ToLower(name), b.Text) {
		return append(found, name)
	}
	return found
}

func (b *searchBody) jobs(q *question) (note string) {
	rows, more, note, err := jobsOf(q, &unitlist.Query{States: unitstate.All()}, mostSearched)
	if err != nil {
		b.NoJobs = err.Error()
		return note
	}
	b.Bound, b.Looked = more, len(rows)
	rows = slices.DeleteFunc(rows, func(r screen.Row) bool {
		return !strings.Contains(strings.ToLower(r.Namespace+"/"+r.Unit+" "+r.Job), b.Text)
	})
	slices.SortStableFunc(rows, func(x, y screen.Row) int { return cmp.Compare(ended(&x), ended(&y)) })
	for _, r := range rows[:min(len(rows), mostFound)] {
		b.Jobs = append(b.Jobs, jobHit{r, jobLink(r.Namespace, r.Unit)})
	}
	return note
}

// ended jobs come last.
func ended(r *screen.Row) int {
	if unitstate.State(r.State).Over() {
		return 1
	}
	return 0
}
