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
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koord-jobqueue/koord-jobqueue/apis/visibility/v1alpha1"
	"github.com/koord-jobqueue/koord-jobqueue/internal/contract/unitstate"
	"github.com/koord-jobqueue/koord-jobqueue/internal/engine/questions"
	"github.com/koord-jobqueue/koord-jobqueue/internal/visibility/holders"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/decide"
	"github.com/koord-jobqueue/koord-jobqueue/pkg/core/resources"
)

// UnitsOfQuota are the units of a quota that are not over, with what each holds; those that hold something come first.
func (r *Reader) UnitsOfQuota(ctx context.Context, quota string, page placesPage) (*v1alpha1.UnitList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.UnitRow], bool) {
		if _, exists := v.Quota(quota); !exists {
			return some[questions.UnitRow]{}, false
		}
		rows, all := v.UnitsOf(quota, page.skip, page.limit)
		return some[questions.UnitRow]{rows, all}, true
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("quotas", quota)
	}
	return unitList(a.at, a.leads, a.value.list, page.meta(len(a.value.list), a.value.rest)), nil
}

// UnitsOfLocalQuota are the same of a quota that units of a namespace use: who holds it. Of the units of others it has
// what they hold and ask for, and whether they wait.
func (r *Reader) UnitsOfLocalQuota(
	ctx context.Context, namespace, quota string, page placesPage,
) (*v1alpha1.UnitList, error) {
	a, err := ask(ctx, r, func(v questions.View) (some[questions.UnitRow], bool) {
		if _, exists := v.Quota(quota); !exists || !v.UsesQuota(namespace, quota) {
			return some[questions.UnitRow]{}, false
		}
		rows, all := v.UnitsOf(quota, page.skip, page.limit)
		return some[questions.UnitRow]{rows, all}, true
	})
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("localquotas", quota)
	}
	list := unitList(a.at, a.leads, a.value.list, page.meta(len(a.value.list), a.value.rest))
	for i := range list.Items {
		if u := &list.Items[i]; u.Namespace != namespace {
			*u = v1alpha1.Unit{Status: v1alpha1.UnitStatus{
				Phase: u.Status.Phase, Quota: quota, Requested: u.Status.Requested, Held: u.Status.Held,
			}}
		}
	}
	return list, nil
}

func unitList(at time.Time, leads bool, rows []questions.UnitRow, meta metav1.ListMeta) *v1alpha1.UnitList {
	out := &v1alpha1.UnitList{
		ListMeta: meta, Observation: &v1alpha1.Observation{AsOf: metav1.NewTime(at), Leader: leads},
		Items: make([]v1alpha1.Unit, 0, len(rows)),
	}
	for i := range rows {
		out.Items = append(out.Items, unitOf(&rows[i]))
	}
	return out
}

// Unit is one unit. It names units of namespaces that the reader may read.
func (r *Reader) Unit(ctx context.Context, namespace, name string) (*v1alpha1.Unit, error) {
	return unitFor(ctx, r, namespace, name, mayRead(ctx, r, namespace))
}

// mayRead says of the first few namespaces whether a reader of one may read the units of others.
func mayRead(ctx context.Context, r *Reader, namespace string) func(of string) bool {
	return holders.Once(namespace, func(of string) bool { return r.MayRead != nil && r.MayRead(ctx, of) })
}

// FullUnit is one unit. It says which units of whom are before it.
func (r *Reader) FullUnit(ctx context.Context, namespace, name string) (*v1alpha1.Unit, error) {
	return unitFor(ctx, r, namespace, name, func(string) bool { return true })
}

