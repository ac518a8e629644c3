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

package engine

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
)

const (
	// fetchMost is how many units are read one by one; where more differ, all are listed.
	fetchMost = 2000
	// fetchAtOnce bounds the requests.
	fetchAtOnce = 16
)

// missedUnits reads consistently what the API server has and this engine has not: the last leader's writes, where a watch
// lags behind them (I1, I8). Versions alone are listed, which costs the API server about a quarter and this process a tenth
// of whole units; most are known already. ask runs a function in the engine's goroutine.
func (e *Engine) missedUnits(ctx context.Context, ask func(func()) error) ([]*unitObject, error) {
	if e.opts.Metadata != nil {
		var missed []types.NamespacedName
		err := e.eachVersionPage(ctx, func(page []metav1.PartialObjectMetadata) error {
			return ask(func() { missed = append(missed, e.unknown(page)...) })
		})
		if err != nil || len(missed) <= fetchMost {
			if err != nil {
				return nil, err
			}
			return e.fetchUnits(ctx, missed)
		}
	}
	units, _, err := e.listUnits(ctx)
	return units, err
}

// unknown names the units of which the engine knows no state as new as this one. What it knows only ever gets newer.
func (e *Engine) unknown(page []metav1.PartialObjectMetadata) (names []types.NamespacedName) {
	for i := range page {
		m := &page[i]
		name := types.NamespacedName{Namespace: m.Namespace, Name: m.Name}
		if rec := e.units[name.String()]; rec != nil && rec.object.UID == m.UID {
			if rec.object.ResourceVersion == m.ResourceVersion {
				continue
			}
			if c, err := resourceversion.CompareResourceVersion(rec.object.ResourceVersion, m.ResourceVersion); err == nil && c > 0 {
				continue
			}
		}
		names = append(names, name)
	}
	return names
}

// eachVersionPage reads the metadata of all units consistently, page by page.
func (e *Engine) eachVersionPage(ctx context.Context, visit func([]metav1.PartialObjectMetadata) error) error {
	o := metav1.ListOptions{Limit: listPage}
	for {
		list, err := within(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
			return e.opts.Metadata.Resource(v1alpha1.QueueUnitResource).List(ctx, o)
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

// fetchUnits reads these units; those that are gone meanwhile are left out.
func (e *Engine) fetchUnits(ctx context.Context, names []types.NamespacedName) ([]*unitObject, error) {
	found, errs := make([]*unitObject, len(names)), make([]error, len(names))
	places := make(chan struct{}, fetchAtOnce)
	var group sync.WaitGroup
	for i, name := range names {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			found[i], errs[i] = e.fetchUnit(ctx, name)
		})
	}
	group.Wait()
	units := make([]*unitObject, 0, len(names))
	for i := range names {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if found[i] != nil {
			units = append(units, found[i])
		}
	}
	return units, nil
}

// fetchUnit returns nil for one that does not exist.
func (e *Engine) fetchUnit(ctx context.Context, name types.NamespacedName) (*unitObject, error) {
	return within(ctx, func(ctx context.Context) (*unitObject, error) {
		u, err := getUnit(ctx, e.opts.Client, name)
		switch {
		case err == nil:
			return u, nil
		case isGone(err, name.Name):
			return nil, nil
		default:
			return nil, err
		}
	})
}

// within gives one request a deadline. Of a list each page has its own: how many there are depends on the number of units.
func within[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, readDeadline)
	defer cancel()
	return request(ctx)
}
