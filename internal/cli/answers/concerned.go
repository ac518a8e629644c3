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
	"math"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

const (
	// fieldTakes is set in units that preempt others, or did so at an earlier attempt.
	fieldTakes = "status.preemption.attempts"
	// mostEvicted is the number of units of the record that are read, those of the latest evictions.
	mostEvicted = 200
	// atATime is the number of units that are read at once.
	atATime = 10
)

// concerned are the units that preemptions may be of. Where more than a page of units exist they are those that
// preempt, and those that the records name.
func concerned(
	ctx context.Context, from client.Reader, namespace string, records []visibility.Record,
) ([]v1alpha1.QueueUnit, error) {
	first := &v1alpha1.QueueUnitList{}
	err := from.List(ctx, first, client.InNamespace(namespace), client.Limit(page))
	if err != nil || first.Continue == "" {
		return first.Items, err
	}
	units, err := selected(ctx, from, math.MaxInt, client.InNamespace(namespace), client.MatchingFieldsSelector{
		Selector: fields.OneTermNotEqualSelector(fieldTakes, ""),
	})
	if apierrors.IsBadRequest(err) { // a CustomResourceDefinition of an earlier release
		return selected(ctx, from, math.MaxInt, client.InNamespace(namespace))
	}
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for i := range units {
		known[string(units[i].UID)] = true
	}
	var victims []types.NamespacedName
	for _, record := range slices.Backward(records) {
		if !known[record.UID] && len(victims) < mostEvicted {
			known[record.UID] = true
			victims = append(victims, types.NamespacedName{Namespace: record.Namespace, Name: record.Unit})
		}
	}
	evicted, err := each(ctx, from, victims)
	return append(units, evicted...), err
}

// each reads units by their names. It leaves out units that are gone, and those that the caller may not read.
func each(
	ctx context.Context, from client.Reader, names []types.NamespacedName,
) (units []v1alpha1.QueueUnit, err error) {
	var found sync.Mutex
	reads, ctx := errgroup.WithContext(ctx)
	reads.SetLimit(atATime)
	for _, name := range names {
		reads.Go(func() error {
			u := v1alpha1.QueueUnit{}
			err := from.Get(ctx, name, &u)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				return nil
			}
			found.Lock()
			units = append(units, u)
			found.Unlock()
			return err
		})
	}
	err = reads.Wait()
	return units, err
}