// unitFor is one unit, with the names of units in namespaces that its reader may read.
func unitFor(
	ctx context.Context, r *Reader, namespace, name string, may func(namespace string) bool,
) (*v1alpha1.Unit, error) {
	a, err := ask(ctx, r, func(v questions.View) (questions.UnitInfo, bool) { return v.Unit(namespace + "/" + name) })
	switch {
	case err != nil:
		return nil, err
	case !a.found:
		return nil, notFound("units", name)
	}
	known := func(key string) string {
		if of, _, _ := strings.Cut(key, "/"); key == "" || !may(of) {
			return ""
		}
		return key
	}
	info := &a.value
	qu := unitOf(&info.UnitRow)
	qu.Observation = a.observation()
	s := &qu.Status
	s.Position, s.Waiting, s.First = count(info.Explanation.Position), count(info.Waiting), known(info.First)
	s.Reason, s.Message, s.Writing = string(info.Reason), info.Message, info.Writing
	s.Remarks = info.Remarks
	s.Outstanding = amounts(info.Outstanding)
	if !info.Until.IsZero() {
		until := metav1.NewTime(info.Until)
		s.NotBefore = &until
	}
	if !info.LosesAt.IsZero() {
		at := metav1.NewTime(info.LosesAt)
		s.LosesQuotaAt, s.LosesQuotaFor = &at, string(info.LosesFor)
	}
	for i := range info.Shortages {
		sh := shortageOf(&info.Shortages[i])
		sh.ClaimedBy = known(sh.ClaimedBy)
		s.Shortages = append(s.Shortages, sh)
	}
	s.Holders = holders.List(&info.Holders, may)
	return &qu, nil
}

func unitOf(row *questions.UnitRow) v1alpha1.Unit {
	namespace, name, _ := strings.Cut(row.Key, "/")
	var dryRun *v1alpha1.DryRun
	if d := row.DryRun; d.Units > 0 {
		dryRun = &v1alpha1.DryRun{Units: count(d.Units), Holds: d.Holds}
	}
	var admitted *metav1.Time
	if row.Phase.Holds() && !row.Allocated.IsZero() {
		admitted = &metav1.Time{Time: row.Allocated}
	}
	return v1alpha1.Unit{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(row.UID), CreationTimestamp: metav1.NewTime(row.Created),
		},
		Status: v1alpha1.UnitStatus{
			State: string(unitstate.Of(row.Phase, row.Inactive)), Phase: string(row.Phase), Kind: row.Kind, Job: row.Job,
			Attempts: row.Attempts, AdmittedAt: admitted, Queue: row.Queue, Quota: row.Quota, Priority: row.Priority,
			Position: count(row.Position), Reason: string(row.Finding.Reason),
			Message: inWords(row.Finding, row.Requested), Observed: row.Observed,
			Requested: amounts(row.Requested), Held: amounts(row.Held), DryRun: dryRun,
		},
	}
}

func shortageOf(s *decide.Shortage) v1alpha1.Shortage {
	amount := func(n int64) resource.Quantity { return resources.Quantity(s.Resource, n) }
	given := func(n int64, is bool) *resource.Quantity {
		if !is {
			return nil
		}
		q := amount(n)
		return &q
	}
	return v1alpha1.Shortage{
		Level: s.Level, Resource: s.Resource, Bound: string(s.Kind), Binds: s.Binds, NeverFits: s.Never,
		Limit: amount(s.Limit), Max: given(s.Max, s.HasMax), Min: given(s.Min, s.HasMin),
		Used: amount(s.Used), UsedByJobs: amount(s.UsedByUnits), UsedByOthers: amount(s.UsedByOthers),
		Reserved: amount(s.Outstanding), ClaimedAhead: given(s.Claimed, s.Claimed > 0), ClaimedBy: s.ClaimedBy,
		ClaimedIn: s.ClaimedIn, Beyond: s.Beyond, Rightful: given(s.Rightful, s.TooLarge),
		Guaranteed: given(s.Guaranteed, s.Guaranteed > 0), Unusable: given(s.Unusable, s.Unusable > 0),
		Request: amount(s.Request), Free: amount(s.Free), Missing: amount(s.Missing),
	}
}
