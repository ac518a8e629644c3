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

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
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

type jobHit struct{ Namespace, Unit, Link, Job, State, Queue string }

// searchPage looks for a part of a name.
func searchPage(q *question) (*view, error) {
	text := strings.ToLower(strings.TrimSpace(q.query.Get("q")))
	body := &searchBody{Text: text[:min(len(text), maxText)]}
	v := &view{Title: "Search", Nav: "/search", Template: "search", Body: body}
	if body.Text == "" {
		return v, nil
	}
	queues, _, err := scoped(q, func(namespace string) ([]visibility.Queue, error) {
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
	v.Note = body.jobs(q)
	return v, nil
}

func (b *searchBody) hit(found []string, name string) []string {
	if len(found) < mostFound && strings.Contains(strings.ToLower(name), b.Text) {
		return append(found, name)
	}
	return found
}

func ended(u *v1alpha1.QueueUnit) int {
	if unit.Phase(u.Status.Phase).Terminal() {
		return 1
	}
	return 0
}

func (b *searchBody) jobs(q *question) (note string) {
	units, note, err := scoped(q, func(namespace string) ([]v1alpha1.QueueUnit, error) {
		units, more, err := q.Units(q.Context, namespace, mostSearched)
		b.Bound = more
		return units, err
	})
	if err != nil {
		b.NoJobs = err.Error()
		return note
	}
	b.Looked = len(units)
	// Jobs that have ended come last.
	slices.SortStableFunc(units, func(x, y v1alpha1.QueueUnit) int {
		return cmp.Compare(ended(&x), ended(&y))
	})
	for i := range units {
		u := &units[i]
		job := answers.JobOf(u)
		if len(b.Jobs) == mostFound || !strings.Contains(strings.ToLower(u.Namespace+"/"+u.Name+" "+job), b.Text) {
			continue
		}
		b.Jobs = append(b.Jobs, jobHit{
			Namespace: u.Namespace, Unit: u.Name, Link: jobLink(u.Namespace, u.Name), Job: job, State: screen.State(u),
			Queue: queueOf(u),
		})
	}
	return note
}
