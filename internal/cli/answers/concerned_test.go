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
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/koord-jobqueue/koord-jobqueue/apis/scheduling/v1alpha1"
	visibility "github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
)

// Of many units, those are read that preempt and that the record names, however many others there are.
func TestConcernedAmongMany(t *testing.T) {
	taker := takes(unitOf("blue", "taker", v1alpha1.PhaseEnqueued, 1), 1, "victim/1")
	objects := []client.Object{&taker}
	for _, name := range []string{"victim", "other"} {
		u := unitOf("red", name, v1alpha1.PhaseEnqueued, 1)
		objects = append(objects, &u)
	}
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	var gets atomic.Int32
	lists, many, earlier := 0, true, false
	r := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
				lists++
				o := client.ListOptions{}
				if o.ApplyOptions(opts); o.FieldSelector == nil {
					err := c.List(ctx, into)
					if many && o.Continue == "" {
						into.SetContinue("more")
					}
					return err
				}
				require.Equal(t, "status.preemption.attempts!=", o.FieldSelector.String())
				if earlier {
					return apierrors.NewBadRequest("field label not supported")
				}
				into.(*v1alpha1.QueueUnitList).Items = []v1alpha1.QueueUnit{taker}
				return nil
			},
			Get: func(
				ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, o ...client.GetOption,
			) error {
				gets.Add(1)
				return c.Get(ctx, key, into, o...)
			},
		}).Build()
	record := func(namespace, unit string) visibility.Record {
		return visibility.Record{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Unit: unit, UID: unit}
	}
	records := []visibility.Record{record("red", "gone"), record("red", "victim"), record("red", "victim")}
	for name, c := range map[string]struct {
		many, earlier     bool
		want, lists, gets int
	}{
		"one page":                         {want: 3, lists: 1},
		"many":                             {many: true, want: 2, lists: 2, gets: 2},
		"many, of an earlier installation": {many: true, earlier: true, want: 6, lists: 4}, // the fake has each twice
	} {
		t.Run(name, func(t *testing.T) {
			lists, many, earlier = 0, c.many, c.earlier
			gets.Store(0)
			units, err := concerned(t.Context(), r, "", records)
			require.NoError(t, err)
			require.Equal(t, []int{c.want, c.lists, c.gets}, []int{len(units), lists, int(gets.Load())}, fmt.Sprint(units))
		})
	}
	records = nil
	for i := range 2 * mostEvicted {
		records = append(records, record("red", fmt.Sprint("gone-", i)))
	}
	many, earlier = true, false
	gets.Store(0)
	_, err := concerned(t.Context(), r, "", records)
	require.NoError(t, err)
	require.EqualValues(t, mostEvicted, gets.Load())
}

// A namespace keeps its own units when others are read, and a victim of a dry run is none of those that preempt.
func TestNamesFromALargeCluster(t *testing.T) {
	taker, waits := unitOf("blue", "taker", v1alpha1.PhaseEnqueued, 1), unitOf("blue", "lost", v1alpha1.PhaseEnqueued, 1)
	lost := evicted(waits, "True", "Reclaimed", reclaimedByBlue)
	holder := unitOf("red", "holder", v1alpha1.PhaseRunning, 2)
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	r := Reader{Objects: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, opts ...client.ListOption) error {
			o, list := client.ListOptions{}, into.(*v1alpha1.QueueUnitList)
			switch o.ApplyOptions(opts); {
			case o.FieldSelector == nil:
				list.Continue = "more"
			case o.FieldSelector.Matches(fields.Set{"status.phase": "Running"}):
				list.Items = []v1alpha1.QueueUnit{holder}
			}
			return nil
		},
	}).Build()}
	q := &PreemptionQuery{Namespace: "blue"}
	p, err := r.named(t.Context(), q, []v1alpha1.QueueUnit{taker, lost},
		func() ([]v1alpha1.QueueUnit, error) { return r.Admitted(t.Context(), "", math.MaxInt) },
		func(units []v1alpha1.QueueUnit) (*Preemptions, bool) {
			return dryRunsOf(units, map[string]*visibility.DryRun{"taker": {Units: 1, Holds: []string{"holder/2"}}}, q)
		})
	require.NoError(t, err)
	require.Len(t, p.Taking, 1)
	require.Len(t, p.Taking[0].Victims, 1)

	p, err = r.named(t.Context(), q, []v1alpha1.QueueUnit{taker, lost},
		func() ([]v1alpha1.QueueUnit, error) { return concerned(t.Context(), r.Objects, "", nil) },
		func(units []v1alpha1.QueueUnit) (*Preemptions, bool) { return preemptionsOf(units, nil, q) })
	require.NoError(t, err)
	require.Len(t, p.Taken, 1, "it is in no record, and preempts nobody")
}
