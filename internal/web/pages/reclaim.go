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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
)

type reclaimBody struct {
	Queue string
	Since string
	// Dry has what would be taken if queues had no dryRun; nil if nobody knows.
	Dry   *answers.Preemptions
	NoDry string
	Now   *answers.Preemptions
}

// reclaimPage shows present preemptions, past ones, and those that dryRun keeps from happening.
func reclaimPage(q *question) (*view, error) {
	since, label := periodOf(q.query.Get("since"), "24h")
	body := &reclaimBody{Queue: q.query.Get("queue"), Since: label}
	ask := func(dryRun bool) (*answers.Preemptions, string, error) {
		return scoped(q, func(namespace string) (*answers.Preemptions, error) {
			return q.Preemptions(q.Context, &answers.PreemptionQuery{
				Namespace: namespace, Queue: body.Queue, Since: q.now.Add(-since),
			}, dryRun)
		})
	}
	now, note, err := ask(false)
	if err != nil {
		return nil, err
	}
	body.Now = now
	if body.Dry, _, err = ask(true); err != nil && !apierrors.IsForbidden(err) {
		body.NoDry = err.Error()
	}
	return &view{Title: "Reclaim", Nav: "/reclaim", Template: "reclaim", Body: body, Note: note}, nil
}

// periods that a page can show.
var periods = map[string]time.Duration{
	"1h": time.Hour, "6h": 6 * time.Hour, "24h": 24 * time.Hour, "7d": 7 * 24 * time.Hour, "30d": 30 * 24 * time.Hour,
}

func periodOf(text, otherwise string) (time.Duration, string) {
	if period, known := periods[text]; known {
		return period, text
	}
	return periods[otherwise], otherwise
}
