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

package visibility

import (
	"context"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/history"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
)

// records lists the record of transitions: of a namespace, or of all to readers with the right in the cluster. A record
// names nothing of another namespace.
type records struct{ reader *Reader }

// list selects by the fields of recordFields.
func (s records) list(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	if o.LabelSelector != nil && !o.LabelSelector.Empty() {
		return nil, apierrors.NewBadRequest("records have no labels; select by fields")
	}
	query := &history.Query{Namespace: request.NamespaceValue(ctx)}
	if err := selectRecords(query, o.FieldSelector); err != nil {
		return nil, err
	}
	var err error
	if query.Limit, err = sizeOf(o.Limit); err != nil {
		return nil, err
	}
	if o.Continue != "" {
		if query.Before, err = strconv.ParseUint(o.Continue, 10, 64); err != nil || query.Before == 0 {
			return nil, apierrors.NewBadRequest("continue: not a token of the page before")
		}
	}
	return object(s.page(ctx, query))
}

// recordFields are the fields that records can be selected by.
var recordFields = map[string]func(*history.Query, string){
	"unit":  func(q *history.Query, value string) { q.Unit = value },
	"uid":   func(q *history.Query, value string) { q.UID = value },
	"job":   func(q *history.Query, value string) { q.Job = value },
	"queue": func(q *history.Query, value string) { q.Queue = value },
	"quota": func(q *history.Query, value string) { q.Quota = value },
	"event": func(q *history.Query, value string) { q.Event = v1alpha1.RecordEvent(value) },
}

// recordField says whether a field selector may name a field.
func recordField(label, value string) (string, string, error) {
	if _, ok := recordFields[label]; !ok {
		return "", "", fmt.Errorf("records cannot be selected by %q", label)
	}
	return label, value, nil
}

func selectRecords(query *history.Query, selector fields.Selector) error {
	if selector == nil {
		return nil
	}
	for _, r := range selector.Requirements() {
		set, ok := recordFields[r.Field]
		if !ok || r.Operator != selection.Equals && r.Operator != selection.DoubleEquals || r.Value == "" {
			return apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: records cannot be selected by %s%s%s",
				r.Field, r.Operator, r.Value))
		}
		set(query, r.Value)
	}
	return nil
}

// page of the record of transitions, the newest first.
func (s records) page(ctx context.Context, query *history.Query) (*v1alpha1.RecordList, error) {
	a, err := ask(ctx, s.reader, func(questions.View) (struct{}, bool) { return struct{}{}, true })
	if err != nil {
		return nil, err
	}
	var page history.Page
	if s.narrow(query) {
		page = s.reader.History.Page(query)
	}
	list := &v1alpha1.RecordList{
		Observation: a.observation(), CompleteSince: metav1.NewTime(page.CompleteSince),
		Items: make([]v1alpha1.Record, 0, len(page.Records)),
	}
	if page.Next > 0 {
		list.Continue = strconv.FormatUint(page.Next, 10)
	}
	for i := range page.Records {
		list.Items = append(list.Items, recordOf(&page.Records[i]))
	}
	return list, nil
}

// narrow keeps the record of an earlier namespace of the same name from readers of a namespace, and says whether any
// record may be left.
func (s records) narrow(query *history.Query) bool {
	if query.Namespace == "" {
		return true
	}
	if s.reader.NamespaceCreated == nil {
		return false
	}
	created, exists := s.reader.NamespaceCreated(query.Namespace)
	query.CreatedSince = created
	return exists
}

func recordOf(r *history.Numbered) v1alpha1.Record {
	return v1alpha1.Record{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.Namespace, Name: fmt.Sprintf("%s.%d", r.Unit, r.Number), CreationTimestamp: metav1.NewTime(r.Time),
		},
		Time: metav1.NewMicroTime(r.Time), Event: r.Event, Unit: r.Unit, UID: r.UID, Kind: r.Kind, Job: r.Job,
		Queue: r.Queue, Quota: r.Quota, Priority: r.Priority, Attempt: r.Attempt, Created: metav1.NewTime(r.Created),
		Requested: amounts(r.Requested.List), Held: amounts(r.Held.List), HeldBefore: amounts(r.HeldBefore.List),
		Reason: r.Reason, Waited: durationOf(r.Waited), Ran: durationOf(r.Ran),
		Observed: r.Observed,
	}
}

func durationOf(seconds float64) *metav1.Duration {
	if seconds == 0 {
		return nil
	}
	return &metav1.Duration{Duration: time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)}
}
