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

// Package unitlist selects units of many jobs: pages of rows for a person, or the QueueUnits for a program or a change.
package unitlist

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/answers"
	"github.com/koord-jobqueue/koord-jobqueue/internal/cli/screen"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/unit"
)

// Query selects units. Empty fields select all.
type Query struct {
	// Namespace; empty is all namespaces that the caller may see.
	Namespace string
	Queue     string
	Labels    labels.Selector
	States    []unitstate.State
	// Chunk is the number of units of one request.
	Chunk int64
}

// Pages reads rows page by page, until a page is the last one or yield ends it. The aggregated API answers with one
// request for each page. Without that API rows are those of the objects, and have no position.
func Pages(ctx context.Context, r *answers.Reader, q *Query, yield func(rows []screen.Row, more bool) error) error {
	for token, first := "", true; first || token != ""; first = false {
		page, err := r.UnitsPage(ctx, q.Namespace, q.Labels.String(), q.fields(), q.Chunk, token)
		if err != nil && first && !apierrors.IsTooManyRequests(err) {
			return objectPages(ctx, r, q, yield)
		}
		if err != nil {
			return err
		}
		token = page.Continue
		rows := make([]screen.Row, 0, len(page.Items))
		for i := range page.Items {
			rows = append(rows, screen.RowOf(&page.Items[i]))
		}
		if err := yield(rows, token != ""); err != nil {
			return err
		}
	}
	return nil
}

// fields are the field selector of the aggregated API.
func (q *Query) fields() (selector string) {
	if q.Queue != "" {
		selector = ",queue=" + q.Queue
	}
	for _, state := range unitstate.All() {
		if !slices.Contains(q.States, state) {
			selector += ",state!=" + string(state)
		}
	}
	if selector == "" {
		return ""
	}
	return selector[1:]
}

func objectPages(
	ctx context.Context, r *answers.Reader, q *Query, yield func(rows []screen.Row, more bool) error,
) error {
	return objects(ctx, r, q, q.Namespace, func(units []v1alpha1.QueueUnit, more bool) error {
		rows := make([]screen.Row, 0, len(units))
		for i := range units {
			rows = append(rows, screen.RowOfObject(&units[i]))
		}
		return yield(rows, more)
	})
}

// objects reads the QueueUnits of a namespace, or of all, page by page.
func objects(
	ctx context.Context, r *answers.Reader, q *Query, namespace string,
	yield func(units []v1alpha1.QueueUnit, more bool) error,
) error {
	for token, first := "", true; first || token != ""; first = false {
		list := &v1alpha1.QueueUnitList{}
		err := r.Objects.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: q.Labels},
			client.Limit(q.Chunk), client.Continue(token))
		if err != nil {
			return err
		}
		token = list.Continue
		units := slices.DeleteFunc(list.Items, func(u v1alpha1.QueueUnit) bool { return !q.matches(&u) })
		if err := yield(units, token != ""); err != nil {
			return err
		}
	}
	return nil
}

func (q *Query) matches(u *v1alpha1.QueueUnit) bool {
	state := unitstate.Of(unit.Phase(u.Status.Phase), u.Inactive())
	queue := u.Spec.Queue
	if e := u.Status.Effective; queue == "" && e != nil {
		queue = e.Queue
	}
	return slices.Contains(q.States, state) && (q.Queue == "" || q.Queue == queue)
}

// Units reads the QueueUnits. A caller without the right to list those of all namespaces gets those of the namespaces
// that the aggregated API names. yield may end it with an error.
func Units(
	ctx context.Context, r *answers.Reader, q *Query, yield func(units []v1alpha1.QueueUnit, more bool) error,
) error {
	err := objects(ctx, r, q, q.Namespace, yield)
	if q.Namespace != "" || !apierrors.IsForbidden(err) {
		return err
	}
	namespaces, visible := namespacesOf(ctx, r, q)
	if visible != nil {
		return err
	}
	for _, namespace := range namespaces {
		if err := objects(ctx, r, q, namespace, yield); err != nil {
			return err
		}
	}
	return nil
}

// namespacesOf are those with units that a query selects.
func namespacesOf(ctx context.Context, r *answers.Reader, q *Query) (namespaces []string, err error) {
	for token, first := "", true; first || token != ""; first = false {
		page, err := r.UnitsPage(ctx, "", q.Labels.String(), q.fields(), q.Chunk, token)
		if err != nil {
			return nil, err
		}
		token = page.Continue
		for i := range page.Items {
			namespaces = append(namespaces, page.Items[i].Namespace)
		}
		namespaces = slices.Compact(namespaces)
	}
	return namespaces, nil
}
