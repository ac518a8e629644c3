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

package intake

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/answer"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/objects"
)

const (
	// fetchMost is how many units are read one by one; where more differ, all are listed.
	fetchMost = 2000
	// fetchAtOnce bounds the requests.
	fetchAtOnce = 16
)

// MissedUnits reads consistently what the API server has and the engine has not: the last leader's writes, where a
// watch lags behind them (I1, I8). Versions alone are listed, which costs the API server about a quarter and this
// process a tenth of whole units; most are known already. unknown names those that are not.
func (s *Sources) MissedUnits(
	ctx context.Context, unknown func([]metav1.PartialObjectMetadata) ([]types.NamespacedName, error),
) ([]*objects.Unit, error) {
	if s.from.Metadata != nil {
		var missed []types.NamespacedName
		err := s.eachVersionPage(ctx, func(page []metav1.PartialObjectMetadata) error {
			names, err := unknown(page)
			missed = append(missed, names...)
			return err
		})
		if err != nil || len(missed) <= fetchMost {
			if err != nil {
				return nil, err
			}
			return s.fetchUnits(ctx, missed)
		}
	}
	units, _, err := s.ListUnits(ctx)
	return units, err
}

// eachVersionPage reads the metadata of all units consistently, page by page.
func (s *Sources) eachVersionPage(ctx context.Context, visit func([]metav1.PartialObjectMetadata) error) error {
	o := metav1.ListOptions{Limit: ListPage}
	for {
		list, err := within(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
			return s.from.Metadata.Resource(v1alpha1.QueueUnitResource).List(ctx, o)
		})
		if err != nil {
			return err
		}
		if err := visit(list.Items); err != nil {
			return err
		}
		if o.Continue = list.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}

// fetchUnits reads these units; those that no longer exist are left out.
func (s *Sources) fetchUnits(ctx context.Context, names []types.NamespacedName) ([]*objects.Unit, error) {
	found := make([]*objects.Unit, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchAtOnce)
	for i, name := range names {
		group.Go(func() (err error) {
			found[i], err = s.fetchUnit(ctx, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(u *objects.Unit) bool { return u == nil }), nil
}

// fetchUnit returns nil for one that does not exist.
func (s *Sources) fetchUnit(ctx context.Context, name types.NamespacedName) (*objects.Unit, error) {
	return within(ctx, func(ctx context.Context) (*objects.Unit, error) {
		u, err := objects.GetUnit(ctx, s.from.Client, name)
		switch {
		case err == nil:
			return u, nil
		case answer.IsGone(err, name.Name):
			return nil, nil
		default:
			return nil, err
		}
	})
}

// within gives one request a deadline. Of a list each page has its own: how many there are depends on the number of
// units.
func within[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	return request(ctx)
}
