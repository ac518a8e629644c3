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

package answers

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// RecordQuery selects records of transitions. Empty fields select all.
type RecordQuery struct {
	// Namespace; empty asks for all, which needs the right to.
	Namespace string
	// Job is NAME or KIND/NAME.
	Job          string
	Queue, Quota string
	Event        visibility.RecordEvent
	// Since is the time of the oldest record.
	Since time.Time
	// Limit is the number of records; 0 is no limit.
	Limit int
}

// Records are what the aggregated API has of the transitions of units.
type Records struct {
	// Items, the oldest first.
	Items []visibility.Record
	// Older says that the limit left older records out.
	Older bool
	// CompleteSince is the time from which on no record was dropped.
	CompleteSince metav1.Time
}

// Records asks the aggregated API page by page.
func (r *Reader) Records(ctx context.Context, q *RecordQuery) (*Records, error) {
	kind, job, typed := strings.Cut(q.Job, "/")
	if !typed {
		kind, job = "", q.Job
	}
	set := fields.Set{}
	for field, value := range map[string]string{"job": job, "queue": q.Queue, "quota": q.Quota, "event": string(q.Event)} {
		if value != "" {
			set[field] = value
		}
	}
	found := &Records{}
	for token := ""; ; {
		list := &visibility.RecordList{}
		req := paged(r.live.Get().Namespace(q.Namespace).Resource("records"), token)
		if len(set) > 0 {
			req = req.Param("fieldSelector", set.AsSelector().String())
		}
		if err := req.Do(ctx).Into(list); err != nil {
			return nil, err
		}
		found.CompleteSince = list.CompleteSince
		done := found.take(list.Items, q, kind)
		if token = list.Continue; token == "" || done {
			slices.Reverse(found.Items)
			return found, nil
		}
	}
}

// take adds records of a page and says whether that was the last one.
func (f *Records) take(page []visibility.Record, q *RecordQuery, kind string) (done bool) {
	for i := range page {
		switch record := &page[i]; {
		case record.Time.Time.Before(q.Since):
			return true
		case kind != "" && !isKind(record.Kind, kind):
		case q.Limit > 0 && len(f.Items) == q.Limit:
			f.Older = true
			return true
		default:
			f.Items = append(f.Items, *record)
		}
	}
	return false
}

// isKind says whether a kind such as Job.v1.batch has a name.
func isKind(kind, name string) bool {
	short, _, _ := strings.Cut(kind, ".")
	return strings.EqualFold(short, name)
}
